package iden3

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"unsafe"

	"github.com/consensys/gnark-crypto/ecc/bn254"
	"github.com/consensys/gnark-crypto/ecc/bn254/fp"
	"github.com/consensys/gnark-crypto/ecc/bn254/fr"

	"sui-enclave/prover/internal/failure"
	"sui-enclave/prover/internal/mem"
	"sui-enclave/prover/internal/par"
)

// Sections of a Groth16 .zkey (snarkjs, src/zkey_utils.js).
const (
	zkeyProtocol      = 1
	zkeyHeader        = 2
	zkeyIC            = 3
	zkeyCoefficients  = 4
	zkeyA             = 5
	zkeyB1            = 6
	zkeyB2            = 7
	zkeyC             = 8
	zkeyH             = 9
	zkeyContributions = 10
	// zkeyDevelopment is this project's: a key from a seed that says so. snarkjs and rapidsnark skip it.
	zkeyDevelopment = 0x646576

	groth16Protocol = 1
	g1Size          = 64
	g2Size          = 128
	zkeyHeaderSize  = 2*(4+fp.Bytes) + 3*4 + 3*g1Size + 3*g2Size
	// maxDomain leaves one of BN254's 28 factors of two for the coset.
	maxDomain = 1 << 27
	// maxWires leaves a bit of a point's 32-bit index for its sign.
	maxWires = 1 << 30
)

// DevelopmentNotice is what a development key carries.
const DevelopmentNotice = "Development only: whoever knows this key's seed can forge proofs."

// VerifyingKey is what a verifier needs of a key.
type VerifyingKey struct {
	Alpha              bn254.G1Affine
	Beta, Gamma, Delta bn254.G2Affine
	IC                 []bn254.G1Affine
}

// Key is a proving key in memory. Points are stored as in the file.
type Key struct {
	Wires, Public, Domain int
	Development           bool
	Verifying             VerifyingKey
	Beta1, Delta1         bn254.G1Affine
	// One point a wire; C starts at the first private wire. H has one point for each element of the domain.
	A, B1, C, H []bn254.G1Affine
	B2          []bn254.G2Affine
	// Wires whose point in A, B1 or C is not infinity, 64 a word. B2 is infinity where B1 is.
	InA, InB, InC []uint64
	Rows          [2]SparseMatrix // A and B
	unchecked     bool
	arena         mem.Arena
}

// SparseMatrix is a sparse matrix with one row for each element of the domain.
type SparseMatrix struct {
	Start []uint32 // row i has the terms Start[i] to Start[i+1]
	Terms []Coefficient
	*Values
}

// Coefficient is a matrix's entry: a wire and an index in Values.
type Coefficient struct{ Wire, Value uint32 }

// Values are the different coefficients, which are few in circuits from circom.
type Values struct {
	Montgomery []fr.Element // v·R
	Twice      []fr.Element // v·R²: a product with a plain scalar gives Montgomery form
}

// Free returns the key's memory.
func (k *Key) Free() { k.arena.Free() }

// ReadKey reads a Groth16 .zkey over BN254 and checks every point to be on its curve.
func ReadKey(file io.ReaderAt, size int64) (*Key, error) { return readKey(file, size, &Key{}) }

// ReadKeyUnchecked leaves out the check of the points, 0.4 s of CPU at 2^20. With a damaged point proofs don't verify.
func ReadKeyUnchecked(file io.ReaderAt, size int64) (*Key, error) {
	return readKey(file, size, &Key{unchecked: true})
}

func readKey(file io.ReaderAt, size int64, k *Key) (*Key, error) {
	if err := k.read(file, size); err != nil {
		k.Free()
		return nil, failure.New(failure.BadKey, "key: %v", err)
	}
	return k, nil
}

func (k *Key) read(file io.ReaderAt, size int64) error {
	c, err := open(file, size, "zkey", 1)
	if err != nil {
		return err
	}
	protocol, err := c.small(zkeyProtocol, 4, "protocol")
	if err != nil {
		return err
	}
	if p := binary.LittleEndian.Uint32(protocol); p != groth16Protocol {
		return fmt.Errorf("protocol %d is not Groth16", p)
	}
	if err := k.readHeader(c); err != nil {
		return err
	}
	if err := k.readNotice(c); err != nil {
		return err
	}
	if err := k.readPoints(c); err != nil {
		return err
	}
	return k.readMatrices(c)
}

func (k *Key) readHeader(c *container) error {
	h, err := c.small(zkeyHeader, zkeyHeaderSize, "header")
	if err != nil {
		return err
	}
	if err := modulus(h, fp.Modulus()); err != nil {
		return err
	}
	if err := modulus(h[4+fp.Bytes:], fr.Modulus()); err != nil {
		return err
	}
	h = h[2*(4+fp.Bytes):]
	count := func(at int) int { return int(binary.LittleEndian.Uint32(h[at:])) }
	k.Wires, k.Public, k.Domain = count(0), count(4), count(8)
	if k.Domain < 2 || k.Domain&(k.Domain-1) != 0 || k.Domain > maxDomain {
		return fmt.Errorf("the size of the domain is %d: a power of two from 2 to 2^27 is needed", k.Domain)
	}
	if k.Wires > maxWires {
		return fmt.Errorf("%d wires are more than the %d that are supported", k.Wires, maxWires)
	}
	if k.Wires <= k.Public || k.Public >= k.Domain {
		return fmt.Errorf("the numbers of wires (%d) and public values (%d) and the domain (%d) don't go together", k.Wires, k.Public, k.Domain)
	}
	h = h[12:]
	v := &k.Verifying
	for _, field := range [][]byte{
		point(&v.Alpha), point(&k.Beta1), point(&v.Beta), point(&v.Gamma), point(&k.Delta1), point(&v.Delta),
	} {
		h = h[copy(field, h):]
	}
	return k.checkHeader()
}

