package main

import (
	"fmt"
	"math/big"
)

// The kernels for processors with BMI2 and ADX, but without AVX-512 IFMA. Numbers are four words of 64 bits, reduced,
// in the library's Montgomery form for R = 2^256. MULX doesn't change the flags, and ADCX and ADOX use different
// carries, so products and sums overlap.

// Registers of a product. DX is MULX's own operand.
var (
	factor = [4]string{"DI", "R8", "R9", "R10"}         // x
	sum    = [5]string{"R14", "R13", "CX", "BX", "R15"} // t, and its highest word
	high   = "R12"
	low    = "AX"
)

func (g *generator) scalarKernels(field string, p *big.Int) {
	inverse := new(big.Int).ModInverse(p, power(64))
	inverse.Sub(power(64), inverse)
	for j := range 4 {
		g.line("DATA %s_word<>+%d(SB)/8, $0x%x", field, 8*j, word(p, j))
	}
	g.line("DATA %s_word<>+32(SB)/8, $0x%x", field, inverse.Uint64())
	g.line("GLOBL %s_word<>(SB), (NOPTR+RODATA), $40", field)
	g.mulADX()
	g.subADX()
	g.prefetchPairs()
}

func word(v *big.Int, j int) uint64 {
	w := new(big.Int).Rsh(v, uint(64*j))
	return w.And(w, new(big.Int).Sub(power(64), big.NewInt(1))).Uint64()
}

func (g *generator) modulusWord(j int) string { return fmt.Sprintf("%s_word<>+%d(SB)", g.field, 8*j) }

// product multiplies factor by the words at y and leaves the product, less than 2p, in sum[0..3] (Montgomery, Acar
// and others 1996, CIOS; the highest word never carries, since p < 2^254).
func (g *generator) product(y string) {
	t := sum
	for i := range 4 {
		g.op("XORQ", low, low) // clears both carries
		g.op("MOVQ", at(y, 8*i), "DX")
		if i == 0 {
			g.op("MULXQ", factor[0], t[0], t[1])
			for j := 1; j < 4; j++ {
				g.op("MULXQ", factor[j], low, t[j+1])
				g.op("ADOXQ", low, t[j])
			}
			g.op("MOVQ", "$0", low)
			g.op("ADOXQ", low, t[4])
		} else {
			g.op("MULXQ", factor[0], low, t[4])
			g.op("ADOXQ", low, t[0])
			for j := 1; j < 4; j++ {
				g.op("ADCXQ", t[4], t[j])
				g.op("MULXQ", factor[j], low, t[4])
				g.op("ADOXQ", low, t[j])
			}
			g.op("MOVQ", "$0", low)
			g.op("ADCXQ", low, t[4])
			g.op("ADOXQ", low, t[4])
		}
		// Adds a multiple of p that makes the lowest word 0, and drops that word.
		g.op("MOVQ", g.modulusWord(4), "DX")
		g.op("IMULQ", t[0], "DX")
		g.op("XORQ", low, low)
		g.op("MULXQ", g.modulusWord(0), low, high)
		g.op("ADCXQ", t[0], low)
		g.op("MOVQ", high, t[0])
		for j := 1; j < 4; j++ {
			g.op("ADCXQ", t[j], t[j-1])
			g.op("MULXQ", g.modulusWord(j), low, t[j])
			g.op("ADOXQ", low, t[j-1])
		}
		g.op("MOVQ", "$0", low)
		g.op("ADCXQ", low, t[3])
		g.op("ADOXQ", t[4], t[3])
	}
}

// subtractModulus subtracts p from sum[0..3] if that is at least p. It overwrites factor.
func (g *generator) subtractModulus() {
	for j := range 4 {
		g.op("MOVQ", sum[j], factor[j])
	}
	for j := range 4 {
		name := "SBBQ"
		if j == 0 {
			name = "SUBQ"
		}
		g.op(name, g.modulusWord(j), factor[j])
	}
	for j := range 4 {
		g.op("CMOVQCC", factor[j], sum[j])
	}
}

