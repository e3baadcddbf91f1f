package msm

import (
	"math/bits"
	"unsafe"

	"github.com/consensys/gnark-crypto/ecc/bn254"
	"github.com/consensys/gnark-crypto/ecc/bn254/fp"
)

//go:generate go run ../gen ..

// group has eight field elements: limb j of element i is group[j][i]. See also package gen.
type group [5][8]uint64

const (
	lanes  = 8
	groups = batch / lanes
	// readAhead is the number of groups that the kernels read behind the last group of pairs, to prefetch points.
	readAhead = 3
)

// pairQueue is a batch of pairs, followed by copies of its last pair. The copies fill the last group, and the groups
// that the kernels read ahead. A copy writes the same sum to the same place again.
type pairQueue [batch + (readAhead+1)*lanes]Pair

// fill takes a batch of pairs and returns the number of groups: at least two, as inverter requires.
func (q *pairQueue) fill(pairs []Pair) int {
	n := copy(q[:], pairs)
	for i := n; i < min(n+(readAhead+1)*lanes, len(q)); i++ {
		q[i] = pairs[n-1]
	}
	return max(2, (n+lanes-1)/lanes)
}

// inverter inverts batches of groups by a tree of products. Running products would depend on each other, but the
// products of one level of the tree don't.
type inverter struct{ products [groups + lanes]group }

// invert inverts the elements of d, none of which is 0. The elements of a single group must be below 2p. The
// elements of two groups or more may be up to 8p: invertLanes then gets only products, which are below 2p.
func (v *inverter) invert(d []group) { v.level(d, v.products[:]) }

func (v *inverter) level(d, products []group) {
	n := len(d)
	if n == 1 {
		invertLanes(&d[0])
		return
	}
	half, upper := n/2, (n+1)/2
	p := products[:upper]
	mul(&p[0], &d[0], &d[upper], uint64(half))
	if upper > half {
		p[half] = d[half]
	}
	v.level(p, products[upper:])
	unpair(&d[0], &d[upper], &p[0], uint64(half))
	if upper > half {
		d[half] = p[half]
	}
}

// rescale is 2^8. The words of v in the kernels' Montgomery form (v·2^260) are those of 16v in the library's form. The
// words of 1/v in the kernels' form are those of 16/v in the library's form, and 16/v = 2^8/(16v).
var rescale = fp.NewElement(1 << 8)

// invertLanes inverts the eight elements of g.
func invertLanes(g *group) {
	var e, before [lanes]fp.Element
	all := fp.One()
	for i := range e {
		e[i] = g.element(i)
		before[i] = all
		all.Mul(&all, &e[i])
	}
	all.Inverse(&all).Mul(&all, &rescale)
	for i := lanes - 1; i >= 0; i-- {
		before[i].Mul(&before[i], &all)
		all.Mul(&all, &e[i])
		g.set(i, &before[i])
	}
}

// element returns lane i, which must be below 2p, as words of a number below p.
func (g *group) element(i int) (e fp.Element) {
	l := func(j int) uint64 { return g[j][i] }
	e = fp.Element{l(0) | l(1)<<52, l(1)>>12 | l(2)<<40, l(2)>>24 | l(3)<<28, l(3)>>36 | l(4)<<16}
	var less fp.Element
	var borrow uint64
	for j := range e {
		less[j], borrow = bits.Sub64(e[j], modulus[j], borrow)
	}
	if borrow == 0 {
		return less
	}
	return e
}

var modulus = func() (words [4]uint64) {
	for i, w := range fp.Modulus().Bits() {
		words[i] = uint64(w)
	}
	return words
}()

// set writes words to lane i.
func (g *group) set(i int, e *fp.Element) {
	const mask = 1<<52 - 1
	for j, l := range [5]uint64{e[0], e[0]>>52 | e[1]<<12, e[1]>>40 | e[2]<<24, e[2]>>28 | e[3]<<36, e[3] >> 16} {
		g[j][i] = l & mask
	}
}

