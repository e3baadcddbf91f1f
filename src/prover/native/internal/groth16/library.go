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

// library is the engine that uses gnark-crypto's products and transforms.
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

func (l *library) sums(k *iden3.Key, w []iden3.Scalar, lap func(string) error) (s sums, err error) {
	par.Ranges(len(w), part, func(from, to, _ int) {
		for i := from; i < to; i++ {
			l.witness[i] = iden3.FromScalar(&w[i])
		}
	})
	if s.a, err = libraryG1(k.A, l.witness); err != nil {
		return s, err
	}
	if err = lap("A"); err != nil {
		return s, err
	}
	if s.b1, err = libraryG1(k.B1, l.witness); err != nil {
		return s, err
	}
	if err = lap("B1"); err != nil {
		return s, err
	}
	if _, err := s.b2.MultiExp(k.B2, l.witness, ecc.MultiExpConfig{}); err != nil {
		return s, libraryError(err)
	}
	if err = lap("B2"); err != nil {
		return s, err
	}
	if s.c, err = libraryG1(k.C, l.witness[k.Public+1:]); err != nil {
		return s, err
	}
	return s, lap("C")
}

func (l *library) productH(k *iden3.Key, values []fr.Element, step func() error) (bn254.G1Jac, error) {
	return libraryH(k, values, step)
}

// stretch is the number of points that the library multiplies between two steps, which takes 1.2 s of CPU time. The
// library can't be stopped in between. Four such products cost as much as one product of 2^20 points.
const stretch = 1 << 18

func libraryH(k *iden3.Key, values []fr.Element, step func() error) (sum bn254.G1Jac, err error) {
	for from := 0; from < len(values); from += stretch {
		to := min(from+stretch, len(values))
		part, err := libraryG1(k.H[from:to], values[from:to])
		if err != nil {
			return sum, err
		}
		sum.AddAssign(&part)
		if err := step(); err != nil {
			return sum, err
		}
	}
	return sum, nil
}

func libraryG1(points []bn254.G1Affine, scalars []fr.Element) (sum bn254.G1Jac, err error) {
	if _, err = sum.MultiExp(points, scalars, ecc.MultiExpConfig{}); err != nil {
		err = libraryError(err)
	}
	return sum, err
}

func libraryError(err error) error { return failure.New(failure.Internal, "gnark-crypto: %v", err) }
