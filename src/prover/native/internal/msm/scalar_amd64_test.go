package msm

import (
	"testing"

	"github.com/consensys/gnark-crypto/ecc/bn254/fp"

	"sui-enclave/prover/internal/cpu"
)

// extremes returns numbers that show a wrong carry or borrow: 0, 1, p-1, and numbers with words of ones or zeros.
func extremes() []fp.Element {
	last := fp.Element{}
	last.SetOne()
	last.Neg(&last)
	p := fp.Modulus().Bits()
	ones := ^uint64(0)
	return []fp.Element{
		{}, {1}, last, {uint64(p[0]) - 1, uint64(p[1]), uint64(p[2]), uint64(p[3])},
		{ones, ones, ones, uint64(p[3]) - 1}, {0, 0, 0, uint64(p[3])}, {ones}, {0, ones}, {0, 0, ones},
	}
}

func TestTheScalarKernelsComputeWhatTheLibraryDoes(t *testing.T) {
	if !cpu.Has(cpu.ADX) {
		t.Skip("this processor has no ADX")
	}
	var a, b []fp.Element
	for _, x := range extremes() {
		for _, y := range extremes() {
			a, b = append(a, x), append(b, y)
		}
	}
	for range 20_000 {
		var x, y fp.Element
		_, _ = x.SetRandom()
		_, _ = y.SetRandom()
		a, b = append(a, x), append(b, y)
	}
	got, want := make([]fp.Element, len(a)), fp.Element{}
	mulADX(&got[0], &a[0], &b[0], uint64(len(a)))
	for i := range a {
		if want.Mul(&a[i], &b[i]); got[i] != want {
			t.Fatalf("%v times %v", a[i], b[i])
		}
	}
	subADX(&got[0], &a[0], &b[0], uint64(len(a)))
	for i := range a {
		if want.Sub(&a[i], &b[i]); got[i] != want {
			t.Fatalf("%v minus %v", a[i], b[i])
		}
	}
	// A product may replace an operand, and a call with the length 0 writes nothing.
	before := a[0]
	mulADX(&a[0], &a[0], &b[0], 0)
	if a[0] != before {
		t.Fatal("a call with the length 0 wrote a product")
	}
	squares := append([]fp.Element{}, b...)
	mulADX(&squares[0], &squares[0], &squares[0], uint64(len(b)))
	for i := range b {
		if want.Square(&b[i]); squares[i] != want {
			t.Fatalf("the square of %v", b[i])
		}
	}
}
