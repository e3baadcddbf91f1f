package groth16

import (
	"math/bits"
	"unsafe"

	"github.com/consensys/gnark-crypto/ecc/bn254"
	"github.com/consensys/gnark-crypto/ecc/bn254/fr"

	"sui-enclave/prover/internal/cpu"
	"sui-enclave/prover/internal/fft"
	"sui-enclave/prover/internal/iden3"
	"sui-enclave/prover/internal/mem"
	"sui-enclave/prover/internal/msm"
	"sui-enclave/prover/internal/par"
)

// own is this project's engine.
type own struct {
	g1      *msm.G1
	g2      *msm.G2
	coset   fft.Domain
	ones    []uint64 // wires that are 1, 64 in a word
	nonBits []uint64 // wires that are neither 0 nor 1
	index   []uint32
	scalars []iden3.Scalar
	arena   mem.Arena
}

func (o *own) prepare(k *iden3.Key) (err error) {
	o.g1, o.g2 = msm.NewG1(), msm.NewG2()
	if o.coset, err = fft.New(k.Domain); err != nil {
		return err
	}
	words := (k.Wires + 63) / 64
	if o.ones, err = mem.Slice[uint64](&o.arena, words); err != nil {
		return err
	}
	if o.nonBits, err = mem.Slice[uint64](&o.arena, words); err != nil {
		return err
	}
	if o.index, err = mem.Slice[uint32](&o.arena, k.Wires); err != nil {
		return err
	}
	o.scalars, err = mem.Slice[iden3.Scalar](&o.arena, k.Wires)
	return err
}

func (o *own) domain() fft.Domain { return o.coset }

func (o *own) wipe() {
	o.g1.Wipe()
	o.g2.Wipe()
	o.coset.Wipe()
	o.arena.Wipe()
}

func (o *own) free() {
	o.g1.Free()
	o.g2.Free()
	if o.coset != nil {
		o.coset.Free()
	}
	o.arena.Free()
}

// sums adds up the points of wires that are 1, and multiplies the points of wires that are neither 0 nor 1. In
// circuits that work on bits, nearly all wires are 0 or 1.
func (o *own) sums(k *iden3.Key, w []iden3.Scalar, lap func(string) error) (s sums, err error) {
	o.classify(w)
	if s.a, err = sumOf[bn254.G1Affine, bn254.G1Jac](o, o.g1, k.A, k.InA, w, 0); err != nil {
		return s, err
	}
	if err = lap("A"); err != nil {
		return s, err
	}
	if s.b1, err = sumOf[bn254.G1Affine, bn254.G1Jac](o, o.g1, k.B1, k.InB, w, 0); err != nil {
		return s, err
	}
	if err = lap("B1"); err != nil {
		return s, err
	}
	if s.b2, err = sumOf[bn254.G2Affine, bn254.G2Jac](o, o.g2, k.B2, k.InB, w, 0); err != nil {
		return s, err
	}
	if err = lap("B2"); err != nil {
		return s, err
	}
	if s.c, err = sumOf[bn254.G1Affine, bn254.G1Jac](o, o.g1, k.C, k.InC, w, k.Public+1); err != nil {
		return s, err
	}
	return s, lap("C")
}

// classify records which wires are 1 and which are neither 0 nor 1.
func (o *own) classify(w []iden3.Scalar) {
	zero, one := iden3.Scalar{}, iden3.Scalar{1}
	const words = 1 << 7
	par.Ranges(len(o.ones), words, func(from, to, _ int) {
		for word := from; word < to; word++ {
			var ones, nonBits uint64
			for i := 64 * word; i < min(64*word+64, len(w)); i++ {
				switch w[i] {
				case zero:
				case one:
					ones |= 1 << (i % 64)
				default:
					nonBits |= 1 << (i % 64)
				}
			}
			o.ones[word], o.nonBits[word] = ones, nonBits
		}
	})
}

// multiplier is msm.G1 or msm.G2.
type multiplier[P, J any] interface {
	Mixed(points []P, ones, index []uint32, scalars []msm.Scalar) (J, error)
}

// sumOf returns the sum of w[from+i]·points[i] over the wires in the set.
func sumOf[P, J any](o *own, m multiplier[P, J], points []P, set []uint64, w []iden3.Scalar, from int) (J, error) {
	n := expand(o.index, o.nonBits, set, from)
	index, ones := o.index[:n], o.index[n:]
	par.Ranges(n, part, func(first, last, _ int) {
		for i := first; i < last; i++ {
			o.scalars[i] = w[from+int(index[i])]
		}
	})
	ones = ones[:expand(ones, o.ones, set, from)]
	return m.Mixed(points, ones, index, o.scalars[:n])
}

// expand writes the positions of the bits that both sets have, each minus from, and returns their number.
func expand(index []uint32, a, b []uint64, from int) int {
	const words = 1 << 8
	n := min(len(a), len(b))
	starts := make([]int, (n+words-1)/words+1) // first the counts, shifted by one
	par.Ranges(n, words, func(first, last, _ int) {
		for word := first; word < last; word++ {
			starts[first/words+1] += bits.OnesCount64(a[word] & b[word])
		}
	})
	for i := 1; i < len(starts); i++ {
		starts[i] += starts[i-1]
	}
	par.Ranges(n, words, func(first, last, _ int) {
		at := starts[first/words]
		for word := first; word < last; word++ {
			for both := a[word] & b[word]; both != 0; both &= both - 1 {
				index[at] = uint32(64*word + bits.TrailingZeros64(both) - from)
				at++
			}
		}
	})
	return starts[len(starts)-1]
}

// productH uses the library if only portable code runs, since the library is then a third faster for full-size
// scalars.
func (o *own) productH(k *iden3.Key, values []fr.Element, step func() error) (bn254.G1Jac, error) {
	if cpu.Chosen() == cpu.Portable {
		return libraryH(k, values, step)
	}
	o.g1.Step = step
	defer func() { o.g1.Step = nil }()
	return o.g1.Product(k.H, nil, plain(values))
}

// plain converts values from Montgomery form, in place.
func plain(values []fr.Element) []iden3.Scalar {
	par.Ranges(len(values), part, func(from, to, _ int) {
		for i := from; i < to; i++ {
			values[i] = values[i].Bits()
		}
	})
	return unsafe.Slice((*iden3.Scalar)(unsafe.SliceData(values)), len(values))
}
