// Package cpu says what this processor can do.
package cpu

import (
	"os"
	"slices"

	"golang.org/x/sys/cpu"

	"sui-enclave/prover/internal/failure"
)

// Path is the code that runs here.
type Path string

// The paths, from the fastest on.
const (
	// Vectors is the AVX-512 kernels of msm and fft.
	Vectors Path = "avx512ifma"
	// ADX is their kernels for processors with BMI2 and ADX, but without AVX-512 IFMA.
	ADX Path = "adx"
	// Portable is for every processor.
	Portable Path = "portable"
)

// here are the paths that this processor has, from the fastest on.
var here = func() (paths []Path) {
	if cpu.X86.HasAVX512F && cpu.X86.HasAVX512DQ && cpu.X86.HasAVX512IFMA {
		paths = append(paths, Vectors)
	}
	if cpu.X86.HasBMI2 && cpu.X86.HasADX {
		paths = append(paths, ADX)
	}
	return append(paths, Portable)
}()

// chosen is the fastest, or the one that PROVER_VECTORS names, also in tests.
var chosen = func() Path {
	if path := Path(os.Getenv("PROVER_VECTORS")); Has(path) {
		return path
	}
	return here[0]
}()

// Chosen is the path that runs: the fastest, unless another was forced.
func Chosen() Path { return chosen }

// Paths returns those that this processor has, from the fastest on.
func Paths() []Path { return here }

// Has tells whether this processor has a path.
func Has(path Path) bool { return slices.Contains(here, path) }

// Force chooses a path for tests and measurements. It fails for one that this processor doesn't have.
func Force(path Path) error {
	if Has(path) {
		chosen = path
		return nil
	}
	return failure.New(failure.BadRequest, "PROVER_VECTORS must be one of the paths that this processor has: %v", here)
}
