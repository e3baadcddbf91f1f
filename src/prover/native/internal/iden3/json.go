package iden3

import (
	"encoding/json"
	"math/big"

	"github.com/consensys/gnark-crypto/ecc/bn254"
	"github.com/consensys/gnark-crypto/ecc/bn254/fp"
	"github.com/consensys/gnark-crypto/ecc/bn254/fr"

	"sui-enclave/prover/internal/failure"
)

// Proof is a Groth16 proof.
type Proof struct {
	A, C bn254.G1Affine
	B    bn254.G2Affine
}

type (
	decimals1 [3]string
	decimals2 [3][2]string
)

type jsonProof struct {
	A        decimals1 `json:"pi_a"`
	B        decimals2 `json:"pi_b"`
	C        decimals1 `json:"pi_c"`
	Protocol string    `json:"protocol"`
	Curve    *string   `json:"curve,omitempty"` // rapidsnark writes none
}

type jsonKey struct {
	Protocol  string          `json:"protocol"`
	Curve     string          `json:"curve"`
	Public    int             `json:"nPublic"`
	Alpha     decimals1       `json:"vk_alpha_1"`
	Beta      decimals2       `json:"vk_beta_2"`
	Gamma     decimals2       `json:"vk_gamma_2"`
	Delta     decimals2       `json:"vk_delta_2"`
	AlphaBeta [2][3][2]string `json:"vk_alphabeta_12"`
	IC        []decimals1     `json:"IC"`
}

func decimal1(p *bn254.G1Affine) decimals1 {
	if p.IsInfinity() {
		return decimals1{"0", "1", "0"}
	}
	return decimals1{p.X.String(), p.Y.String(), "1"}
}

func decimal2(p *bn254.G2Affine) decimals2 {
	if p.IsInfinity() {
		return decimals2{{"0", "0"}, {"1", "0"}, {"0", "0"}}
	}
	return decimals2{{p.X.A0.String(), p.X.A1.String()}, {p.Y.A0.String(), p.Y.A1.String()}, {"1", "0"}}
}

// MarshalJSON writes snarkjs' form.
func (p *Proof) MarshalJSON() ([]byte, error) {
	return json.Marshal(jsonProof{decimal1(&p.A), decimal2(&p.B), decimal1(&p.C), "groth16", new("bn128")})
}

// UnmarshalJSON reads snarkjs' form, or rapidsnark's, and checks that the points are in their groups.
func (p *Proof) UnmarshalJSON(b []byte) error {
	var j jsonProof
	if err := json.Unmarshal(b, &j); err != nil {
		return failure.New(failure.BadProof, "proof: %v", err)
	}
	if j.Protocol != "groth16" || (j.Curve != nil && *j.Curve != "bn128") {
		return failure.New(failure.BadProof, "proof: it is not a Groth16 proof over BN254 (bn128)")
	}
	for _, err := range []error{
		parse1(&p.A, j.A, "pi_a"), parse2(&p.B, j.B, "pi_b"), parse1(&p.C, j.C, "pi_c"),
	} {
		if err != nil {
			return err
		}
	}
	return nil
}

// MarshalJSON writes snarkjs' form.
func (v *VerifyingKey) MarshalJSON() ([]byte, error) {
	j := jsonKey{
		Protocol: "groth16", Curve: "bn128", Public: len(v.IC) - 1, Alpha: decimal1(&v.Alpha),
		Beta: decimal2(&v.Beta), Gamma: decimal2(&v.Gamma), Delta: decimal2(&v.Delta), IC: []decimals1{},
	}
	alphaBeta, err := bn254.Pair([]bn254.G1Affine{v.Alpha}, []bn254.G2Affine{v.Beta})
	if err != nil {
		return nil, failure.New(failure.BadProof, "verification key: %v", err)
	}
	j.AlphaBeta = decimal12(&alphaBeta)
	for i := range v.IC {
		j.IC = append(j.IC, decimal1(&v.IC[i]))
	}
	return json.Marshal(j)
}