// setOne sets lane i to the integer 1. Any number with an inverse would do.
func (g *group) setOne(i int) {
	for j := range g {
		g[j][i] = 0
	}
	g[0][i] = 1
}

// A vector adder's form of a point is its image under (x, y) -> (4x, 2y).

func liftCoordinates[E any, F interface {
	field[E]
	Double(*E) *E
}](x, y *E, opposite bool) {
	if opposite {
		F(y).Neg(y)
	}
	F(x).Double(x)
	F(x).Double(x)
	F(y).Double(y)
}

// vectorG1 adds points of G1 with AVX-512.
type vectorG1 struct {
	queue                         pairQueue
	x1, y1, d, l, s, x3, t, slope [groups]group
	inverter                      inverter
	special                       [groups]byte
	settled                       []settled[bn254.G1Affine]
}

func newVectorG1() adder[bn254.G1Affine] { return &vectorG1{} }

func (a *vectorG1) addKey(dst, key []bn254.G1Affine, pairs []Pair) { a.batches(dst, key, pairs, true) }
func (a *vectorG1) add(dst, src []bn254.G1Affine, pairs []Pair)    { a.batches(dst, src, pairs, false) }

func (a *vectorG1) batches(dst, src []bn254.G1Affine, pairs []Pair, key bool) {
	for len(pairs) > 0 {
		n := min(len(pairs), batch)
		a.run(dst, src, pairs[:n], key)
		pairs = pairs[n:]
	}
}

func (a *vectorG1) run(dst, src []bn254.G1Affine, pairs []Pair, key bool) {
	count := a.queue.fill(pairs)
	n := uint64(count)
	load := loadOwnPairs
	if key {
		load = loadKeyPairs
	}
	load(&a.x1[0], &a.y1[0], &a.d[0], &a.l[0], &a.s[0], &a.special[0], unsafe.Pointer(&src[0]), &a.queue[0], n)
	a.settle(src, count, key)
	a.inverter.invert(a.d[:count])
	mul(&a.slope[0], &a.l[0], &a.d[0], n)
	abscissas(&a.x3[0], &a.t[0], &a.slope[0], &a.s[0], &a.x1[0], n)
	ordinates(unsafe.Pointer(&dst[0]), &a.queue[0], &a.x3[0], &a.slope[0], &a.t[0], &a.y1[0], n)
	for i := range a.settled {
		dst[a.queue[a.settled[i].at].Dst] = a.settled[i].sum
	}
}

// settle computes the sums that the formula can't compute.
func (a *vectorG1) settle(src []bn254.G1Affine, count int, key bool) {
	a.settled = a.settled[:0]
	for i, mask := range a.special[:count] {
		for ; mask != 0; mask &= mask - 1 {
			lane := bits.TrailingZeros8(mask)
			a.d[i].setOne(lane)
			at := i*lanes + lane
			p, q := a.point(src, a.queue[at].P, key), a.point(src, a.queue[at].Q, key)
			p.Add(&p, &q)
			s := settled[bn254.G1Affine]{at: at}
			a.lift(&s.sum, &p, false)
			a.settled = append(a.settled, s)
		}
	}
}

// point returns a source in the library's form, or its opposite: see Pair.
func (a *vectorG1) point(src []bn254.G1Affine, index uint32, key bool) (p bn254.G1Affine) {
	p = src[index>>1]
	if !key {
		a.lower(&p, &p)
	}
	if index&1 == 1 {
		p.Neg(&p)
	}
	return p
}

func (a *vectorG1) lift(dst, src *bn254.G1Affine, opposite bool) {
	*dst = *src
	liftCoordinates(&dst.X, &dst.Y, opposite)
}

func (a *vectorG1) lower(dst, src *bn254.G1Affine) {
	*dst = *src
	dst.X.Halve()
	dst.X.Halve()
	dst.Y.Halve()
}

func (a *vectorG1) wipe() { *a = vectorG1{} }
