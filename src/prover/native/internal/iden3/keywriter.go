package iden3

import (
	"encoding/binary"
	"io"

	"github.com/consensys/gnark-crypto/ecc/bn254"
	"github.com/consensys/gnark-crypto/ecc/bn254/fp"
	"github.com/consensys/gnark-crypto/ecc/bn254/fr"

	"sui-enclave/prover/internal/mem"
)

// KeyHeader is the part of a key before its points.
type KeyHeader struct {
	Wires, Public, Domain int
	Verifying             *VerifyingKey
	Beta1, Delta1         bn254.G1Affine
}

// KeyWriter writes a development key as a .zkey, section by section in the order of its methods.
type KeyWriter struct{ w *writer }

// NewKeyWriter writes the header, the development notice and the points of the public wires.
func NewKeyWriter(out io.Writer, h KeyHeader) (*KeyWriter, error) {
	w, err := newWriter(out, "zkey", 1, 11)
	if err != nil {
		return nil, err
	}
	u32 := func(v int) []byte { return binary.LittleEndian.AppendUint32(nil, uint32(v)) }
	v := h.Verifying
	for _, section := range []struct {
		id    uint32
		parts [][]byte
	}{
		{zkeyProtocol, [][]byte{u32(groth16Protocol)}},
		{zkeyHeader, [][]byte{
			declaration(fp.Modulus()), declaration(fr.Modulus()), u32(h.Wires), u32(h.Public), u32(h.Domain),
			point(&v.Alpha), point(&h.Beta1), point(&v.Beta), point(&v.Gamma), point(&h.Delta1), point(&v.Delta),
		}},
		{zkeyDevelopment, [][]byte{[]byte(DevelopmentNotice)}},
		{zkeyIC, [][]byte{mem.Bytes(v.IC)}},
	} {
		if err := w.section(section.id, section.parts...); err != nil {
			return nil, err
		}
	}
	return &KeyWriter{w}, nil
}

// Coefficients collects the entries of A and B in the file's form.
type Coefficients struct {
	records []byte
	count   uint32
}

// Append adds an entry.
func (c *Coefficients) Append(m Matrix, row, wire int, v *fr.Element) {
	for _, n := range []int{int(m), row, wire} {
		c.records = binary.LittleEndian.AppendUint32(c.records, uint32(n))
	}
	var twice fr.Element
	twice.Mul(v, &rSquared)
	c.records = append(c.records, mem.Bytes(twice[:])...)
	c.count++
}

// Coefficients writes the entries of A and B.
func (k *KeyWriter) Coefficients(c *Coefficients) error {
	return k.w.section(zkeyCoefficients, binary.LittleEndian.AppendUint32(nil, c.count), c.records)
}

// A writes one point for each wire.
func (k *KeyWriter) A(p []bn254.G1Affine) error { return k.w.section(zkeyA, mem.Bytes(p)) }

// B1 writes one point for each wire.
func (k *KeyWriter) B1(p []bn254.G1Affine) error { return k.w.section(zkeyB1, mem.Bytes(p)) }

// B2 writes one point for each wire.
func (k *KeyWriter) B2(p []bn254.G2Affine) error { return k.w.section(zkeyB2, mem.Bytes(p)) }

// C writes one point for each private wire.
func (k *KeyWriter) C(p []bn254.G1Affine) error { return k.w.section(zkeyC, mem.Bytes(p)) }

// H writes one point for each element of the domain.
func (k *KeyWriter) H(p []bn254.G1Affine) error { return k.w.section(zkeyH, mem.Bytes(p)) }

// Close writes the record of a ceremony without contributions: a hash of 64 zero bytes, and the number 0.
func (k *KeyWriter) Close() error { return k.w.section(zkeyContributions, make([]byte, 64+4)) }
