// Package cpu says what this processor can do.
package cpu

import "golang.org/x/sys/cpu"

// Vectors tells whether the AVX-512 kernels of msm and fft run here.
var Vectors = cpu.X86.HasAVX512F && cpu.X86.HasAVX512DQ && cpu.X86.HasAVX512IFMA

// Path names the code that runs here: "avx512ifma", or "portable", which takes about four times as long.
func Path() string {
	if Vectors {
		return "avx512ifma"
	}
	return "portable"
}
