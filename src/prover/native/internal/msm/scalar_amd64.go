package msm

import (
	"github.com/consensys/gnark-crypto/ecc/bn254"
	"github.com/consensys/gnark-crypto/ecc/bn254/fp"
)

// scalarG1 adds points of G1 with BMI2 and ADX, one product at a time. Its form of a point is the library's. Each step
// goes over the whole batch, so that no product waits for the previous one.
type scalarG1 struct {
	x1, y1, d, l, s, x3, t [batch]fp.Element
	products               [batch]fp.Element
	special                []settled[bn254.G1Affine]
}

func newScalarG1() adder[bn254.G1Affine] { return &scalarG1{} }

func (a *scalarG1) addKey(dst, key []bn254.G1Affine, pairs []Pair) { a.add(dst, key, pairs) }

func (a *scalarG1) add(dst, src []bn254.G1Affine, pairs []Pair) {
	for len(pairs) > 0 {
		n := min(len(pairs), batch)
		a.run(dst, src, pairs[:n])
		pairs = pairs[n:]
	}
}

func (a *scalarG1) run(dst, src []bn254.G1Affine, pairs []Pair) {
	n := uint64(len(pairs))
	a.load(src, pairs)
	invert(a.d[:n], a.products[:])
	slope := &a.d
	mulADX(&slope[0], &a.l[0], &a.d[0], n)
	mulADX(&a.x3[0], &slope[0], &slope[0], n)
	subADX(&a.x3[0], &a.x3[0], &a.s[0], n)
	subADX(&a.t[0], &a.x1[0], &a.x3[0], n)
	mulADX(&a.t[0], &a.t[0], &slope[0], n)
	subADX(&a.t[0], &a.t[0], &a.y1[0], n)
	for i, pair := range pairs {
		p := &dst[pair.Dst]
		p.X, p.Y = a.x3[i], a.t[i]
	}
	for _, s := range a.special {
		dst[pairs[s.at].Dst] = s.sum
	}
}

// ahead is the number of pairs whose points are prefetched while the points of earlier pairs are read.
const ahead = 16

// load reads the points: x1, y1, d = x2-x1, l = y2-y1 and s = x1+x2.
func (a *scalarG1) load(src []bn254.G1Affine, pairs []Pair) {
	a.special = a.special[:0]
	prefetchPairs(&src[0], &pairs[0], uint64(min(ahead, len(pairs))))
	for i, pair := range pairs {
		if next := i + ahead; i%ahead == 0 && next < len(pairs) {
			prefetchPairs(&src[0], &pairs[next], uint64(min(ahead, len(pairs)-next)))
		}
		p, q := &src[pair.P>>1], &src[pair.Q>>1]
		a.x1[i] = p.X
		a.d[i].Sub(&q.X, &p.X)
		a.s[i].Add(&p.X, &q.X)
		a.y1[i] = p.Y
		a.l[i] = q.Y
		if pair.P&1 == 1 {
			a.y1[i].Neg(&p.Y)
		}
		if pair.Q&1 == 1 {
			a.l[i].Neg(&q.Y)
		}
		if a.d[i].IsZero() || p.IsInfinity() || q.IsInfinity() {
			a.settle(i, src, pair)
		}
	}
	subADX(&a.l[0], &a.l[0], &a.y1[0], uint64(len(pairs)))
}

// settle computes a sum that the formula can't compute.
func (a *scalarG1) settle(i int, src []bn254.G1Affine, pair Pair) {
	p, q := src[pair.P>>1], src[pair.Q>>1]
	if pair.P&1 == 1 {
		p.Neg(&p)
	}
	if pair.Q&1 == 1 {
		q.Neg(&q)
	}
	s := settled[bn254.G1Affine]{at: i}
	s.sum.Add(&p, &q)
	a.special = append(a.special, s)
	a.d[i].SetOne()
}

// invert inverts the elements of d, none of which is 0, by a tree of products. products needs len(d) elements,
// rounded up to a power of two.
func invert(d, products []fp.Element) {
	n := len(d)
	if n == 1 {
		d[0].Inverse(&d[0])
		return
	}
	half, upper := n/2, (n+1)/2
	p := products[:upper]
	mulADX(&p[0], &d[0], &d[upper], uint64(half))
	if upper > half {
		p[half] = d[half]
	}
	invert(p, products[upper:])
	// The products behind p are free again.
	quotients := products[upper : upper+half]
	mulADX(&quotients[0], &d[0], &p[0], uint64(half))
	mulADX(&d[0], &d[upper], &p[0], uint64(half))
	copy(d[upper:], quotients)
	if upper > half {
		d[half] = p[half]
	}
}

func (a *scalarG1) lift(dst, src *bn254.G1Affine, opposite bool) {
	*dst = *src
	if opposite {
		dst.Y.Neg(&dst.Y)
	}
}

func (a *scalarG1) lower(dst, src *bn254.G1Affine) { *dst = *src }

func (a *scalarG1) wipe() { *a = scalarG1{} }
