package groth16

import (
	"bytes"
	"encoding/json"
	"os"
	"slices"
	"testing"

	"github.com/consensys/gnark-crypto/ecc/bn254/fr"

	"sui-enclave/prover/internal/cpu"
	"sui-enclave/prover/internal/failure"
	"sui-enclave/prover/internal/iden3"
	"sui-enclave/prover/internal/synth"
)

var engines = []Engine{Own, Library}

func testFile(t testing.TB, name string) []byte {
	t.Helper()
	b, err := os.ReadFile("../../testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func unmarshal[T any](t testing.TB, name string) *T {
	t.Helper()
	v := new(T)
	if err := json.Unmarshal(testFile(t, name), v); err != nil {
		t.Fatal(err)
	}
	return v
}

// prover reads a key and a witness from files' bytes.
func prover(t testing.TB, zkey, wtns []byte, engine Engine) *Prover {
	t.Helper()
	key, err := iden3.ReadKey(bytes.NewReader(zkey), int64(len(zkey)))
	if err != nil {
		t.Fatal(err)
	}
	p, err := NewProver(key, engine)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Free)
	if err := iden3.ReadWitness(bytes.NewReader(wtns), int64(len(wtns)), p.Witness); err != nil {
		t.Fatal(err)
	}
	return p
}