// point is a point's memory.
func point[T any](p *T) []byte { return mem.Bytes(unsafe.Slice(p, 1)) }

// checkHeader checks the few points of the header fully, subgroup and all: none may be infinity.
func (k *Key) checkHeader() error {
	v := &k.Verifying
	for name, p := range map[string]*bn254.G1Affine{"alpha1": &v.Alpha, "beta1": &k.Beta1, "delta1": &k.Delta1} {
		if !validG1(p) || p.IsInfinity() {
			return fmt.Errorf("the header's point %s is not on the curve", name)
		}
	}
	for name, p := range map[string]*bn254.G2Affine{"beta2": &v.Beta, "gamma2": &v.Gamma, "delta2": &v.Delta} {
		if !validG2(p) || p.IsInfinity() || !p.IsInSubGroup() {
			return fmt.Errorf("the header's point %s is not in the group", name)
		}
	}
	return nil
}

func (k *Key) readNotice(c *container) error {
	s, ok := c.sections[zkeyDevelopment]
	if !ok {
		return nil
	}
	k.Development = true
	if s.size != int64(len(DevelopmentNotice)) {
		return errors.New("its development notice is damaged")
	}
	return nil
}

func (k *Key) readPoints(c *container) (err error) {
	if k.Verifying.IC, err = readSlice[bn254.G1Affine](k, c, zkeyIC, k.Public+1, "IC", validG1); err != nil {
		return err
	}
	if k.A, err = readSlice[bn254.G1Affine](k, c, zkeyA, k.Wires, "A", validG1); err != nil {
		return err
	}
	if k.B1, err = readSlice[bn254.G1Affine](k, c, zkeyB1, k.Wires, "B1", validG1); err != nil {
		return err
	}
	if k.B2, err = readSlice[bn254.G2Affine](k, c, zkeyB2, k.Wires, "B2", validG2); err != nil {
		return err
	}
	if k.C, err = readSlice[bn254.G1Affine](k, c, zkeyC, k.Wires-k.Public-1, "C", validG1); err != nil {
		return err
	}
	if k.H, err = readSlice[bn254.G1Affine](k, c, zkeyH, k.Domain, "H", validG1); err != nil {
		return err
	}
	k.InA, k.InB, k.InC = finite(k.A, 0), finite(k.B1, 0), finite(k.C, k.Public+1)
	if !slices.Equal(k.InB, finite(k.B2, 0)) {
		return errors.New("sections 6 and 7 (B1, B2) disagree about which wires are in B")
	}
	return nil
}

// finite has bit from+i set where points[i] is not infinity.
func finite[P any, Q interface {
	*P
	IsInfinity() bool
}](points []P, from int) []uint64 {
	set := make([]uint64, (from+len(points)+63)/64)
	const words = 1 << 7
	par.Ranges(len(set), words, func(first, last, _ int) {
		for i := max(64*first, from); i < min(64*last, from+len(points)); i++ {
			if !Q(&points[i-from]).IsInfinity() {
				set[i/64] |= 1 << (i % 64)
			}
		}
	})
	return set
}

// readSlice reads a section of n points straight into memory, which has the file's layout, and checks each, unless
// the key must be read unchecked.
func readSlice[P any](k *Key, c *container, id uint32, n int, what string, valid func(*P) bool) ([]P, error) {
	var p P
	size := int(unsafe.Sizeof(p))
	s, err := c.sized(id, int64(n)*int64(size), what)
	if err != nil {
		return nil, err
	}
	slice, err := mem.Slice[P](&k.arena, n)
	if err != nil {
		return nil, err
	}
	const part = 1 << 13
	return slice, par.Try((n+part-1)/part, func(task, _ int) error {
		from, to := task*part, min((task+1)*part, n)
		if err := c.readAt(mem.Bytes(slice[from:to]), s.offset+int64(from*size)); err != nil {
			return err
		}
		for i := from; i < to && !k.unchecked; i++ {
			if !valid(&slice[i]) {
				return fmt.Errorf("section %d (%s): point %d is not on the curve", id, what, i)
			}
		}
		return nil
	})
}

var fieldModulus = words(fp.Modulus().FillBytes(make([]byte, 32)))

func reducedCoordinate(e *fp.Element) bool { return below((*[4]uint64)(e), &fieldModulus) }

// validG1: both coordinates reduced, and on the curve or infinity. G1's curve has prime order, so that a point on it
// is in the group.
func validG1(p *bn254.G1Affine) bool {
	return reducedCoordinate(&p.X) && reducedCoordinate(&p.Y) && p.IsOnCurve()
}

// validG2 leaves out the group check, 50 µs a point: a point outside makes proofs that don't verify, no more.
func validG2(p *bn254.G2Affine) bool {
	return reducedCoordinate(&p.X.A0) && reducedCoordinate(&p.X.A1) &&
		reducedCoordinate(&p.Y.A0) && reducedCoordinate(&p.Y.A1) && p.IsOnCurve()
}
