package msm

import (
	"github.com/consensys/gnark-crypto/ecc/bn254"

	"sui-enclave/prover/internal/par"
)

// Multiples computes multiples of one point. It has a table for each window of a scalar's bits.
type Multiples[P any] struct {
	adders []adder[P]
	table  [][]P // table[i][d] is d·2^(i·multipleBits)·point, in the adder's form
}

const multipleBits = 13

// MultiplesG1 makes the tables for a point of G1.
func MultiplesG1(point bn254.G1Affine) *Multiples[bn254.G1Affine] {
	return newMultiples(bestG1, point, func(p *bn254.G1Affine) { p.Double(p) })
}

// MultiplesG2 makes the tables for a point of G2.
func MultiplesG2(point bn254.G2Affine) *Multiples[bn254.G2Affine] {
	return newMultiples(bestG2, point, func(p *bn254.G2Affine) { p.Double(p) })
}

func newMultiples[P any](newAdder func() adder[P], point P, double func(*P)) *Multiples[P] {
	m := &Multiples[P]{table: make([][]P, (254+multipleBits-1)/multipleBits)}
	for range par.Workers() {
		m.adders = append(m.adders, newAdder())
	}
	bases := make([]P, len(m.table))
	for i := range bases {
		bases[i] = point
		for range multipleBits {
			double(&point)
		}
	}
	par.Do(len(bases), func(i, worker int) { m.table[i] = makeTable(m.adders[worker], bases[i]) })
	return m
}

// makeTable returns the multiples of the point by 0 to 2^multipleBits-1. It computes the multiple by each power of
// two, and adds this to each of the multiples before it.
func makeTable[P any](a adder[P], point P) []P {
	t := make([]P, 1<<multipleBits)
	a.lift(&t[1], &point, false)
	for n := uint32(2); n < 1<<multipleBits; n *= 2 {
		a.add(t, t, []Pair{{n, n, n}}) // n/2 twice
		pairs := make([]Pair, 0, n)
		for i := uint32(1); i < n; i++ {
			pairs = append(pairs, Pair{n << 1, i << 1, n + i})
		}
		a.add(t, t, pairs)
	}
	return t
}

// Of returns the product of the point and each scalar.
func (m *Multiples[P]) Of(scalars []Scalar) []P {
	out := make([]P, len(scalars))
	const part = 1 << 11
	par.Ranges(len(scalars), part, func(from, to, worker int) {
		m.run(m.adders[worker], out[from:to], scalars[from:to])
	})
	return out
}

func (m *Multiples[P]) run(a adder[P], out []P, scalars []Scalar) {
	n := uint32(len(out))
	pairs := make([]Pair, 0, n)
	sources := make([]P, 2*n) // n sums, then the n points to add to them
	for i, table := range m.table {
		pairs = pairs[:0]
		for j := range scalars {
			if d := window16(&scalars[j], i*multipleBits, multipleBits); d != 0 {
				sources[n+uint32(j)] = table[d]
				pairs = append(pairs, Pair{uint32(j) << 1, (n + uint32(j)) << 1, uint32(j)})
			}
		}
		a.add(sources, sources, pairs)
	}
	for j := range out {
		a.lower(&out[j], &sources[j])
	}
}