// setup makes a statement's key.
func setup(t testing.TB, s *synth.Statement, seed string) []byte {
	t.Helper()
	b := s.R1CS()
	circuit, err := iden3.ReadCircuit(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if _, err := Setup(circuit, seed, &out); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func TestSnarkjsProofsVerify(t *testing.T) {
	for proof, key := range map[string]string{
		"snarkjs.proof.json":      "snarkjs.vkey.json", // under snarkjs' key
		"tiny.snarkjs.proof.json": "tiny.vkey.json",    // under ours
	} {
		public := *unmarshal[iden3.Public](t, "snarkjs.public.json")
		if err := Verify(unmarshal[iden3.VerifyingKey](t, key), unmarshal[iden3.Proof](t, proof), public); err != nil {
			t.Fatal(proof, err)
		}
	}
}

func TestProofsDoNotVerifyForAnythingElse(t *testing.T) {
	key, proof := unmarshal[iden3.VerifyingKey](t, "snarkjs.vkey.json"), unmarshal[iden3.Proof](t, "snarkjs.proof.json")
	public := *unmarshal[iden3.Public](t, "snarkjs.public.json")
	refused := func(name string, code failure.Code, err error) {
		if failure.CodeOf(err) != code {
			t.Fatal(name, err)
		}
	}
	refused("another key", failure.Unsatisfied, Verify(unmarshal[iden3.VerifyingKey](t, "tiny.vkey.json"), proof, public))
	otherPublic := slices.Clone(public)
	otherPublic[0].SetUint64(1)
	refused("another public input", failure.Unsatisfied, Verify(key, proof, otherPublic))
	refused("no public input", failure.BadProof, Verify(key, proof, nil))
	refused("one more public input", failure.BadProof, Verify(key, proof, append(otherPublic, otherPublic...)))
	changed := *proof
	changed.A.Neg(&changed.A)
	refused("another A", failure.Unsatisfied, Verify(key, &changed, public))
	changed = *proof
	changed.C = proof.A
	refused("another C", failure.Unsatisfied, Verify(key, &changed, public))
	changed = *proof
	changed.B.Neg(&changed.B)
	refused("another B", failure.Unsatisfied, Verify(key, &changed, public))
	refused("no proof", failure.Unsatisfied, Verify(key, &iden3.Proof{}, public))
}

func TestBothEnginesProveUnderSnarkjsKey(t *testing.T) {
	for _, engine := range engines {
		p := prover(t, testFile(t, "snarkjs.zkey"), testFile(t, "tiny.wtns"), engine)
		proof, public, err := p.Prove()
		if err != nil {
			t.Fatal(engine, err)
		}
		if err := Verify(unmarshal[iden3.VerifyingKey](t, "snarkjs.vkey.json"), proof, public); err != nil {
			t.Fatal(engine, err)
		}
	}
}

// TestGivenBlindingGivesOneProof compares the engines, which share nothing but the formula of the blinding.
func TestGivenBlindingGivesOneProof(t *testing.T) {
	for _, s := range []*synth.Statement{
		synth.New(1, 0, 1), synth.New(5, 1000, 2), synth.New(61, 300, 3), synth.New(300, 500, 4), synth.New(4000, 20, 5),
	} {
		zkey := setup(t, s, "blinding")
		blinding := Blinding{fr.NewElement(12345), fr.NewElement(67890)}
		var first *iden3.Proof
		for _, engine := range []Engine{Own, Library, Own} {
			p := prover(t, zkey, s.WTNS(), engine)
			for range 2 { // the second proof reuses the working memory
				proof, err := p.ProveWith(blinding)
				if err != nil {
					t.Fatal(err)
				}
				if first == nil {
					first = proof
				}
				if *proof != *first {
					t.Fatalf("%d constraints: %s makes another proof", len(s.Rows), engine)
				}
			}
			if err := Verify(&p.Key.Verifying, first, iden3.PublicOf(p.Witness, 1)); err != nil {
				t.Fatalf("%d constraints: %v", len(s.Rows), err)
			}
		}
	}
}

// everyPath runs a test on each code path that this processor supports.
func everyPath(t *testing.T, test func(path cpu.Path)) {
	defer func(path cpu.Path) { _ = cpu.Force(path) }(cpu.Chosen())
	for _, path := range cpu.Paths() {
		if err := cpu.Force(path); err != nil {
			t.Fatal(err)
		}
		test(path)
	}
}

func TestEveryPathMakesTheSameProof(t *testing.T) {
	s := synth.New(600, 200, 8)
	zkey, blinding := setup(t, s, "fallback"), Blinding{fr.NewElement(5), fr.NewElement(6)}
	want, err := prover(t, zkey, s.WTNS(), Own).ProveWith(blinding)
	if err != nil {
		t.Fatal(err)
	}
	everyPath(t, func(path cpu.Path) {
		got, err := prover(t, zkey, s.WTNS(), Own).ProveWith(blinding)
		if err != nil || *got != *want {
			t.Fatal("another proof", path, err)
		}
		if !bytes.Equal(setup(t, s, "fallback"), zkey) {
			t.Fatal("another key", path)
		}
	})
}

func TestEachStepCanEndAProof(t *testing.T) {
	s := synth.New(600, 200, 8)
	zkey := setup(t, s, "steps")
	everyPath(t, func(cpu.Path) {
		for _, engine := range engines {
			p := prover(t, zkey, s.WTNS(), engine)
			steps := 0
			p.Step = func() error { steps++; return nil }
			if _, _, err := p.Prove(); err != nil {
				t.Fatal(err)
			}
			left := failure.New(failure.Cancelled, "left")
			for last := 1; last <= steps; last++ {
				copy(p.Witness, s.Witness)
				at := 0
				p.Step = func() error {
					if at++; at == last {
						return left
					}
					return nil
				}
				if _, _, err := p.Prove(); err != left || at != last {
					t.Fatalf("%s, step %d of %d: %v after %d", engine, last, steps, err, at)
				}
			}
			p.Step = nil
			copy(p.Witness, s.Witness)
			if _, _, err := p.Prove(); err != nil {
				t.Fatal("the next proof:", err)
			}
		}
	})
}

func TestProofsDifferEachTime(t *testing.T) {
	p := prover(t, testFile(t, "tiny.zkey"), testFile(t, "tiny.wtns"), Own)
	a, _, err := p.Prove()
	if err != nil {
		t.Fatal(err)
	}
	b, _, err := p.Prove()
	if err != nil {
		t.Fatal(err)
	}
	if a.A == b.A || a.B == b.B || a.C == b.C {
		t.Fatal("a proof repeats a point: the blinding isn't fresh")
	}
}

func TestAWrongWireNeverGivesAProof(t *testing.T) {
	s := synth.New(60, 400, 6)
	zkey := setup(t, s, "wires")
	for _, engine := range engines {
		p := prover(t, zkey, s.WTNS(), engine)
		for wire := 1; wire < s.Wires; wire++ {
			copy(p.Witness, s.Witness)
			right := iden3.FromScalar(&p.Witness[wire])
			var wrong fr.Element
			wrong.SetUint64(2).Add(&wrong, &right)
			p.Witness[wire] = wrong.Bits()
			if !s.Uses(wire) {
				continue
			}
			proof, err := p.ProveWith(Blinding{fr.NewElement(3), fr.NewElement(4)})
			if err != nil {
				t.Fatal(err)
			}
			if Verify(&p.Key.Verifying, proof, iden3.PublicOf(p.Witness, 1)) == nil {
				t.Fatalf("%s: a wrong wire %d is accepted", engine, wire)
			}
			if _, _, err := p.Prove(); failure.CodeOf(err) != failure.Unsatisfied {
				t.Fatalf("%s: wire %d: %v", engine, wire, err)
			}
		}
	}
}

func TestSetupMakesTheSameBytesEachTime(t *testing.T) {
	b := testFile(t, "tiny.r1cs")
	circuit, err := iden3.ReadCircuit(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	v, err := Setup(circuit, "tiny", &out)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(out.Bytes(), testFile(t, "tiny.zkey")) {
		t.Fatal("the key differs from testdata/tiny.zkey")
	}
	got, _ := json.Marshal(v)
	if want, _ := json.Marshal(unmarshal[iden3.VerifyingKey](t, "tiny.vkey.json")); !bytes.Equal(got, want) {
		t.Fatal("the verification key differs from testdata/tiny.vkey.json")
	}
	out.Reset()
	if _, err := Setup(circuit, "other", &out); err != nil || bytes.Equal(out.Bytes(), testFile(t, "tiny.zkey")) {
		t.Fatal("another seed makes the same key", err)
	}
	if _, err := Setup(circuit, "", &out); failure.CodeOf(err) != failure.BadRequest {
		t.Fatal("an empty seed is accepted")
	}
}

func TestADomainThatIsJustFullIsLargeEnough(t *testing.T) {
	// 2^k - 2 constraints, one public value and the wire that is 1 fill a domain. One more constraint doubles it.
	for n, domain := range map[int]int{62: 64, 63: 128, 126: 128} {
		s := synth.New(n, 300, 7)
		p := prover(t, setup(t, s, "full"), s.WTNS(), Own)
		if p.Key.Domain != domain {
			t.Fatalf("%d constraints take a domain of %d", n, p.Key.Domain)
		}
		if _, _, err := p.Prove(); err != nil {
			t.Fatal(n, err)
		}
	}
}

func TestUnknownEnginesAreRefused(t *testing.T) {
	b := testFile(t, "tiny.zkey")
	key, err := iden3.ReadKey(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := NewProver(key, "fast"); failure.CodeOf(err) != failure.BadRequest {
		t.Fatal(err)
	}
}

func TestWipeClearsTheWitnessAndItsImages(t *testing.T) {
	p := prover(t, testFile(t, "tiny.zkey"), testFile(t, "tiny.wtns"), Own)
	if _, _, err := p.Prove(); err != nil {
		t.Fatal(err)
	}
	p.Wipe()
	for _, w := range append(p.Witness, p.engine.(*own).scalars...) {
		if w != (iden3.Scalar{}) {
			t.Fatal("a witness' value is still there")
		}
	}
	for _, values := range [][]fr.Element{p.a, p.b, p.c} {
		for _, v := range values {
			if !v.IsZero() {
				t.Fatal("a polynomial's value is still there")
			}
		}
	}
}
