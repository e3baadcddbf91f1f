// Package synth makes circuits with witnesses for tests and benchmarks. Most values of a witness are bits, as in
// circuits that hash.
package synth

import (
	"bytes"
	"math/rand/v2"

	"github.com/consensys/gnark-crypto/ecc/bn254/fr"

	"sui-enclave/prover/internal/iden3"
)

// Statement is a circuit with a witness that satisfies it.
type Statement struct {
	Wires, Public int
	Rows          [][3][]iden3.Term
	Witness       []iden3.Scalar
}

type builder struct {
	random *rand.Rand
	values []fr.Element
	rows   [][3][]iden3.Term
}

// New makes a statement with n constraints. The same arguments always make the same statement. Of a thousand
// constraints, about fullPerMille multiply full-size numbers, about as many are linear, and each of the others makes
// a wire a bit.
func New(n, fullPerMille int, seed uint64) *Statement {
	b := &builder{random: rand.New(rand.NewPCG(seed, 1)), values: []fr.Element{fr.One()}}
	public := b.wire(b.number())
	last, sum := public, b.wire(fr.Element{})
	for range n {
		switch {
		case b.random.IntN(1000) < fullPerMille:
			last = b.multiply(last, public)
		case b.random.IntN(1000) < fullPerMille:
			sum = b.add(sum)
		default:
			b.bit()
		}
	}
	s := &Statement{Wires: len(b.values), Public: 1, Rows: b.rows}
	for i := range b.values {
		s.Witness = append(s.Witness, b.values[i].Bits())
	}
	return s
}

// R1CS returns the circuit as an .r1cs file.
func (s *Statement) R1CS() []byte {
	var out bytes.Buffer
	_ = iden3.WriteCircuit(&out, s.Wires, s.Public, s.Rows) // a Buffer doesn't fail
	return out.Bytes()
}

// WTNS returns the witness as a .wtns file.
func (s *Statement) WTNS() []byte {
	var out bytes.Buffer
	_ = iden3.WriteWitness(&out, s.Witness)
	return out.Bytes()
}

func (b *builder) number() (e fr.Element) {
	for i := range e {
		e[i] = b.random.Uint64() >> 3 // below the modulus
	}
	return e
}

func (b *builder) wire(v fr.Element) int {
	b.values = append(b.values, v)
	return len(b.values) - 1
}

func term(wire int, coefficient int64) iden3.Term {
	var c fr.Element
	c.SetInt64(coefficient)
	return iden3.Term{Wire: wire, Coefficient: c}
}

// bit adds a wire w with w·(w - 1) = 0.
func (b *builder) bit() {
	w := b.wire(fr.NewElement(b.random.Uint64() & 1))
	b.rows = append(b.rows, [3][]iden3.Term{{term(w, 1)}, {term(w, 1), term(0, -1)}, {}})
}

// add adds a wire whose value is 2·sum - 3·addend, where addend is a random wire.
func (b *builder) add(sum int) int {
	addend := b.random.IntN(len(b.values))
	var v, t fr.Element
	v.Double(&b.values[sum])
	t.Double(&b.values[addend]).Add(&t, &b.values[addend])
	v.Sub(&v, &t)
	w := b.wire(v)
	b.rows = append(b.rows, [3][]iden3.Term{{term(sum, 2), term(addend, -3)}, {term(0, 1)}, {term(w, 1)}})
	return w
}

// multiply adds a wire whose value is the product of the wires x and y.
func (b *builder) multiply(x, y int) int {
	var v fr.Element
	v.Mul(&b.values[x], &b.values[y])
	w := b.wire(v)
	b.rows = append(b.rows, [3][]iden3.Term{{term(x, 1)}, {term(y, 1)}, {term(w, 1)}})
	return w
}

// Uses tells whether any constraint uses the wire.
func (s *Statement) Uses(wire int) bool {
	for _, row := range s.Rows {
		for _, combination := range row {
			for _, t := range combination {
				if t.Wire == wire {
					return true
				}
			}
		}
	}
	return false
}
