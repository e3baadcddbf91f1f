/** Compares the prover's READMEs with the code. */
import { existsSync, globSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { PROFILES } from '../../../src/prover/profile.ts';

const root = fileURLToPath(new URL('../../..', import.meta.url));
const read = (path: string) => readFileSync(root + path, 'utf8');
const findAll = (text: string, pattern: RegExp) =>
  [...new Set([...text.matchAll(pattern)].map(([, name]) => name))].sort();

test('every rule of the circuit has forgeries that violate it', () => {
  const rules = findAll(read('src/prover/circuit/README.md'), /^\| (\d+) \|/gm);
  expect(rules).toHaveLength(10);
  expect(findAll(read('test/src/prover/circuit/forgeries.prover.ts'), /'rule (\d+),/g)).toEqual(rules);
});

test('the README names every hint of the circuit', () => {
  const hints = globSync('src/prover/circuit/*.circom', { cwd: root }).flatMap((file) =>
    findAll(read(file), /^\s+(?:signal )?(\w+)(?:\[.*\])? <-- /gm),
  );
  const documentedHints = findAll(read('src/prover/circuit/README.md'), /^\| `\w+\.(\w+)` \|/gm);
  expect(documentedHints).toEqual(hints.sort());
});

test('every link names a file that exists', () => {
  for (const folder of ['src/prover/', 'src/prover/circuit/']) {
    const links = findAll(read(`${folder}README.md`), /\]\(([^)#]+)\)/g);
    for (const link of links) expect(existsSync(root + folder + link), link).toBe(true);
  }
});

test('the full profile has the sizes of the production circuit', () => {
  const { blocks, header, issuerBase64 } = PROFILES.full;
  expect({ blocks, header, issuerBase64 }).toEqual({ blocks: 25, header: 248, issuerBase64: 224 });
});
