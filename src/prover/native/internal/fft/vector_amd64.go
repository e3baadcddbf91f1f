package fft

import (
	"math/bits"
	"unsafe"

	"github.com/consensys/gnark-crypto/ecc/bn254/fr"

	"sui-enclave/prover/internal/cpu"
	"sui-enclave/prover/internal/failure"
	"sui-enclave/prover/internal/mem"
	"sui-enclave/prover/internal/par"
)

//go:generate go run ../gen ..

// group is eight field elements: limb j of element i is group[j][i]. Package gen describes it.
type group [5][8]uint64

// twiddle is a factor as limbs, in Montgomery form for 2^260.
type twiddle [5]uint64

const lanes = 8

// New prepares the fastest transform that this processor has.
func New(n int) (Domain, error) {
	if cpu.Chosen() != cpu.Vectors || n < lanes*lanes {
		return NewLibrary(n)
	}
	v, err := newVector(n)
	if err != nil {
		return nil, err
	}
	return v, nil
}

// vector transforms a matrix of values, row by row in memory, in three passes over the memory: values at w^i with
// i = cols·r + c, coefficients k = k1 + rows·k2. With w^(-ik) = w^(-cols·r·k1) · w^(-c·k1) · w^(-rows·c·k2):
//
//  1. columns: sums over r, then times w^(-c·k1)/n;
//  2. rows: sums over c, which gives the coefficients; back on the coset of g^rows, since g^k = g^k1 · (g^rows)^k2;
//     then times (g·w^c)^k1;
//  3. columns: sums over k1.
//
// Sums that give coefficients decimate in frequency, and leave them in bit-reversed order. Sums that give values from
// coefficients take them in this order, and decimate in time. A pass processes eight columns or rows at once, each in
// a lane.
type vector struct {
	n, rows, cols int
	out, back     []fr.Element // the factors after passes 1 and 2, times 2^260/2^256
	down, up      [2][][]twiddle
	scratch       [][]group // one for each worker
	arena         mem.Arena
}

// Indices of down and up.
const (
	ofColumns = iota
	ofRows
)

func newVector(n int) (*vector, error) {
	logN := bits.TrailingZeros(uint(n))
	v := &vector{n: n, rows: 1 << ((logN + 1) / 2), cols: 1 << (logN / 2)}
	g, err := fr.Generator(uint64(2 * n))
	if err != nil {
		return nil, failure.New(failure.Internal, "a domain of size %d: %v", n, err)
	}
	if err := v.allocate(); err != nil {
		v.Free()
		return nil, err
	}
	var w, inverse, onRows fr.Element
	w.Square(&g)
	inverse.Inverse(&w)
	onRows = power(g, v.rows)
	v.down[ofColumns], v.up[ofColumns] = decimating(v.rows, power(inverse, v.cols)), joining(v.rows, fr.One(), power(w, v.cols))
	v.down[ofRows], v.up[ofRows] = decimating(v.cols, power(inverse, v.rows)), joining(v.cols, onRows, power(w, v.rows))
	v.factors(w, inverse, g)
	return v, nil
}

func (v *vector) allocate() (err error) {
	if v.out, err = mem.Slice[fr.Element](&v.arena, v.n); err != nil {
		return err
	}
	if v.back, err = mem.Slice[fr.Element](&v.arena, v.n); err != nil {
		return err
	}
	for range par.Workers() {
		v.scratch = append(v.scratch, make([]group, max(v.rows, v.cols)))
	}
	return nil
}

func power(x fr.Element, n int) (y fr.Element) {
	y.SetOne()
	for bit := bits.Len(uint(n)) - 1; bit >= 0; bit-- {
		y.Square(&y)
		if n>>bit&1 == 1 {
			y.Mul(&y, &x)
		}
	}
	return y
}

// sixteen converts the library's Montgomery form into the kernels' Montgomery form, as a factor.
var sixteen = fr.NewElement(16)

// factors fills out[r][c] with w^(-c·k1)/n and back[r][c] with (g·w^c)^k1, k1 being r with its bits reversed.
func (v *vector) factors(w, inverse, g fr.Element) {
	var perN fr.Element
	perN.SetUint64(uint64(v.n))
	perN.Inverse(&perN)
	perN.Mul(&perN, &sixteen)
	reverse := 65 - bits.Len(uint(v.rows))
	par.Do(v.rows, func(r, _ int) {
		k1 := int(bits.Reverse64(uint64(r)) >> reverse)
		start := power(g, k1)
		start.Mul(&start, &sixteen)
		progression(v.out[r*v.cols:][:v.cols], perN, power(inverse, k1))
		progression(v.back[r*v.cols:][:v.cols], start, power(w, k1))
	})
}

