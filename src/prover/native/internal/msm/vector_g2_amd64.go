package msm

import (
	"math/bits"
	"unsafe"

	"github.com/consensys/gnark-crypto/ecc/bn254"
)

// complexGroups has a batch of elements of the extension field: their real parts and their imaginary parts.
type complexGroups struct{ re, im [groups]group }

// vectorG2 adds points of G2 with AVX-512.
type vectorG2 struct {
	queue                         pairQueue
	x1, y1, x2, y2, d, l, slope   complexGroups
	norm                          [groups]group
	inverter                      inverter
	zeroX, zeroY, special, sameIm [groups]byte
	settled                       []settled[bn254.G2Affine]
}

func newVectorG2() adder[bn254.G2Affine] { return &vectorG2{} }

func (a *vectorG2) addKey(dst, key []bn254.G2Affine, pairs []Pair) { a.batches(dst, key, pairs, true) }
func (a *vectorG2) add(dst, src []bn254.G2Affine, pairs []Pair)    { a.batches(dst, src, pairs, false) }

func (a *vectorG2) batches(dst, src []bn254.G2Affine, pairs []Pair, key bool) {
	for len(pairs) > 0 {
		n := min(len(pairs), batch)
		a.run(dst, src, pairs[:n], key)
		pairs = pairs[n:]
	}
}

func (a *vectorG2) run(dst, src []bn254.G2Affine, pairs []Pair, key bool) {
	count := a.queue.fill(pairs)
	n := uint64(count)
	clear(a.special[:count])
	a.load(&a.x1, &a.y1, src, &a.queue[0].P, n, key)
	a.load(&a.x2, &a.y2, src, &a.queue[0].Q, n, key)
	a.compare(n)
	a.d.sub(&a.x2, &a.x1, n)
	a.l.sub(&a.y2, &a.y1, n)
	dot(&a.norm[0], &a.d.re[0], &a.d.re[0], &a.d.im[0], &a.d.im[0], n)
	a.settle(src, count, key)
	a.inverter.invert(a.norm[:count])
	a.slopes(n)
	a.finish(dst, n)
	for i := range a.settled {
		dst[a.queue[a.settled[i].at].Dst] = a.settled[i].sum
	}
}

// load reads coordinates and marks points at infinity as special.
func (a *vectorG2) load(x, y *complexGroups, src []bn254.G2Affine, index *uint32, n uint64, key bool) {
	loadX, loadY := loadOwnHalves, loadOwnHalves
	if key {
		loadX, loadY = loadKeyX, loadKeyY
	}
	loadX(&x.re[0], &x.im[0], &a.zeroX[0], unsafe.Pointer(&src[0].X), index, n)
	loadY(&y.re[0], &y.im[0], &a.zeroY[0], unsafe.Pointer(&src[0].Y), index, n)
	for i := range a.special[:n] {
		a.special[i] |= a.zeroX[i] & a.zeroY[i]
	}
}

// compare marks pairs with the same x as special.
func (a *vectorG2) compare(n uint64) {
	equal(&a.zeroX[0], &a.x1.re[0], &a.x2.re[0], n)
	equal(&a.sameIm[0], &a.x1.im[0], &a.x2.im[0], n)
	for i := range a.special[:n] {
		a.special[i] |= a.zeroX[i] & a.sameIm[i]
	}
}

func (z *complexGroups) sub(x, y *complexGroups, n uint64) {
	sub(&z.re[0], &x.re[0], &y.re[0], n)
	sub(&z.im[0], &x.im[0], &y.im[0], n)
}

// slopes sets slope = l/d = l·(d.re - d.im·u)/norm, where u² = -1.
func (a *vectorG2) slopes(n uint64) {
	re, im := &a.d.re[0], &a.d.im[0]
	mul(re, re, &a.norm[0], n)
	mul(im, im, &a.norm[0], n)
	dot(&a.slope.re[0], &a.l.re[0], re, &a.l.im[0], im, n)
	dotDifference(&a.slope.im[0], &a.l.im[0], re, &a.l.re[0], im, n)
}

// finish computes x3 = slope² - x1 - x2 and y3 = slope·(x1 - x3) - y1, in the memory of d and y2, and stores them.
func (a *vectorG2) finish(dst []bn254.G2Affine, n uint64) {
	x3, t, y3 := &a.d, &a.l, &a.y2
	x3.product(&a.slope, &a.slope, n)
	x3.sub(x3, &a.x1, n)
	x3.sub(x3, &a.x2, n)
	t.sub(&a.x1, x3, n)
	y3.product(&a.slope, t, n)
	y3.sub(y3, &a.y1, n)
	storeHalves(unsafe.Pointer(&dst[0].X), &a.queue[0], &x3.re[0], &x3.im[0], n)
	storeHalves(unsafe.Pointer(&dst[0].Y), &a.queue[0], &y3.re[0], &y3.im[0], n)
}

// product sets z = x·y. z must be neither x nor y.
func (z *complexGroups) product(x, y *complexGroups, n uint64) {
	dotDifference(&z.re[0], &x.re[0], &y.re[0], &x.im[0], &y.im[0], n)
	dot(&z.im[0], &x.re[0], &y.im[0], &x.im[0], &y.re[0], n)
}

// settle computes the sums that the formula can't compute.
func (a *vectorG2) settle(src []bn254.G2Affine, count int, key bool) {
	a.settled = a.settled[:0]
	for i, mask := range a.special[:count] {
		for ; mask != 0; mask &= mask - 1 {
			lane := bits.TrailingZeros8(mask)
			a.norm[i].setOne(lane)
			at := i*lanes + lane
			p, q := a.point(src, a.queue[at].P, key), a.point(src, a.queue[at].Q, key)
			p.Add(&p, &q)
			s := settled[bn254.G2Affine]{at: at}
			a.lift(&s.sum, &p, false)
			a.settled = append(a.settled, s)
		}
	}
}

// point returns a source in the library's form, or its opposite: see Pair.
func (a *vectorG2) point(src []bn254.G2Affine, index uint32, key bool) (p bn254.G2Affine) {
	p = src[index>>1]
	if !key {
		a.lower(&p, &p)
	}
	if index&1 == 1 {
		p.Neg(&p)
	}
	return p
}

func (a *vectorG2) lift(dst, src *bn254.G2Affine, opposite bool) {
	*dst = *src
	liftCoordinates(&dst.X, &dst.Y, opposite)
}

func (a *vectorG2) lower(dst, src *bn254.G2Affine) {
	*dst = *src
	dst.X.Halve()
	dst.X.Halve()
	dst.Y.Halve()
}

func (a *vectorG2) wipe() { *a = vectorG2{} }
