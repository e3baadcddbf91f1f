package groth16

import (
	"math/big"

	"github.com/consensys/gnark-crypto/ecc/bn254"
	"github.com/consensys/gnark-crypto/ecc/bn254/fr"

	"sui-enclave/prover/internal/failure"
	"sui-enclave/prover/internal/fft"
	"sui-enclave/prover/internal/iden3"
	"sui-enclave/prover/internal/mem"
	"sui-enclave/prover/internal/par"
	"sui-enclave/prover/internal/usage"
)

// Blinding hides the witness in a proof. R and S must be fresh and uniform for each proof.
type Blinding struct{ R, S fr.Element }

// RandomBlinding reads both numbers from the kernel's random source.
func RandomBlinding() (b Blinding, err error) {
	for _, e := range []*fr.Element{&b.R, &b.S} {
		if _, err := e.SetRandom(); err != nil {
			return b, failure.New(failure.Internal, "no randomness: %v", err)
		}
	}
	return b, nil
}

// Phase is a part of a proof, with the time that it took.
type Phase struct {
	Name string
	usage.Time
}

// Prover makes proofs under one key, one at a time, on every core. It keeps its working memory between proofs.
type Prover struct {
	Key *iden3.Key
	// Witness is where the caller puts the witness before Prove.
	Witness []iden3.Scalar
	// Step is called between the steps of a proof, if it is set: several times a second on two cores, for a domain of
	// 2^20. An error of Step ends the proof, and Prove returns the error.
	Step    func() error
	engine  engine
	a, b, c []fr.Element // values of the three polynomials, on the domain and then on its coset
	arena   mem.Arena
	phases  []Phase
	lap     usage.Moment
}

// engine computes the expensive parts of a proof. There are two engines: this project's and the library's.
type engine interface {
	// prepare allocates working memory for a key. free is called even if it fails.
	prepare(k *iden3.Key) error
	domain() fft.Domain
	// sums returns the witness' products with A, B1, B2 and C.
	// It calls lap after each product, and returns immediately with an error of lap.
	sums(k *iden3.Key, w []iden3.Scalar, lap func(string) error) (sums, error)
	// productH returns the sum of values[i]·H[i]. It may clobber values. It calls step in between, and returns at once
	// with an error of step.
	productH(k *iden3.Key, values []fr.Element, step func() error) (bn254.G1Jac, error)
	wipe()
	free()
}

type sums struct {
	a, b1, c bn254.G1Jac
	b2       bn254.G2Jac
}

// Engine names an engine.
type Engine string

const (
	// Own is this project's engine.
	Own Engine = "own"
	// Library is the engine that uses gnark-crypto, for comparison.
	Library Engine = "gnark"
)

// NewProver prepares proofs under key, which it owns from now on.
func NewProver(key *iden3.Key, name Engine) (*Prover, error) {
	p := &Prover{Key: key}
	if err := p.prepare(name); err != nil {
		p.Free()
		return nil, err
	}
	return p, nil
}

func (p *Prover) prepare(name Engine) (err error) {
	switch name {
	case Own:
		p.engine = &own{}
	case Library:
		p.engine = &library{}
	default:
		return failure.New(failure.BadRequest, "engine %q doesn't exist: use %q or %q", name, Own, Library)
	}
	if err := p.engine.prepare(p.Key); err != nil {
		return err
	}
	if p.Witness, err = mem.Slice[iden3.Scalar](&p.arena, p.Key.Wires); err != nil {
		return err
	}
	for _, values := range []*[]fr.Element{&p.a, &p.b, &p.c} {
		if *values, err = mem.Slice[fr.Element](&p.arena, p.Key.Domain); err != nil {
			return err
		}
	}
	return nil
}

// Free wipes and releases the working memory, and releases the key.
func (p *Prover) Free() {
	p.arena.Free()
	if p.engine != nil {
		p.engine.free()
	}
	p.Key.Free()
}

// Wipe clears the witness and what was computed from it. It can't clear registers, stacks and the few values that Go's
// own code copied to its heap.
func (p *Prover) Wipe() {
	p.arena.Wipe()
	p.engine.wipe()
}

// Phases returns the parts of the last proof, with their times.
func (p *Prover) Phases() []Phase { return p.phases }

func (p *Prover) done(name string) error {
	p.phases = append(p.phases, Phase{name, p.lap.Since()})
	p.lap = usage.Now()
	return p.step()
}

func (p *Prover) step() error {
	if p.Step == nil {
		return nil
	}
	return p.Step()
}

