/** Hashes the proving key's file, keeps it open, and approves the key before its first proof. */
import { createHash } from 'node:crypto';
import { type BigIntStats, closeSync, createReadStream, fstatSync, openSync, statSync } from 'node:fs';
import { ConfigError } from 'sui-enclave/errors';
import type { LoadedKey } from '../engine.ts';
import { KNOWN_KEYS, type KnownKey } from '../keys/known.ts';

const CHUNK = 1024 * 1024;

/**
 * An open key. It stays open as long as the service runs, and workers inherit the descriptor. So if another
 * file is renamed to the key's path later, that file is never loaded. If the file is overwritten in place,
 * `requireSame` notices it after each load.
 */
export class KeyFile {
  readonly path: string;
  readonly descriptor: number;
  #stamp: string;
  #hash: string | undefined;

  /** @throws ConfigError */
  constructor(path: string) {
    this.path = path;
    this.descriptor = open(path);
    this.#stamp = readStamp(this.descriptor);
  }

  /** Returns the BLAKE2b-512 of the whole file in hex, which is computed once. @throws ConfigError */
  async hash(): Promise<string> {
    this.#hash ??= await computeHash(this.path, this.descriptor);
    return this.#hash;
  }

  /** @throws ConfigError if the file's content has changed since it was hashed */
  async requireSame(): Promise<void> {
    const first = await this.hash();
    const stamp = readStamp(this.descriptor);
    if (stamp === this.#stamp) return;
    if ((await computeHash(this.path, this.descriptor)) !== first) {
      throw new ConfigError(`ZKEY: ${this.path} was changed while in use: restart the service`);
    }
    this.#stamp = stamp;
  }

  close(): void {
    closeSync(this.descriptor);
  }
}

function open(path: string): number {
  try {
    // The type is checked before opening, since opening a pipe would wait for its other end.
    if (!statSync(path).isFile()) throw new ConfigError(`ZKEY: ${path} is not a regular file`);
    return openSync(path, 'r');
  } catch (cause) {
    if (cause instanceof ConfigError) throw cause;
    throw new ConfigError(`ZKEY: ${path} can't be read: ${(cause as NodeJS.ErrnoException).code}`, { cause });
  }
}

/** Returns a text that differs after each change of the content. Other changes may affect it too. */
function readStamp(descriptor: number): string {
  const { dev, ino, size, mtimeNs, ctimeNs }: BigIntStats = fstatSync(descriptor, { bigint: true });
  return [dev, ino, size, mtimeNs, ctimeNs].join();
}

async function computeHash(path: string, fd: number): Promise<string> {
  const hash = createHash('blake2b512');
  try {
    // The stream starts at 0. So it does not matter that workers share the descriptor, and with it the
    // position.
    const stream = createReadStream('', { fd, start: 0, autoClose: false, highWaterMark: CHUNK });
    for await (const chunk of stream) hash.update(chunk);
  } catch (cause) {
    throw new ConfigError(`ZKEY: ${path} can't be read: ${(cause as NodeJS.ErrnoException).code}`, { cause });
  }
  return hash.digest('hex');
}

/** An approved key, as /healthz shows it. */
export interface ApprovedKey {
  readonly blake2b: string;
  /** Network that accepts the key's proofs. `unknown` means that the operator pinned the key by its hash. */
  readonly network: KnownKey['network'] | 'development' | 'unknown';
  readonly development: boolean;
  readonly publicInputs: number;
}

export interface KeyPolicy {
  /** Hash in hex that the key must have; undefined if the operator pinned none. */
  readonly pinned: string | undefined;
  readonly allowDevelopment: boolean;
}

/**
 * Approves a key that the engine has loaded, or refuses it.
 *
 * @param blake2b BLAKE2b-512 of the key in hex
 * @throws ConfigError that says which setting to change
 */
export function approveKey(blake2b: string, loaded: LoadedKey, policy: KeyPolicy): ApprovedKey {
  const { public: publicInputs, development } = loaded;
  if (publicInputs !== 1) {
    throw new ConfigError(
      `ZKEY: the key has ${publicInputs} public inputs: a key for zkLogin has exactly one`,
    );
  }
  if (policy.pinned !== undefined && policy.pinned !== blake2b) {
    throw new ConfigError(
      `ZKEY: the key's BLAKE2b-512 is ${blake2b}, not the one that ZKEY_BLAKE2B requires`,
    );
  }
  const knownKey = KNOWN_KEYS.find((key) => key.blake2b === blake2b);
  if (knownKey) return { blake2b, network: knownKey.network, development: false, publicInputs };
  if (development && !policy.allowDevelopment) {
    throw new ConfigError(
      'ZKEY: this is a development key, for which anyone can forge proofs and which no network accepts: use a published key, or set ALLOW_INSECURE_DEV_KEY=1 for tests',
    );
  }
  if (development) return { blake2b, network: 'development', development, publicInputs };
  if (policy.pinned === undefined) {
    const sizes = KNOWN_KEYS.map(({ name, bytes }) => `${name} has ${bytes} bytes`).join(', ');
    throw new ConfigError(
      `ZKEY: the key is not a published key (${sizes}), and may be a damaged copy. If you want to use it, set ZKEY_BLAKE2B=${blake2b}`,
    );
  }
  return { blake2b, network: 'unknown', development, publicInputs };
}
