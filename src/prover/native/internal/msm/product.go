package msm

import (
	"sui-enclave/prover/internal/mem"
	"sui-enclave/prover/internal/par"
)

// Product returns the sum of scalars[i]·points[index[i]], or of scalars[i]·points[i] if index is nil. It overwrites
// scalars. It fails only if memory can't be allocated, or with an error of Step.
//
// The method is Pippenger's, with signed digits. In each window of c bits, the points are sorted by their digits into
// buckets. Tasks then sum equal shares of the sorted list, whatever the sizes of the buckets. Further tasks sum
// segments of the buckets, each bucket weighted by its digit. Several windows are computed together, from the highest
// down, so that there are tasks for every core.
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
		w.active = last - w.first
		m.sorted.sort(w, scalars, index)
		m.fillBuckets(w, points)
		sums := m.reduceBuckets(w)
		for i := w.active - 1; i >= 0; i-- {
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

// windows describes how scalars are cut into digits, and which windows are being computed.
type windows struct {
	scalars  int
	bits     int // width of a digit
	count    int
	buckets  int // buckets of a window, whose digits run from -buckets to buckets
	together int // greatest number of windows computed at a time
	shares   int // tasks that sort a window
	segments int // tasks that reduce a window

	first, active int // the windows being computed: first to first+active-1
}

// tasks is the number of tasks to aim for: four for each of sixteen cores.
const tasks = 64

// newWindows chooses the width of digits that needs the fewest additions: one for each digit and two for each bucket.
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
	parts := 1
	for parts*best.together < tasks {
		parts *= 2
	}
	best.shares = max(1, min(parts, scalars>>12))
	best.segments = max(1, min(parts, best.buckets>>6))
	return best
}

// reserve allocates the memory that w needs.
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

// share is one task: it sums the entries from, from+1, …, to-1 of the sorted list of window first+window.
type share struct{ window, from, to int }

func (m *Multiplier[P, J, PJ]) fillBuckets(w windows, points []P) {
	clear(m.buckets[:w.active*w.buckets])
	size := taskSize(w.scalars * w.active)
	var shares []share
	for i := range w.active {
		n := m.sorted.length(w, i)
		for from := 0; from < n; from += size {
			shares = append(shares, share{i, from, min(from+size, n)})
		}
	}
	// A share may begin within a bucket. Its sum for this bucket is added after all other sums are stored.
	carries := make([]carry[P], len(shares))
	par.Do(len(shares), func(i, worker int) { m.fillShare(w, shares[i], points, &carries[i], worker) })
	m.addCarries(carries)
}

// carry is a sum that belongs to a bucket in addition to the bucket's value; a nil bucket means no sum.
type carry[P any] struct {
	bucket *P
	sum    P
}

// addCarries adds each carry to its bucket. Carries of the same bucket are neighbours, and are added one after another.
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
	a, memory := m.adders[worker], &m.work[worker]
	list, ends := m.sorted.window(w, s.window)
	first := findBucket(ends, s.from)
	pairs, runs := memory.pairs[:0], memory.runs[:0]
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
			a.lift(&memory.points[out], &points[list[at]>>1], list[at]&1 == 1)
			out++
			at++
		}
		runs = append(runs, int32(n+1)/2)
	}
	a.addKey(memory.points, points, pairs)
	sums := sumRuns(a, pairs, memory.points, memory.scratch, runs)
	m.store(w, s, c, first, sums)
}

// store writes a share's sums to their buckets. If the share begins within a bucket, its first sum becomes the carry.
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
