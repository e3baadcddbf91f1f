// Package fft moves polynomials from a domain to its odd coset: from values at the powers of w (of order n) to
// values at the powers of w times g, where g² = w.
package fft

import (
	"github.com/consensys/gnark-crypto/ecc/bn254/fr"
	"github.com/consensys/gnark-crypto/ecc/bn254/fr/fft"

	"sui-enclave/prover/internal/failure"
)

// Domain transforms values at the powers of a root of unity.
type Domain interface {
	// ToCoset replaces values on the domain by values on the coset. len(values) is the domain's size.
	ToCoset(values []fr.Element)
	// Wipe clears the values that a transform left in memory.
	Wipe()
	// Free wipes the memory and releases it.
	Free()
}

// Library is the transform of gnark-crypto.
type Library struct{ domain *fft.Domain }

// NewLibrary prepares a domain of n elements, a power of two up to 2^27.
func NewLibrary(n int) (*Library, error) {
	g, err := fr.Generator(uint64(2 * n))
	if err != nil {
		return nil, failure.New(failure.Internal, "a domain of size %d: %v", n, err)
	}
	return &Library{fft.NewDomain(uint64(n), fft.WithShift(g), fft.WithCache())}, nil
}

// ToCoset implements Domain.
func (l *Library) ToCoset(values []fr.Element) {
	l.domain.FFTInverse(values, fft.DIF)
	l.domain.FFT(values, fft.DIT, fft.OnCoset())
}

// Wipe implements Domain: the library keeps nothing.
func (l *Library) Wipe() {}

// Free implements Domain.
func (l *Library) Free() {}
