/**
 * Makes a Groth16 key with known secrets, which does not belong to a circuit. Anyone who knows the secrets
 * can simulate a valid proof for any public input (Groth 2016, section 3.1), so a fake backend needs no
 * engine.
 */
import { bn254, bn254_Fr as Fr } from '@noble/curves/bn254.js';

type Point = InstanceType<typeof bn254.G1.Point> | InstanceType<typeof bn254.G2.Point>;

export interface SimulatedKey {
  /** Verifying key in snarkjs' format. */
  readonly vkey: object;
  /** Simulates a valid proof for this public input, in a backend's format. */
  prove(publicInput: bigint): object;
}

/** Number of proofs after which the points `a` and `b` of the first proof are repeated. */
const DIFFERENT_PROOFS = 8n;

const g1 = (scalar: bigint) => bn254.G1.Point.BASE.multiply(scalar);
const g2 = (scalar: bigint) => bn254.G2.Point.BASE.multiply(scalar);

/** Makes a key. @param seed determines the secrets of the key */
export function createSimulatedKey(seed: bigint): SimulatedKey {
  const [alpha, beta, gamma, delta, first, second] = [3n, 5n, 7n, 11n, 13n, 17n].map((prime) =>
    Fr.pow(prime, seed + 1000n),
  ) as [bigint, bigint, bigint, bigint, bigint, bigint];
  let proofCount = 0n;
  const points = new Map<bigint, unknown[][]>();
  return {
    vkey: {
      protocol: 'groth16',
      curve: 'bn128',
      nPublic: 1,
      vk_alpha_1: coordinates(g1(alpha)),
      vk_beta_2: coordinates(g2(beta)),
      vk_gamma_2: coordinates(g2(gamma)),
      vk_delta_2: coordinates(g2(delta)),
      IC: [coordinates(g1(first)), coordinates(g1(second))],
    },
    prove(publicInput) {
      const proofNumber = 1n + (proofCount++ % DIFFERENT_PROOFS);
      const [a, b] = [Fr.pow(19n, proofNumber), Fr.pow(23n, proofNumber)];
      // a · b = alpha · beta + (first + publicInput · second) · gamma + c · delta
      const inputTerm = Fr.mul(Fr.add(first, Fr.mul(publicInput, second)), gamma);
      const c = Fr.div(Fr.sub(Fr.sub(Fr.mul(a, b), Fr.mul(alpha, beta)), inputTerm), delta);
      const [pi_a, pi_b] = points.get(proofNumber) ?? [g1(a), g2(b)].map(coordinates);
      points.set(proofNumber, [pi_a as unknown[], pi_b as unknown[]]);
      return { pi_a, pi_b, pi_c: coordinates(g1(c)), protocol: 'groth16', curve: 'bn128' };
    },
  };
}

function coordinates(point: Point): unknown[] {
  const { x, y } = point.toAffine();
  if (typeof x === 'bigint') return [String(x), String(y), '1'];
  const pair = ({ c0, c1 }: { c0: bigint; c1: bigint }) => [String(c0), String(c1)];
  return [pair(x), pair(y as never), ['1', '0']];
}
