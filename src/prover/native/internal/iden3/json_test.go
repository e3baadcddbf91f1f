package iden3

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"github.com/consensys/gnark-crypto/ecc/bn254/fr"

	"sui-enclave/prover/internal/failure"
)

func TestSnarkjsFilesComeBackAsTheyWere(t *testing.T) {
	for name, into := range map[string]any{
		"snarkjs.proof.json": &Proof{}, "snarkjs.public.json": &Public{}, "snarkjs.vkey.json": &VerifyingKey{},
		"tiny.snarkjs.proof.json": &Proof{}, "tiny.vkey.json": &VerifyingKey{},
	} {
		b := testFile(name)
		if err := json.Unmarshal(b, into); err != nil {
			t.Fatal(name, err)
		}
		again, err := json.Marshal(into)
		if err != nil {
			t.Fatal(name, err)
		}
		if !same(b, again) {
			t.Fatalf("%s comes back as %s", name, again)
		}
	}
}

// same reports whether two JSON values are equal, apart from their spaces and the order of their keys.
func same(a, b []byte) bool {
	var x, y any
	if json.Unmarshal(a, &x) != nil || json.Unmarshal(b, &y) != nil {
		return false
	}
	p, _ := json.Marshal(x)
	q, _ := json.Marshal(y)
	return string(p) == string(q)
}

func TestAProofOfRapidsnarkIsReadWithoutItsCurve(t *testing.T) {
	var with, without Proof
	good := testFile("snarkjs.proof.json")
	bare := regexp.MustCompile(`,\s*"curve": "bn128"`).ReplaceAll(good, nil)
	if err := json.Unmarshal(good, &with); err != nil || len(bare) == len(good) {
		t.Fatal(err)
	}
	if err := json.Unmarshal(bare, &without); err != nil || without != with {
		t.Fatal("another proof", err)
	}
}

func TestInvalidProofsAreRefused(t *testing.T) {
	good := string(testFile("snarkjs.proof.json"))
	var j jsonProof
	if err := json.Unmarshal([]byte(good), &j); err != nil {
		t.Fatal(err)
	}
	x := j.A[0]
	for name, bad := range map[string]string{
		"not JSON":                         good[:50],
		"an array":                         "[]",
		"another protocol":                 strings.Replace(good, "groth16", "plonk", 1),
		"another curve":                    strings.Replace(good, "bn128", "bls12381", 1),
		"a curve without a name":           strings.Replace(good, "bn128", "", 1),
		"a point off the curve":            strings.Replace(good, x, "5", 1),
		"a coordinate with a sign":         strings.Replace(good, x, "-"+x, 1),
		"a coordinate with a leading 0":    strings.Replace(good, x, "0"+x, 1),
		"a hexadecimal coordinate":         strings.Replace(good, x, "0x10", 1),
		"a coordinate above the modulus":   strings.Replace(good, x, strings.Repeat("9", 78), 1),
		"a coordinate of a million digits": strings.Replace(good, x, strings.Repeat("9", 1000000), 1),
		"a third coordinate that isn't 1":  strings.Replace(good, `"1"`, `"2"`, 1),
		"a point at infinity":              `{"pi_a":["0","1","0"],"pi_b":[["0","0"],["1","0"],["0","0"]],"pi_c":["0","1","0"],"protocol":"groth16","curve":"bn128"}`,
		"nothing":                          `{"protocol":"groth16","curve":"bn128"}`,
	} {
		t.Run(name, func(t *testing.T) {
			if bad == good {
				t.Fatal("this test changes nothing")
			}
			var p Proof
			if err := json.Unmarshal([]byte(bad), &p); err == nil {
				t.Fatal("it was accepted")
			}
		})
	}
}

func TestInvalidKeysAreRefused(t *testing.T) {
	good := string(testFile("snarkjs.vkey.json"))
	for name, bad := range map[string]string{
		"another number of public values": strings.Replace(good, `"nPublic": 1`, `"nPublic": 2`, 1),
		"another protocol":                strings.Replace(good, "groth16", "plonk", 1),
		"nothing":                         `{"protocol":"groth16","curve":"bn128"}`,
	} {
		var v VerifyingKey
		if err := json.Unmarshal([]byte(bad), &v); bad == good || failure.CodeOf(err) != failure.BadProof {
			t.Fatal(name, err)
		}
	}
}

func TestPublicInputsAreCanonical(t *testing.T) {
	for _, bad := range []string{`["01"]`, `["-1"]`, `[""]`, `[1]`, `{}`, `["` + fr.Modulus().String() + `"]`, `["1e3"]`, `["+1"]`} {
		var p Public
		if err := json.Unmarshal([]byte(bad), &p); err == nil {
			t.Fatal("accepted:", bad)
		}
	}
}
