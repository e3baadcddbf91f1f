/**
 * Tests that the inputs for recorded real tokens satisfy every constraint, and that a change of any field
 * breaks one. `PROVER_SIZE=full make test-prover -- fields` uses all four tokens and the full circuit.
 */
import { describe, expect, test } from 'vitest';
import { buildInput, type CircuitInput } from '../../../../src/prover/input.ts';
import { PROFILES } from '../../../../src/prover/profile.ts';
import { builtArtifacts, isSize } from '../../../../src/toolchain/prover/artifacts.ts';
import { REAL_TOKENS } from '../support.ts';
import { run } from './generator.ts';
import { findBrokenConstraints, readR1cs, readWitness } from './r1cs.ts';

const size = process.env['PROVER_SIZE'] ?? 'small';
if (!isSize(size)) throw new Error('PROVER_SIZE must be small or full');
const artifacts = builtArtifacts(size);
const r1cs = readR1cs(artifacts.r1cs);

const fittingTokens = REAL_TOKENS.flatMap(({ provider, request, key }) => {
  try {
    return [{ provider, input: buildInput(request, key, PROFILES[size]).circuit }];
  } catch {
    // The token is too long for the small size.
    return [];
  }
});

/** Yields inputs with one change: of each number, and of the first, middle and last element of each list. */
function* listChanges(input: CircuitInput): Generator<[string, CircuitInput]> {
  const increment = (text = '') => String(BigInt(text) + 1n);
  for (const [name, value] of Object.entries(input)) {
    if (typeof value === 'string') {
      yield [name, { ...input, [name]: increment(value) }];
      continue;
    }
    for (const index of new Set([0, value.length >> 1, value.length - 1])) {
      yield [`${name}[${index}]`, { ...input, [name]: value.with(index, increment(value[index])) }];
    }
  }
}

test(`${size === 'full' ? 'all four' : 'two'} of the recorded tokens fit into the circuit`, () => {
  expect(fittingTokens).toHaveLength(size === 'full' ? 4 : 2);
});

describe.each(fittingTokens)('the input for the token of $provider', ({ input }) => {
  test('satisfies every constraint', () => {
    const { witness } = run(input, artifacts);
    expect(findBrokenConstraints(r1cs, readWitness(witness as Buffer))).toEqual([]);
  });

  test('is refused after a change of any field', () => {
    for (const [name, changedInput] of listChanges(input)) {
      expect(run(changedInput, artifacts).refusedBy, name).not.toBeNull();
    }
  });
});
