// Package cpu finds the code paths that this processor supports, and chooses one.
package cpu

import (
	"os"
	"slices"

	"golang.org/x/sys/cpu"

	"sui-enclave/prover/internal/failure"
)

// Path names code of the engine, by the instructions that it needs.
type Path string

// The paths, fastest first.
const (
	// Vectors names the AVX-512 kernels of msm and fft.
	Vectors Path = "avx512ifma"
	// ADX names the kernels for processors with BMI2 and ADX, but without AVX-512 IFMA.
	ADX Path = "adx"
	// Portable names the code for every processor.
	Portable Path = "portable"
)

// supported has the paths that this processor supports, fastest first.
var supported = func() (paths []Path) {
	if cpu.X86.HasAVX512F && cpu.X86.HasAVX512DQ && cpu.X86.HasAVX512IFMA {
		paths = append(paths, Vectors)
	}
	if cpu.X86.HasBMI2 && cpu.X86.HasADX {
		paths = append(paths, ADX)
	}
	return append(paths, Portable)
}()

// chosen is the fastest path, or the path that PROVER_VECTORS names, also in tests.
var chosen = func() Path {
	if path := Path(os.Getenv("PROVER_VECTORS")); Has(path) {
		return path
	}
	return supported[0]
}()

// Chosen returns the path that runs: the fastest, unless PROVER_VECTORS or Force chose another.
func Chosen() Path { return chosen }

// Paths returns the paths that this processor supports, fastest first.
func Paths() []Path { return supported }

// Has reports whether this processor supports a path.
func Has(path Path) bool { return slices.Contains(supported, path) }

// Force chooses a path for tests and measurements. It fails if this processor doesn't support the path.
func Force(path Path) error {
	if Has(path) {
		chosen = path
		return nil
	}
	return failure.New(failure.BadRequest, "PROVER_VECTORS must be one of the paths that this processor has: %v", supported)
}
