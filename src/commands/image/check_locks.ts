/** `make check-locks`: fetches every locked file into the cache, to find versions that are gone before a build does. */
import { quantity } from 'sui-enclave/errors';
import { command, runAsProcess } from '../command.ts';
import { fetchAll } from './fetch.ts';
import { readLock } from './lock.ts';
import { findMirrors } from './mirrors.ts';

export const main = command({
  usage: 'usage: node src/commands/image/check_locks.ts [--cache build/packages] <lock file>...',
  options: { cache: { type: 'string', default: 'build/packages' } },
  repeats: true,
  async run({ values, positionals }, { env, io }) {
    const mirrors = findMirrors(env);
    const locks: { path: string; files: number }[] = [];
    for (const path of positionals) {
      const lock = readLock(path);
      const files = await fetchAll([...lock.packages, ...lock.sources], lock, mirrors, values.cache);
      locks.push({ path, files: files.length });
      io.log(`${path}: ${quantity(files.length, 'file')} found`);
    }
    return { json: { locks } };
  },
});

if (import.meta.main) await runAsProcess(main);
