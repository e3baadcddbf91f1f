package main

import (
	"encoding/json"
	"flag"
	"os"

	"sui-enclave/prover/internal/cpu"
	"sui-enclave/prover/internal/failure"
	"sui-enclave/prover/internal/groth16"
	"sui-enclave/prover/internal/iden3"
	"sui-enclave/prover/internal/par"
	"sui-enclave/prover/internal/usage"
)

// measurement is what bench prints.
type measurement struct {
	Engine  string     `json:"engine"`
	Path    string     `json:"path"`
	Cores   int        `json:"cores"`
	Wires   int        `json:"wires"`
	Domain  int        `json:"domain"`
	KeyLoad usage.Time `json:"keyLoad"`
	Proofs  []proving  `json:"proofs"`
	Cold    usage.Time `json:"cold"` // from the command's start to the first proof
	PeakMB  float64    `json:"peakMB"`
}

// proving has the time of one proof, including reading the witness and verifying the proof, and the times of its
// phases.
type proving struct {
	usage.Time
	Phases map[string]usage.Time `json:"phases"`
}

func bench(args []string) error {
	var zkey, wtns, engine string
	var repeat int
	if err := options("bench", args, []string{"zkey", "wtns"}, func(f *flag.FlagSet) {
		f.StringVar(&zkey, "zkey", "", "")
		f.StringVar(&wtns, "wtns", "", "")
		f.StringVar(&engine, "engine", string(groth16.Own), "")
		f.IntVar(&repeat, "repeat", 3, "")
	}); err != nil {
		return err
	}
	if repeat < 1 {
		return failure.New(failure.BadRequest, "prover bench: --repeat must be 1 or more")
	}
	begin := usage.Now()
	p, err := load(zkey, iden3.ReadKey, engine)
	if err != nil {
		return err
	}
	m := measurement{Engine: engine, Path: string(cpu.Chosen()), Cores: par.Workers(), Wires: p.Key.Wires, Domain: p.Key.Domain, KeyLoad: begin.Since()}
	for i := range repeat {
		once, err := measure(p, wtns)
		if err != nil {
			return err
		}
		if i == 0 {
			m.Cold = begin.Since()
		}
		m.Proofs = append(m.Proofs, once)
	}
	m.PeakMB = usage.PeakMB()
	return json.NewEncoder(os.Stdout).Encode(m)
}

func measure(p *groth16.Prover, wtns string) (m proving, err error) {
	begin := usage.Now()
	if err := readWitness(p, wtns); err != nil {
		return m, err
	}
	m.Phases = map[string]usage.Time{"witness": begin.Since()}
	if _, _, err := p.Prove(); err != nil {
		return m, err
	}
	m.Time = begin.Since()
	for _, phase := range p.Phases() {
		m.Phases[phase.Name] = phase.Time
	}
	return m, nil
}
