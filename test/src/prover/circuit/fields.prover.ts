/**
 * The inputs built for the given real tokens satisfy every constraint. If any one field is changed, they no
 * longer do. `PROVER_SIZE=full make test-prover -- fields` uses all four tokens, at the production size.
 */
import { describe, expect, test } from 'vitest';
import { buildInput, type CircuitInput } from '../../../../src/prover/input.ts';
import { PROFILES } from '../../../../src/prover/profile.ts';
import { builtArtifacts, isSize } from '../../../../src/toolchain/prover/artifacts.ts';
import { REAL_TOKENS } from '../support.ts';
import { run } from './generator.ts';
import { broken, readR1cs, readWitness } from './r1cs.ts';

const size = process.env['PROVER_SIZE'] ?? 'small';
if (!isSize(size)) throw new Error('PROVER_SIZE must be small or full');
const artifacts = builtArtifacts(size);
const r1cs = readR1cs(artifacts.r1cs);

const fitting = REAL_TOKENS.flatMap(({ provider, request, key }) => {
  try {
    return [{ provider, input: buildInput(request, key, PROFILES[size]).circuit }];
  } catch {
    // The token is too long for the small size.
    return [];
  }
});

/** Lists changed inputs: one for every number, and for the first, middle and last element of every list. */
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

test(`${size === 'full' ? 'all four' : 'two'} of the given tokens fit`, () => {
  expect(fitting).toHaveLength(size === 'full' ? 4 : 2);
});

describe.each(fitting)('the input for the token of $provider', ({ input }) => {
  test('satisfies every constraint', () => {
    const { witness } = run(input, artifacts);
    expect(broken(r1cs, readWitness(witness as Buffer))).toEqual([]);
  });

  test('no longer satisfies them when any one field is changed', () => {
    for (const [name, changed] of listChanges(input)) {
      expect(run(changed, artifacts).refusedBy, name).not.toBeNull();
    }
  });
});