// Prove makes a proof for p.Witness and checks it under the key, so that it never returns an invalid proof.
func (p *Prover) Prove() (*iden3.Proof, iden3.Public, error) {
	blinding, err := RandomBlinding()
	if err != nil {
		return nil, nil, err
	}
	proof, err := p.ProveWith(blinding)
	if err != nil {
		return nil, nil, err
	}
	public := iden3.PublicOf(p.Witness, p.Key.Public)
	if err := Verify(&p.Key.Verifying, proof, public); err != nil {
		return nil, nil, failure.New(failure.Unsatisfied, "the witness doesn't satisfy the circuit of this key")
	}
	return proof, public, p.done("verify")
}

// ProveWith makes a proof with this blinding, and doesn't check it. It is for tests.
func (p *Prover) ProveWith(blinding Blinding) (*iden3.Proof, error) {
	p.phases, p.lap = nil, usage.Now()
	p.evaluate()
	if err := p.done("rows"); err != nil {
		return nil, err
	}
	for _, values := range [][]fr.Element{p.a, p.b, p.c} {
		p.engine.domain().ToCoset(values)
		if err := p.step(); err != nil {
			return nil, err
		}
	}
	p.quotient()
	if err := p.done("fft"); err != nil {
		return nil, err
	}
	s, err := p.engine.sums(p.Key, p.Witness, p.done)
	if err != nil {
		return nil, err
	}
	h, err := p.engine.productH(p.Key, p.a, p.step)
	if err != nil {
		return nil, err
	}
	if err := p.done("H"); err != nil {
		return nil, err
	}
	proof := assemble(p.Key, s, h, blinding)
	return proof, p.done("assemble")
}

const part = 1 << 12

// evaluate sets a = A·w, b = B·w and c = a∘b, all on the domain.
func (p *Prover) evaluate() {
	k := p.Key
	par.Ranges(k.Domain, part, func(from, to, _ int) {
		rows(p.a[from:to], &k.Rows[0], from, p.Witness)
		rows(p.b[from:to], &k.Rows[1], from, p.Witness)
		c := fr.Vector(p.c[from:to])
		c.Mul(fr.Vector(p.a[from:to]), fr.Vector(p.b[from:to]))
	})
}

// rows sets dst[i] to row from+i of the matrix times the witness.
func rows(dst []fr.Element, m *iden3.SparseMatrix, from int, w []iden3.Scalar) {
	zero, one := iden3.Scalar{}, iden3.Scalar{1}
	for i := range dst {
		var sum, product fr.Element
		for _, t := range m.Terms[m.Start[from+i]:m.Start[from+i+1]] {
			switch v := &w[t.Wire]; *v {
			case zero:
			case one:
				sum.Add(&sum, &m.Montgomery[t.Value])
			default:
				product.Mul((*fr.Element)(v), &m.Twice[t.Value])
				sum.Add(&sum, &product)
			}
		}
		dst[i] = sum
	}
}

// quotient sets a to a∘b - c on the coset. There, the vanishing polynomial of the domain is a constant, which the
// key's H includes, so these are the values of the quotient polynomial.
func (p *Prover) quotient() {
	par.Ranges(p.Key.Domain, part, func(from, to, _ int) {
		a := fr.Vector(p.a[from:to])
		a.Mul(a, fr.Vector(p.b[from:to]))
		a.Sub(a, fr.Vector(p.c[from:to]))
	})
}

// assemble blinds the sums:
//
//	A = alpha + a + r·delta
//	B = beta + b + s·delta
//	C = c + h + s·A + r·B1 - r·s·delta
func assemble(k *iden3.Key, s sums, h bn254.G1Jac, blinding Blinding) *iden3.Proof {
	var rBig, sBig big.Int
	blinding.R.BigInt(&rBig)
	blinding.S.BigInt(&sBig)
	var rs fr.Element
	rs.Mul(&blinding.R, &blinding.S)

	var delta1, t bn254.G1Jac
	var delta2 bn254.G2Jac
	delta1.FromAffine(&k.Delta1)
	delta2.FromAffine(&k.Verifying.Delta)
	times := func(p *bn254.G1Jac, e *big.Int) *bn254.G1Jac { return t.ScalarMultiplication(p, e) }

	s.a.AddMixed(&k.Verifying.Alpha).AddAssign(times(&delta1, &rBig))
	s.b1.AddMixed(&k.Beta1).AddAssign(times(&delta1, &sBig))
	s.b2.AddMixed(&k.Verifying.Beta).AddAssign(delta2.ScalarMultiplication(&delta2, &sBig))
	s.c.AddAssign(&h).AddAssign(times(&s.a, &sBig))
	s.c.AddAssign(times(&s.b1, &rBig))
	s.c.SubAssign(times(&delta1, rs.BigInt(new(big.Int))))

	proof := &iden3.Proof{}
	proof.A.FromJacobian(&s.a)
	proof.B.FromJacobian(&s.b2)
	proof.C.FromJacobian(&s.c)
	return proof
}
