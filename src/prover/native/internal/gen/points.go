package main

import "fmt"

// A point of G1 is 8 words: x, then y. A coordinate of a point of G2 is 8 words: its real part, then the imaginary.
// In memory they are reduced and have one of two forms. The points of a key have the library's form: Montgomery form
// for R = 2^256. The points of sums have the kernels' form: the image under (x, y) -> (4x, 2y), in Montgomery form
// for 2^256. Read in Montgomery form for 2^260, this image is (x/4, y/8), a point of an isomorphic curve, on which
// affine addition is the same. So the points of a key get the kernels' form by a shift of x by 2 bits and of y by 1
// bit, without any multiplication.

const (
	pairSize   = 12
	groupPairs = 8 * pairSize
	// ahead is the number of groups by which points are prefetched. As many groups of pairs must be readable behind the
	// last group.
	ahead = 3
)

var (
	rowsIn  = [8]string{"Z0", "Z1", "Z2", "Z3", "Z4", "Z5", "Z6", "Z7"}
	columns = [8]string{"Z8", "Z9", "Z10", "Z11", "Z12", "Z13", "Z14", "Z15"}
)

func words(c [8]string, from int) (w [4]string) {
	copy(w[:], c[from:from+4])
	return w
}

func (g *generator) pointKernels() {
	g.loadPair("loadKeyPairs", true)
	g.loadPair("loadOwnPairs", false)
	g.abscissa()
	g.ordinate()
	g.mul()
	g.unpair()
	g.dot("dot", false)
	g.dot("dotDifference", true)
	g.sub()
	g.loadHalves("loadKeyX", 2, false)
	g.loadHalves("loadKeyY", 1, true)
	g.loadHalves("loadOwnHalves", 0, false)
	g.storeHalves()
	g.equal()
}

// gatherRows loads the rows of eight points, whose indices lie pairSize bytes apart from offset on. The stride of
// rows is 2^size bytes. If signs isn't empty, the mask of this name gets the indices' lowest bits.
func (g *generator) gatherRows(pairs string, offset, size int, signs string) {
	for i := range 8 {
		g.op("MOVL", at(pairs, offset+i*pairSize), "AX")
		g.op("SHRL", "$1", "AX")
		if signs != "" {
			g.op("RCRL", "$1", "BX") // the bit shifted out
		}
		g.op("SHLQ", fmt.Sprintf("$%d", size), "AX")
		g.op("VMOVDQU64", "(SI)(AX*1)", rowsIn[i])
	}
	if signs != "" {
		g.op("SHRL", "$24", "BX")
		g.op("KMOVB", "BX", signs)
	}
}

// prefetch prefetches the rows of a later group.
func (g *generator) prefetch(pairs string, offsets []int, size int) {
	for i := range 8 {
		for _, offset := range offsets {
			g.op("MOVL", at(pairs, ahead*groupPairs+offset+i*pairSize), "AX")
			g.op("SHRL", "$1", "AX")
			g.op("SHLQ", fmt.Sprintf("$%d", size), "AX")
			g.op("PREFETCHT0", "(SI)(AX*1)")
		}
	}
}

// zeroRows sets mask k to the lanes whose eight words are all zero.
func (g *generator) zeroRows(c [8]string, t, k string) {
	g.op("VPORQ", c[0], c[1], t)
	for _, r := range c[2:] {
		g.op("VPORQ", r, t, t)
	}
	g.op("VPTESTNMQ", t, t, k)
}

// negate replaces a, below 2p, by 2p - a, loose, in the lanes of mask k.
func (g *generator) negate(a limbs, t, k string) {
	for j := range a {
		g.broadcast("p2", j, t)
		g.op("VPSUBQ", a[j], t, k, a[j])
	}
}

// difference sets dst = a - b + c for loose a and b and a constant c, tight.
func (g *generator) difference(a, b limbs, c string, dst limbs, t string) {
	for j := range a {
		g.op("VPSUBQ", b[j], a[j], dst[j])
		g.op("VPADDQ.BCST", g.constant(c, j), dst[j], dst[j])
	}
	g.tighten(dst, t)
}

