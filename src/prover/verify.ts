/** Verifies Groth16 proofs on BN254, in the format of snarkjs and circom's tools. */

import { bn254, bn254_Fr } from '@noble/curves/bn254.js';
import { quantity } from 'sui-enclave/wording';
import { ProverError } from './errors.ts';

/**
 * A proof. Its affine coordinates are decimal, with a last coordinate of 1. Coordinates of G2 begin with the
 * real part.
 */
export interface Groth16Proof {
  readonly a: readonly string[];
  readonly b: readonly (readonly string[])[];
  readonly c: readonly string[];
}

type G1 = InstanceType<typeof bn254.G1.Point>;
type G2 = InstanceType<typeof bn254.G2.Point>;
type Gt = ReturnType<typeof bn254.pairing>;

const { Fp, Fp2, Fp12 } = bn254.fields;

/** A verifying key with parsed points. */
export interface VerifyingKey {
  /** Pairing of alpha and beta, which is the same for all proofs. */
  readonly alphaBeta: Gt;
  readonly gamma: G2;
  readonly delta: G2;
  /** Points of the public inputs: a constant point, then a point for each input. */
  readonly inputs: readonly G1[];
}

/**
 * Reads a verifying key, and checks its points.
 *
 * @param json content of a `vkey.json` from snarkjs
 * @throws ProverError
 */
export function readVerifyingKey(json: unknown): VerifyingKey {
  const key = (typeof json === 'object' && json !== null ? json : {}) as Record<string, unknown>;
  const { protocol, curve, nPublic, vk_alpha_1, vk_beta_2, vk_gamma_2, vk_delta_2, IC } = key;
  if (
    protocol !== 'groth16' ||
    curve !== 'bn128' ||
    !Array.isArray(IC) ||
    IC.length !== Number(nPublic) + 1
  ) {
    throw new ProverError(
      'PROVER_MALFORMED_PROOF',
      "the verifying key is not in snarkjs' format for groth16 on bn128",
    );
  }
  return {
    alphaBeta: bn254.pairing(readG1('vk_alpha_1', vk_alpha_1), readG2('vk_beta_2', vk_beta_2)),
    gamma: readG2('vk_gamma_2', vk_gamma_2),
    delta: readG2('vk_delta_2', vk_delta_2),
    inputs: IC.map((point) => readG1('IC', point)),
  };
}

/**
 * Returns whether the proof is valid for these public inputs. It is if
 * e(a, b) = e(alpha, beta) e(inputs, gamma) e(c, delta).
 *
 * @throws ProverError if a point of the proof is not in its group, or if an input is not below the order of
 *   the groups
 */
export function verifyProof(
  key: VerifyingKey,
  proof: Groth16Proof,
  publicInputs: readonly bigint[],
): boolean {
  const [constantPoint, ...inputPoints] = key.inputs as [G1, ...G1[]];
  if (publicInputs.length !== inputPoints.length) {
    throw new ProverError(
      'PROVER_MALFORMED_PROOF',
      `the verifying key is for ${quantity(inputPoints.length, 'public input')}`,
    );
  }
  // Numbers that differ by the order represent the same field element, so a proof would be valid for all of
  // them.
  if (!publicInputs.every((input) => input >= 0n && input < bn254_Fr.ORDER)) {
    throw new ProverError('PROVER_MALFORMED_PROOF', 'a public input must be below the order of BN254');
  }
  const a = readG1('a', proof?.a);
  const b = readG2('b', proof?.b);
  const c = readG1('c', proof?.c);
  const inputs = inputPoints.reduce(
    (sum, point, index) => sum.add(point.multiplyUnsafe(publicInputs[index] as bigint)),
    constantPoint,
  );
  // The library rejects the point at infinity. This never happens with an honest key.
  if (inputs.is0()) return false;
  const product = bn254.pairingBatch([
    { g1: a, g2: b },
    { g1: inputs.negate(), g2: key.gamma },
    { g1: c.negate(), g2: key.delta },
  ]);
  return Fp12.eql(product, key.alphaBeta);
}

/**
 * Reads a point on the curve, which has prime order. Refuses the point at infinity, which no honest key or
 * proof has.
 */
function readG1(name: string, point: unknown): G1 {
  const [x, y, z] = requireList(name, point, 3).map((text) => readCoordinate(name, text)) as [
    bigint,
    bigint,
    bigint,
  ];
  if (z !== 1n) throw malformed(name);
  return requireValid(name, () => bn254.G1.Point.fromAffine({ x, y }));
}

/** Reads a point that must be on the twist and in the subgroup. */
function readG2(name: string, point: unknown): G2 {
  const pairs = requireList(name, point, 3).map((pair) =>
    requireList(name, pair, 2).map((text) => readCoordinate(name, text)),
  ) as [bigint, bigint][];
  const [x, y, z] = pairs as [[bigint, bigint], [bigint, bigint], [bigint, bigint]];
  if (z[0] !== 1n || z[1] !== 0n) throw malformed(name);
  return requireValid(name, () =>
    bn254.G2.Point.fromAffine({ x: Fp2.fromBigTuple(x), y: Fp2.fromBigTuple(y) }),
  );
}

function requireValid<Point extends { assertValidity(): void; is0(): boolean }>(
  name: string,
  read: () => Point,
): Point {
  try {
    const point = read();
    // This call checks curve and subgroup. The library reads (0, 0) as the point at infinity.
    point.assertValidity();
    if (!point.is0()) return point;
  } catch {
    // The error below reports this failure.
  }
  throw malformed(name);
}

function requireList(name: string, value: unknown, length: number): unknown[] {
  if (!Array.isArray(value) || value.length !== length) throw malformed(name);
  return value;
}

function readCoordinate(name: string, value: unknown): bigint {
  if (typeof value !== 'string' || !/^(0|[1-9][0-9]{0,76})$/.test(value)) throw malformed(name);
  const number = BigInt(value);
  if (number >= Fp.ORDER) throw malformed(name);
  return number;
}

function malformed(name: string): ProverError {
  return new ProverError(
    'PROVER_MALFORMED_PROOF',
    `${name} is not a point of its group in affine coordinates`,
  );
}
