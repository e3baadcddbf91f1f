package main

// Field elements in memory are four words, in the library's Montgomery form for 2^256. Transforms multiply them only
// by factors in Montgomery form for 2^260, which keeps their form.
//
// Numbers are below 1.7p when loaded. A decimating level doubles the bound of sums, so every fifth level shrinks them
// again. They stay below 32p, which the differences rely on ("p32"). A joining level increases numbers by at most 2p,
// from 27p to 55p in 14 levels. The factors of a product may together reach 84p·p.

func (g *generator) transformKernels() {
	g.loadColumns()
	g.storeColumns()
	g.mulStoreColumns()
	g.loadRows()
	g.mulStoreRows()
	g.difLevel("difLevel", false)
	g.difLevel("difLevelShrinking", true)
	g.ditLevel()
}

var quad = [4]string{"Z10", "Z11", "Z12", "Z13"}

// gatherColumns loads eight neighbours and sets words to the columns of their words, the lanes in the order 0 2 1 3 4
// 6 5 7; t are four scratch registers.
func (g *generator) gatherColumns(pointer string, words, t [4]string) {
	for i := range words {
		g.op("VMOVDQU64", at(pointer, 64*i), words[i])
	}
	for i := 0; i < 4; i += 2 {
		g.op("VPUNPCKLQDQ", words[i+1], words[i], t[i])
		g.op("VPUNPCKHQDQ", words[i+1], words[i], t[i+1])
	}
	for odd := range 2 {
		g.op("VSHUFI64X2", "$0x88", t[2+odd], t[odd], words[odd])
		g.op("VSHUFI64X2", "$0xdd", t[2+odd], t[odd], words[2+odd])
	}
}

// scatterColumns is the inverse of gatherColumns. It clobbers words.
func (g *generator) scatterColumns(words, t [4]string, pointer string) {
	for half := range 2 { // lanes 0 to 3, then 4 to 7
		imm := []string{"$0x44", "$0xee"}[half]
		g.op("VSHUFI64X2", imm, words[2], words[0], t[0])
		g.op("VSHUFI64X2", imm, words[3], words[1], t[1])
		g.op("VPUNPCKLQDQ", t[1], t[0], t[2]) // words 0, 1 of elements 0, 1, then words 2, 3 of them
		g.op("VPUNPCKHQDQ", t[1], t[0], t[3]) // the same of elements 2, 3
		for i := range 2 {
			g.op("VSHUFI64X2", "$0xd8", t[2+i], t[2+i], t[2+i])
			g.op("VMOVDQU64", t[2+i], at(pointer, 64*(2*half+i)))
		}
	}
}

func (g *generator) loadColumns() {
	doc := `func loadColumns(dst *group, src unsafe.Pointer, stride, n uint64)
Loads eight neighbours from each of n rows, stride bytes apart.`
	g.function("loadColumns", doc, []parameter{{"dst", "R8"}, {"src", "SI"}, {"stride", "DX"}, {"n", "CX"}}, func() {
		g.broadcast("mask", 0, mask)
		g.loop("CX", func() {
			g.gatherColumns("SI", [4]string{"Z0", "Z1", "Z2", "Z3"}, quad)
			g.split([4]string{"Z0", "Z1", "Z2", "Z3"}, 0, registers(15), "Z4")
			g.store(registers(15), "R8")
			g.op("ADDQ", "DX", "SI")
			g.advance(groupSize, "R8")
		})
	})
}

func (g *generator) storeColumns() {
	doc := `func storeColumns(dst unsafe.Pointer, stride uint64, src *group, n uint64)
Stores what loadColumns loads, reduced. src < 60p, loose.`
	a := registers(15)
	g.function("storeColumns", doc, []parameter{{"dst", "SI"}, {"stride", "DX"}, {"src", "R8"}, {"n", "CX"}}, func() {
		g.broadcast("mask", 0, mask)
		g.loop("CX", func() {
			g.load("R8", a)
			g.tighten(a, "Z0")
			g.shrink(a, "Z0", "Z1")
			g.canonical(a, registers(0), "Z5")
			g.join(a, quad, "Z0")
			g.scatterColumns(quad, [4]string{"Z0", "Z1", "Z2", "Z3"}, "SI")
			g.op("ADDQ", "DX", "SI")
			g.advance(groupSize, "R8")
		})
	})
}

