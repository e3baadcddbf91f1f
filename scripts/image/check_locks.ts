/**
 * `make check-locks`: fetches every locked file into the cache, so that a version that is gone shows before a
 * build is begun.
 */
import { parseArgs } from 'node:util';
import { runMain } from '../command.ts';
import { fetchAll } from './fetch.ts';
import { readLock } from './lock.ts';
import { findMirrors } from './mirrors.ts';

async function main(): Promise<void> {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: { cache: { type: 'string', default: 'build/packages' } },
  });
  const mirrors = findMirrors(process.env);
  for (const path of positionals) {
    const lock = readLock(path);
    const files = await fetchAll([...lock.packages, ...lock.sources], lock, mirrors, values.cache);
    console.log(`${path}: ${files.length} files are there`);
  }
}

await runMain(main);
