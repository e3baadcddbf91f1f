package msm

import (
	"math/bits"

	"sui-enclave/prover/internal/par"
)

// reduceBuckets returns, for each window being computed, the sum of (i+1)·bucket[i].
func (m *Multiplier[P, J, PJ]) reduceBuckets(w windows) []J {
	segments := w.segments
	size := w.buckets / segments
	weighted, plain := make([]J, w.active*segments), make([]J, w.active*segments)
	par.Do(w.active*segments, func(i, worker int) {
		weighted[i], plain[i] = m.reduceSegment(m.buckets[i*size:(i+1)*size], worker)
	})
	sums := make([]J, w.active)
	par.Do(w.active, func(i, _ int) {
		sums[i] = joinSegments[P, J, PJ](weighted[i*segments:][:segments], plain[i*segments:][:segments], size)
	})
	return sums
}

// joinSegments returns the sum of weighted[s] + s·size·plain[s]; size is a power of two.
func joinSegments[P, J any, PJ jacobian[J, P]](weighted, plain []J, size int) (sum J) {
	var above J // the sum of s·plain[s], which is the sum of all values of tail
	var tail J
	for s := len(plain) - 1; s > 0; s-- {
		PJ(&tail).AddAssign(&plain[s])
		PJ(&above).AddAssign(&tail)
	}
	for range bits.TrailingZeros(uint(size)) {
		PJ(&above).DoubleAssign()
	}
	sum = above
	for s := range weighted {
		PJ(&sum).AddAssign(&weighted[s])
	}
	return sum
}

// reduceSegment returns the sums of (i+1)·points[i] and of points[i]; there are 2^k points, which it overwrites.
//
// It halves the points k times: the next level has the sums of two neighbours. At level l, points[i] is part of the
// sum at position i>>l, which is odd if and only if bit l of i is 1. The sum of i·points[i] is therefore, over all
// levels l, the sum of 2^l times the level's sums at odd positions.
func (m *Multiplier[P, J, PJ]) reduceSegment(points []P, worker int) (weighted, plain J) {
	a, w := m.adders[worker], &m.work[worker]
	odd, runs := w.points[:0], w.runs[:0]
	for n := len(points); n > 1; n /= 2 {
		pairs := w.pairs[:0]
		for i := 0; i < n; i += 2 {
			odd = append(odd, points[i+1])
			pairs = append(pairs, Pair{uint32(i) << 1, uint32(i+1) << 1, uint32(i / 2)})
		}
		a.add(points, points, pairs)
		runs = append(runs, int32(n/2))
	}
	levels := len(runs)
	sums := sumRuns(a, w.pairs, odd, w.scratch, runs)
	var p P
	for l := levels - 1; l >= 0; l-- {
		PJ(&weighted).DoubleAssign()
		a.lower(&p, &sums[l])
		PJ(&weighted).AddMixed(&p)
	}
	a.lower(&p, &points[0])
	PJ(&plain).AddMixed(&p)
	PJ(&weighted).AddAssign(&plain)
	return weighted, plain
}
