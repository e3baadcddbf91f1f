package main

import (
	"flag"
	"os"

	"sui-enclave/prover/internal/failure"
	"sui-enclave/prover/internal/groth16"
	"sui-enclave/prover/internal/worker"
)

func work(args []string) error {
	var zkey, engine string
	if err := options("worker", args, nil, func(f *flag.FlagSet) {
		f.StringVar(&zkey, "zkey", "", "")
		f.StringVar(&engine, "engine", string(groth16.Own), "")
	}); err != nil {
		return err
	}
	if engine != string(groth16.Own) && engine != string(groth16.Library) {
		return failure.New(failure.BadRequest, "prover worker: engine %q doesn't exist", engine)
	}
	hideMemory()
	w := worker.New(os.Stdin, os.Stdout, groth16.Engine(engine))
	if zkey != "" {
		if err := w.Load(zkey); err != nil {
			return err
		}
	}
	return w.Run()
}
