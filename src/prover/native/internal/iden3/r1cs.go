package iden3

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/consensys/gnark-crypto/ecc/bn254/fr"

	"sui-enclave/prover/internal/failure"
	"sui-enclave/prover/internal/mem"
)

const (
	r1csHeader      = 1
	r1csConstraints = 2
	r1csGatesList   = 4
	r1csGatesUse    = 5
	termSize        = 4 + fr.Bytes
	// maxConstraints limits the domain. The domain and its coset together need twice as many roots of unity, and
	// BN254 has 2^28.
	maxConstraints = 1 << 27
)

// Matrix is one of a circuit's three matrices.
type Matrix int

const (
	MatrixA Matrix = iota
	MatrixB
	MatrixC
)

// Circuit is a circuit's constraints: (A·w)∘(B·w) = C·w for a witness w with w[0] = 1.
type Circuit struct {
	Wires, Public, Constraints int // Public counts outputs and public inputs, not the wire that is 1
	terms                      []byte
}

// ReadCircuit reads an .r1cs file. Its errors have the code BadCircuit.
func ReadCircuit(file io.ReaderAt, size int64) (*Circuit, error) {
	c, err := readCircuit(file, size)
	if err != nil {
		return nil, failure.New(failure.BadCircuit, "r1cs: %v", err)
	}
	return c, nil
}

func readCircuit(file io.ReaderAt, size int64) (*Circuit, error) {
	f, err := open(file, size, "r1cs", 1)
	if err != nil {
		return nil, err
	}
	head, err := f.small(r1csHeader, 4+fr.Bytes+16+8+4, "header")
	if err != nil {
		return nil, err
	}
	if err := modulus(head, fr.Modulus()); err != nil {
		return nil, err
	}
	for _, id := range []uint32{r1csGatesList, r1csGatesUse} {
		if s, ok := f.sections[id]; ok && s.size > 4 {
			return nil, errors.New("it uses PLONK's custom gates, which Groth16 doesn't have")
		}
	}
	u32 := func(at int) int { return int(binary.LittleEndian.Uint32(head[at:])) }
	c := &Circuit{Wires: u32(36), Public: u32(40) + u32(44), Constraints: u32(60)}
	if c.Wires < c.Public+1 || c.Constraints > maxConstraints {
		return nil, fmt.Errorf("the numbers of wires (%d), public values (%d) and constraints (%d) don't go together", c.Wires, c.Public, c.Constraints)
	}
	s, ok := f.sections[r1csConstraints]
	if !ok {
		return nil, errors.New("section 2 (constraints) is missing")
	}
	// A wire that no constraint uses takes no bytes of this section, but takes memory in a key. circom drops such wires.
	if int64(c.Wires) > s.size+int64(c.Public)+1 {
		return nil, fmt.Errorf("it claims too many wires (%d) for the size of its constraints (%d)", c.Wires, s.size)
	}
	c.terms = make([]byte, s.size)
	if err := f.readAt(c.terms, s.offset); err != nil {
		return nil, err
	}
	return c, c.check()
}

// check walks through every constraint, so that Each can't fail.
func (c *Circuit) check() error {
	terms := c.terms
	for row := range c.Constraints {
		for range 3 {
			if len(terms) < 4 {
				return fmt.Errorf("it ends within constraint %d", row)
			}
			n := int(binary.LittleEndian.Uint32(terms))
			terms = terms[4:]
			if n > len(terms)/termSize {
				return fmt.Errorf("constraint %d: the number of terms, %d, is more than the file holds", row, n)
			}
			for i := range n {
				term := terms[i*termSize:]
				if wire := binary.LittleEndian.Uint32(term); int(wire) >= c.Wires {
					return fmt.Errorf("constraint %d uses wire %d of %d", row, wire, c.Wires)
				}
				var v Scalar
				copy(mem.Bytes(v[:]), term[4:])
				if !reducedScalar(&v) {
					return fmt.Errorf("constraint %d has a coefficient that is not below the group's order", row)
				}
			}
			terms = terms[n*termSize:]
		}
	}
	if len(terms) > 0 {
		return fmt.Errorf("data follows the last constraint (size: %d)", len(terms))
	}
	return nil
}

// Each calls f for every term of every constraint, in the file's order.
func (c *Circuit) Each(f func(row int, m Matrix, wire int, coefficient fr.Element)) {
	terms := c.terms
	for row := range c.Constraints {
		for m := range MatrixC + 1 {
			n := int(binary.LittleEndian.Uint32(terms))
			terms = terms[4:]
			for ; n > 0; n-- {
				f(row, m, int(binary.LittleEndian.Uint32(terms)), element(terms[4:termSize]))
				terms = terms[termSize:]
			}
		}
	}
}

// element reads a field element from little-endian bytes, whose number must be below the group's order.
func element(littleEndian []byte) (e fr.Element) {
	e.SetBytes(reversed(littleEndian))
	return e
}

// Term is one wire with its coefficient.
type Term struct {
	Wire        int
	Coefficient fr.Element
}

// WriteCircuit writes an .r1cs file. Each row has a row of A, of B and of C.
func WriteCircuit(out io.Writer, wires, public int, rows [][3][]Term) error {
	f, err := newWriter(out, "r1cs", 1, 2)
	if err != nil {
		return err
	}
	head := declaration(fr.Modulus())
	for _, v := range []int{wires, 0, public, wires - public - 1} {
		head = binary.LittleEndian.AppendUint32(head, uint32(v))
	}
	head = binary.LittleEndian.AppendUint64(head, uint64(wires))
	head = binary.LittleEndian.AppendUint32(head, uint32(len(rows)))
	var terms []byte
	for _, row := range rows {
		for _, combination := range row {
			terms = binary.LittleEndian.AppendUint32(terms, uint32(len(combination)))
			for _, t := range combination {
				terms = binary.LittleEndian.AppendUint32(terms, uint32(t.Wire))
				v := t.Coefficient.Bytes()
				terms = append(terms, reversed(v[:])...)
			}
		}
	}
	if err := f.section(r1csHeader, head); err != nil {
		return err
	}
	return f.section(r1csConstraints, terms)
}
