/**
 * `sui-enclave check_locks`: fetches every locked file into the cache. A version that is no longer available
 * is then noticed before a build needs it.
 */
import { quantity } from 'sui-enclave/wording';
import { command, runAsProcess } from 'sui-enclave-cli/command';
import { path } from 'sui-enclave-cli/values';
import { fetchAll } from './fetch.ts';
import { readLock } from './lock.ts';
import { findMirrors } from './mirrors.ts';

export const main = command({
  name: 'check_locks',
  purpose:
    'Downloads every file of the lock files into the cache. So you notice before a build if a version is no longer available.',
  example: 'debian.lock.json',
  arguments: { lock: { schema: path, repeated: true, optional: true } },
  options: {
    cache: {
      value: '<folder>',
      help: 'the cache of downloaded packages',
      schema: path,
      default: 'build/packages',
    },
  },
  async run({ args: { lock: paths }, options }, { env, io }) {
    const mirrors = findMirrors(env);
    const locks: { path: string; files: number }[] = [];
    for (const file of paths) {
      const lock = readLock(file);
      const files = await fetchAll([...lock.packages, ...lock.sources], lock, mirrors, options.cache);
      locks.push({ path: file, files: files.length });
      io.log(`${file}: ${quantity(files.length, 'file')} found`);
    }
    return { json: { locks } };
  },
});

if (import.meta.main) await runAsProcess(main);
