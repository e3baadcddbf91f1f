/** Keeps the seed of `make dev-wallet` between starts, so that a user keeps the same address. */
import { randomBytes, randomUUID } from 'node:crypto';
import { linkSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { ConfigError } from 'sui-enclave/errors';
import { DEVELOPMENT_SEED_MARK } from 'sui-enclave-service/salt_seeds';

type Env = Readonly<Record<string, string | undefined>>;

/** Returns the folder of the seed, in the user's cache. */
export function seedFolder(env: Env): string {
  return join(env['XDG_CACHE_HOME'] || join(env['HOME'] || homedir(), '.cache'), 'sui-enclave', 'dev-wallet');
}

/**
 * Reads the seed in this folder, and creates both if they are missing. The file marks the seed as one
 * for development, so that the salt service refuses it.
 *
 * @returns 64 hexadecimal digits, without that mark
 * @throws ConfigError if others can read the folder or the file, or if the file does not hold such a seed
 */
export function developmentSeed(folder: string): string {
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  requirePrivate(folder, 'chmod 700');
  const file = join(folder, 'seed');
  if (!statSync(file, { throwIfNoEntry: false })) writeSeed(folder, file);
  requirePrivate(file, 'chmod 600');
  const text = readFileSync(file, 'utf8');
  const seed = text.startsWith(DEVELOPMENT_SEED_MARK) ? text.slice(DEVELOPMENT_SEED_MARK.length).trim() : '';
  if (/^[0-9a-f]{64}$/.test(seed)) return seed;
  // The message does not quote the content, which may be a real seed.
  throw new ConfigError(
    `${file} does not hold a seed of make dev-wallet: delete it for a new seed, which gives all users other addresses`,
  );
}

function requirePrivate(path: string, remedy: string): void {
  if ((statSync(path).mode & 0o077) === 0) return;
  throw new ConfigError(`others have access to ${path}: ${remedy}, or delete it for a new seed`);
}

/** Writes the file in such a way that it is complete or absent at any time. */
function writeSeed(folder: string, file: string): void {
  const temporaryFile = join(folder, `seed.${randomUUID()}`);
  const text = `${DEVELOPMENT_SEED_MARK}${randomBytes(32).toString('hex')}\n`;
  writeFileSync(temporaryFile, text, { mode: 0o600, flag: 'wx' });
  try {
    linkSync(temporaryFile, file);
  } catch (error) {
    // Another command has written its own seed in the meantime, which is kept.
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
  } finally {
    rmSync(temporaryFile);
  }
}
