package main

import (
	"bytes"
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sui-enclave/prover/internal/failure"
)

func TestTheCommandsWorkTogether(t *testing.T) {
	dir := t.TempDir()
	in := func(name string) string { return filepath.Join(dir, name) }
	for _, c := range [][]string{
		{"synth", "--constraints", "100", "--out", in("x")},
		{"setup", "--r1cs", in("x.r1cs"), "--seed", "s", "--out", in("x.zkey")},
		{"prove", "--zkey", in("x.zkey"), "--wtns", in("x.wtns"), "--proof", in("proof.json"), "--public", in("public.json")},
		{"verify", "--vkey", in("x.vkey.json"), "--proof", in("proof.json"), "--public", in("public.json")},
		{"prove", "--zkey", in("x.zkey"), "--wtns", in("x.wtns"), "--proof", in("proof.json"), "--public", in("public.json"), "--engine", "gnark"},
		{"verify", "--vkey", in("x.vkey.json"), "--proof", in("proof.json"), "--public", in("public.json")},
		{"bench", "--zkey", in("x.zkey"), "--wtns", in("x.wtns"), "--repeat", "1"},
	} {
		if err := commands[c[0]](c[1:]); err != nil {
			t.Fatal(c, err)
		}
	}
	if info, err := os.Stat(in("proof.json")); err != nil || info.Mode().Perm() != 0o600 {
		t.Fatal("others may read the proof", err)
	}
}

func TestErrorsNameTheMistake(t *testing.T) {
	tiny := func(name string) string { return "testdata/" + name }
	dir := t.TempDir()
	for _, c := range []struct {
		args  string
		code  failure.Code
		words string
	}{
		{"prove --zkey x", failure.BadRequest, "--wtns is missing"},
		{"prove --what", failure.BadRequest, "what"},
		{"setup --r1cs a --seed b --out c d", failure.BadRequest, "is not an option"},
		{"setup --r1cs nowhere --seed b --out c", failure.BadCircuit, "nowhere"},
		{"setup --r1cs . --seed b --out c", failure.BadCircuit, "not a regular file"},
		{"prove --zkey " + tiny("tiny.r1cs") + " --wtns b --proof c --public d", failure.BadKey, "not a .zkey"},
		{"prove --zkey " + tiny("tiny.zkey") + " --wtns b --proof c --public d", failure.BadWitness, "b: no such file"},
		{"prove --zkey " + tiny("tiny.zkey") + " --wtns b --proof c --public d --engine fast", failure.BadRequest, "engine"},
		{"worker --engine fast", failure.BadRequest, "engine"},
		{"bench --zkey a --wtns b --repeat 0", failure.BadRequest, "--repeat"},
		{"synth --constraints 0 --out " + dir, failure.BadRequest, "--constraints"},
		{"verify --vkey " + tiny("snarkjs.vkey.json") + " --proof " + tiny("tiny.snarkjs.proof.json") + " --public " +
			tiny("snarkjs.public.json"), failure.Unsatisfied, "doesn't verify"},
	} {
		args := strings.Fields(c.args)
		err := commands[args[0]](args[1:])
		if failure.CodeOf(err) != c.code || !strings.Contains(err.Error(), c.words) {
			t.Errorf("%s: %s: %v", c.args, failure.CodeOf(err), err)
		}
	}
}

func TestProveReportsADamagedKey(t *testing.T) {
	key, err := os.ReadFile("testdata/tiny.zkey")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	damaged := filepath.Join(dir, "damaged.zkey")
	key[startOf(key, 9)] ^= 1 // H's first point, which every proof uses
	if err := os.WriteFile(damaged, key, 0o600); err != nil {
		t.Fatal(err)
	}
	err = prove([]string{"--zkey", damaged, "--wtns", "testdata/tiny.wtns",
		"--proof", filepath.Join(dir, "proof.json"), "--public", filepath.Join(dir, "public.json")})
	if failure.CodeOf(err) != failure.BadKey || !strings.Contains(err.Error(), "(H): point 0") {
		t.Fatal(err)
	}
	if files, _ := filepath.Glob(filepath.Join(dir, "p*.json")); len(files) > 0 {
		t.Fatal("left behind:", files)
	}
}

// startOf returns the place where a section's body begins in a file of iden3's format: a header of 12 bytes, then for
// each section its id (u32), size (u64) and body.
func startOf(file []byte, id uint32) int {
	for at := 12; ; at += 12 + int(binary.LittleEndian.Uint64(file[at+4:])) {
		if binary.LittleEndian.Uint32(file[at:]) == id {
			return at + 12
		}
	}
}

func TestAFailedSetupLeavesNoFile(t *testing.T) {
	dir := t.TempDir()
	circuit := filepath.Join(dir, "bad.r1cs")
	b, err := os.ReadFile("testdata/tiny.r1cs")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(circuit, bytes.TrimSuffix(b, b[len(b)-1:]), 0o600); err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(dir, "bad.zkey")
	if err := setup([]string{"--r1cs", circuit, "--seed", "s", "--out", out}); failure.CodeOf(err) != failure.BadCircuit {
		t.Fatal(err)
	}
	if files, _ := filepath.Glob(out + "*"); len(files) > 0 {
		t.Fatal("left behind:", files)
	}
}

func TestAnUnknownCodePathIsRefused(t *testing.T) {
	t.Setenv("PROVER_VECTORS", "avx9")
	ran := false
	err := run(func([]string) error { ran = true; return nil }, nil)
	if failure.CodeOf(err) != failure.BadRequest || ran || !strings.Contains(err.Error(), "portable") {
		t.Fatal(err)
	}
}
