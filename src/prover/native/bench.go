package main

import (
	"encoding/json"
	"flag"
	"os"
	"runtime"
	"syscall"
	"time"

	"sui-enclave/prover/internal/failure"
	"sui-enclave/prover/internal/groth16"
)

// measurement is what bench prints, in seconds and MB.
type measurement struct {
	Engine     string  `json:"engine"`
	Cores      int     `json:"cores"`
	Wires      int     `json:"wires"`
	Domain     int     `json:"domain"`
	KeyLoad    timing  `json:"keyLoad"`
	Proofs     []run   `json:"proofs"`
	PeakMemory float64 `json:"peakMB"`
}

type timing struct {
	Wall float64 `json:"wall"`
	CPU  float64 `json:"cpu"`
}

type run struct {
	timing
	WitnessRead float64            `json:"witnessRead"`
	Phases      map[string]float64 `json:"phases"`
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
	from := begin()
	p, err := load(zkey, engine)
	if err != nil {
		return err
	}
	m := measurement{Engine: engine, Cores: runtime.GOMAXPROCS(0), Wires: p.Key.Wires, Domain: p.Key.Domain, KeyLoad: from.end()}
	for range repeat {
		r, err := measure(p, wtns)
		if err != nil {
			return err
		}
		m.Proofs = append(m.Proofs, r)
	}
	_, m.PeakMemory = usage()
	return json.NewEncoder(os.Stdout).Encode(m)
}

func measure(p *groth16.Prover, wtns string) (r run, err error) {
	from := begin()
	if err := readWitness(p, wtns); err != nil {
		return r, err
	}
	r.WitnessRead = from.end().Wall
	if _, _, err := p.Prove(); err != nil {
		return r, err
	}
	r.timing = from.end()
	r.Phases = map[string]float64{}
	for _, phase := range p.Phases() {
		r.Phases[phase.Name] = phase.Took.Seconds()
	}
	return r, nil
}

type moment struct {
	at  time.Time
	cpu float64
}

func begin() moment {
	cpu, _ := usage()
	return moment{time.Now(), cpu}
}

func (m moment) end() timing {
	cpu, _ := usage()
	return timing{time.Since(m.at).Seconds(), cpu - m.cpu}
}

// usage returns this process' CPU time in seconds and its peak memory in MB.
func usage() (cpu, peak float64) {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return float64(u.Utime.Nano()+u.Stime.Nano()) / 1e9, float64(u.Maxrss) / 1024
}
