package msm

import (
	"math/bits"

	"sui-enclave/prover/internal/par"
)

// reduceBuckets returns the sum of (i+1)·bucket[i] of each window at work.
func (m *Multiplier[P, J, PJ]) reduceBuckets(w windows) []J {
	segments := w.segments
	size := w.buckets / segments
	weighted, plain := make([]J, w.here*segments), make([]J, w.here*segments)
	par.Do(w.here*segments, func(i, worker int) {
		weighted[i], plain[i] = m.reduceSegment(m.buckets[i*size:(i+1)*size], worker)
	})
	sums := make([]J, w.here)
	par.Do(w.here, func(i, _ int) {
		sums[i] = joinSegments[P, J, PJ](weighted[i*segments:][:segments], plain[i*segments:][:segments], size)
	})
	return sums
}

// joinSegments returns the sum of weighted[s] + s·size·plain[s]; size is a power of two.
func joinSegments[P, J any, PJ jacobian[J, P]](weighted, plain []J, size int) (sum J) {
	var above J // sum of s·plain[s]: plain[1] + … of the sums from the end
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

// reduceSegment returns the sums of (i+1)·points[i] and of points[i]; there are 2^k points, which it clobbers.
//
// Halving k times, to points[2i] + points[2i+1], gives at level l sums of 2^l points each. i is the sum of 2^l over
// the levels where its sum is at an odd position, so that the sum of i·points[i] is the sum of 2^l times those.
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
	sums := sumRuns(a, w.pairs, odd, w.other, runs)
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
