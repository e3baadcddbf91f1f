/**
 * Tests the lemmas of the static check for this circuit's own gadgets, which no audit covers. Each gadget is
 * compiled alone, and its hints are replaced by all combinations of small numbers. Its constraints must
 * accept only the honest hints.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { compileCircuit } from '../../../../src/toolchain/prover/compile.ts';
import { eachSymbol, findBrokenConstraints, mod, P, type R1cs, readR1cs } from './r1cs.ts';

const ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';

const folder = mkdtempSync(join(tmpdir(), 'prover-test-'));
afterAll(() => rmSync(folder, { recursive: true }));

interface Gadget {
  readonly r1cs: R1cs;
  readonly wires: ReadonlyMap<string, number>;
}

/** Compiles a gadget without optimisation, so that each signal keeps its wire and its name. */
function compileGadget(file: string, component: string): Gadget {
  compileCircuit(folder, `pragma circom 2.1.6;\ninclude "${file}";\ncomponent main = ${component};\n`, [
    '--r1cs',
    '--sym',
    '--O0',
  ]);
  const wires = new Map<string, number>();
  eachSymbol(join(folder, 'circuit.sym'), (name, wire) => wires.set(name.replace('main.', ''), wire));
  return { r1cs: readR1cs(join(folder, 'circuit.r1cs')), wires };
}

/**
 * Solves the constraints for the signal `output`. Returns its value, or undefined if the constraints refuse
 * these signals.
 */
function solveFor({ r1cs, wires }: Gadget, signals: Record<string, number>, output: string) {
  const witness: (bigint | undefined)[] = Array.from({ length: r1cs.wires });
  witness[0] = 1n;
  for (const [name, value] of Object.entries(signals))
    witness[wires.get(name) as number] = mod(BigInt(value));
  while (solveWires(r1cs, witness));
  expect(witness).not.toContain(undefined);
  const complete = witness as bigint[];
  return findBrokenConstraints(r1cs, complete).length === 0
    ? complete[wires.get(output) as number]
    : undefined;
}

/**
 * Computes wires that are the only unknown of a constraint, if they are in C with the coefficient 1 or -1.
 *
 * @returns whether it computed any
 */
function solveWires(
  { constraints, starts, termWires, termCoefficients, coefficients }: R1cs,
  witness: (bigint | undefined)[],
) {
  let hasSolved = false;
  for (let constraint = 0; constraint < constraints; constraint++) {
    const unknownTerms: { wire: number; part: number; coefficient: bigint }[] = [];
    const [a = 0n, b = 0n, c = 0n] = [0, 1, 2].map((part) => {
      let sum = 0n;
      for (
        let term = starts[3 * constraint + part] as number;
        term < (starts[3 * constraint + part + 1] as number);
        term++
      ) {
        const wire = termWires[term] as number;
        const coefficient = coefficients[termCoefficients[term] as number] as bigint;
        const value = witness[wire];
        if (value === undefined) unknownTerms.push({ wire, part, coefficient });
        else sum += value * coefficient;
      }
      return sum;
    });
    const [term, ...otherTerms] = unknownTerms;
    if (term === undefined || otherTerms.length > 0 || term.part !== 2) continue;
    if (term.coefficient !== 1n && term.coefficient !== P - 1n) continue;
    witness[term.wire] = mod((a * b - c) * term.coefficient);
    hasSolved = true;
  }
  return hasSolved;
}

/** Lists every list of `length` numbers from `values`. */
function lists(length: number, values: readonly number[]): number[][] {
  if (length === 0) return [[]];
  return lists(length - 1, values).flatMap((list) => values.map((value) => [...list, value]));
}

const nameElements = (array: string, values: readonly number[]) =>
  Object.fromEntries(values.map((value, i) => [`${array}[${i}]`, value]));

test('Below: accepts only ones followed by zeros, with as many ones as the length says', () => {
  const gadget = compileGadget('select.circom', 'Below(4)');
  for (const below of lists(4, [-2, -1, 0, 1, 2])) {
    const isHonest = below.every((bit, i) => bit === 0 || (bit === 1 && (i === 0 || below[i - 1] === 1)));
    const ones = BigInt(below.filter((bit) => bit === 1).length);
    expect(solveFor(gadget, nameElements('below', below), 'length'), String(below)).toBe(
      isHonest ? ones : undefined,
    );
  }
});

test('OneHot: accepts only a single one, at the index', () => {
  const gadget = compileGadget('select.circom', 'OneHot(4)');
  for (const hot of lists(4, [-2, -1, 0, 1, 2])) {
    const isHonest = hot.toSorted().join() === '0,0,0,1';
    expect(solveFor(gadget, nameElements('hot', hot), 'index'), String(hot)).toBe(
      isHonest ? BigInt(hot.indexOf(1)) : undefined,
    );
  }
});

test('Base64Bits: accepts only the bits that RFC 4648, section 5, gives the character; outside the string, 0 counts as A', () => {
  const gadget = compileGadget('base64.circom', 'Base64Bits(1)');
  for (const bits of lists(6, [-1, 0, 1, 2])) {
    const char = (inside: number) =>
      solveFor(gadget, { ...nameElements('bits', bits), 'inside[0]': inside }, 'chars[0]');
    const isHonest = bits.every((bit) => bit === 0 || bit === 1);
    const expected = isHonest ? BigInt(ALPHABET.charCodeAt(Number.parseInt(bits.join(''), 2))) : undefined;
    expect(char(1), String(bits)).toBe(expected);
    expect(char(0), String(bits)).toBe(expected === undefined ? undefined : mod(expected - 65n));
  }
});
