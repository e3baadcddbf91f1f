/**
 * Tests that the inputs determine all wires, so that no prover can choose one. If the honest generator's
 * witness for an input breaks a constraint (forgeries.prover.ts), the input therefore has no valid witness.
 */
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { mainComponent, PROFILES } from '../../../../src/prover/profile.ts';
import { computeCircuitHash, defaultCache } from '../../../../src/toolchain/prover/artifacts.ts';
import { buildWhole, compileCircuit, removeOlder } from '../../../../src/toolchain/prover/compile.ts';
import { findLemmas } from './lemmas.ts';
import { eachSymbol, readR1cs } from './r1cs.ts';
import { undetermined } from './unique.ts';

test('the inputs determine every wire, except inverses that nothing else depends on', () => {
  // Fewer blocks use the same templates. Without optimisation, each signal keeps its wire and its name.
  const profile = { ...PROFILES.small, blocks: 4 };
  const folder = join(defaultCache(), 'prover', `plain-circuit-${computeCircuitHash(profile)}`);
  buildWhole(folder, (partial) =>
    compileCircuit(partial, mainComponent(profile), ['--r1cs', '--sym', '--O0']),
  );
  removeOlder(folder);
  const lemmas = findLemmas(join(folder, 'circuit.sym'));
  expect(lemmas.length).toBeGreaterThan(300);
  const r1cs = readR1cs(join(folder, 'circuit.r1cs'));
  const undeterminedWires = new Set(undetermined(r1cs, lemmas));
  const names: string[] = [];
  eachSymbol(join(folder, 'circuit.sym'), (name, wire) => {
    if (undeterminedWires.has(wire)) names.push(name);
  });
  expect(names.length).toBe(undeterminedWires.size);
  expect(names.filter((name) => !/\.(isz\.inv|inverse\[\d+\])$/.test(name))).toEqual([]);
});