func (g *generator) loadPair(name string, key bool) {
	shiftX, shiftY, signs1, signs2 := 0, 0, "", ""
	if key {
		shiftX, shiftY, signs1, signs2 = 2, 1, "K3", "K4"
	}
	x1, y1, x2, y2 := registers(16), registers(21), registers(0), registers(26)
	doc := `func NAME(x1, y1, d, l, s *group, special *byte, points unsafe.Pointer, pairs *Pair, n uint64)
Loads n groups of pairs of G1's points: x1, y1 (loose, y1 within 0 to 2p), d = x2-x1 < 8p, l = y2-y1 < 4p,
s = x1+x2 < 8p (loose). A bit of special[i] is set if a point is infinity or x1 = x2.`
	parameters := []parameter{
		{"x1", "R8"}, {"y1", "R9"}, {"d", "R10"}, {"l", "R11"}, {"s", "R12"}, {"special", "R13"},
		{"points", "SI"}, {"pairs", "DI"}, {"n", "CX"},
	}
	g.function(name, named(doc, name), parameters, func() {
		g.broadcast("mask", 0, mask)
		g.loop("CX", func() {
			g.gatherRows("DI", 0, 6, signs1)
			g.transpose(rowsIn, columns)
			g.zeroRows(columns, "Z0", "K1")
			g.split(words(columns, 0), shiftX, x1, "Z0")
			g.split(words(columns, 4), shiftY, y1, "Z0")
			if key {
				g.negate(y1, "Z0", "K3")
			}
			g.store(x1, "R8")
			g.store(y1, "R9")
			g.gatherRows("DI", 4, 6, signs2)
			g.prefetch("DI", []int{0, 4}, 6)
			g.transpose(rowsIn, columns)
			g.zeroRows(columns, "Z0", "K2")
			g.split(words(columns, 0), shiftX, x2, "Z5")
			g.split(words(columns, 4), shiftY, y2, "Z5")
			if key {
				g.negate(y2, "Z5", "K4")
			}
			g.op("VPCMPEQQ", x1[0], x2[0], "K5")
			for j := 1; j < 5; j++ {
				g.op("VPCMPEQQ", x1[j], x2[j], "K5", "K5")
			}
			g.op("KORB", "K1", "K2", "K1")
			g.op("KORB", "K1", "K5", "K1")
			g.op("KMOVB", "K1", "AX")
			g.op("MOVB", "AX", "(R13)")
			for j := range x1 {
				g.op("VPADDQ", x1[j], x2[j], "Z5")
				g.op("VMOVDQU64", "Z5", at("R12", 64*j))
			}
			g.difference(x2, x1, "p4", x2, "Z5")
			g.store(x2, "R10")
			g.difference(y2, y1, "p2", y2, "Z5")
			g.store(y2, "R11")
			g.advance(groupSize, "R8", "R9", "R10", "R11", "R12")
			g.advance(groupPairs, "DI")
			g.op("INCQ", "R13")
		})
	})
}

func (g *generator) abscissa() {
	doc := `func abscissas(x3, t, slope, s, x1 *group, n uint64)
x3 = slope² - s, reduced; t = x1 - x3 < 5p. slope < 2p, s < 8p (loose), x1 < 4p (loose).`
	a, b := registers(10), registers(15)
	parameters := []parameter{{"x3", "R8"}, {"t", "R9"}, {"slope", "R10"}, {"s", "R11"}, {"x1", "R12"}, {"n", "CX"}}
	g.function("abscissas", doc, parameters, func() {
		g.fixed()
		g.loop("CX", func() {
			g.load("R10", a)
			g.square(product, a)
			g.reduce(product, "Z25", "Z26")
			g.load("R11", b)
			x3 := product.upper()
			g.difference(x3, b, "p8", x3, "Z26")
			g.shrink(x3, "Z25", "Z26")
			g.canonical(x3, a, "Z26")
			g.store(x3, "R8")
			g.load("R12", b)
			g.difference(b, x3, "p1", b, "Z26")
			g.store(b, "R9")
			g.advance(groupSize, "R8", "R9", "R10", "R11", "R12")
		})
	})
}