// UnmarshalJSON reads snarkjs' form and checks that the points are in their groups. It skips vk_alphabeta_12, which
// follows from the rest.
func (v *VerifyingKey) UnmarshalJSON(b []byte) error {
	var j jsonKey
	if err := json.Unmarshal(b, &j); err != nil {
		return failure.New(failure.BadProof, "verification key: %v", err)
	}
	if j.Protocol != "groth16" || j.Curve != "bn128" || len(j.IC) == 0 || j.Public != len(j.IC)-1 {
		return failure.New(failure.BadProof, "verification key: it is not a Groth16 key over BN254 (bn128)")
	}
	errs := []error{
		parse1(&v.Alpha, j.Alpha, "vk_alpha_1"), parse2(&v.Beta, j.Beta, "vk_beta_2"),
		parse2(&v.Gamma, j.Gamma, "vk_gamma_2"), parse2(&v.Delta, j.Delta, "vk_delta_2"),
	}
	v.IC = make([]bn254.G1Affine, len(j.IC))
	for i := range j.IC {
		errs = append(errs, parse1(&v.IC[i], j.IC[i], "IC"))
	}
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func decimal12(x *bn254.GT) (d [2][3][2]string) {
	for i, c6 := range []*[3][2]*fp.Element{
		{{&x.C0.B0.A0, &x.C0.B0.A1}, {&x.C0.B1.A0, &x.C0.B1.A1}, {&x.C0.B2.A0, &x.C0.B2.A1}},
		{{&x.C1.B0.A0, &x.C1.B0.A1}, {&x.C1.B1.A0, &x.C1.B1.A1}, {&x.C1.B2.A0, &x.C1.B2.A1}},
	} {
		for j := range c6 {
			d[i][j] = [2]string{c6[j][0].String(), c6[j][1].String()}
		}
	}
	return d
}

func parse1(p *bn254.G1Affine, d decimals1, name string) error {
	for _, c := range []struct {
		z *fp.Element
		s string
	}{{&p.X, d[0]}, {&p.Y, d[1]}} {
		if !parseCoordinate(c.z, c.s) {
			return failure.New(failure.BadProof, "%s: a coordinate is not a decimal number below the field's modulus", name)
		}
	}
	if d[2] != "1" || p.IsInfinity() || !p.IsOnCurve() {
		return failure.New(failure.BadProof, "%s: it is not a finite point of the curve", name)
	}
	return nil
}

func parse2(p *bn254.G2Affine, d decimals2, name string) error {
	for _, c := range []struct {
		z *fp.Element
		s string
	}{{&p.X.A0, d[0][0]}, {&p.X.A1, d[0][1]}, {&p.Y.A0, d[1][0]}, {&p.Y.A1, d[1][1]}} {
		if !parseCoordinate(c.z, c.s) {
			return failure.New(failure.BadProof, "%s: a coordinate is not a decimal number below the field's modulus", name)
		}
	}
	if d[2] != [2]string{"1", "0"} || p.IsInfinity() || !p.IsOnCurve() || !p.IsInSubGroup() {
		return failure.New(failure.BadProof, "%s: it is not a finite point of the group", name)
	}
	return nil
}

func parseCoordinate(z *fp.Element, s string) bool {
	v, ok := parseDecimal(s, fp.Modulus())
	if ok {
		z.SetBigInt(v)
	}
	return ok
}

// parseDecimal parses the canonical decimal form of an integer below limit.
func parseDecimal(s string, limit *big.Int) (*big.Int, bool) {
	if len(s) > 78 {
		return nil, false
	}
	v, ok := new(big.Int).SetString(s, 10)
	return v, ok && v.Sign() >= 0 && v.Cmp(limit) < 0 && v.String() == s
}

// Public is a statement's public input in snarkjs' form.
type Public []fr.Element

// MarshalJSON writes an array of decimal strings.
func (p Public) MarshalJSON() ([]byte, error) {
	s := make([]string, len(p))
	for i := range p {
		s[i] = p[i].String()
	}
	return json.Marshal(s)
}

// UnmarshalJSON reads an array of decimal strings, each below the group's order.
func (p *Public) UnmarshalJSON(b []byte) error {
	var s []string
	if err := json.Unmarshal(b, &s); err != nil {
		return failure.New(failure.BadProof, "public input: %v", err)
	}
	*p = make(Public, len(s))
	for i := range s {
		v, ok := parseDecimal(s[i], fr.Modulus())
		if !ok {
			return failure.New(failure.BadProof, "public input: value %d is not a decimal number below the group's order", i)
		}
		(*p)[i].SetBigInt(v)
	}
	return nil
}

// PublicOf returns the public input in a witness.
func PublicOf(witness []Scalar, public int) Public {
	p := make(Public, public)
	for i := range p {
		p[i] = FromScalar(&witness[1+i])
	}
	return p
}

// rSquared is R² in plain form: its Montgomery product with a plain scalar is the scalar's Montgomery form.
var rSquared = func() (e fr.Element) {
	r := new(big.Int).Lsh(big.NewInt(1), 256)
	e.SetBigInt(r) // R in Montgomery form is R² in memory
	return e
}()

// FromScalar converts a scalar to Montgomery form.
func FromScalar(s *Scalar) (e fr.Element) {
	e.Mul((*fr.Element)(s), &rSquared)
	return e
}
