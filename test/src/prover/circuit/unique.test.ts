/** Tests the static check, which finds every wire that the inputs do not determine. */
import { describe, expect, test } from 'vitest';
import { P, type R1cs } from './r1cs.ts';
import { type Lemma, undetermined } from './unique.ts';

type Part = Record<number, bigint>;

/** Makes a system in which wire 0 is 1, wire 1 the public input, and wire 2 the private input. */
function createSystem(constraints: readonly [Part, Part, Part][]): R1cs {
  const terms = constraints
    .flat()
    .map((part) => Object.entries(part).map(([wire, value]) => ({ wire: Number(wire), value })));
  const allTerms = terms.flat();
  const starts = [0];
  for (const part of terms) starts.push((starts.at(-1) as number) + part.length);
  return {
    wires: Math.max(...allTerms.map(({ wire }) => wire)) + 1,
    constraints: constraints.length,
    publicInputs: 1,
    privateInputs: 1,
    starts: Uint32Array.from(starts),
    termWires: Uint32Array.from(allTerms, ({ wire }) => wire),
    termCoefficients: Uint32Array.from(allTerms, (_, index) => index),
    coefficients: allTerms.map(({ value }) => ((value % P) + P) % P),
  };
}

const bit = (wire: number): [Part, Part, Part] => [{ [wire]: 1n }, { 0: -1n, [wire]: 1n }, {}];
const findUndetermined = (constraints: readonly [Part, Part, Part][], lemmas: readonly Lemma[] = []) =>
  undetermined(createSystem(constraints), lemmas);

describe('undetermined() counts as determined', () => {
  test('a product', () => {
    expect(findUndetermined([[{ 1: 1n }, { 2: 1n }, { 3: 1n }]])).toEqual([]);
  });

  test('the last wire of a linear constraint, in any order of the constraints', () => {
    expect(
      findUndetermined([
        [{}, {}, { 3: 1n, 4: -2n }],
        [{}, {}, { 1: 1n, 3: 1n }],
      ]),
    ).toEqual([]);
  });

  test('the bits of a number', () => {
    expect(findUndetermined([bit(3), bit(4), bit(5), [{}, {}, { 2: -1n, 3: 1n, 4: 2n, 5: 4n }]])).toEqual([]);
  });

  test('the wires that a lemma gives, once the wires that it needs are determined', () => {
    const lemma = { needs: [3], gives: [4] };
    const used: [Part, Part, Part] = [{ 4: 1n }, { 1: 1n }, { 2: 1n }];
    expect(findUndetermined([[{ 1: 1n }, { 2: 1n }, { 3: 1n }], used], [lemma])).toEqual([]);
    expect(findUndetermined([[{ 3: 1n }, { 3: 1n }, { 2: 1n }], used], [lemma])).toEqual([3, 4]);
  });
});

describe('undetermined() reports', () => {
  test('a factor, since the other factor may be zero', () => {
    expect(findUndetermined([[{ 1: 1n }, { 3: 1n }, { 2: 1n }]])).toEqual([3]);
  });

  test('a square root', () => {
    expect(findUndetermined([[{ 3: 1n }, { 3: 1n }, { 2: 1n }]])).toEqual([3]);
  });

  test('a digit that is not a bit', () => {
    expect(findUndetermined([bit(3), bit(4), [{}, {}, { 2: -1n, 3: 1n, 4: 2n, 5: 4n }]])).toEqual([3, 4, 5]);
    const doubled: [Part, Part, Part] = [{ 5: 1n }, { 0: -2n, 5: 1n }, {}];
    expect(findUndetermined([bit(3), bit(4), doubled, [{}, {}, { 2: -1n, 3: 1n, 4: 2n, 5: 4n }]])).toEqual([
      3, 4, 5,
    ]);
  });

  test('bits if two different subsets of them have the same sum', () => {
    expect(findUndetermined([bit(3), bit(4), bit(5), [{}, {}, { 2: -1n, 3: 1n, 4: 2n, 5: 3n }]])).toEqual([
      3, 4, 5,
    ]);
    expect(findUndetermined([bit(3), bit(4), [{}, {}, { 2: -1n, 3: 1n, 4: -1n }]])).toEqual([3, 4]);
  });

  test("bits whose sum can exceed the field's order, such as 254 bits without a further check", () => {
    const wires = Array.from({ length: 254 }, (_, i) => i + 3);
    const sum = Object.fromEntries(wires.map((wire, i) => [wire, 1n << BigInt(i)]));
    expect(findUndetermined([...wires.map(bit), [{}, {}, { 2: -1n, ...sum }]])).toEqual(wires);
    const fewer = Object.fromEntries(wires.slice(0, 252).map((wire, i) => [wire, 1n << BigInt(i)]));
    expect(findUndetermined([...wires.slice(0, 252).map(bit), [{}, {}, { 2: -1n, ...fewer }]])).toEqual([]);
  });
});
