// Package iden3 reads and writes the files of circom and snarkjs: .r1cs, .wtns and .zkey, all in one container of
// numbered sections, and their JSON forms of proofs, public inputs and verification keys.
//
// Nothing in a file is trusted: every size is compared with the file's size before memory is allocated for it.
package iden3

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/big"
	"slices"

	"github.com/consensys/gnark-crypto/ecc/bn254/fr"
)

// The container: magic (4 bytes), version (u32), number of sections (u32), then for each section its id (u32), its
// length in bytes (u64) and its content. All integers are little-endian. See r1csfile's
// doc/r1cs_bin_format.md, whose container all three kinds share.
const (
	fileHeader    = 12
	sectionHeader = 12
	// maxSections is far above the number of sections in any file (a .zkey of snarkjs has 10).
	maxSections = 64
)

type section struct{ offset, size int64 }

// container is an opened file.
type container struct {
	file     io.ReaderAt
	sections map[uint32]section
}

func open(file io.ReaderAt, size int64, magic string, version uint32) (*container, error) {
	var head [fileHeader]byte
	if size < fileHeader {
		return nil, fmt.Errorf("the file's size is %d, which is too small for a .%s", size, magic)
	}
	if _, err := file.ReadAt(head[:], 0); err != nil {
		return nil, unreadable(err)
	}
	if string(head[:4]) != magic {
		return nil, fmt.Errorf("the file doesn't start with %q: it is not a .%s file", magic, magic)
	}
	if v := binary.LittleEndian.Uint32(head[4:]); v == 0 || v > version {
		return nil, fmt.Errorf("version %d of the .%s format is not supported (versions up to %d are)", v, magic, version)
	}
	count := binary.LittleEndian.Uint32(head[8:])
	if count > maxSections {
		return nil, fmt.Errorf("the file claims %d sections; at most %d are supported", count, maxSections)
	}
	c := &container{file, map[uint32]section{}}
	at := int64(fileHeader)
	for range count {
		next, err := c.index(at, size)
		if err != nil {
			return nil, err
		}
		at = next
	}
	if at != size {
		return nil, fmt.Errorf("data follows the last section (size: %d)", size-at)
	}
	return c, nil
}

// index records the section whose header is at offset at, and returns the offset of its end.
func (c *container) index(at, size int64) (int64, error) {
	var head [sectionHeader]byte
	if at > size-sectionHeader {
		return 0, errors.New("the file ends within a section's header: it is truncated")
	}
	if _, err := c.file.ReadAt(head[:], at); err != nil {
		return 0, unreadable(err)
	}
	id, length := binary.LittleEndian.Uint32(head[:]), binary.LittleEndian.Uint64(head[4:])
	at += sectionHeader
	if length > uint64(size-at) {
		return 0, fmt.Errorf("section %d claims a size of %d, but only %d is left: the file is truncated or damaged", id, length, size-at)
	}
	if _, twice := c.sections[id]; twice {
		return 0, fmt.Errorf("section %d occurs twice", id)
	}
	c.sections[id] = section{at, int64(length)}
	return at + int64(length), nil
}

func unreadable(err error) error { return fmt.Errorf("the file can't be read: %w", err) }

// sized returns section id, which must have exactly size bytes.
func (c *container) sized(id uint32, size int64, name string) (section, error) {
	s, ok := c.sections[id]
	if !ok {
		return s, fmt.Errorf("section %d (%s) is missing", id, name)
	}
	if s.size != size {
		return s, fmt.Errorf("section %d (%s) has the size %d instead of %d", id, name, s.size, size)
	}
	return s, nil
}

// small reads section id, which must have exactly size bytes.
func (c *container) small(id uint32, size int64, name string) ([]byte, error) {
	s, err := c.sized(id, size, name)
	if err != nil {
		return nil, err
	}
	b := make([]byte, size)
	return b, c.readAt(b, s.offset)
}

func (c *container) readAt(b []byte, offset int64) error {
	if _, err := c.file.ReadAt(b, offset); err != nil {
		return unreadable(err)
	}
	return nil
}

// modulus checks a field's declaration: the length of its elements in bytes (u32, must be 32), and the modulus
// itself.
func modulus(b []byte, want *big.Int) error {
	if binary.LittleEndian.Uint32(b) != fr.Bytes {
		return fmt.Errorf("the size of field elements is %d instead of %d: the field isn't BN254's", binary.LittleEndian.Uint32(b), fr.Bytes)
	}
	if new(big.Int).SetBytes(reversed(b[4:4+fr.Bytes])).Cmp(want) != 0 {
		return errors.New("the field isn't BN254's: the modulus differs")
	}
	return nil
}

// declaration returns the declaration that modulus checks.
func declaration(modulus *big.Int) []byte {
	return append(binary.LittleEndian.AppendUint32(nil, fr.Bytes), reversed(modulus.FillBytes(make([]byte, fr.Bytes)))...)
}

func reversed(b []byte) []byte {
	r := slices.Clone(b)
	slices.Reverse(r)
	return r
}

// writer writes a container.
type writer struct{ out io.Writer }

func newWriter(out io.Writer, magic string, version, sections uint32) (*writer, error) {
	head := binary.LittleEndian.AppendUint32([]byte(magic), version)
	_, err := out.Write(binary.LittleEndian.AppendUint32(head, sections))
	return &writer{out}, err
}

// section writes one section from its parts.
func (w *writer) section(id uint32, parts ...[]byte) error {
	length := 0
	for _, p := range parts {
		length += len(p)
	}
	head := binary.LittleEndian.AppendUint32(nil, id)
	head = binary.LittleEndian.AppendUint64(head, uint64(length))
	for _, p := range append([][]byte{head}, parts...) {
		if _, err := w.out.Write(p); err != nil {
			return err
		}
	}
	return nil
}
