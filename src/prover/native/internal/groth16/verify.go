// Package groth16 makes and verifies Groth16 proofs over BN254 with keys from snarkjs.
package groth16

import (
	"math/big"

	"github.com/consensys/gnark-crypto/ecc/bn254"

	"sui-enclave/prover/internal/failure"
	"sui-enclave/prover/internal/iden3"
)

// Verify returns nil if the proof is valid for the public input: e(A, B) = e(alpha, beta)·e(X, gamma)·e(C, delta)
// with X = IC[0] + sum of public[i]·IC[i+1]. The key's and proof's points must be in their groups.
func Verify(v *iden3.VerifyingKey, proof *iden3.Proof, public iden3.Public) error {
	if len(public) != len(v.IC)-1 {
		return failure.New(failure.BadProof, "there are %d public values, but the key needs %d", len(public), len(v.IC)-1)
	}
	var x, term bn254.G1Jac
	x.FromAffine(&v.IC[0])
	for i := range public {
		term.FromAffine(&v.IC[i+1])
		term.ScalarMultiplication(&term, public[i].BigInt(new(big.Int)))
		x.AddAssign(&term)
	}
	var input, minusA bn254.G1Affine
	input.FromJacobian(&x)
	minusA.Neg(&proof.A)
	ok, err := bn254.PairingCheck(
		[]bn254.G1Affine{minusA, v.Alpha, input, proof.C},
		[]bn254.G2Affine{proof.B, v.Beta, v.Gamma, v.Delta},
	)
	if err != nil || !ok {
		return failure.New(failure.Unsatisfied, "the proof doesn't verify under this key")
	}
	return nil
}
