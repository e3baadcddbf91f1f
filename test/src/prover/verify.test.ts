import { bn254 } from '@noble/curves/bn254.js';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { readVerifyingKey, verifyProof } from '../../../src/prover/verify.ts';
import { vector } from './support.ts';

const [google, devnet] = vector('zklogin-proofs').map(
  (vector: { partialInputs: { proofPoints: object }; publicInput: string }) => ({
    proof: vector.partialInputs.proofPoints,
    publicInput: BigInt(vector.publicInput),
  }),
);
const mainJson = vector('zkLogin-main.vkey');
const mainKey = readVerifyingKey(mainJson);
const devnetKey = readVerifyingKey(vector('zkLogin-test.vkey'));
const MALFORMED = expect.objectContaining({ code: 'PROVER_MALFORMED_PROOF' });
const FIELD = bn254.fields.Fp.ORDER;
const ORDER = bn254.fields.Fr.ORDER;

describe('a published proof', () => {
  test("is valid for its own network's key, and not for the other network's", () => {
    expect(verifyProof(mainKey, google.proof, [google.publicInput])).toBe(true);
    expect(verifyProof(devnetKey, devnet.proof, [devnet.publicInput])).toBe(true);
    expect(verifyProof(devnetKey, google.proof, [google.publicInput])).toBe(false);
    expect(verifyProof(mainKey, devnet.proof, [devnet.publicInput])).toBe(false);
  });

  test('is not valid for any other public input', () => {
    expect(verifyProof(mainKey, google.proof, [devnet.publicInput])).toBe(false);
    fc.assert(
      fc.property(fc.bigInt({ min: 0n, max: ORDER - 1n }), (publicInput) => {
        fc.pre(publicInput !== google.publicInput);
        expect(verifyProof(mainKey, google.proof, [publicInput])).toBe(false);
      }),
      { numRuns: 5 },
    );
  });

  test('is refused with a public input that is negative or not below the order, and with a wrong number of inputs', () => {
    expect(() => verifyProof(mainKey, google.proof, [google.publicInput + ORDER])).toThrow(MALFORMED);
    expect(() => verifyProof(mainKey, google.proof, [google.publicInput - ORDER])).toThrow(MALFORMED);
    expect(() => verifyProof(mainKey, google.proof, [])).toThrow(MALFORMED);
    expect(() => verifyProof(mainKey, google.proof, [google.publicInput, 0n])).toThrow(MALFORMED);
  });

  test('is valid only with its three points in the right order', () => {
    const { a, b, c } = google.proof;
    expect(verifyProof(mainKey, { a: c, b, c: a }, [google.publicInput])).toBe(false);
    const negated = [a[0], String(FIELD - BigInt(a[1])), '1'];
    expect(verifyProof(mainKey, { a: negated, b, c }, [google.publicInput])).toBe(false);
  });
});

describe('a point is refused', () => {
  const { a, b, c } = google.proof;
  const verify = (changed: object) => () =>
    verifyProof(mainKey, { a, b, c, ...changed }, [google.publicInput]);

  test.each([
    ['off the curve', { a: [a[0], a[0], '1'] }],
    ['with a coordinate beyond the field', { a: [String(BigInt(a[0]) + FIELD), a[1], '1'] }],
    ['in projective coordinates', { a: [a[0], a[1], '2'] }],
    ['at infinity', { a: ['0', '1', '0'] }],
    ['at infinity in affine coordinates', { a: ['0', '0', '1'] }],
    [
      'of G2 at infinity',
      {
        b: [
          ['0', '0'],
          ['0', '0'],
          ['1', '0'],
        ],
      },
    ],
    ['with a number instead of a string', { a: [1, 2, '1'] }],
    ['with hexadecimal coordinates', { a: ['0x1', '0x2', '1'] }],
    ['with a leading zero', { a: ['01', '2', '1'] }],
    ['too short', { a: [a[0], a[1]] }],
    ['of G1 where a point of G2 is expected', { b: a }],
    ['with its imaginary part first', { b: [[...b[0]].reverse(), [...b[1]].reverse(), ['1', '0']] }],
    ['missing', { c: undefined }],
  ])('%s', (_, changed) => {
    expect(verify(changed)).toThrow(MALFORMED);
  });

  test('on the twist and outside the subgroup', () => {
    const { Fp2 } = bn254.fields;
    const x = Fp2.fromBigTuple([2n, 1n]);
    const y = Fp2.sqrt(Fp2.add(Fp2.mul(Fp2.sqr(x), x), bn254.G2.Point.CURVE().b));
    const text = ({ c0, c1 }: { c0: bigint; c1: bigint }) => [String(c0), String(c1)];
    expect(verify({ b: [text(x), text(y), ['1', '0']] })).toThrow(MALFORMED);
  });
});

test.each([
  ['another protocol', { protocol: 'plonk' }],
  ['another curve', { curve: 'bls12381' }],
  ['a missing point', { IC: mainJson.IC.slice(1) }],
  ['a point off the curve', { vk_alpha_1: ['1', '1', '1'] }],
])('a verifying key with %s is refused', (_, changed) => {
  expect(() => readVerifyingKey({ ...mainJson, ...changed })).toThrow(MALFORMED);
  expect(() => readVerifyingKey(null)).toThrow(MALFORMED);
});
