package msm

import "sui-enclave/prover/internal/par"

// Mixed returns the sum of points[ones[i]] and of scalars[i]·points[index[i]]. It overwrites scalars. It fails if
// Product fails.
func (m *Multiplier[P, J, PJ]) Mixed(points []P, ones, index []uint32, scalars []Scalar) (J, error) {
	sum, err := m.Product(points, index, scalars)
	once := m.Sum(points, ones)
	PJ(&sum).AddAssign(&once)
	return sum, err
}

// Sum returns the sum of the points with the given indices.
func (m *Multiplier[P, J, PJ]) Sum(points []P, index []uint32) (sum J) {
	size := taskSize(len(index))
	parts := make([]P, (len(index)+size-1)/size)
	par.Ranges(len(index), size, func(from, to, worker int) {
		m.sumPart(&parts[from/size], points, index[from:to], worker)
	})
	for i := range parts {
		PJ(&sum).AddMixed(&parts[i])
	}
	return sum
}

func (m *Multiplier[P, J, PJ]) sumPart(sum *P, points []P, index []uint32, worker int) {
	a, w := m.adders[worker], &m.work[worker]
	n := len(index)
	pairs := w.pairs[:0]
	for i := 0; i+1 < n; i += 2 {
		pairs = append(pairs, Pair{index[i] << 1, index[i+1] << 1, uint32(i / 2)})
	}
	a.addKey(w.points, points, pairs)
	if n&1 == 1 {
		a.lift(&w.points[n/2], &points[index[n-1]], false)
	}
	runs := append(w.runs[:0], int32((n+1)/2))
	a.lower(sum, &sumRuns(a, w.pairs, w.points, w.scratch, runs)[0])
}