func (g *generator) ordinate() {
	doc := `func ordinates(points unsafe.Pointer, pairs *Pair, x3, slope, t, y1 *group, n uint64)
y3 = slope·t - y1, reduced, and stores the points (x3, y3) of G1 at the pairs' destinations. slope < 2p, t < 8p,
y1 < 2p (loose), x3 reduced.`
	a, b := registers(10), registers(15)
	parameters := []parameter{
		{"points", "SI"}, {"pairs", "DI"}, {"x3", "R8"}, {"slope", "R9"}, {"t", "R10"}, {"y1", "R11"}, {"n", "CX"},
	}
	g.function("ordinates", doc, parameters, func() {
		g.fixed()
		g.loop("CX", func() {
			g.load("R9", a)
			g.load("R10", b)
			g.multiply(product, a, b)
			g.reduce(product, "Z25", "Z26")
			g.load("R11", b)
			y3 := product.upper()
			g.difference(y3, b, "p2", y3, "Z26")
			g.shrink(y3, "Z25", "Z26")
			g.canonical(y3, a, "Z26")
			g.join(y3, [4]string{"Z4", "Z5", "Z6", "Z7"}, "Z26")
			g.load("R8", b)
			g.join(b, [4]string{"Z0", "Z1", "Z2", "Z3"}, "Z26")
			g.scatterRows(6)
			g.advance(groupSize, "R8", "R9", "R10", "R11")
			g.advance(groupPairs, "DI")
		})
	})
}

// scatterRows stores the columns in Z0 to Z7 as rows at the pairs' destinations.
func (g *generator) scatterRows(size int) {
	g.transpose(rowsIn, columns)
	for i := range 8 {
		g.op("MOVL", at("DI", 8+i*pairSize), "AX")
		g.op("SHLQ", fmt.Sprintf("$%d", size), "AX")
		g.op("VMOVDQU64", columns[i], "(SI)(AX*1)")
	}
}

func (g *generator) mul() {
	doc := `func mul(dst, a, b *group, n uint64)
dst = a·b < p + a·b/84p.`
	a, b := registers(10), registers(15)
	g.function("mul", doc, []parameter{{"dst", "R8"}, {"a", "R9"}, {"b", "R10"}, {"n", "CX"}}, func() {
		g.fixed()
		g.loop("CX", func() {
			g.load("R9", a)
			g.load("R10", b)
			g.multiply(product, a, b)
			g.reduce(product, "Z25", "Z26")
			g.tighten(product.upper(), "Z26")
			g.store(product.upper(), "R8")
			g.advance(groupSize, "R8", "R9", "R10")
		})
	})
}

func (g *generator) unpair() {
	doc := `func unpair(a, b, p *group, n uint64)
a, b = p·b, p·a. If p = 1/(a·b), these are 1/a and 1/b.`
	a, b, p := registers(10), registers(15), registers(25)
	g.function("unpair", doc, []parameter{{"a", "R8"}, {"b", "R9"}, {"p", "R10"}, {"n", "CX"}}, func() {
		g.fixed()
		g.loop("CX", func() {
			g.load("R8", a)
			g.load("R9", b)
			g.load("R10", p)
			g.multiply(product, p, b)
			g.reduce(product, "Z15", "Z16")
			g.tighten(product.upper(), "Z16")
			g.store(product.upper(), "R8")
			g.multiply(product, p, a)
			g.reduce(product, "Z15", "Z16")
			g.tighten(product.upper(), "Z16")
			g.store(product.upper(), "R9")
			g.advance(groupSize, "R8", "R9", "R10")
		})
	})
}

// dot keeps both products in one accumulator and reduces once.
func (g *generator) dot(name string, minus bool) {
	doc := `func NAME(dst, a, b, c, d *group, n uint64)
dst = a·b SIGN c·d < 2p, for a, b, c, d < 2p.`
	sign := "+"
	if minus {
		sign = "-"
	}
	a, b := registers(10), registers(15)
	parameters := []parameter{{"dst", "R8"}, {"a", "R9"}, {"b", "R10"}, {"c", "R11"}, {"d", "R12"}, {"n", "CX"}}
	g.function(name, named(doc, name, "SIGN", sign), parameters, func() {
		g.fixed()
		g.loop("CX", func() {
			g.load("R9", a)
			g.load("R10", b)
			g.multiply(product, a, b)
			g.load("R11", a)
			if minus {
				for j := range a {
					g.broadcast("p2", j, "Z26")
					g.op("VPSUBQ", a[j], "Z26", a[j])
				}
				g.tighten(a, "Z26")
			}
			g.load("R12", b)
			g.multiplyAdd(product, a, b)
			g.reduce(product, "Z25", "Z26")
			g.tighten(product.upper(), "Z26")
			g.store(product.upper(), "R8")
			g.advance(groupSize, "R8", "R9", "R10", "R11", "R12")
		})
	})
}

