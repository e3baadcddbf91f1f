package groth16

import (
	"math/rand/v2"
	"slices"
	"testing"
)

func TestExpandListsTheBitsThatBothSetsHave(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 3))
	for _, n := range []int{0, 1, 255, 256, 257, 1000} {
		a, b := make([]uint64, n), make([]uint64, n+random.IntN(3))
		for i := range a {
			a[i] = random.Uint64()
		}
		for i := range b {
			b[i] = random.Uint64() & random.Uint64()
		}
		const from = 5
		var want []uint32
		for i := range 64 * n {
			if i < from {
				a[0] &^= 1 << i
			} else if a[i/64]&b[i/64]>>(i%64)&1 == 1 {
				want = append(want, uint32(i-from))
			}
		}
		index := make([]uint32, 64*n)
		if got := index[:expand(index, a, b, from)]; !slices.Equal(got, want) {
			t.Fatalf("%d words: %d bits instead of %d", n, len(got), len(want))
		}
	}
}
