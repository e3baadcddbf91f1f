import { bn254_Fr } from '@noble/curves/bn254.js';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { checkInput, countSignals } from '../../../../src/prover/backend/signals.ts';
import { PROFILES } from '../../../../src/prover/profile.ts';
import { createInput } from './support.ts';

const refusal = (message: string | RegExp) =>
  expect.objectContaining({ code: 'BACKEND_INPUT', status: 400, message: expect.stringMatching(message) });
const { circuit } = createInput(5);
const check = (input: unknown) => () => checkInput(input, 'small');

describe.each(['small', 'full'] as const)('an input of %s size', (size) => {
  const { circuit } = createInput(5, size);

  test('has exactly the required signals if buildInput made it', () => {
    expect(checkInput(JSON.parse(JSON.stringify(circuit)), size)).toEqual(circuit);
    const counts = Object.entries(circuit).map(([name, value]) => [
      name,
      Array.isArray(value) ? value.length : 1,
    ]);
    expect(countSignals(PROFILES[size])).toEqual(Object.fromEntries(counts));
  });

  test('is refused by a service of the other size, which names its own size', () => {
    const otherSize = size === 'small' ? 'full' : 'small';
    expect(() => checkInput(circuit, otherSize)).toThrow(
      refusal(new RegExp(`^padded_unsigned_jwt must be a list of .* circuit of ${otherSize} size$`)),
    );
  });
});

test('the full size has the 2,082 private inputs and one public input of the production circuit', () => {
  const counts = Object.values(countSignals(PROFILES.full));
  expect(counts.reduce((sum, count) => sum + count, 0)).toBe(2083);
});

describe('an input is refused, with the name of the signal and never its value, if', () => {
  test.each(Object.keys(circuit))('%s is missing', (name) => {
    const { [name]: _, ...otherSignals } = circuit;
    expect(check(otherSignals)).toThrow(refusal(`^the signal ${name} is missing$`));
  });

  test.each([
    ['it is null', null],
    ['it is a list', [circuit]],
    ['it is text', 'input'],
    ['it is a number', 5],
  ])('%s', (_, input) => {
    expect(check(input)).toThrow(refusal('must be an object'));
  });

  test('it has an additional signal of any name', () => {
    for (const name of ['sub', '__proto__', 'constructor', 'toString', '']) {
      const extended = JSON.parse(`{"${name}":"987654321",${JSON.stringify(circuit).slice(1)}`);
      expect(check(extended), name).toThrow(refusal('^the input has an unknown signal: pass only'));
    }
  });

  test('it inherits a signal from its prototype', () => {
    const { salt: _, ...otherSignals } = circuit;
    expect(check(Object.assign(Object.create({ salt: '5' }), otherSignals))).toThrow(
      refusal('^the signal salt is missing$'),
    );
  });

  test.each<[string, unknown]>([
    ['a number', 987654321],
    ['a negative number', '-987654321'],
    ['hex', '0x987654321'],
    ['a fraction', '987654321.5'],
    ['an exponent', '987654321e1'],
    ['padded with zeros', '0987654321'],
    ['padded with white space', ' 987654321'],
    ['followed by a new line', '987654321\n'],
    ['empty', ''],
    ['null', null],
    ['a list', ['987654321']],
    ['the order of the field', String(bn254_Fr.ORDER)],
    ['larger than the order', String(bn254_Fr.ORDER + 987654321n)],
    ['a million digits', '987654321'.repeat(111_112)],
  ])('a value is %s', (_, value) => {
    for (const [changed, name] of [
      [{ salt: value }, 'salt'],
      [{ eph_public_key: ['1', value] }, 'eph_public_key\\[1\\]'],
    ] as const) {
      const input = { ...circuit, ...changed };
      expect(check(input)).toThrow(refusal(`^${name} must be an integer below the order of BN254`));
      expect(check(input)).not.toThrow(/987654321/);
    }
  });

  test('a list is shorter, longer, sparse, or not a list', () => {
    const list = circuit['signature'] as string[];
    for (const value of [list.slice(1), [...list, '0'], { ...list, length: 32 }, list[0], []]) {
      expect(check({ ...circuit, signature: value })).toThrow(
        refusal('^signature must be a list of 32 items'),
      );
    }
    expect(check({ ...circuit, signature: new Array(32) })).toThrow(refusal('^signature\\[0\\] must be'));
  });
});

test('a number is accepted only if it is an element of the field', () => {
  fc.assert(
    fc.property(fc.bigInt({ min: 0n, max: 2n ** 256n }), (value) => {
      const run = check({ ...circuit, salt: String(value) });
      if (value < bn254_Fr.ORDER) expect(run).not.toThrow();
      else expect(run).toThrow(refusal('^salt must be'));
    }),
    {
      numRuns: 50,
      examples: [[bn254_Fr.ORDER - 1n], [bn254_Fr.ORDER], [0n], [10n ** 76n], [10n ** 76n - 1n]],
    },
  );
});