func (g *generator) sub() {
	doc := `func sub(dst, a, b *group, n uint64)
dst = a - b < 1.2p, for a < 8p and b < 4p, both loose.`
	a, b := registers(0), registers(5)
	g.function("sub", doc, []parameter{{"dst", "R8"}, {"a", "R9"}, {"b", "R10"}, {"n", "CX"}}, func() {
		g.broadcast("mask", 0, mask)
		g.loop("CX", func() {
			g.load("R9", a)
			g.load("R10", b)
			g.difference(a, b, "p4", a, "Z26")
			g.shrink(a, "Z25", "Z26")
			g.store(a, "R8")
			g.advance(groupSize, "R8", "R9", "R10")
		})
	})
}

func (g *generator) loadHalves(name string, shift int, signed bool) {
	doc := `func NAME(re, im *group, zero *byte, halves unsafe.Pointer, indices *uint32, n uint64)
Loads n groups of coordinates of G2's points, halves pointing to the first point's; indices lie 12 bytes apart. A bit
of zero[i] is set if a coordinate is 0.`
	re, im, signs := registers(16), registers(21), ""
	if signed {
		signs = "K3"
		doc += " Opposites, for odd indices, are loose and within 0 to 2p."
	}
	parameters := []parameter{{"re", "R8"}, {"im", "R9"}, {"zero", "R13"}, {"halves", "SI"}, {"indices", "DI"}, {"n", "CX"}}
	g.function(name, named(doc, name), parameters, func() {
		g.broadcast("mask", 0, mask)
		g.loop("CX", func() {
			g.gatherRows("DI", 0, 7, signs)
			g.prefetch("DI", []int{0}, 7)
			g.transpose(rowsIn, columns)
			g.zeroRows(columns, "Z0", "K1")
			g.op("KMOVB", "K1", "AX")
			g.op("MOVB", "AX", "(R13)")
			g.split(words(columns, 0), shift, re, "Z0")
			g.split(words(columns, 4), shift, im, "Z0")
			if signed {
				g.negate(re, "Z0", signs)
				g.negate(im, "Z0", signs)
				g.tighten(re, "Z0")
				g.tighten(im, "Z0")
			}
			g.store(re, "R8")
			g.store(im, "R9")
			g.advance(groupSize, "R8", "R9")
			g.advance(groupPairs, "DI")
			g.op("INCQ", "R13")
		})
	})
}

func (g *generator) storeHalves() {
	doc := `func storeHalves(halves unsafe.Pointer, pairs *Pair, re, im *group, n uint64)
Stores coordinates of G2's points at the pairs' destinations, reduced. re, im < 2p.`
	re, im := registers(16), registers(21)
	parameters := []parameter{{"halves", "SI"}, {"pairs", "DI"}, {"re", "R8"}, {"im", "R9"}, {"n", "CX"}}
	g.function("storeHalves", doc, parameters, func() {
		g.broadcast("mask", 0, mask)
		g.loop("CX", func() {
			g.load("R8", re)
			g.load("R9", im)
			g.canonical(re, registers(0), "Z26")
			g.canonical(im, registers(0), "Z26")
			g.join(re, [4]string{"Z0", "Z1", "Z2", "Z3"}, "Z26")
			g.join(im, [4]string{"Z4", "Z5", "Z6", "Z7"}, "Z26")
			g.scatterRows(7)
			g.advance(groupSize, "R8", "R9")
			g.advance(groupPairs, "DI")
		})
	})
}

func (g *generator) equal() {
	doc := `func equal(same *byte, a, b *group, n uint64)
A bit of same[i] is set if a and b have equal limbs.`
	g.function("equal", doc, []parameter{{"same", "R13"}, {"a", "R8"}, {"b", "R9"}, {"n", "CX"}}, func() {
		g.loop("CX", func() {
			g.load("R8", registers(0))
			g.load("R9", registers(5))
			g.op("VPCMPEQQ", "Z0", "Z5", "K1")
			for j := 1; j < 5; j++ {
				g.op("VPCMPEQQ", z(j), z(5+j), "K1", "K1")
			}
			g.op("KMOVB", "K1", "AX")
			g.op("MOVB", "AX", "(R13)")
			g.op("INCQ", "R13")
			g.advance(groupSize, "R8", "R9")
		})
	})
}
