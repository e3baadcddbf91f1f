package msm

import (
	"github.com/consensys/gnark-crypto/ecc/bn254"

	"sui-enclave/prover/internal/mem"
	"sui-enclave/prover/internal/par"
)

// Scalar is an integer below the group's order: 256 bits in little-endian words, not in Montgomery form.
type Scalar = [4]uint64

// jacobian has the methods of the additions that are not made in batches.
type jacobian[J, P any] interface {
	*J
	AddMixed(*P) *J
	AddAssign(*J) *J
	DoubleAssign() *J
}

// Multiplier computes sums over one group. It keeps its working memory between calls, and is not safe for concurrent
// use. Each call uses every core.
type Multiplier[P, J any, PJ jacobian[J, P]] struct {
	// Step, if it is set, is called between the parts of a product; its error ends the product.
	Step    func() error
	adders  []adder[P] // one for each worker
	work    []work[P]  // one for each worker
	sorted  sorted
	buckets []P
	arena   mem.Arena
}

// G1 and G2 are the two groups' multipliers.
type (
	G1 = Multiplier[bn254.G1Affine, bn254.G1Jac, *bn254.G1Jac]
	G2 = Multiplier[bn254.G2Affine, bn254.G2Jac, *bn254.G2Jac]
)

// work is a worker's memory for one task.
type work[P any] struct {
	points, scratch []P
	pairs           []Pair
	runs            []int32
}

// NewG1 returns a multiplier for G1.
func NewG1() *G1 { return newMultiplier[bn254.G1Affine, bn254.G1Jac](bestG1) }

// NewG2 returns a multiplier for G2.
func NewG2() *G2 { return newMultiplier[bn254.G2Affine, bn254.G2Jac](bestG2) }

func newMultiplier[P, J any, PJ jacobian[J, P]](newAdder func() adder[P]) *Multiplier[P, J, PJ] {
	m := &Multiplier[P, J, PJ]{}
	for range par.Workers() {
		m.adders = append(m.adders, newAdder())
		m.work = append(m.work, work[P]{
			points: make([]P, entries), scratch: make([]P, entries),
			pairs: make([]Pair, 0, entries), runs: make([]int32, 0, entries),
		})
	}
	return m
}

// Wipe clears the working memory of earlier calls.
func (m *Multiplier[P, J, PJ]) Wipe() {
	m.arena.Wipe()
	for i := range m.adders {
		m.adders[i].wipe()
		w := &m.work[i]
		clear(w.points)
		clear(w.scratch)
		clear(w.pairs[:cap(w.pairs)])
		clear(w.runs[:cap(w.runs)])
	}
}

// Free wipes and returns the memory.
func (m *Multiplier[P, J, PJ]) Free() {
	m.Wipe()
	m.arena.Free()
	m.sorted, m.buckets = sorted{}, nil
}

// entries is the greatest number of points that a task adds up. Their sums fit into the second-level cache.
const entries = 1 << 13

// taskSize returns the number of entries of a task if there are n entries in all. Many entries make enough tasks for
// sixteen cores, and no task is so small that sharing an inversion doesn't pay.
func taskSize(n int) int { return max(256, min(entries, n/128)) }

// sumRuns returns the sum of each run of points. The runs follow one another in points, and run i has runs[i] points,
// at least one. sumRuns overwrites points, scratch and runs. The sums lie in points or in scratch. scratch needs room
// for half of the points, and for one more for each run.
func sumRuns[P any](a adder[P], pairs []Pair, points, scratch []P, runs []int32) []P {
	for more := anyLonger(runs); more; {
		more = false
		from, to := 0, 0
		pairs = pairs[:0]
		for i, run := range runs {
			n := int(run)
			for j := 0; j+1 < n; j += 2 {
				pairs = append(pairs, Pair{uint32(from+j) << 1, uint32(from+j+1) << 1, uint32(to + j/2)})
			}
			half := (n + 1) / 2
			if n&1 == 1 {
				scratch[to+half-1] = points[from+n-1]
			}
			more = more || half > 1
			runs[i] = int32(half)
			from, to = from+n, to+half
		}
		a.add(scratch, points, pairs)
		points, scratch = scratch, points
	}
	return points[:len(runs)]
}

func anyLonger(runs []int32) bool {
	for _, n := range runs {
		if n > 1 {
			return true
		}
	}
	return false
}