// each repeats body for n elements. It stores each sum at dst, and advances dst and the pointers in registers.
func (g *generator) each(pointers []string, body func()) {
	g.label++
	start, end := fmt.Sprintf("loop%d", g.label), fmt.Sprintf("done%d", g.label)
	count := fmt.Sprintf("n+%d(FP)", 8*(len(pointers)+1))
	g.op("CMPQ", count, "$0")
	g.op("JEQ", end)
	g.line("%s:", start)
	body()
	g.op("MOVQ", "dst+0(FP)", low)
	for j := range 4 {
		g.op("MOVQ", sum[j], at(low, 8*j))
	}
	g.op("ADDQ", "$32", "dst+0(FP)")
	for _, pointer := range pointers {
		g.op("ADDQ", "$32", pointer)
	}
	g.op("DECQ", count)
	g.op("JNE", start)
	g.line("%s:", end)
}

func (g *generator) scalar(name, doc string, body func()) {
	element := g.field + ".Element"
	declaration := fmt.Sprintf("func %s(dst, a, b *%s, n uint64)", name, element)
	fmt.Fprintf(&g.declarations, "\n// %s: %s\n//\n//go:noescape\n%s\n", name, doc, declaration)
	g.line("")
	g.line("// %s", declaration)
	g.line("TEXT ·%s(SB), NOSPLIT, $0-32", name)
	g.op("MOVQ", "a+8(FP)", "SI")
	g.op("MOVQ", "b+16(FP)", "R11")
	g.each([]string{"SI", "R11"}, body)
	g.op("RET")
}

func (g *generator) loadFactor() {
	for j := range 4 {
		g.op("MOVQ", at("SI", 8*j), factor[j])
	}
}

func (g *generator) mulADX() {
	g.scalar("mulADX", "dst[i] = a[i]·b[i] for n elements, all reduced.", func() {
		g.loadFactor()
		g.product("R11")
		g.subtractModulus()
	})
}

func (g *generator) subADX() {
	g.scalar("subADX", "dst[i] = a[i] - b[i] for n elements, all reduced.", func() {
		for j := range 4 {
			g.op("MOVQ", at("SI", 8*j), sum[j])
		}
		for j := range 4 {
			name := "SBBQ"
			if j == 0 {
				name = "SUBQ"
			}
			g.op(name, at("R11", 8*j), sum[j])
		}
		// factor becomes p if the difference was negative, otherwise 0.
		g.op("MOVQ", "$0", low)
		for j := range 4 {
			g.op("MOVQ", g.modulusWord(j), factor[j])
		}
		for j := range 4 {
			g.op("CMOVQCC", low, factor[j])
		}
		for j := range 4 {
			name := "ADCQ"
			if j == 0 {
				name = "ADDQ"
			}
			g.op(name, factor[j], sum[j])
		}
	})
}

// prefetchPairs writes a function that prefetches the points of pairs. A point has 64 bytes.
func (g *generator) prefetchPairs() {
	declaration := "func prefetchPairs(points *bn254.G1Affine, pairs *Pair, n uint64)"
	fmt.Fprintf(&g.declarations, "\n// prefetchPairs: Prefetches the points of n pairs.\n//\n//go:noescape\n%s\n", declaration)
	g.line("")
	g.line("// %s", declaration)
	g.line("TEXT ·prefetchPairs(SB), NOSPLIT, $0-24")
	g.op("MOVQ", "points+0(FP)", "SI")
	g.op("MOVQ", "pairs+8(FP)", "DI")
	g.op("MOVQ", "n+16(FP)", "CX")
	g.loop("CX", func() {
		for _, offset := range []int{0, 4} { // P and Q: an index whose lowest bit is the sign
			g.op("MOVL", at("DI", offset), low)
			g.op("SHRL", "$1", low)
			g.op("SHLQ", "$6", low)
			g.op("PREFETCHT0", "(SI)(AX*1)")
		}
		g.op("ADDQ", fmt.Sprintf("$%d", pairSize), "DI")
	})
	g.op("RET")
}