// progression fills dst with first·ratio^i.
func progression(dst []fr.Element, first, ratio fr.Element) {
	dst[0] = first
	for filled := 1; filled < len(dst); filled *= 2 {
		next := fr.Vector(dst[filled:min(2*filled, len(dst))])
		next.ScalarMul(fr.Vector(dst[:len(next)]), &ratio)
		ratio.Square(&ratio)
	}
}

// decimating returns the twiddles of each level of a transform of n values with the root w. The twiddles of level l
// are w^(i·2^l), for halves of n/2^(l+1).
func decimating(n int, w fr.Element) (levels [][]twiddle) {
	for half := n / 2; half > 0; half /= 2 {
		levels = append(levels, twiddles(half, fr.One(), w))
		w.Square(&w)
	}
	return levels
}

// joining returns the twiddles of each level of a transform back to values at h·w^i, the first level's half being 1:
// h^(n/2half)·w^(i·n/2half).
func joining(n int, h, w fr.Element) (levels [][]twiddle) {
	for half := 1; half < n; half *= 2 {
		m := n / (2 * half)
		levels = append(levels, twiddles(half, power(h, m), power(w, m)))
	}
	return levels
}

func twiddles(n int, first, ratio fr.Element) []twiddle {
	e := make([]fr.Element, n)
	first.Mul(&first, &sixteen)
	progression(e, first, ratio)
	const mask = 1<<52 - 1
	t := make([]twiddle, n)
	for i, x := range e {
		t[i] = twiddle{
			x[0] & mask, (x[0]>>52 | x[1]<<12) & mask, (x[1]>>40 | x[2]<<24) & mask, (x[2]>>28 | x[3]<<36) & mask, x[3] >> 16,
		}
	}
	return t
}

// ToCoset implements Domain.
func (v *vector) ToCoset(values []fr.Element) {
	values = values[:v.n:v.n]
	stride := uint64(v.cols) * fr.Bytes
	par.Do(v.cols/lanes, func(i, worker int) {
		s, at := v.scratch[worker][:v.rows], unsafe.Pointer(&values[i*lanes])
		loadColumns(&s[0], at, stride, uint64(v.rows))
		v.decimate(s, v.down[ofColumns], 0)
		mulStoreColumns(at, unsafe.Pointer(&v.out[i*lanes]), stride, &s[0], uint64(v.rows))
	})
	par.Do(v.rows/lanes, func(i, worker int) {
		s, at := v.scratch[worker][:v.cols], unsafe.Pointer(&values[i*lanes*v.cols])
		loadRows(&s[0], at, stride, uint64(v.cols/2))
		v.decimate(s, v.down[ofRows], 0)
		v.join(s, v.up[ofRows])
		mulStoreRows(at, unsafe.Pointer(&v.back[i*lanes*v.cols]), stride, &s[0], uint64(v.cols/2))
	})
	par.Do(v.cols/lanes, func(i, worker int) {
		s, at := v.scratch[worker][:v.rows], unsafe.Pointer(&values[i*lanes])
		loadColumns(&s[0], at, stride, uint64(v.rows))
		v.join(s, v.up[ofColumns])
		storeColumns(at, stride, &s[0], uint64(v.rows))
	})
}

// near is the number of groups that fit into the first-level cache together with their twiddles.
const near = 64

// decimate runs the levels from level on; s is one block of that level.
func (v *vector) decimate(s []group, levels [][]twiddle, level int) {
	if len(s) > near {
		decimateLevel(s, levels, level, len(s)/2)
		v.decimate(s[:len(s)/2], levels, level+1)
		v.decimate(s[len(s)/2:], levels, level+1)
		return
	}
	for half := len(s) / 2; half > 0; half /= 2 {
		decimateLevel(s, levels, level, half)
		level++
	}
}

func decimateLevel(s []group, levels [][]twiddle, level, half int) {
	run := difLevel
	if level%5 == 4 {
		run = difLevelShrinking
	}
	run(&s[0], &levels[level][0], uint64(half), uint64(len(s)/(2*half)))
}

// join runs all levels.
func (v *vector) join(s []group, levels [][]twiddle) {
	if n := len(s); n > near {
		v.join(s[:n/2], levels)
		v.join(s[n/2:], levels)
		joinLevel(s, levels, n/2)
		return
	}
	for half := 1; half < len(s); half *= 2 {
		joinLevel(s, levels, half)
	}
}

func joinLevel(s []group, levels [][]twiddle, half int) {
	ditLevel(&s[0], &levels[bits.TrailingZeros(uint(half))][0], uint64(half), uint64(len(s)/(2*half)))
}

// Wipe implements Domain.
func (v *vector) Wipe() {
	for _, s := range v.scratch {
		clear(s)
	}
}

// Free implements Domain.
func (v *vector) Free() {
	v.Wipe()
	v.arena.Free()
}
