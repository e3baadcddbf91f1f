package iden3

import (
	"encoding/binary"
	"fmt"
	"io"

	"github.com/consensys/gnark-crypto/ecc/bn254/fr"

	"sui-enclave/prover/internal/failure"
	"sui-enclave/prover/internal/mem"
	"sui-enclave/prover/internal/par"
)

// Scalar is an integer below the group's order, 256 bits in little-endian words, not in Montgomery form.
type Scalar = [4]uint64

const (
	wtnsHeader = 1
	wtnsValues = 2
	// WitnessOverhead is the size in bytes of a .wtns file without its values, which have 32 bytes each.
	WitnessOverhead = fileHeader + 2*sectionHeader + 4 + fr.Bytes + 4
)

// ReadWitness reads the values of a .wtns file into dst. The file must have len(dst) values. The first must be 1,
// and each must be below the group's order.
func ReadWitness(file io.ReaderAt, size int64, dst []Scalar) error {
	if err := readWitness(file, size, dst); err != nil {
		return failure.New(failure.BadWitness, "witness: %v", err)
	}
	return nil
}

func readWitness(file io.ReaderAt, size int64, dst []Scalar) error {
	c, err := open(file, size, "wtns", 2)
	if err != nil {
		return err
	}
	head, err := c.small(wtnsHeader, 4+fr.Bytes+4, "header")
	if err != nil {
		return err
	}
	if err := modulus(head, fr.Modulus()); err != nil {
		return err
	}
	if n := binary.LittleEndian.Uint32(head[36:]); int64(n) != int64(len(dst)) {
		return fmt.Errorf("the number of values in the file is %d, but the number of wires of the key is %d: they belong to different circuits", n, len(dst))
	}
	values, err := c.sized(wtnsValues, int64(len(dst))*fr.Bytes, "values")
	if err != nil {
		return err
	}
	if err := c.readAt(mem.Bytes(dst), values.offset); err != nil {
		return err
	}
	return checkWitness(dst)
}

func checkWitness(w []Scalar) error {
	if len(w) == 0 || w[0] != (Scalar{1}) {
		return fmt.Errorf("its first value is not 1")
	}
	const part = 1 << 14
	return par.Try((len(w)+part-1)/part, func(p, _ int) error {
		for i := p * part; i < min((p+1)*part, len(w)); i++ {
			if !reducedScalar(&w[i]) {
				return fmt.Errorf("value %d is not below the group's order", i)
			}
		}
		return nil
	})
}

// order is the group's order in little-endian words.
var order = words(fr.Modulus().FillBytes(make([]byte, 32)))

func words(bigEndian []byte) (w [4]uint64) {
	for i := range w {
		w[3-i] = binary.BigEndian.Uint64(bigEndian[8*i:])
	}
	return w
}

func reducedScalar(s *Scalar) bool { return below(s, &order) }

// below tells whether a < b. Both are 256-bit integers in little-endian words.
func below(a, b *[4]uint64) bool {
	for i := 3; i > 0; i-- {
		if a[i] != b[i] {
			return a[i] < b[i]
		}
	}
	return a[0] < b[0]
}

// WriteWitness writes a .wtns file.
func WriteWitness(out io.Writer, w []Scalar) error {
	f, err := newWriter(out, "wtns", 2, 2)
	if err != nil {
		return err
	}
	count := binary.LittleEndian.AppendUint32(nil, uint32(len(w)))
	if err := f.section(wtnsHeader, declaration(fr.Modulus()), count); err != nil {
		return err
	}
	return f.section(wtnsValues, mem.Bytes(w))
}
