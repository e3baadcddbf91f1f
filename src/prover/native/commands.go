package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"flag"
	"io"
	"os"
	"strings"

	"sui-enclave/prover/internal/failure"
	"sui-enclave/prover/internal/groth16"
	"sui-enclave/prover/internal/iden3"
	"sui-enclave/prover/internal/synth"
)

func setup(args []string) error {
	var r1cs, seed, out string
	if err := options("setup", args, []string{"r1cs", "seed", "out"}, func(f *flag.FlagSet) {
		f.StringVar(&r1cs, "r1cs", "", "")
		f.StringVar(&seed, "seed", "", "")
		f.StringVar(&out, "out", "", "")
	}); err != nil {
		return err
	}
	var circuit *iden3.Circuit
	if err := iden3.WithFile(r1cs, failure.BadCircuit, func(f io.ReaderAt, size int64) (err error) {
		circuit, err = iden3.ReadCircuit(f, size)
		return err
	}); err != nil {
		return err
	}
	var v *iden3.VerifyingKey
	if err := writeFile(out, 0o644, func(w io.Writer) (err error) {
		buffer := bufio.NewWriterSize(w, 1<<20)
		if v, err = groth16.Setup(circuit, seed, buffer); err != nil {
			return err
		}
		return buffer.Flush()
	}); err != nil {
		return err
	}
	return writeJSON(strings.TrimSuffix(out, ".zkey")+".vkey.json", v)
}

// readKey is iden3.ReadKey or iden3.ReadKeyUnchecked.
type readKey func(file io.ReaderAt, size int64) (*iden3.Key, error)

// load opens a key and prepares an engine.
func load(zkey string, read readKey, engine string) (p *groth16.Prover, err error) {
	err = iden3.WithFile(zkey, failure.BadKey, func(f io.ReaderAt, size int64) error {
		key, err := read(f, size)
		if err != nil {
			return err
		}
		p, err = groth16.NewProver(key, groth16.Engine(engine))
		return err
	})
	return p, err
}

func readWitness(p *groth16.Prover, wtns string) error {
	return iden3.WithFile(wtns, failure.BadWitness, func(f io.ReaderAt, size int64) error {
		return iden3.ReadWitness(f, size, p.Witness)
	})
}

func prove(args []string) error {
	var zkey, wtns, proofPath, publicPath, engine string
	if err := options("prove", args, []string{"zkey", "wtns", "proof", "public"}, func(f *flag.FlagSet) {
		f.StringVar(&zkey, "zkey", "", "")
		f.StringVar(&wtns, "wtns", "", "")
		f.StringVar(&proofPath, "proof", "", "")
		f.StringVar(&publicPath, "public", "", "")
		f.StringVar(&engine, "engine", string(groth16.Own), "")
	}); err != nil {
		return err
	}
	hideMemory()
	p, err := load(zkey, iden3.ReadKeyUnchecked, engine)
	if err != nil {
		return err
	}
	defer p.Wipe()
	if err := readWitness(p, wtns); err != nil {
		return err
	}
	proof, public, err := p.Prove()
	if err != nil {
		p.Free() // two keys at a time might not fit into memory
		return cmp.Or(findDamage(zkey), err)
	}
	if err := writeJSON(proofPath, proof); err != nil {
		return err
	}
	return writeJSON(publicPath, public)
}

// findDamage returns an error if the key is damaged, which explains a failed proof. A key that is used once isn't
// checked before its proof.
func findDamage(zkey string) error {
	return iden3.WithFile(zkey, failure.BadKey, func(f io.ReaderAt, size int64) error {
		key, err := iden3.ReadKey(f, size)
		if err == nil {
			key.Free()
		}
		return err
	})
}

func verify(args []string) error {
	var vkey, proofPath, publicPath string
	if err := options("verify", args, []string{"vkey", "proof", "public"}, func(f *flag.FlagSet) {
		f.StringVar(&vkey, "vkey", "", "")
		f.StringVar(&proofPath, "proof", "", "")
		f.StringVar(&publicPath, "public", "", "")
	}); err != nil {
		return err
	}
	var v iden3.VerifyingKey
	var proof iden3.Proof
	var public iden3.Public
	for _, file := range []struct {
		path string
		into any
	}{{vkey, &v}, {proofPath, &proof}, {publicPath, &public}} {
		b, err := os.ReadFile(file.path)
		if err != nil {
			return failure.New(failure.BadProof, "%v", err)
		}
		if err := json.Unmarshal(b, file.into); err != nil {
			return failure.New(failure.BadProof, "%s: %v", file.path, err)
		}
	}
	return groth16.Verify(&v, &proof, public)
}

func synthesise(args []string) error {
	var constraints, full int
	var out string
	if err := options("synth", args, []string{"out"}, func(f *flag.FlagSet) {
		f.IntVar(&constraints, "constraints", 1<<16-3, "")
		f.IntVar(&full, "full", 6, "")
		f.StringVar(&out, "out", "", "")
	}); err != nil {
		return err
	}
	if constraints < 1 || constraints > 1<<22 || full < 0 || full > 1000 {
		return failure.New(failure.BadRequest, "prover synth: --constraints must be 1 to 2^22, --full 0 to 1000")
	}
	s := synth.New(constraints, full, 1)
	if err := writeBytes(out+".r1cs", s.R1CS()); err != nil {
		return err
	}
	return writeBytes(out+".wtns", s.WTNS())
}

func writeBytes(path string, b []byte) error {
	return writeFile(path, 0o600, func(w io.Writer) error {
		_, err := w.Write(b)
		return err
	})
}
