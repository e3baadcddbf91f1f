package msm

import (
	"math/bits"
	"sort"

	"sui-enclave/prover/internal/par"
)

// sorted holds, for each window at work, the points sorted by the size of their digit; digits that are 0 are left out.
type sorted struct {
	digits []uint16 // of window first+i from i·scalars on; each as its value plus offset
	list   []uint32 // of window first+i from i·scalars on: index·2, plus 1 for a negative digit
	counts []uint32 // for each window, share and bucket: first its entries, then where they begin or end
}

// counters is the part of counts for one window and share.
func (s *sorted) counters(w windows, window, share int) []uint32 {
	return s.counts[(window*w.shares+share)*w.buckets:][:w.buckets]
}

// window returns the sorted entries of window first+i and where each bucket's end. Bucket b is of digit b+1.
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

// bucketOf returns the bucket that entry at is in.
func bucketOf(ends []uint32, at int) int {
	return sort.Search(len(ends), func(i int) bool { return int(ends[i]) > at })
}

func (s *sorted) sort(w windows, scalars []Scalar, index []uint32) {
	s.cut(w, scalars)
	size := (w.scalars + w.shares - 1) / w.shares
	digits := func(window, share int) (part []uint16, from int) {
		from = min(share*size, w.scalars)
		return s.digits[window*w.scalars:][from:min(from+size, w.scalars)], from
	}
	par.Do(w.here*w.shares, func(i, _ int) {
		window, share := i/w.shares, i%w.shares
		part, _ := digits(window, share)
		count(s.counters(w, window, share), part, w.offset(window))
	})
	par.Do(w.here, func(i, _ int) { s.begin(w, i) })
	par.Do(w.here*w.shares, func(i, _ int) {
		window, share := i/w.shares, i%w.shares
		part, from := digits(window, share)
		place(s.list[window*w.scalars:][:w.scalars], s.counters(w, window, share), part, w.offset(window), from, index)
	})
}

// offsetAll makes the windows of each scalar its signed digits plus 2^(c-1), without a carry from digit to digit: it
// adds 2^(c-1) in each window but the last (the sum of these: K). s+K is below 2^254 + 2^(c·(count-1)), which fits
// 256 bits, and its last window is at most 2^(c-1), since c·count is 255 or more and s below 0.76·2^254.
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

// offset is what offsetAll has added to the digits of window first+i: nothing to the last window's.
func (w windows) offset(i int) int {
	if w.first+i == w.count-1 {
		return 0
	}
	return w.buckets
}

// cut extracts the digits of the current windows.
func (s *sorted) cut(w windows, scalars []Scalar) {
	par.Ranges(w.scalars, 1<<12, func(from, to, _ int) {
		for window := range w.here {
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

// bucket returns a digit's bucket and sign; a digit of 0 has none.
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

// begin turns a window's counts into where each share's entries of each bucket begin.
func (s *sorted) begin(w windows, window int) {
	at := uint32(0)
	for b := range w.buckets {
		for share := range w.shares {
			c := &s.counts[(window*w.shares+share)*w.buckets+b]
			*c, at = at, at+*c
		}
	}
}

// place writes a share's entries to the list, which leaves in counters where each bucket's entries of this share end.
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
