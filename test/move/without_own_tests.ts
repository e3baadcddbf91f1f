import { readdirSync, readFileSync } from 'node:fs';
import type { Sources } from '../../src/toolchain/move/packages.ts';

const MOVE = new URL('../../move/', import.meta.url);

/**
 * Returns files for the `extra` of `testPackage` that leave out the package's own tests, which
 * `packages.test.ts` runs. An empty file replaces each file with tests. Modules that help tests stay, as do
 * tests for the Sui CLI.
 */
export function withoutOwnTests(name: string): Sources {
  const folder = new URL(`${name}/tests/`, MOVE);
  const files = readdirSync(folder).filter((file) => !file.endsWith('_cli_tests.move'));
  const withTests = files.filter((file) => /#\[test[\],]/.test(readFileSync(new URL(file, folder), 'utf8')));
  return Object.fromEntries(withTests.map((file) => [`tests/${file}`, '']));
}
