import { resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { ConfigError } from 'sui-enclave/errors';
import { type Env, flag, integer, readLogLevel, string } from 'sui-enclave-service/env';
import type { KeyPolicy } from './key.ts';

/** The settings of the backend, from the environment. */
export interface BackendConfig {
  /** Path of the proving key. */
  readonly zkey: string;
  readonly keyPolicy: KeyPolicy;
  /** Folder of the witness generator. */
  readonly witnessBinaries: string;
  /** Path of the engine's program. */
  readonly engine: string;
  readonly host: string;
  /** 0: the system chooses a free port (tests). */
  readonly port: number;
  /** How many requests may wait for the one in work. */
  readonly queue: number;
  /** For a witness, for a proof, and for the wait before it begins. */
  readonly timeoutMs: number;
  readonly logLevel: string;
}

const ENGINE = fileURLToPath(new URL('../../../build/prover/prover', import.meta.url));

/** @throws ConfigError that names the variable and what it must be, without repeating its value */
export function readBackendConfig(env: Env): BackendConfig {
  return {
    zkey: required(env, 'ZKEY', 'the path of the Groth16 proving key'),
    keyPolicy: { pinned: readHash(env), allowDevelopment: flag(env, 'ALLOW_INSECURE_DEV_KEY') },
    witnessBinaries: required(env, 'WITNESS_BINARIES', 'the folder of the witness generator'),
    engine: resolve(string(env, 'PROVER_ENGINE') ?? ENGINE),
    host: string(env, 'HOST') ?? '127.0.0.1',
    port: integer(env, 'PORT', { from: 0, to: 65_535, otherwise: 8080 }),
    queue: integer(env, 'QUEUE', { from: 0, to: 1000, otherwise: 4 }),
    timeoutMs: 1000 * integer(env, 'PROVER_TIMEOUT', { from: 1, to: 3600, otherwise: 60 }),
    logLevel: readLogLevel(env),
  };
}

function required(env: Env, name: string, what: string): string {
  const path = string(env, name);
  if (path === undefined) throw new ConfigError(`${name} must be ${what}`);
  return resolve(path);
}

function readHash(env: Env): string | undefined {
  const hash = string(env, 'ZKEY_BLAKE2B')?.toLowerCase();
  if (hash !== undefined && !/^[0-9a-f]{128}$/.test(hash)) {
    throw new ConfigError(
      'ZKEY_BLAKE2B must be the BLAKE2b-512 of the key: 128 hex digits, as b2sum prints them',
    );
  }
  return hash;
}
