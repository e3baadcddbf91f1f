package iden3

import (
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/consensys/gnark-crypto/ecc/bn254"
	"github.com/consensys/gnark-crypto/ecc/bn254/fp"

	"sui-enclave/prover/internal/mem"
)

func read(t testing.TB, b []byte) *Key {
	t.Helper()
	k, err := ReadKey(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(k.Free)
	return k
}

func TestReadKeyRecognisesADevelopmentKey(t *testing.T) {
	if !read(t, tinyFiles["zkey"]).Development {
		t.Fatal("a development key is not recognised")
	}
	if read(t, testFile("snarkjs.zkey")).Development {
		t.Fatal("the key of snarkjs is taken for a development key")
	}
}

func TestAKeysPointsLieOnTheirCurves(t *testing.T) {
	k := read(t, testFile("snarkjs.zkey"))
	for _, points := range [][]bn254.G1Affine{k.Verifying.IC, k.A, k.B1, k.C, k.H, {k.Verifying.Alpha, k.Beta1, k.Delta1}} {
		for i := range points {
			if !points[i].IsInSubGroup() {
				t.Fatal("a point of G1 isn't in the group")
			}
		}
	}
	for i := range k.B2 {
		if !k.B2[i].IsInSubGroup() {
			t.Fatal("a point of G2 isn't in the group")
		}
	}
}

func TestADamagedPointOfAnySectionIsRefused(t *testing.T) {
	for name, id := range map[string]uint32{
		"IC": zkeyIC, "A": zkeyA, "B1": zkeyB1, "B2": zkeyB2, "C": zkeyC, "H": zkeyH,
	} {
		f := parse(tinyFiles["zkey"])
		body := f.body(id)
		flipFinite(body)
		refuse(t, "zkey", f.bytes(), "("+name+"): point")
	}
}

// flipFinite changes one bit in the first point that isn't infinity.
func flipFinite(points []byte) {
	for i := range points {
		if points[i] != 0 {
			points[i] ^= 1
			return
		}
	}
}

func TestCoordinatesThatAreNotReducedAreRefused(t *testing.T) {
	f := parse(tinyFiles["zkey"])
	var x [4]uint64
	body := f.body(zkeyH)
	copy(mem.Bytes(x[:]), body[:32])
	for i, carry := 0, uint64(0); i < 4; i++ { // x + p is the same coordinate
		sum := x[i] + fieldModulus[i]
		over := sum < x[i]
		x[i] = sum + carry
		if carry = 0; over || (x[i] == 0 && sum != 0) {
			carry = 1
		}
	}
	copy(body, mem.Bytes(x[:]))
	refuse(t, "zkey", f.bytes(), "(H): point 0 is not on the curve")
}

func TestDamagedHeadersAreRefused(t *testing.T) {
	const numbers = 2 * (4 + fp.Bytes)
	for name, c := range map[string]struct {
		at    int
		value uint32
		words string
	}{
		"a domain that is not a power of two": {numbers + 8, 24, "power of two"},
		"a domain above 2^27":                 {numbers + 8, 1 << 28, "power of two"},
		"a domain larger than H":              {numbers + 8, 1 << 26, "(H) has"},
		"more public values than wires":       {numbers + 4, 1 << 30, "don't go together"},
		"more wires than points":              {numbers, 1 << 30, "(A) has"},
		"more wires than an index can have":   {numbers, 1<<30 + 1, "more than"},
		"fewer wires than points":             {numbers, 5, "(A) has"},
		"alpha off the curve":                 {numbers + 12, 7, "alpha1"},
		"delta2 off the curve":                {numbers + 12 + 3*64 + 2*128, 7, "delta2"},
	} {
		t.Run(name, func(t *testing.T) {
			f := parse(tinyFiles["zkey"])
			binary.LittleEndian.PutUint32(f.body(zkeyHeader)[c.at:], c.value)
			refuse(t, "zkey", f.bytes(), c.words)
		})
	}
	f := parse(tinyFiles["zkey"])
	f.body(zkeyProtocol)[0] = 2
	refuse(t, "zkey", f.bytes(), "not Groth16")
	f = parse(tinyFiles["zkey"])
	clear(f.body(zkeyHeader)[numbers+12+2*64+128:][:128])
	refuse(t, "zkey", f.bytes(), "gamma2")
}

// TestAPointOfG2OutsideTheGroupIsRefusedInTheHeader tries a point that lies on the twist but not in the group. The
// twist has a large cofactor, so almost all of its points are such.
func TestAPointOfG2OutsideTheGroupIsRefusedInTheHeader(t *testing.T) {
	var p bn254.G2Affine
	var b bn254.E2 // the curve's constant: y² - x³ for any point
	_, _, _, g := bn254.Generators()
	var x3 bn254.E2
	x3.Square(&g.X).Mul(&x3, &g.X)
	b.Square(&g.Y).Sub(&b, &x3)
	for i := uint64(1); ; i++ {
		p.X.A0.SetUint64(i)
		x3.Square(&p.X).Mul(&x3, &p.X).Add(&x3, &b)
		if x3.Legendre() == 1 {
			p.Y.Sqrt(&x3)
			break
		}
	}
	if !p.IsOnCurve() || p.IsInSubGroup() {
		t.Fatal("this test's point is wrong")
	}
	f := parse(tinyFiles["zkey"])
	copy(f.body(zkeyHeader)[2*(4+fp.Bytes)+12+3*64+2*128:], point(&p))
	refuse(t, "zkey", f.bytes(), "delta2 is not in the group")
}

func TestDamagedCoefficientsAreRefused(t *testing.T) {
	for name, c := range map[string]struct {
		at    int
		value uint32
		words string
	}{
		"a count that the section doesn't hold": {0, 1 << 31, "the number of coefficients, 2147483648,"},
		"a third matrix":                        {4, 2, "doesn't exist"},
		"a row outside the domain":              {8, 1 << 20, "doesn't exist"},
		"a row below zero":                      {8, 1<<32 - 1, "doesn't exist"},
		"a wire that doesn't exist":             {12, 1000, "doesn't exist"},
		"a value that isn't reduced":            {4 + 12 + 28, 1<<32 - 1, "not below the group's order"},
	} {
		t.Run(name, func(t *testing.T) {
			f := parse(tinyFiles["zkey"])
			binary.LittleEndian.PutUint32(f.body(zkeyCoefficients)[c.at:], c.value)
			refuse(t, "zkey", f.bytes(), c.words)
		})
	}
}

func TestB1AndB2MustAgree(t *testing.T) {
	f := parse(tinyFiles["zkey"])
	b1 := f.body(zkeyB1)
	for i := 0; ; i += 64 {
		if !bytes.Equal(b1[i:i+64], make([]byte, 64)) {
			clear(b1[i : i+64])
			break
		}
	}
	refuse(t, "zkey", f.bytes(), "disagree")
}

func TestRowsDoNotDependOnTheOrderOfCoefficients(t *testing.T) {
	f := parse(tinyFiles["zkey"])
	want := read(t, f.bytes())
	body := f.body(zkeyCoefficients)[4:]
	for i, j := 0, len(body)-coefficientSize; i < j; i, j = i+coefficientSize, j-coefficientSize {
		var swapped [coefficientSize]byte
		copy(swapped[:], body[i:])
		copy(body[i:i+coefficientSize], body[j:])
		copy(body[j:], swapped[:])
	}
	got := read(t, f.bytes())
	for m := range want.Rows {
		for row := range want.Domain {
			a, b := terms(&want.Rows[m], row), terms(&got.Rows[m], row)
			if len(a) != len(b) {
				t.Fatal("a row lost a term")
			}
			for term := range a {
				if !b[term] {
					t.Fatal("a row has a wrong term")
				}
			}
		}
	}
}

// terms returns the set of a row's terms, each as its wire and its value.
func terms(m *SparseMatrix, row int) map[[2]string]bool {
	set := map[[2]string]bool{}
	for _, t := range m.Terms[m.Start[row]:m.Start[row+1]] {
		set[[2]string{string(rune(t.Wire)), m.Montgomery[t.Value].String()}] = true
	}
	return set
}
