/**
 * Tests that an honest input's witness satisfies every constraint, and that no wire can have another value.
 */
import { beforeAll, describe, expect, test } from 'vitest';
import { buildInput } from '../../../../src/prover/input.ts';
import { PROFILES } from '../../../../src/prover/profile.ts';
import { generateWitness } from '../../../../src/prover/witness.ts';
import { locateGenerator, locateWasmGenerator } from '../../../../src/toolchain/prover/artifacts.ts';
import { CLAIMS, OUR_KEY, REAL_TOKENS, requestFor, requestWith, signToken } from '../support.ts';
import { artifacts } from './generator.ts';
import {
  countUses,
  eachSymbol,
  findBrokenConstraints,
  freeWires,
  mod,
  type R1cs,
  readR1cs,
  readWitness,
} from './r1cs.ts';

const generator = locateGenerator(artifacts);
const input = (request: Parameters<typeof buildInput>[0], key = OUR_KEY) =>
  buildInput(request, key, PROFILES.small);
const fittingTokens = REAL_TOKENS.filter(({ provider }) => provider === 'Threedos' || provider === 'Fantv');

let r1cs: R1cs;
beforeAll(() => {
  r1cs = readR1cs(artifacts.r1cs);
});

async function createWitness(...inputArguments: Parameters<typeof input>): Promise<bigint[]> {
  const built = input(...inputArguments);
  const witness = readWitness(await generateWitness(generator, built.circuit));
  expect(witness[1]).toBe(built.publicInput);
  return witness;
}

test('the circuit has one public input and, except for the message, the private inputs of production', () => {
  expect(r1cs.publicInputs).toBe(1);
  expect(r1cs.privateInputs).toBe(2082 - 64 * (25 - 8));
  expect(r1cs.constraints + r1cs.publicInputs + 1).toBeLessThanOrEqual(2 ** 19);
});

describe('every constraint is satisfied by', () => {
  test.each(fittingTokens)('a real token of $provider', async ({ request, key }) => {
    expect(findBrokenConstraints(r1cs, await createWitness(request, key))).toEqual([]);
  });

  test('an issuer with escaped slashes, white space, and a payload that is not ASCII', async () => {
    const { iss, ...claims } = CLAIMS;
    const issuer = `"iss" : "${iss.replaceAll('/', '\\/')}"`;
    const payload = `{ "name":"Zoë 🎲", ${issuer},${JSON.stringify(claims).slice(1, -1)} }`;
    expect(findBrokenConstraints(r1cs, await createWitness(requestFor(signToken(payload))))).toEqual([]);
  });

  test('a verified email', async () => {
    const request = requestWith(
      { email: 'a@id.example', email_verified: true, iat: undefined },
      { keyClaimName: 'email' },
    );
    expect(findBrokenConstraints(r1cs, await createWitness(request))).toEqual([]);
  });
});

test('both generators write the same witness', async () => {
  const { circuit } = input(requestWith({}));
  const wasmWitness = await generateWitness(locateWasmGenerator(artifacts), circuit);
  expect(wasmWitness.equals(await generateWitness(generator, circuit))).toBe(true);
});

test('no wire can be changed alone, except inverses of zero, which nothing else depends on', async () => {
  const [{ request, key }] = fittingTokens as [(typeof fittingTokens)[0]];
  const witness = await createWitness(request, key);
  const uses = countUses(r1cs);
  const random = mod(BigInt(`0x${'9e3779b97f4a7c15'.repeat(3)}`));
  const changes = [() => 1n, () => -1n, () => random, (value: bigint) => 1n - 2n * value || 2n];
  const free = new Set(changes.flatMap((change) => freeWires(r1cs, uses, witness, change)));
  const names: string[] = [];
  eachSymbol(artifacts.symbols, (name, wire) => {
    if (free.has(wire)) names.push(name);
  });
  expect(names.length).toBeGreaterThanOrEqual(free.size);
  expect(names.filter((name) => !/\.(inverse\[\d+\]|inv)$/.test(name))).toEqual([]);
  // Each of four claims has a closing quote in its name and one in its value, with an inverse for each. The
  // other inverses are in the comparisons within these claims, and in RSA.
  expect(free.size).toBeLessThan(400);
  for (const wire of free) expect(witness[wire]).toBe(0n);
});
