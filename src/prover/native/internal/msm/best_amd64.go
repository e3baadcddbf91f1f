package msm

import (
	"github.com/consensys/gnark-crypto/ecc/bn254"

	"sui-enclave/prover/internal/cpu"
)

func bestG1() adder[bn254.G1Affine] {
	switch cpu.Chosen() {
	case cpu.Vectors:
		return newVectorG1()
	case cpu.ADX:
		return newScalarG1()
	default:
		return newPortableG1()
	}
}

func bestG2() adder[bn254.G2Affine] {
	if cpu.Chosen() == cpu.Vectors {
		return newVectorG2()
	}
	return newPortableG2()
}
