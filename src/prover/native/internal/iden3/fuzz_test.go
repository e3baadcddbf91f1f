package iden3

import (
	"encoding/json"
	"runtime"
	"testing"

	"sui-enclave/prover/internal/failure"
)

// The fuzzers check that no file makes a reader panic, fail without its code, or take more memory than the file's
// size explains. Inputs that earlier runs found are in testdata/fuzz.

func fuzzFile(f *testing.F, kind string, more ...[]byte) {
	for _, b := range append(more, tinyFiles[kind]) {
		for _, seed := range damaged(b) {
			f.Add(seed)
		}
	}
	r := readers[kind]
	f.Fuzz(func(t *testing.T, b []byte) {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		err := r.read(b)
		runtime.ReadMemStats(&after)
		if err != nil && failure.CodeOf(err) != r.code {
			t.Fatal(err)
		}
		// The fixed part is for read buffers and caches, one for each core, and for the key's tables.
		if n := after.TotalAlloc - before.TotalAlloc; n > uint64(16<<20+100*len(b)) {
			t.Fatalf("%d bytes of memory for a file of %d", n, len(b))
		}
	})
}

// damaged returns variants of a file: whole, cut off, and with each of its sections left out, cut short, lengthened,
// beginning with the largest number, and swapped with the first.
func damaged(b []byte) [][]byte {
	variants := [][]byte{b, b[:len(b)/2], b[:100]}
	for i := range parse(b).sections {
		for _, damage := range []func(f *file){
			func(f *file) { f.without(f.sections[i].id) },
			func(f *file) { f.sections[i].body = f.sections[i].body[:len(f.sections[i].body)/2] },
			func(f *file) { f.sections[i].body = append(f.sections[i].body, f.sections[i].body...) },
			func(f *file) { copy(f.sections[i].body, "\xff\xff\xff\xff\xff\xff\xff\xff") },
			func(f *file) { f.sections[i].id, f.sections[0].id = f.sections[0].id, f.sections[i].id },
		} {
			f := parse(b)
			damage(&f)
			variants = append(variants, f.bytes())
		}
	}
	return variants
}

func FuzzKey(f *testing.F)     { fuzzFile(f, "zkey", testFile("snarkjs.zkey")) }
func FuzzWitness(f *testing.F) { fuzzFile(f, "wtns") }
func FuzzCircuit(f *testing.F) { fuzzFile(f, "r1cs") }

func FuzzProofJSON(f *testing.F) {
	for _, name := range []string{"snarkjs.proof.json", "snarkjs.vkey.json", "snarkjs.public.json"} {
		f.Add(testFile(name))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, into := range []any{&Proof{}, &VerifyingKey{}, &Public{}} {
			if json.Unmarshal(b, into) != nil {
				continue
			}
			again, err := json.Marshal(into) // what is read can be written, and read again
			if err != nil || json.Unmarshal(again, into) != nil {
				t.Fatalf("%s becomes %s (%v)", b, again, err)
			}
		}
	})
}
