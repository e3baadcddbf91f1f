package iden3

import (
	"bytes"
	"encoding/binary"
	"os"
)

// tinyFiles are of a circuit with 12 constraints; groth16's tests make them again. snarkjs.zkey is snarkjs' own key.
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
