package groth16

import (
	"github.com/consensys/gnark-crypto/ecc"
	"github.com/consensys/gnark-crypto/ecc/bn254"
	"github.com/consensys/gnark-crypto/ecc/bn254/fr"

	"sui-enclave/prover/internal/failure"
	"sui-enclave/prover/internal/fft"
	"sui-enclave/prover/internal/iden3"
	"sui-enclave/prover/internal/mem"
	"sui-enclave/prover/internal/par"
)

// library is gnark-crypto's own products and transforms.
type library struct {
	coset   fft.Domain
	witness []fr.Element
	arena   mem.Arena
}

func (l *library) prepare(k *iden3.Key) (err error) {
	if l.coset, err = fft.NewLibrary(k.Domain); err != nil {
		return err
	}
	l.witness, err = mem.Slice[fr.Element](&l.arena, k.Wires)
	return err
}

func (l *library) domain() fft.Domain { return l.coset }
func (l *library) wipe()              { l.arena.Wipe() }
func (l *library) free()              { l.arena.Free() }

func (l *library) sums(k *iden3.Key, w []iden3.Scalar, lap func(string)) (s sums, err error) {
	par.Ranges(len(w), part, func(from, to, _ int) {
		for i := from; i < to; i++ {
			l.witness[i] = iden3.FromScalar(&w[i])
		}
	})
	if s.a, err = libraryG1(k.A, l.witness); err != nil {
		return s, err
	}
	lap("A")
	if s.b1, err = libraryG1(k.B1, l.witness); err != nil {
		return s, err
	}
	lap("B1")
	if _, err := s.b2.MultiExp(k.B2, l.witness, ecc.MultiExpConfig{}); err != nil {
		return s, libraryError(err)
	}
	lap("B2")
	s.c, err = libraryG1(k.C, l.witness[k.Public+1:])
	lap("C")
	return s, err
}

func (l *library) productH(k *iden3.Key, values []fr.Element) (bn254.G1Jac, error) {
	return libraryG1(k.H, values)
}

func libraryG1(points []bn254.G1Affine, scalars []fr.Element) (sum bn254.G1Jac, err error) {
	if _, err = sum.MultiExp(points, scalars, ecc.MultiExpConfig{}); err != nil {
		err = libraryError(err)
	}
	return sum, err
}

func libraryError(err error) error { return failure.New(failure.Internal, "gnark-crypto: %v", err) }
