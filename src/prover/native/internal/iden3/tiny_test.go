package iden3

import (
	"bytes"
	"encoding/binary"
	"os"
)

// tinyFiles belong to a circuit with 12 constraints; the key is a development key. A test of groth16 makes the key
// again from the circuit, and compares.
var tinyFiles = map[string][]byte{"zkey": testFile("tiny.zkey"), "wtns": testFile("tiny.wtns"), "r1cs": testFile("tiny.r1cs")}

var tinyWitness = func() []Scalar {
	b := tinyFiles["wtns"]
	w := make([]Scalar, binary.LittleEndian.Uint32(b[fileHeader+sectionHeader+36:]))
	if err := ReadWitness(bytes.NewReader(b), int64(len(b)), w); err != nil {
		panic(err)
	}
	return w
}()

func testFile(name string) []byte {
	b, err := os.ReadFile("../../testdata/" + name)
	if err != nil {
		panic(err)
	}
	return b
}