func (g *generator) mulStoreColumns() {
	doc := `func mulStoreColumns(dst, factors unsafe.Pointer, stride uint64, src *group, n uint64)
Stores what loadColumns loads, times factors with the same layout, below 1.7p. src < 60p, loose.`
	a, b := registers(10), registers(15)
	parameters := []parameter{{"dst", "SI"}, {"factors", "DI"}, {"stride", "DX"}, {"src", "R8"}, {"n", "CX"}}
	g.function("mulStoreColumns", doc, parameters, func() {
		g.fixed()
		g.loop("CX", func() {
			g.gatherColumns("DI", [4]string{"Z0", "Z1", "Z2", "Z3"}, [4]string{"Z4", "Z5", "Z6", "Z7"})
			g.split([4]string{"Z0", "Z1", "Z2", "Z3"}, 0, b, "Z4")
			g.load("R8", a)
			g.tighten(a, "Z25")
			g.multiply(product, a, b)
			g.reduce(product, "Z25", "Z26")
			g.tighten(product.upper(), "Z26")
			g.join(product.upper(), quad, "Z26")
			g.scatterColumns(quad, [4]string{"Z0", "Z1", "Z2", "Z3"}, "SI")
			g.op("ADDQ", "DX", "SI")
			g.op("ADDQ", "DX", "DI")
			g.advance(groupSize, "R8")
		})
	})
}

// rowAddresses computes the multiples of the stride in DX that the addresses of rows need.
func (g *generator) rowAddresses() {
	g.op("LEAQ", "(DX)(DX*2)", "R10")
	g.op("LEAQ", "(DX)(DX*4)", "R11")
	g.op("LEAQ", "(R10)(DX*4)", "R12")
}

// rowAt returns the address of row i, after rowAddresses.
func rowAt(pointer string, i int) string {
	return "(" + pointer + ")" + [8]string{"", "(DX*1)", "(DX*2)", "(R10*1)", "(DX*4)", "(R11*1)", "(R10*2)", "(R12*1)"}[i]
}

func (g *generator) loadRows() {
	doc := `func loadRows(dst *group, src unsafe.Pointer, stride, n uint64)
Loads n pairs of neighbours from each of eight rows, stride bytes apart. Lane i has row i.`
	g.function("loadRows", doc, []parameter{{"dst", "R8"}, {"src", "SI"}, {"stride", "DX"}, {"n", "CX"}}, func() {
		g.broadcast("mask", 0, mask)
		g.rowAddresses()
		g.loop("CX", func() {
			for i := range rowsIn {
				g.op("VMOVDQU64", rowAt("SI", i), rowsIn[i])
			}
			g.transpose(rowsIn, columns)
			g.split(words(columns, 0), 0, registers(16), "Z0")
			g.split(words(columns, 4), 0, registers(21), "Z0")
			g.store(registers(16), "R8")
			g.advance(groupSize, "R8")
			g.store(registers(21), "R8")
			g.advance(groupSize, "R8")
			g.advance(64, "SI")
		})
	})
}

func (g *generator) mulStoreRows() {
	doc := `func mulStoreRows(dst, factors unsafe.Pointer, stride uint64, src *group, n uint64)
Stores what loadRows loads, times factors with the same layout, below 1.7p. src < 60p, loose; it is clobbered.`
	a, b, second := registers(10), registers(15), registers(25)
	low, high := [4]string{"Z0", "Z1", "Z2", "Z3"}, [4]string{"Z4", "Z5", "Z6", "Z7"}
	parameters := []parameter{{"dst", "SI"}, {"factors", "DI"}, {"stride", "DX"}, {"src", "R8"}, {"n", "CX"}}
	g.function("mulStoreRows", doc, parameters, func() {
		g.fixed()
		g.rowAddresses()
		g.op("LEAQ", at("R8", groupSize), "R9")
		g.loop("CX", func() {
			for i := range rowsIn {
				g.op("VMOVDQU64", rowAt("DI", i), rowsIn[i])
			}
			g.transpose(rowsIn, columns)
			g.split(words(columns, 4), 0, second, "Z0")
			g.split(words(columns, 0), 0, b, "Z0")
			g.load("R8", a)
			g.tighten(a, "Z0")
			g.store(second, "R8") // frees its registers
			g.multiply(product, a, b)
			g.reduce(product, "Z25", "Z26")
			g.load("R8", b)
			g.tighten(product.upper(), "Z26")
			g.store(product.upper(), "R8")
			g.load("R9", a)
			g.tighten(a, "Z0")
			g.multiply(product, a, b)
			g.reduce(product, "Z25", "Z26")
			g.tighten(product.upper(), "Z26")
			g.join(product.upper(), high, "Z26")
			g.load("R8", b)
			g.join(b, low, "Z26")
			g.transpose(rowsIn, columns)
			for i := range columns {
				g.op("VMOVDQU64", columns[i], rowAt("SI", i))
			}
			g.advance(2*groupSize, "R8", "R9")
			g.advance(64, "SI", "DI")
		})
	})
}

