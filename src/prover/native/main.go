// Command prover makes Groth16 proofs over BN254 from snarkjs' keys and circom's witnesses. See README.md
// in this folder.
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"

	"sui-enclave/prover/internal/cpu"
	"sui-enclave/prover/internal/failure"
)

const help = `prover setup  --r1cs FILE --seed TEXT --out FILE.zkey     makes a development key, and FILE.vkey.json
prover prove  --zkey FILE --wtns FILE --proof FILE --public FILE [--engine own|gnark]
prover verify --vkey FILE --proof FILE --public FILE
prover worker [--zkey FILE] [--engine own|gnark]          reads and answers frames on standard input and output
prover bench  --zkey FILE --wtns FILE [--engine own|gnark] [--repeat N]
prover synth  --constraints N --out PREFIX                makes PREFIX.r1cs and PREFIX.wtns, for measurements
`

var commands = map[string]func(args []string) error{
	"setup": setup, "prove": prove, "verify": verify, "worker": work, "bench": bench, "synth": synthesise,
}

func main() {
	if len(os.Args) < 2 || commands[os.Args[1]] == nil {
		fmt.Fprint(os.Stderr, help)
		os.Exit(2)
	}
	if err := run(commands[os.Args[1]], os.Args[2:]); err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", failure.CodeOf(err), err)
		os.Exit(1)
	}
}

// run runs a command. It fails if PROVER_VECTORS names a code path that this processor doesn't have.
func run(command func(args []string) error, args []string) error {
	if path := os.Getenv("PROVER_VECTORS"); path != "" {
		if err := cpu.Force(cpu.Path(path)); err != nil {
			return err
		}
	}
	return command(args)
}

// options parses a command's options. It fails if an option that required names is missing.
func options(name string, args []string, required []string, declare func(*flag.FlagSet)) error {
	f := flag.NewFlagSet(name, flag.ContinueOnError)
	f.SetOutput(io.Discard)
	declare(f)
	if err := f.Parse(args); err != nil {
		return failure.New(failure.BadRequest, "prover %s: %v", name, err)
	}
	if f.NArg() > 0 {
		return failure.New(failure.BadRequest, "prover %s: %q is not an option", name, f.Arg(0))
	}
	for _, r := range required {
		if f.Lookup(r).Value.String() == "" {
			return failure.New(failure.BadRequest, "prover %s: --%s is missing", name, r)
		}
	}
	return nil
}

// writeFile writes the whole file or, if an error occurs, none of it.
func writeFile(path string, mode os.FileMode, write func(io.Writer) error) error {
	temporary := path + ".part"
	f, err := os.OpenFile(temporary, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, mode)
	if err != nil {
		return err
	}
	if err = errors.Join(write(f), f.Close()); err == nil {
		err = os.Rename(temporary, path)
	}
	if err != nil {
		os.Remove(temporary)
	}
	return err
}

func writeJSON(path string, value any) error {
	b, err := json.Marshal(value)
	if err != nil {
		return err
	}
	return writeFile(path, 0o600, func(w io.Writer) error {
		_, err := w.Write(append(b, '\n'))
		return err
	})
}
