/** Builds the emulator of the boot test. */
import { createHash } from 'node:crypto';
import {
  copyFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
} from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { makeBase } from '../../../src/toolchain/image/base.ts';
import { buildContainer } from '../../../src/toolchain/image/container.ts';
import { fetchAll } from '../../../src/toolchain/image/fetch.ts';
import { readLock } from '../../../src/toolchain/image/lock.ts';
import { findMirrors } from '../../../src/toolchain/image/mirrors.ts';

const ROOT = fileURLToPath(new URL('../../..', import.meta.url));
const LOCKS = ['enclave/debian.lock.json', 'test/e2e/boot/emulator.lock.json'].map((path) =>
  join(ROOT, path),
);
const RECIPE = ['Containerfile', 'emulator.sh'].map((name) => join(ROOT, 'test/e2e/boot', name));

/**
 * Builds the emulator, or finds it in the cache, by the hash of everything that it is built from.
 *
 * @returns its folder
 */
export async function findEmulator(cache: string): Promise<string> {
  const hash = createHash('sha256');
  for (const path of [...LOCKS, ...RECIPE]) hash.update(readFileSync(path)).update('\0');
  const target = join(cache, `emulator-${hash.digest('hex').slice(0, 16)}`);
  if (!existsSync(target)) await build(cache, target);
  return target;
}

async function build(cache: string, target: string): Promise<void> {
  mkdirSync(cache, { recursive: true });
  const dir = mkdtempSync(join(cache, 'emulator-build-'));
  try {
    const packages = join(cache, 'packages');
    await makeBase(LOCKS, join(dir, 'base.tar'), packages);
    const lock = readLock(LOCKS[1] as string);
    const [source] = await fetchAll(lock.sources, lock, findMirrors(process.env), packages);
    copyFileSync(source as string, join(dir, 'qemu.tar.xz'));
    for (const path of RECIPE) cpSync(path, join(dir, path.slice(path.lastIndexOf('/') + 1)));
    const output = join(dir, 'out');
    mkdirSync(output);
    // Cached layers would occupy a gigabyte that is never used again. The output is cached instead.
    buildContainer({ file: join(dir, 'Containerfile'), context: dir, args: {}, output, fresh: true });
    renameSync(output, target);
  } finally {
    rmSync(dir, { recursive: true });
  }
}
