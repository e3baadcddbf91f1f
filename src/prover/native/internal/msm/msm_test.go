package msm

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/consensys/gnark-crypto/ecc"
	"github.com/consensys/gnark-crypto/ecc/bn254"
	"github.com/consensys/gnark-crypto/ecc/bn254/fr"

	"sui-enclave/prover/internal/cpu"
)

// Each test compares sums with those of the library.

type testGroup[P, J any, PJ jacobian[J, P]] struct {
	adders    map[string]func() adder[P]
	points    func(scalars []Scalar) []P // multiples of the generator
	infinity  P
	reference func(points []P, scalars []fr.Element) J
	same      func(a, b *J) bool
	negate    func(p P) P
}

// adders returns the constructor of the adder for each code path that this processor has.
func adders[P any](best func() adder[P]) map[string]func() adder[P] {
	all := map[string]func() adder[P]{}
	for _, path := range cpu.Paths() {
		all[string(path)] = func() adder[P] {
			defer func(path cpu.Path) { _ = cpu.Force(path) }(cpu.Chosen())
			_ = cpu.Force(path)
			return best()
		}
	}
	return all
}

var testG1 = testGroup[bn254.G1Affine, bn254.G1Jac, *bn254.G1Jac]{
	adders: adders(bestG1),
	points: func(s []Scalar) []bn254.G1Affine {
		_, _, g, _ := bn254.Generators()
		return bn254.BatchScalarMultiplicationG1(&g, elements(s))
	},
	reference: func(points []bn254.G1Affine, scalars []fr.Element) (sum bn254.G1Jac) {
		_, _ = sum.MultiExp(points, scalars, ecc.MultiExpConfig{})
		return sum
	},
	same:   func(a, b *bn254.G1Jac) bool { return a.Equal(b) },
	negate: func(p bn254.G1Affine) bn254.G1Affine { return *p.Neg(&p) },
}

var testG2 = testGroup[bn254.G2Affine, bn254.G2Jac, *bn254.G2Jac]{
	adders: adders(bestG2),
	points: func(s []Scalar) []bn254.G2Affine {
		_, _, _, g := bn254.Generators()
		return bn254.BatchScalarMultiplicationG2(&g, elements(s))
	},
	reference: func(points []bn254.G2Affine, scalars []fr.Element) (sum bn254.G2Jac) {
		_, _ = sum.MultiExp(points, scalars, ecc.MultiExpConfig{})
		return sum
	},
	same:   func(a, b *bn254.G2Jac) bool { return a.Equal(b) },
	negate: func(p bn254.G2Affine) bn254.G2Affine { return *p.Neg(&p) },
}

func elements(s []Scalar) []fr.Element {
	e := make([]fr.Element, len(s))
	for i := range s {
		b := make([]byte, 0, 32)
		for j := 3; j >= 0; j-- {
			for shift := 56; shift >= 0; shift -= 8 {
				b = append(b, byte(s[i][j]>>shift))
			}
		}
		e[i].SetBytes(b)
	}
	return e
}

func plainScalars(e []fr.Element) []Scalar {
	s := make([]Scalar, len(e))
	for i := range e {
		s[i] = e[i].Bits()
	}
	return s
}

var source = rand.New(rand.NewPCG(7, 7))

func randomScalars(n int) []Scalar {
	e := make([]fr.Element, n)
	for i := range e {
		e[i] = fr.Element{source.Uint64(), source.Uint64(), source.Uint64(), source.Uint64() >> 3}
	}
	return plainScalars(e)
}

// scalarKinds make the kinds of scalars that a witness may have, also a witness that somebody chose to do harm.
var scalarKinds = map[string]func(n int) []Scalar{
	"random": randomScalars,
	"zeros":  func(n int) []Scalar { return make([]Scalar, n) },
	"ones": func(n int) []Scalar {
		s := make([]Scalar, n)
		for i := range s {
			s[i] = Scalar{1}
		}
		return s
	},
	"minus ones": func(n int) []Scalar {
		e := make([]fr.Element, n)
		for i := range e {
			e[i].SetInt64(-1)
		}
		return plainScalars(e)
	},
	"one value": func(n int) []Scalar {
		s := randomScalars(n)
		for i := range s {
			s[i] = s[0]
		}
		return s
	},
	"small": func(n int) []Scalar {
		s := make([]Scalar, n)
		for i := range s {
			s[i] = Scalar{source.Uint64() >> 32}
		}
		return s
	},
	"powers of two and their neighbours": func(n int) []Scalar {
		e := make([]fr.Element, n)
		for i := range e {
			e[i].SetUint64(1)
			for range i % 254 {
				e[i].Double(&e[i])
			}
			var d fr.Element
			e[i].Add(&e[i], d.SetInt64(int64(i%3-1)))
		}
		return plainScalars(e)
	},
}

