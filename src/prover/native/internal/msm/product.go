package msm

import (
	"sui-enclave/prover/internal/mem"
	"sui-enclave/prover/internal/par"
)

// Product returns the sum of scalars[i]·points[index[i]], or of scalars[i]·points[i] where index is nil. It clobbers
// scalars. It fails only for want of memory, or with an error of Step.
//
// It is Pippenger's method with signed digits. Each window of c bits sorts the points by their digits into buckets;
// a task sums an equal share of the sorted list whatever the buckets' sizes; another sums a segment of the buckets,
// each weighted by its digit. A few windows go together, from the highest down: as many as make tasks for every core.
func (m *Multiplier[P, J, PJ]) Product(points []P, index []uint32, scalars []Scalar) (product J, err error) {
	if len(scalars) == 0 {
		return product, nil
	}
	w := newWindows(len(scalars))
	if err := m.reserve(w); err != nil {
		return product, err
	}
	w.offsetAll(scalars)
	for last := w.count; last > 0; last -= w.together {
		w.first = max(0, last-w.together)
		w.here = last - w.first
		m.sorted.sort(w, scalars, index)
		m.fillBuckets(w, points)
		sums := m.reduceBuckets(w)
		for i := w.here - 1; i >= 0; i-- {
			for range w.bits {
				PJ(&product).DoubleAssign()
			}
			PJ(&product).AddAssign(&sums[i])
		}
		if m.Step != nil {
			if err := m.Step(); err != nil {
				return product, err
			}
		}
	}
	return product, nil
}

// windows says how scalars are cut into digits, and which windows are at work.
type windows struct {
	scalars  int
	bits     int // of a digit
	count    int
	buckets  int // of a window: digits run from -buckets to buckets
	together int // windows at work at a time, at most
	shares   int // tasks that sort a window
	segments int // tasks that reduce a window

	first, here int // the windows at work: first to first+here-1
}

// tasks is how many there should be at least: four a core with sixteen cores.
const tasks = 64

// newWindows chooses the width with the fewest additions: one for each digit and two for each bucket.
func newWindows(scalars int) windows {
	best, least := windows{}, 0
	for bits := 4; bits <= 16; bits++ {
		w := windows{scalars: scalars, bits: bits, count: (255 + bits - 1) / bits, buckets: 1 << (bits - 1)}
		if cost := w.count * (scalars + 2*w.buckets); least == 0 || cost < least {
			best, least = w, cost
		}
	}
	const listed = 1 << 22 // digits at a time
	best.together = min(best.count, max(4, listed/scalars))
	of := 1
	for of*best.together < tasks {
		of *= 2
	}
	best.shares = max(1, min(of, scalars>>12))
	best.segments = max(1, min(of, best.buckets>>6))
	return best
}

// reserve makes room for w.
func (m *Multiplier[P, J, PJ]) reserve(w windows) (err error) {
	s := &m.sorted
	n, b := w.scalars*w.together, w.buckets*w.together
	if cap(s.digits) >= n && cap(m.buckets) >= b && cap(s.counts) >= b*w.shares {
		return nil
	}
	m.arena.Free()
	if s.digits, err = mem.Slice[uint16](&m.arena, n); err != nil {
		return err
	}
	if s.list, err = mem.Slice[uint32](&m.arena, n); err != nil {
		return err
	}
	if s.counts, err = mem.Slice[uint32](&m.arena, b*w.shares); err != nil {
		return err
	}
	m.buckets, err = mem.Slice[P](&m.arena, b)
	return err
}

// share is one task: the entries from..to of the sorted list of window first+window.
type share struct{ window, from, to int }

func (m *Multiplier[P, J, PJ]) fillBuckets(w windows, points []P) {
	clear(m.buckets[:w.here*w.buckets])
	size := taskSize(w.scalars * w.here)
	var shares []share
	for i := range w.here {
		n := m.sorted.length(w, i)
		for from := 0; from < n; from += size {
			shares = append(shares, share{i, from, min(from+size, n)})
		}
	}
	// A share may begin within a bucket; that sum is added to the bucket when the others are in their places.
	carries := make([]carry[P], len(shares))
	par.Do(len(shares), func(i, worker int) { m.fillShare(w, shares[i], points, &carries[i], worker) })
	m.addCarries(carries)
}

// carry is a sum that belongs to a bucket in addition to the bucket's value; a nil bucket means no sum.
type carry[P any] struct {
	bucket *P
	sum    P
}

// addCarries adds each carry to its bucket. Neighbours in one bucket take turns.
func (m *Multiplier[P, J, PJ]) addCarries(carries []carry[P]) {
	for len(carries) > 0 {
		var now, later []carry[P]
		for _, c := range carries {
			switch {
			case c.bucket == nil:
			case len(now) > 0 && now[len(now)-1].bucket == c.bucket:
				later = append(later, c)
			default:
				now = append(now, c)
			}
		}
		m.addEach(now)
		carries = later
	}
}

func (m *Multiplier[P, J, PJ]) addEach(carries []carry[P]) {
	points, pairs := make([]P, 2*len(carries)), make([]Pair, len(carries))
	for i, c := range carries {
		points[2*i], points[2*i+1] = *c.bucket, c.sum
		pairs[i] = Pair{uint32(2*i) << 1, uint32(2*i+1) << 1, uint32(i)}
	}
	m.adders[0].add(points, points, pairs)
	for i, c := range carries {
		*c.bucket = points[i]
	}
}

func (m *Multiplier[P, J, PJ]) fillShare(w windows, s share, points []P, c *carry[P], worker int) {
	a, own := m.adders[worker], &m.work[worker]
	list, ends := m.sorted.window(w, s.window)
	first := bucketOf(ends, s.from)
	pairs, runs := own.pairs[:0], own.runs[:0]
	out := 0
	for at, bucket := s.from, first; at < s.to; bucket++ {
		end := min(int(ends[bucket]), s.to)
		if end <= at {
			continue
		}
		n := end - at
		for ; at+1 < end; at += 2 {
			pairs = append(pairs, Pair{list[at], list[at+1], uint32(out)})
			out++
		}
		if at < end {
			a.lift(&own.points[out], &points[list[at]>>1], list[at]&1 == 1)
			out++
			at++
		}
		runs = append(runs, int32(n+1)/2)
	}
	a.addKey(own.points, points, pairs)
	sums := sumRuns(a, pairs, own.points, own.other, runs)
	m.store(w, s, c, first, sums)
}

// store puts a share's sums into their buckets.
func (m *Multiplier[P, J, PJ]) store(w windows, s share, c *carry[P], first int, sums []P) {
	_, ends := m.sorted.window(w, s.window)
	buckets := m.buckets[s.window*w.buckets:][:w.buckets]
	at := s.from
	for bucket := first; len(sums) > 0; bucket++ {
		end := min(int(ends[bucket]), s.to)
		if end <= at {
			continue
		}
		if at == s.from && startOf(ends, bucket) < s.from {
			*c = carry[P]{&buckets[bucket], sums[0]}
		} else {
			buckets[bucket] = sums[0]
		}
		at, sums = end, sums[1:]
	}
}
