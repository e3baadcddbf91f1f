package iden3

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/consensys/gnark-crypto/ecc/bn254/fr"

	"sui-enclave/prover/internal/failure"
)

// file is a container's bytes, taken apart so that a test can damage one part.
type file struct {
	magic    string
	version  uint32
	sections []part
}

type part struct {
	id   uint32
	body []byte
}

func parse(b []byte) (f file) {
	f = file{magic: string(b[:4]), version: binary.LittleEndian.Uint32(b[4:])}
	for at := fileHeader; at < len(b); {
		n := int(binary.LittleEndian.Uint64(b[at+4:]))
		body := append([]byte{}, b[at+sectionHeader:at+sectionHeader+n]...)
		f.sections = append(f.sections, part{binary.LittleEndian.Uint32(b[at:]), body})
		at += sectionHeader + n
	}
	return f
}

func (f *file) bytes() []byte {
	var out bytes.Buffer
	w, _ := newWriter(&out, f.magic, f.version, uint32(len(f.sections)))
	for _, s := range f.sections {
		_ = w.section(s.id, s.body)
	}
	return out.Bytes()
}

// body returns a section's content, which a test may change in place.
func (f *file) body(id uint32) []byte {
	for _, s := range f.sections {
		if s.id == id {
			return s.body
		}
	}
	panic("no such section")
}

func (f *file) without(id uint32) {
	for i, s := range f.sections {
		if s.id == id {
			f.sections = append(f.sections[:i:i], f.sections[i+1:]...)
			return
		}
	}
}

// readers read each kind of file as a whole.
var readers = map[string]struct {
	code failure.Code
	read func(b []byte) error
}{
	"zkey": {failure.BadKey, func(b []byte) error {
		k, err := ReadKey(bytes.NewReader(b), int64(len(b)))
		if err == nil {
			k.Free()
		}
		return err
	}},
	"wtns": {failure.BadWitness, func(b []byte) error {
		return ReadWitness(bytes.NewReader(b), int64(len(b)), make([]Scalar, len(tinyWitness)))
	}},
	"r1cs": {failure.BadCircuit, func(b []byte) error {
		_, err := ReadCircuit(bytes.NewReader(b), int64(len(b)))
		return err
	}},
}

// refuse checks that a file is refused with its kind's code and a message that contains words.
func refuse(t *testing.T, kind string, b []byte, words string) {
	t.Helper()
	r := readers[kind]
	err := r.read(b)
	if err == nil {
		t.Fatal("it was accepted")
	}
	if failure.CodeOf(err) != r.code || !strings.Contains(err.Error(), words) {
		t.Fatalf("refused as %s: %v", failure.CodeOf(err), err)
	}
}

func TestWholeFilesAreAccepted(t *testing.T) {
	for kind, b := range tinyFiles {
		if err := readers[kind].read(b); err != nil {
			t.Fatal(kind, err)
		}
	}
}

func TestEveryTruncationIsRefused(t *testing.T) {
	for kind, b := range tinyFiles {
		for n := range b {
			refuse(t, kind, b[:n], "")
		}
	}
}

func TestAFileWithDataBehindItIsRefused(t *testing.T) {
	for kind, b := range tinyFiles {
		refuse(t, kind, append(b[:len(b):len(b)], 0), "data follows the last section (size: 1)")
	}
}

func TestFilesInEachOthersPlaceAreRefused(t *testing.T) {
	for kind := range tinyFiles {
		for other, b := range tinyFiles {
			if kind != other {
				refuse(t, kind, b, "it is not a ."+kind)
			}
		}
	}
}

func TestUnknownVersionsAreRefused(t *testing.T) {
	for kind, b := range tinyFiles {
		f := parse(b)
		for _, f.version = range []uint32{0, 3, 1 << 31} {
			refuse(t, kind, f.bytes(), "not supported")
		}
	}
}

func TestSectionsThatLieAreRefused(t *testing.T) {
	for kind, b := range tinyFiles {
		for name, damage := range map[string]struct {
			change func(f []byte)
			words  string
		}{
			"a count of sections far above any file's": {func(f []byte) { binary.LittleEndian.PutUint32(f[8:], 1<<31) }, "at most"},
			"a section longer than the file":           {func(f []byte) { binary.LittleEndian.PutUint64(f[16:], 1<<40) }, "truncated"},
			"a section of a negative length":           {func(f []byte) { binary.LittleEndian.PutUint64(f[16:], ^uint64(0)) }, "truncated"},
		} {
			t.Run(kind+"/"+name, func(t *testing.T) {
				f := append([]byte{}, b...)
				damage.change(f)
				refuse(t, kind, f, damage.words)
			})
		}
		f := parse(b)
		f.sections = append(f.sections, f.sections[0])
		refuse(t, kind, f.bytes(), "twice")
	}
}

func TestEachSectionMustExistAndHaveItsSize(t *testing.T) {
	for kind, b := range tinyFiles {
		for _, s := range parse(b).sections {
			if kind == "zkey" && (s.id == zkeyContributions || s.id == zkeyDevelopment) {
				continue // only snarkjs' ceremony needs the one, and the other is a notice
			}
			f := parse(b)
			f.without(s.id)
			refuse(t, kind, f.bytes(), "missing")
			for _, change := range []func([]byte) []byte{
				func(b []byte) []byte { return b[:len(b)-1] },
				func(b []byte) []byte { return append(b, 0) },
			} {
				f := parse(b)
				for i := range f.sections {
					if f.sections[i].id == s.id {
						f.sections[i].body = change(f.sections[i].body)
					}
				}
				refuse(t, kind, f.bytes(), "")
			}
		}
	}
}