// pointKinds returns functions that make the kinds of points that a key may have.
func pointKinds[P, J any, PJ jacobian[J, P]](g testGroup[P, J, PJ]) map[string]func(n int) []P {
	return map[string]func(n int) []P{
		"random": func(n int) []P { return g.points(randomScalars(n)) },
		"equal": func(n int) []P {
			p := g.points(randomScalars(1))
			for len(p) < n {
				p = append(p, p[0])
			}
			return p
		},
		"equal and opposite": func(n int) []P {
			p := g.points(randomScalars(1))
			for len(p) < n {
				p = append(p, g.negate(p[len(p)-1]))
			}
			return p
		},
		"infinity": func(n int) []P { return make([]P, n) },
		"some at infinity": func(n int) []P {
			p := g.points(randomScalars(n))
			for i := range p {
				if source.IntN(3) == 0 {
					p[i] = g.infinity
				}
			}
			return p
		},
		"few different": func(n int) []P {
			few := g.points(randomScalars(3))
			p := make([]P, n)
			for i := range p {
				p[i] = few[source.IntN(3)]
			}
			return p
		},
		"multiples in a row": func(n int) []P { // a sum may equal another point
			s := make([]Scalar, n)
			for i := range s {
				s[i] = Scalar{uint64(i + 1)}
			}
			return g.points(s)
		},
	}
}

var sizes = []int{1, 2, 3, 7, 8, 9, 65, 300, 1025}

func productsMatch[P, J any, PJ jacobian[J, P]](t *testing.T, g testGroup[P, J, PJ], sizes []int) {
	for name, newAdder := range g.adders {
		m := newMultiplier[P, J, PJ](newAdder)
		defer m.Free()
		for pointKind, points := range pointKinds(g) {
			for scalarKind, scalars := range scalarKinds {
				t.Run(fmt.Sprintf("%s/%s points/%s scalars", name, pointKind, scalarKind), func(t *testing.T) {
					for _, n := range sizes {
						p, s := points(n), scalars(n)
						want := g.reference(p, elements(s))
						got, err := m.Product(p, nil, s)
						if err != nil || !g.same(&got, &want) {
							t.Fatalf("%d points: wrong product (%v)", n, err)
						}
					}
				})
			}
		}
	}
}

func TestProductsOverG1EqualTheLibrarys(t *testing.T) {
	productsMatch(t, testG1, []int{1, 2, 9, 65, 300})
}

func TestProductsOverG2EqualTheLibrarys(t *testing.T) { productsMatch(t, testG2, []int{1, 2, 9, 65}) }

func sumsMatch[P, J any, PJ jacobian[J, P]](t *testing.T, g testGroup[P, J, PJ]) {
	for name, newAdder := range g.adders {
		m := newMultiplier[P, J, PJ](newAdder)
		defer m.Free()
		for kind, points := range pointKinds(g) {
			t.Run(name+"/"+kind, func(t *testing.T) {
				for _, n := range append([]int{0}, sizes...) {
					p := append(points(n), g.infinity)
					var index []uint32
					chosen := make([]fr.Element, len(p))
					for i := range n {
						if source.IntN(4) > 0 {
							index = append(index, uint32(i))
							chosen[i].SetOne()
						}
					}
					want, got := g.reference(p, chosen), m.Sum(p, index)
					if !g.same(&got, &want) {
						t.Fatalf("%d of %d points: wrong sum", len(index), n)
					}
				}
			})
		}
	}
}

func TestSumsOverG1EqualTheLibrarys(t *testing.T) { sumsMatch(t, testG1) }
func TestSumsOverG2EqualTheLibrarys(t *testing.T) { sumsMatch(t, testG2) }

func TestMixedAddsPointsAndProducts(t *testing.T) {
	p, s := testG1.points(randomScalars(300)), randomScalars(100)
	weights := make([]fr.Element, len(p))
	var ones, index []uint32
	for i := range p {
		switch i % 3 {
		case 0:
			ones = append(ones, uint32(i))
			weights[i].SetOne()
		case 1:
			index = append(index, uint32(i))
			weights[i] = elements(s[len(index)-1 : len(index)])[0]
		}
	}
	m := NewG1()
	defer m.Free()
	got, err := m.Mixed(p, ones, index, s)
	if want := testG1.reference(p, weights); err != nil || !got.Equal(&want) {
		t.Fatal("wrong sum", err)
	}
}

