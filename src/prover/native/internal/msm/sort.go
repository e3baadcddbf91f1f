package msm

import (
	"math/bits"
	"sort"

	"sui-enclave/prover/internal/par"
)

// sorted holds, for each window being computed, the points sorted by the absolute value of their digit. Points with the
// digit 0 are left out.
type sorted struct {
	digits []uint16 // the digits of window first+i begin at i·scalars; each is its value plus offset
	list   []uint32 // the list of window first+i begins at i·scalars: index·2, plus 1 for a negative digit
	// counts has, for each window, share and bucket, first the number of entries. begin replaces it by the position at
	// which they begin, and place by the position at which they end.
	counts []uint32
}

// counters returns the part of counts for one window and share.
func (s *sorted) counters(w windows, window, share int) []uint32 {
	return s.counts[(window*w.shares+share)*w.buckets:][:w.buckets]
}

// window returns the sorted entries of window first+i, and the position at which each bucket's entries end. Bucket b
// has the entries with digit b+1 or its opposite.
func (s *sorted) window(w windows, i int) (list, ends []uint32) {
	return s.list[i*w.scalars:][:w.scalars], s.counters(w, i, w.shares-1)
}

func (s *sorted) length(w windows, i int) int {
	_, ends := s.window(w, i)
	return int(ends[w.buckets-1])
}

func startOf(ends []uint32, bucket int) int {
	if bucket == 0 {
		return 0
	}
	return int(ends[bucket-1])
}

// findBucket returns the bucket of the entry at position at.
func findBucket(ends []uint32, at int) int {
	return sort.Search(len(ends), func(i int) bool { return int(ends[i]) > at })
}

func (s *sorted) sort(w windows, scalars []Scalar, index []uint32) {
	s.cut(w, scalars)
	size := (w.scalars + w.shares - 1) / w.shares
	digits := func(window, share int) (part []uint16, from int) {
		from = min(share*size, w.scalars)
		return s.digits[window*w.scalars:][from:min(from+size, w.scalars)], from
	}
	par.Do(w.active*w.shares, func(i, _ int) {
		window, share := i/w.shares, i%w.shares
		part, _ := digits(window, share)
		count(s.counters(w, window, share), part, w.offset(window))
	})
	par.Do(w.active, func(i, _ int) { s.begin(w, i) })
	par.Do(w.active*w.shares, func(i, _ int) {
		window, share := i/w.shares, i%w.shares
		part, from := digits(window, share)
		place(s.list[window*w.scalars:][:w.scalars], s.counters(w, window, share), part, w.offset(window), from, index)
	})
}

// offsetAll adds 2^(c-1) to each window of a scalar s but the last; K is the sum of these. Each of these windows is
// then a signed digit plus 2^(c-1), so that no carry has to pass from digit to digit. s+K is below
// 2^254 + 2^(c·(count-1)), which fits 256 bits. The last window of s+K is at most 2^(c-1), since c·count is at least
// 255 and s is below 0.76·2^254.
func (w windows) offsetAll(scalars []Scalar) {
	var k Scalar
	for i := range w.count - 1 {
		bit := i*w.bits + w.bits - 1
		k[bit/64] |= 1 << (bit % 64)
	}
	par.Ranges(w.scalars, 1<<13, func(from, to, _ int) {
		for i := from; i < to; i++ {
			addInto(&scalars[i], &k)
		}
	})
}

// offset returns the number that offsetAll has added to the digits of window first+i. It is 0 for the last window.
func (w windows) offset(i int) int {
	if w.first+i == w.count-1 {
		return 0
	}
	return w.buckets
}

// cut extracts the digits of the windows being computed.
func (s *sorted) cut(w windows, scalars []Scalar) {
	par.Ranges(w.scalars, 1<<12, func(from, to, _ int) {
		for window := range w.active {
			out := s.digits[window*w.scalars:][from:to]
			for i := range out {
				out[i] = window16(&scalars[from+i], (w.first+window)*w.bits, w.bits)
			}
		}
	})
}

func addInto(s, k *Scalar) {
	var carry uint64
	for i := range s {
		s[i], carry = bits.Add64(s[i], k[i], carry)
	}
}

func window16(s *Scalar, bit, bits int) uint16 {
	word, shift := bit/64, bit%64
	v := s[word] >> shift
	if shift+bits > 64 && word < 3 {
		v |= s[word+1] << (64 - shift)
	}
	return uint16(v & (1<<bits - 1))
}

// bucket returns a digit's bucket and sign. ok is false for a digit of 0, which has no bucket.
func bucket(digit uint16, offset int) (b int, negative uint32, ok bool) {
	d := int(digit) - offset
	sign := d >> 63
	return (d ^ sign - sign) - 1, uint32(sign & 1), d != 0
}

func count(counters []uint32, digits []uint16, offset int) {
	clear(counters)
	for _, d := range digits {
		if b, _, ok := bucket(d, offset); ok {
			counters[b]++
		}
	}
}

// begin replaces a window's counts by the positions at which each share's entries of each bucket begin.
func (s *sorted) begin(w windows, window int) {
	at := uint32(0)
	for b := range w.buckets {
		for share := range w.shares {
			c := &s.counts[(window*w.shares+share)*w.buckets+b]
			*c, at = at, at+*c
		}
	}
}

// place writes a share's entries to the list. Afterwards, counters has the positions at which the share's entries of
// each bucket end.
func place(list, counters []uint32, digits []uint16, offset, from int, index []uint32) {
	for i, d := range digits {
		b, negative, ok := bucket(d, offset)
		if !ok {
			continue
		}
		point := uint32(from + i)
		if index != nil {
			point = index[point]
		}
		list[counters[b]] = point<<1 | negative
		counters[b]++
	}
}
