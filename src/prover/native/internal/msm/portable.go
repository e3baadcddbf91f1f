package msm

import (
	"unsafe"

	"github.com/consensys/gnark-crypto/ecc/bn254"
	"github.com/consensys/gnark-crypto/ecc/bn254/fp"
)

// field has the methods of a coordinate that the addition formula uses: those of fp.Element for G1, of bn254.E2 for G2.
type field[E any] interface {
	*E
	Add(x, y *E) *E
	Sub(x, y *E) *E
	Mul(x, y *E) *E
	Square(x *E) *E
	Neg(x *E) *E
	Inverse(x *E) *E
	IsZero() bool
	SetOne() *E
}

// affine has the library's layout of points.
type affine[E any] struct{ x, y E }

// portable is the adder for every processor. Its form of a point is the library's.
type portable[P, E any, F field[E]] struct {
	p, q     [batch]affine[E]
	d        [batch]E // x2 - x1
	product  [batch]E // of all earlier d
	special  []settled[P]
	addExact func(sum, p, q *P)
}

// settled is a sum that the addition formula can't compute: its points are equal or opposite, or one is infinity.
type settled[P any] struct {
	at  int
	sum P
}

func newPortableG1() adder[bn254.G1Affine] {
	return &portable[bn254.G1Affine, fp.Element, *fp.Element]{
		addExact: func(sum, p, q *bn254.G1Affine) { sum.Add(p, q) },
	}
}

func newPortableG2() adder[bn254.G2Affine] {
	return &portable[bn254.G2Affine, bn254.E2, *bn254.E2]{
		addExact: func(sum, p, q *bn254.G2Affine) { sum.Add(p, q) },
	}
}

func (a *portable[P, E, F]) addKey(dst, key []P, pairs []Pair) { a.add(dst, key, pairs) }

func (a *portable[P, E, F]) add(dst, src []P, pairs []Pair) {
	for len(pairs) > 0 {
		n := min(len(pairs), batch)
		a.run(coordinates[P, E](dst), coordinates[P, E](src), pairs[:n])
		pairs = pairs[n:]
	}
}

func (a *portable[P, E, F]) lift(dst, src *P, opposite bool) {
	*dst = *src
	if opposite {
		y := &(*affine[E])(unsafe.Pointer(dst)).y
		F(y).Neg(y)
	}
}

func (a *portable[P, E, F]) lower(dst, src *P) { *dst = *src }

func (a *portable[P, E, F]) wipe() {
	clear(a.p[:])
	clear(a.q[:])
	clear(a.d[:])
	clear(a.product[:])
	clear(a.special[:cap(a.special)])
}

func coordinates[P, E any](points []P) []affine[E] {
	return unsafe.Slice((*affine[E])(unsafe.Pointer(unsafe.SliceData(points))), len(points))
}

func (a *portable[P, E, F]) run(dst, src []affine[E], pairs []Pair) {
	var all E
	F(&all).SetOne()
	a.special = a.special[:0]
	for i, pair := range pairs {
		p, q, d := &a.p[i], &a.q[i], &a.d[i]
		load[E, F](p, src, pair.P)
		load[E, F](q, src, pair.Q)
		F(d).Sub(&q.x, &p.x)
		if F(d).IsZero() || infinite[E, F](p) || infinite[E, F](q) {
			a.settle(i)
			F(d).SetOne()
		}
		a.product[i] = all
		F(&all).Mul(&all, d)
	}
	F(&all).Inverse(&all)
	for i := len(pairs) - 1; i >= 0; i-- {
		var inverse E
		F(&inverse).Mul(&all, &a.product[i])
		F(&all).Mul(&all, &a.d[i])
		chord[E, F](&dst[pairs[i].Dst], &a.p[i], &a.q[i], &inverse)
	}
	for _, s := range a.special {
		dst[pairs[s.at].Dst] = *(*affine[E])(unsafe.Pointer(&s.sum))
	}
}

func (a *portable[P, E, F]) settle(i int) {
	s := settled[P]{at: i}
	a.addExact(&s.sum, (*P)(unsafe.Pointer(&a.p[i])), (*P)(unsafe.Pointer(&a.q[i])))
	a.special = append(a.special, s)
}

func load[E any, F field[E]](dst *affine[E], src []affine[E], index uint32) {
	*dst = src[index>>1]
	if index&1 == 1 {
		F(&dst.y).Neg(&dst.y)
	}
}

func infinite[E any, F field[E]](p *affine[E]) bool { return F(&p.x).IsZero() && F(&p.y).IsZero() }

// chord sets r = p + q, where inverse is 1/(q.x - p.x): l = (y2-y1)/(x2-x1), x3 = l² - x1 - x2, y3 = l·(x1-x3) - y1.
func chord[E any, F field[E]](r, p, q *affine[E], inverse *E) {
	var l, x3, y3 E
	F(&l).Sub(&q.y, &p.y)
	F(&l).Mul(&l, inverse)
	F(&x3).Square(&l)
	F(&x3).Sub(&x3, &p.x)
	F(&x3).Sub(&x3, &q.x)
	F(&y3).Sub(&p.x, &x3)
	F(&y3).Mul(&y3, &l)
	F(&y3).Sub(&y3, &p.y)
	r.x, r.y = x3, y3
}