func TestProductsOfManyPointsEqualTheLibrarys(t *testing.T) { // several tasks a window, and odd sizes
	m := NewG1()
	defer m.Free()
	for _, n := range []int{1023, 4097, 10001, 70003} {
		p, s := testG1.points(randomScalars(n)), randomScalars(n)
		want := testG1.reference(p, elements(s))
		if got, err := m.Product(p, nil, s); err != nil || !got.Equal(&want) {
			t.Fatalf("%d points: wrong product (%v)", n, err)
		}
	}
}

func TestManyTasksShareOneBucket(t *testing.T) { // more equal digits than a task takes
	n := 3*entries + 5
	if testing.Short() {
		n = 5000
	}
	p, s := testG1.points(randomScalars(n)), scalarKinds["one value"](n)
	m := NewG1()
	defer m.Free()
	want := testG1.reference(p, elements(s))
	if got, err := m.Product(p, nil, s); err != nil || !got.Equal(&want) {
		t.Fatal("wrong product", err)
	}
}

func TestMultiplesEqualTheLibrarys(t *testing.T) {
	_, _, g1, g2 := bn254.Generators()
	for kind, scalars := range scalarKinds {
		s := scalars(70)
		for i, p := range MultiplesG1(g1).Of(s) {
			if want := testG1.points(s[i : i+1])[0]; !p.Equal(&want) {
				t.Fatalf("G1, %s: multiple %d is wrong", kind, i)
			}
		}
	}
	s := randomScalars(20)
	for i, p := range MultiplesG2(g2).Of(s) {
		if want := testG2.points(s[i : i+1])[0]; !p.Equal(&want) {
			t.Fatalf("G2: multiple %d is wrong", i)
		}
	}
}

func TestWindowsCoverEveryScalar(t *testing.T) {
	for n := 1; n < 1<<27; n = n*3 + 1 {
		w := newWindows(n)
		top := 254 - w.bits*(w.count-1)
		if w.bits*w.count < 255 || top < 0 || 1<<top*76/100+1 > w.buckets {
			t.Fatalf("%d scalars: %d windows of %d bits", n, w.count, w.bits)
		}
		if n >= 1<<18 && (w.together*w.shares < tasks || w.together*w.segments < tasks || w.together*n/entries < tasks) {
			t.Fatalf("%d scalars: too few tasks: %+v", n, w)
		}
		if w.buckets/w.segments > entries {
			t.Fatalf("%d scalars: %+v needs more scratch than a worker has", n, w)
		}
	}
}

func TestWipeLeavesNothingBehind(t *testing.T) {
	m := NewG1()
	defer m.Free()
	if _, err := m.Product(testG1.points(randomScalars(100)), nil, randomScalars(100)); err != nil {
		t.Fatal(err)
	}
	m.Wipe()
	for _, d := range m.sorted.digits {
		if d != 0 {
			t.Fatal("a digit is still there")
		}
	}
	for i := range m.work {
		for _, p := range append(m.work[i].points, m.work[i].scratch...) {
			if p != (bn254.G1Affine{}) {
				t.Fatal("a partial sum is still there")
			}
		}
	}
}

func BenchmarkProductG1(b *testing.B) {
	const n = 1 << 16
	p, s := testG1.points(randomScalars(n)), randomScalars(n)
	for name, newAdder := range testG1.adders {
		b.Run(name, func(b *testing.B) {
			m := newMultiplier[bn254.G1Affine, bn254.G1Jac](newAdder)
			defer m.Free()
			for range b.N {
				_, _ = m.Product(p, nil, append([]Scalar{}, s...))
			}
		})
	}
}

func BenchmarkAddG1(b *testing.B) {
	n := 1 << 12
	p := testG1.points(randomScalars(n))
	dst := make([]bn254.G1Affine, n/2)
	pairs := make([]Pair, n/2)
	for i := range pairs {
		pairs[i] = Pair{uint32(2*i) << 1, uint32(2*i+1) << 1, uint32(i)}
	}
	for name, newAdder := range testG1.adders {
		b.Run(name, func(b *testing.B) {
			a := newAdder()
			for range b.N {
				a.addKey(dst, p, pairs)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(pairs)), "ns/addition")
		})
	}
}

func BenchmarkAddG2(b *testing.B) {
	n := 1 << 12
	p := testG2.points(randomScalars(n))
	dst := make([]bn254.G2Affine, n/2)
	pairs := make([]Pair, n/2)
	for i := range pairs {
		pairs[i] = Pair{uint32(2*i) << 1, uint32(2*i+1) << 1, uint32(i)}
	}
	for name, newAdder := range testG2.adders {
		b.Run(name, func(b *testing.B) {
			a := newAdder()
			for range b.N {
				a.addKey(dst, p, pairs)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(pairs)), "ns/addition")
		})
	}
}
