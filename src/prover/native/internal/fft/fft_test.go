package fft

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/consensys/gnark-crypto/ecc/bn254/fr"
)

var source = rand.New(rand.NewPCG(11, 11))

func random(n int) []fr.Element {
	v := make([]fr.Element, n)
	for i := range v {
		v[i] = fr.Element{source.Uint64(), source.Uint64(), source.Uint64(), source.Uint64() >> 3}
	}
	return v
}

func constant(n int, x int64) []fr.Element {
	v := make([]fr.Element, n)
	for i := range v {
		v[i].SetInt64(x)
	}
	return v
}

// largest returns n elements whose words in memory are the modulus less one: the largest valid input.
func largest(n int) []fr.Element {
	m := fr.Modulus().Bits()
	v := make([]fr.Element, n)
	for i := range v {
		v[i] = fr.Element{uint64(m[0]) - 1, uint64(m[1]), uint64(m[2]), uint64(m[3])}
	}
	return v
}

func alternating(n int) []fr.Element {
	v := largest(n)
	for i := 0; i < n; i += 2 {
		v[i] = fr.Element{}
	}
	return v
}

func single(n, at int) []fr.Element {
	v := make([]fr.Element, n)
	v[at] = largest(1)[0]
	return v
}

func TestTheCosetsValuesEqualTheLibrarys(t *testing.T) {
	for logN := 1; logN <= 15; logN++ {
		n := 1 << logN
		reference, err := NewLibrary(n)
		if err != nil {
			t.Fatal(err)
		}
		domain, err := New(n)
		if err != nil {
			t.Fatal(err)
		}
		for name, values := range map[string][]fr.Element{
			"random": random(n), "zeros": constant(n, 0), "ones": constant(n, 1), "minus ones": constant(n, -1),
			"largest": largest(n), "alternating": alternating(n), "the first": single(n, 0), "the last": single(n, n-1),
		} {
			t.Run(fmt.Sprintf("2^%d/%s", logN, name), func(t *testing.T) {
				want, got := append([]fr.Element{}, values...), append([]fr.Element{}, values...)
				reference.ToCoset(want)
				domain.ToCoset(got)
				for i := range want {
					if got[i] != want[i] {
						t.Fatalf("value %d is wrong", i)
					}
				}
			})
		}
		domain.Free()
	}
}

// TestALineStaysALine checks the definition itself: a polynomial of degree 1 has known values everywhere.
func TestALineStaysALine(t *testing.T) {
	const n = 256
	g, _ := fr.Generator(2 * n)
	domain, err := New(n)
	if err != nil {
		t.Fatal(err)
	}
	defer domain.Free()
	power := fr.One()
	var onDomain, onCoset []fr.Element
	for i := range 2 * n { // 5 + 7x at the powers of g; the even powers are the domain
		y, five, seven := power, fr.NewElement(5), fr.NewElement(7)
		y.Mul(&y, &seven).Add(&y, &five)
		if i%2 == 0 {
			onDomain = append(onDomain, y)
		} else {
			onCoset = append(onCoset, y)
		}
		power.Mul(&power, &g)
	}
	domain.ToCoset(onDomain)
	for i := range onCoset {
		if onDomain[i] != onCoset[i] {
			t.Fatalf("value %d is wrong", i)
		}
	}
}

func BenchmarkToCoset(b *testing.B) {
	const n = 1 << 16
	library, _ := NewLibrary(n)
	best, _ := New(n)
	values := random(n)
	for name, d := range map[string]Domain{"library": library, "best": best} {
		b.Run(name, func(b *testing.B) {
			for range b.N {
				d.ToCoset(values)
			}
		})
	}
}
