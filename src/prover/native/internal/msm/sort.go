package msm

import (
	"math/bits"
	"sort"

	"sui-enclave/prover/internal/par"
)

// sorted holds, for each window, the points sorted by the size of their digit; digits that are 0 are left out.
type sorted struct {
	digits []uint16 // of window i from i·scalars on; each as its value plus offset
	list   []uint32 // of window i from i·scalars on: index·2, plus 1 for a negative digit
	counts []uint32 // for each window, share and bucket: first its entries, then where they begin or end
}

// shares is into how many parts a window's scalars are cut to sort them: 64 tasks at least.
func (s *sorted) shares(w windows) int { return max(1, min(8, w.scalars>>12)) }

// counters is the part of counts for one window and share.
func (s *sorted) counters(w windows, window, share int) []uint32 {
	return s.counts[(window*s.shares(w)+share)*w.buckets:][:w.buckets]
}

// window returns the sorted entries of a window and where each bucket's end. Bucket i is of digit i+1.
func (s *sorted) window(w windows, i int) (list, ends []uint32) {
	return s.list[i*w.scalars:][:w.scalars], s.counters(w, i, s.shares(w)-1)
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
	shares := s.shares(w)
	size := (w.scalars + shares - 1) / shares
	digits := func(window, share int) (part []uint16, from int) {
		from = min(share*size, w.scalars)
		return s.digits[window*w.scalars:][from:min(from+size, w.scalars)], from
	}
	par.Do(w.count*shares, func(i, _ int) {
		part, _ := digits(i/shares, i%shares)
		count(s.counters(w, i/shares, i%shares), part, w.offset(i/shares))
	})
	par.Do(w.count, func(i, _ int) { s.begin(w, i) })
	par.Do(w.count*shares, func(i, _ int) {
		part, from := digits(i/shares, i%shares)
		list := s.list[i/shares*w.scalars:][:w.scalars]
		place(list, s.counters(w, i/shares, i%shares), part, w.offset(i/shares), from, index)
	})
}

// offset is what cut adds to a window's digits: none to the last, which are never negative.
func (w windows) offset(window int) int {
	if window == w.count-1 {
		return 0
	}
	return w.buckets
}

// cut turns scalars into digits. With 2^(c-1) added in each window but the last (sum of these: K), the windows of
// s+K are the signed digits plus 2^(c-1), without a carry from digit to digit. s+K is below 2^254 + 2^(c·(count-1)),
// which fits 256 bits, and its last window is at most 2^(c-1), since c·count is 255 or more and s below 0.76·2^254.
func (s *sorted) cut(w windows, scalars []Scalar) {
	var k Scalar
	for i := range w.count - 1 {
		bit := i*w.bits + w.bits - 1
		k[bit/64] |= 1 << (bit % 64)
	}
	par.Ranges(w.scalars, 1<<12, func(from, to, _ int) {
		for i := from; i < to; i++ {
			addInto(&scalars[i], &k)
		}
		for window := range w.count {
			out := s.digits[window*w.scalars:][from:to]
			for i := range out {
				out[i] = window16(&scalars[from+i], window*w.bits, w.bits)
			}
		}
	})
}

func window16(s *Scalar, bit, bits int) uint16 {
	word, shift := bit/64, bit%64
	v := s[word] >> shift
	if shift+bits > 64 && word < 3 {
		v |= s[word+1] << (64 - shift)
	}
	return uint16(v & (1<<bits - 1))
}

func addInto(s, k *Scalar) {
	var carry uint64
	for i := range s {
		s[i], carry = bits.Add64(s[i], k[i], carry)
	}
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
		for share := range s.shares(w) {
			c := &s.counts[(window*s.shares(w)+share)*w.buckets+b]
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