func TestSectionsMayComeInAnyOrder(t *testing.T) {
	for kind, b := range tinyFiles {
		f := parse(b)
		for i, j := 0, len(f.sections)-1; i < j; i, j = i+1, j-1 {
			f.sections[i], f.sections[j] = f.sections[j], f.sections[i]
		}
		if err := readers[kind].read(f.bytes()); err != nil {
			t.Fatal(kind, err)
		}
	}
}

func TestOtherFieldsAreRefused(t *testing.T) {
	for kind, section := range map[string]uint32{"zkey": zkeyHeader, "wtns": wtnsHeader, "r1cs": r1csHeader} {
		f := parse(tinyFiles[kind])
		f.body(section)[4]++
		refuse(t, kind, f.bytes(), "the modulus differs")
		f = parse(tinyFiles[kind])
		f.body(section)[0] = 48
		refuse(t, kind, f.bytes(), "48 instead of 32")
	}
}

// unreadableFile fails after some bytes, as a disk may.
type unreadableFile struct {
	b     []byte
	limit int64
}

var errDisk = errors.New("the disk is broken")

func (u unreadableFile) ReadAt(b []byte, at int64) (int, error) {
	if at+int64(len(b)) > u.limit {
		return 0, errDisk
	}
	return bytes.NewReader(u.b).ReadAt(b, at)
}

func TestReadErrorsAreReported(t *testing.T) {
	for kind, b := range tinyFiles {
		for _, limit := range []int64{0, 12, 40, int64(len(b)) - 1} {
			u, size := unreadableFile{b, limit}, int64(len(b))
			var err error
			switch kind {
			case "zkey":
				_, err = ReadKey(u, size)
			case "wtns":
				err = ReadWitness(u, size, make([]Scalar, len(tinyWitness)))
			case "r1cs":
				_, err = ReadCircuit(u, size)
			}
			// ReadKey doesn't read a key's last section.
			if err == nil && kind == "zkey" && limit == int64(len(b))-1 {
				continue
			}
			if err == nil || !strings.Contains(err.Error(), errDisk.Error()) {
				t.Fatal(kind, limit, err)
			}
		}
	}
}

func TestAWitnessMustFitItsKey(t *testing.T) {
	b := tinyFiles["wtns"]
	if err := ReadWitness(bytes.NewReader(b), int64(len(b)), make([]Scalar, 99)); err == nil ||
		!strings.Contains(err.Error(), "different circuits") {
		t.Fatal(err)
	}
	f := parse(b)
	f.body(wtnsValues)[0] = 2
	refuse(t, "wtns", f.bytes(), "first value is not 1")
	f = parse(b)
	copy(f.body(wtnsValues)[32:], reversed(fr.Modulus().FillBytes(make([]byte, 32))))
	refuse(t, "wtns", f.bytes(), "value 1 is not below the group's order")
}

func TestAWitnessComesBackAsWritten(t *testing.T) {
	got := make([]Scalar, len(tinyWitness))
	b := tinyFiles["wtns"]
	if err := ReadWitness(bytes.NewReader(b), int64(len(b)), got); err != nil {
		t.Fatal(err)
	}
	for i := range got {
		if got[i] != tinyWitness[i] {
			t.Fatal(i)
		}
	}
	if len(b) != WitnessOverhead+32*len(got) {
		t.Fatal("the overhead is", len(b)-32*len(got))
	}
}

func TestACircuitsTermsAreChecked(t *testing.T) {
	for name, c := range map[string]struct {
		change func(terms []byte)
		words  string
	}{
		"more terms than the file holds": {func(b []byte) { binary.LittleEndian.PutUint32(b, 1<<30) }, "the number of terms, 1073741824,"},
		"a wire that doesn't exist":      {func(b []byte) { binary.LittleEndian.PutUint32(b[4:], 1000) }, "uses wire 1000"},
		"a coefficient that isn't reduced": {func(b []byte) {
			for i := range 32 {
				b[8+i] = 0xff
			}
		}, "not below the group's order"},
	} {
		t.Run(name, func(t *testing.T) {
			f := parse(tinyFiles["r1cs"])
			c.change(f.body(r1csConstraints))
			refuse(t, "r1cs", f.bytes(), c.words)
		})
	}
	for at, words := range map[int]string{36: "wires", 40: "don't go together", 60: "ends within constraint"} {
		f := parse(tinyFiles["r1cs"])
		binary.LittleEndian.PutUint32(f.body(r1csHeader)[at:], 1<<26)
		refuse(t, "r1cs", f.bytes(), words)
	}
	f := parse(tinyFiles["r1cs"])
	f.sections = append(f.sections, part{r1csGatesUse, make([]byte, 8)})
	refuse(t, "r1cs", f.bytes(), "custom gates")
}

var _ io.ReaderAt = unreadableFile{}
