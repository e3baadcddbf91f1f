// Package failure holds the errors that leave the prover: each has a stable upper-case code, for programs, and a
// message for people. A message never holds a witness, a blinding factor or a proof.
package failure

import (
	"errors"
	"fmt"
)

// Code names a kind of failure. Codes are stable: callers compare them.
type Code string

const (
	// BadKey: a .zkey is damaged, not a Groth16 key over BN254, or contradicts itself.
	BadKey Code = "PROVER_BAD_KEY"
	// BadWitness: a .wtns is damaged, or doesn't belong to the key.
	BadWitness Code = "PROVER_BAD_WITNESS"
	// BadCircuit: an .r1cs is damaged or of an unsupported kind.
	BadCircuit Code = "PROVER_BAD_CIRCUIT"
	// BadProof: a proof, its public input or a verification key can't be read.
	BadProof Code = "PROVER_BAD_PROOF"
	// Unsatisfied: the proof made from this witness doesn't verify under the key.
	Unsatisfied Code = "PROVER_UNSATISFIED"
	// BadRequest: a frame or a command line asks for something that doesn't exist.
	BadRequest Code = "PROVER_BAD_REQUEST"
	// Busy: a worker proves one statement at a time.
	Busy Code = "PROVER_BUSY"
	// NoKey: a worker needs a key before it can prove.
	NoKey Code = "PROVER_NO_KEY"
	// Cancelled: the caller who asked for the proof has left.
	Cancelled Code = "PROVER_CANCELLED"
	// Internal: the machine or the prover itself failed (no memory, no randomness).
	Internal Code = "PROVER_INTERNAL"
)

// Error is a failure with its code.
type Error struct {
	Code    Code
	Message string
}

func (e *Error) Error() string { return e.Message }

// New formats an Error.
func New(code Code, format string, args ...any) error {
	return &Error{code, fmt.Sprintf(format, args...)}
}

// CodeOf returns the code of err, or Internal where it has none.
func CodeOf(err error) Code {
	var e *Error
	if errors.As(err, &e) {
		return e.Code
	}
	return Internal
}
