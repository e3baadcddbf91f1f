package groth16

import (
	"crypto/sha512"
	"io"
	"math/big"

	"github.com/consensys/gnark-crypto/ecc/bn254"
	"github.com/consensys/gnark-crypto/ecc/bn254/fr"

	"sui-enclave/prover/internal/failure"
	"sui-enclave/prover/internal/iden3"
	"sui-enclave/prover/internal/msm"
	"sui-enclave/prover/internal/par"
)

// Setup makes the key of a circuit from a seed and writes it as a .zkey, with the same bytes each time. It is for
// development only, since anyone who knows the seed can forge proofs. The key contains a notice of this.
func Setup(circuit *iden3.Circuit, seed string, out io.Writer) (*iden3.VerifyingKey, error) {
	if seed == "" {
		return nil, failure.New(failure.BadRequest, "setup needs a seed that isn't empty")
	}
	s, err := newSecrets(seed)
	if err != nil {
		return nil, err
	}
	n := domainSize(circuit)
	lagrange, err := s.lagrange(n)
	if err != nil {
		return nil, err
	}
	odd, err := s.lagrange(2 * n)
	if err != nil {
		return nil, err
	}
	h := make([]fr.Element, n)
	for i := range h {
		h[i].Mul(&odd[2*i+1], &s.deltaInverse)
	}
	odd = nil
	q := s.evaluate(circuit, lagrange)
	return writeKey(circuit, n, s, q, h, out)
}

// domainSize returns the size of the domain: a power of two with a row for each constraint, for each public value,
// and for the wire that is 1.
func domainSize(c *iden3.Circuit) int {
	n := 2
	for n < c.Constraints+c.Public+1 {
		n *= 2
	}
	return n
}

// secrets has the numbers that a ceremony would destroy. Gamma is 1, as in snarkjs.
type secrets struct{ tau, alpha, beta, delta, deltaInverse fr.Element }

func newSecrets(seed string) (*secrets, error) {
	s := &secrets{}
	for name, e := range map[string]*fr.Element{"tau": &s.tau, "alpha": &s.alpha, "beta": &s.beta, "delta": &s.delta} {
		digest := sha512.Sum512([]byte("sui-enclave development key\x00" + name + "\x00" + seed))
		e.SetBigInt(new(big.Int).SetBytes(digest[:]))
		if e.IsZero() {
			return nil, failure.New(failure.BadRequest, "this seed can't be used: choose another")
		}
	}
	s.deltaInverse.Inverse(&s.delta)
	return s, nil
}

// lagrange returns the values at tau of the domain's n Lagrange polynomials, (tau^n - 1)·w^j / (n·(tau - w^j)).
func (s *secrets) lagrange(n int) ([]fr.Element, error) {
	w, err := fr.Generator(uint64(n))
	if err != nil {
		return nil, failure.New(failure.BadCircuit, "r1cs: a domain of size %d: %v", n, err)
	}
	powers := make([]fr.Element, n)
	values := make([]fr.Element, n)
	power := fr.One()
	for i := range powers {
		powers[i] = power
		values[i].Sub(&s.tau, &power)
		if values[i].IsZero() {
			return nil, failure.New(failure.BadRequest, "this seed can't be used: choose another")
		}
		power.Mul(&power, &w)
	}
	values = fr.BatchInvert(values)
	var factor, size fr.Element
	one := fr.One()
	factor.Exp(s.tau, big.NewInt(int64(n)))
	factor.Sub(&factor, &one)
	size.SetUint64(uint64(n))
	factor.Div(&factor, &size)
	v := fr.Vector(values)
	v.Mul(v, fr.Vector(powers))
	v.ScalarMul(v, &factor)
	return values, nil
}

// queries has the values of the wires' polynomials at tau. c is beta·A + alpha·B + C, divided by delta for private
// wires.
type queries struct {
	a, b, c      []fr.Element
	coefficients iden3.Coefficients
}

func (s *secrets) evaluate(circuit *iden3.Circuit, lagrange []fr.Element) *queries {
	q := &queries{
		a: make([]fr.Element, circuit.Wires), b: make([]fr.Element, circuit.Wires), c: make([]fr.Element, circuit.Wires),
	}
	of := [3][]fr.Element{q.a, q.b, q.c}
	circuit.Each(func(row int, m iden3.Matrix, wire int, coefficient fr.Element) {
		var term fr.Element
		term.Mul(&coefficient, &lagrange[row])
		of[m][wire].Add(&of[m][wire], &term)
		if m != iden3.MatrixC {
			q.coefficients.Append(m, row, wire, &coefficient)
		}
	})
	// A row for each public wire makes these wires' polynomials independent.
	one := fr.One()
	for i := range circuit.Public + 1 {
		row := circuit.Constraints + i
		q.a[i].Add(&q.a[i], &lagrange[row])
		q.coefficients.Append(iden3.MatrixA, row, i, &one)
	}
	for i := range q.c {
		var t fr.Element
		q.c[i].Add(&q.c[i], t.Mul(&q.a[i], &s.beta))
		q.c[i].Add(&q.c[i], t.Mul(&q.b[i], &s.alpha))
		if i > circuit.Public {
			q.c[i].Mul(&q.c[i], &s.deltaInverse)
		}
	}
	return q
}

func writeKey(circuit *iden3.Circuit, n int, s *secrets, q *queries, h []fr.Element, out io.Writer) (*iden3.VerifyingKey, error) {
	_, _, generator1, generator2 := bn254.Generators()
	g1, g2 := msm.MultiplesG1(generator1), msm.MultiplesG2(generator2)
	times1 := func(e []fr.Element) []bn254.G1Affine { return g1.Of(scalars(e)) }
	times2 := func(e []fr.Element) []bn254.G2Affine { return g2.Of(scalars(e)) }
	few1 := times1([]fr.Element{s.alpha, s.beta, s.delta})
	few2 := times2([]fr.Element{s.beta, fr.One(), s.delta})
	v := &iden3.VerifyingKey{Alpha: few1[0], Beta: few2[0], Gamma: few2[1], Delta: few2[2], IC: times1(q.c[:circuit.Public+1])}
	w, err := iden3.NewKeyWriter(out, iden3.KeyHeader{
		Wires: circuit.Wires, Public: circuit.Public, Domain: n, Verifying: v, Beta1: few1[1], Delta1: few1[2],
	})
	if err != nil {
		return nil, err
	}
	// The sections are computed one after the other, so that only one is in memory.
	for _, write := range []func() error{
		func() error { return w.Coefficients(&q.coefficients) },
		func() error { return w.A(times1(q.a)) },
		func() error { return w.B1(times1(q.b)) },
		func() error { return w.B2(times2(q.b)) },
		func() error { return w.C(times1(q.c[circuit.Public+1:])) },
		func() error { return w.H(times1(h)) },
		w.Close,
	} {
		if err := write(); err != nil {
			return nil, err
		}
	}
	return v, nil
}

func scalars(e []fr.Element) []msm.Scalar {
	s := make([]msm.Scalar, len(e))
	par.Ranges(len(e), part, func(from, to, _ int) {
		for i := from; i < to; i++ {
			s[i] = e[i].Bits()
		}
	})
	return s
}