func (g *generator) difLevel(name string, shrinking bool) {
	doc := `func NAME(values *group, twiddles *twiddle, half, blocks uint64)
In each block of 2·half groups sets a, b = a+b, (a-b)·twiddles[i] for each a in the first half and b in the second.`
	if shrinking {
		doc += " Sums are shrunk."
	}
	a, b, sum := registers(10), registers(15), registers(25)
	parameters := []parameter{{"values", "R8"}, {"twiddles", "R11"}, {"half", "R12"}, {"blocks", "R13"}}
	g.function(name, named(doc, name), parameters, func() {
		g.fixed()
		g.butterflies(func() {
			g.load("R8", a)
			g.load("R9", b)
			for j := range a {
				g.op("VPADDQ", a[j], b[j], sum[j])
			}
			if shrinking {
				g.tighten(sum, "Z0")
				g.shrink(sum, "Z0", "Z1")
			}
			g.store(sum, "R8")
			g.difference(a, b, "p32", a, "Z0")
			g.twiddle(b)
			g.multiply(product, a, b)
			g.reduce(product, "Z25", "Z26")
			g.tighten(product.upper(), "Z26")
			g.store(product.upper(), "R9")
		})
	})
}

// butterflies runs body with R8 and R9 at a and b and R10 at the twiddle, for each pair of each block.
func (g *generator) butterflies(body func()) {
	g.op("IMUL3Q", "$320", "R12", "BX") // half a block
	g.loop("R13", func() {
		g.op("LEAQ", "(R8)(BX*1)", "R9")
		g.op("MOVQ", "R11", "R10")
		g.op("MOVQ", "R12", "CX")
		g.loop("CX", func() {
			body()
			g.advance(groupSize, "R8", "R9")
			g.advance(40, "R10")
		})
		g.op("MOVQ", "R9", "R8")
	})
}

func (g *generator) twiddle(dst limbs) {
	for j := range dst {
		g.op("VPBROADCASTQ", at("R10", 8*j), dst[j])
	}
}

func (g *generator) ditLevel() {
	doc := `func ditLevel(values *group, twiddles *twiddle, half, blocks uint64)
In each block of 2·half groups sets a, b = a + b·twiddles[i], a - b·twiddles[i] for each a in the first half and b in
the second.`
	a, b := registers(10), registers(15)
	parameters := []parameter{{"values", "R8"}, {"twiddles", "R11"}, {"half", "R12"}, {"blocks", "R13"}}
	g.function("ditLevel", doc, parameters, func() {
		g.fixed()
		g.butterflies(func() {
			g.load("R9", a)
			g.tighten(a, "Z0")
			g.twiddle(b)
			g.multiply(product, a, b)
			g.reduce(product, "Z25", "Z26")
			g.load("R8", a)
			for j, u := range product.upper() {
				g.op("VPADDQ", u, a[j], b[j])
				g.op("VMOVDQU64", b[j], at("R8", 64*j))
				g.op("VPSUBQ", u, a[j], b[j])
				g.op("VPADDQ.BCST", g.constant("p2", j), b[j], b[j])
				g.op("VMOVDQU64", b[j], at("R9", 64*j))
			}
		})
	})
}
