import { resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { LOG_SETTINGS, readLogLevel } from 'sui-enclave-service/env';
import {
  type Env,
  integerBetween,
  readSettings,
  type SettingTable,
  textSetting,
  zeroOrOne,
} from 'sui-enclave-service/settings';
import * as v from 'valibot';
import type { KeyPolicy } from './key.ts';

/** Settings of the backend, which it reads from the environment. */
export interface BackendConfig {
  /** Path of the proving key. */
  readonly zkey: string;
  readonly keyPolicy: KeyPolicy;
  /** Folder of the witness generator. */
  readonly witnessBinaries: string;
  /** Path of the engine's program. */
  readonly engine: string;
  readonly host: string;
  /** Port of the service; with 0, the system chooses a free one, for tests. */
  readonly port: number;
  /** Maximum number of requests that wait while another is processed. */
  readonly queue: number;
  /** Time limit in milliseconds that applies to the witness, to the proof, and to each wait before them. */
  readonly timeoutMs: number;
  readonly logLevel: string;
  /** Port of the metrics on loopback; undefined if none are served. */
  readonly metricsPort: number | undefined;
}

const ENGINE = fileURLToPath(new URL('../../../build/prover/prover', import.meta.url));

/** Settings of the backend. Links in their meanings are relative to `src/prover`. */
export const BACKEND_SETTINGS = {
  ZKEY: {
    schema: textSetting('be the path of the Groth16 proving key'),
    meaning: 'path of the proving key',
  },
  WITNESS_BINARIES: {
    schema: textSetting('be the folder of the witness generator'),
    meaning:
      "folder with `zkLogin` and `zkLogin.dat` (C++), or with circom's `generate_witness.js`, `witness_calculator.js` and `circuit.wasm`, which takes six times as long",
  },
  ZKEY_BLAKE2B: {
    schema: v.pipe(
      textSetting('be the BLAKE2b-512 of the key: 128 hex digits, as b2sum prints them', (text) =>
        /^[0-9a-f]{128}$/i.test(text),
      ),
      v.toLowerCase(),
    ),
    optional: true,
    meaning:
      'the BLAKE2b-512 that the key must have, as `b2sum` prints it; required for a key that is not published',
  },
  ALLOW_INSECURE_DEV_KEY: {
    schema: zeroOrOne,
    default: '0',
    meaning: '`1` allows a development key, for which anyone can forge proofs',
  },
  PROVER_ENGINE: {
    schema: v.string(),
    optional: true,
    meaning:
      'path of the [engine](native/README.md). If it is not set, the backend runs `build/prover/prover` of this repository',
  },
  HOST: {
    schema: v.string(),
    default: '127.0.0.1',
    meaning: 'the address to listen on; `0.0.0.0` in a container',
  },
  PORT: { schema: integerBetween(0, 65_535), default: '8080', meaning: 'the port' },
  QUEUE: {
    schema: integerBetween(0, 1000),
    default: '16',
    meaning:
      'maximum number of requests that wait for the request in progress. A front end refuses requests earlier, by its `ANSWER_SECONDS`: this limit is for other callers',
  },
  PROVER_TIMEOUT: {
    schema: integerBetween(1, 3600),
    default: '60',
    meaning:
      'time limit in seconds of a witness, of a proof, and of the wait before each. A process that takes longer is killed',
  },
  METRICS_PORT: {
    schema: integerBetween(0, 65_535),
    optional: true,
    meaning: 'the port on 127.0.0.1 for [metrics](#metrics), at `/metrics`',
  },
  ...LOG_SETTINGS,
} as const satisfies SettingTable;

/**
 * Reads the settings of the backend.
 *
 * @throws ConfigError, which names the setting and its valid values, and does not repeat its value
 */
export function readBackendConfig(env: Env): BackendConfig {
  const settings = readSettings(BACKEND_SETTINGS, env);
  return {
    zkey: resolve(settings.ZKEY),
    keyPolicy: { pinned: settings.ZKEY_BLAKE2B, allowDevelopment: settings.ALLOW_INSECURE_DEV_KEY },
    witnessBinaries: resolve(settings.WITNESS_BINARIES),
    engine: resolve(settings.PROVER_ENGINE ?? ENGINE),
    host: settings.HOST,
    port: settings.PORT,
    queue: settings.QUEUE,
    timeoutMs: 1000 * settings.PROVER_TIMEOUT,
    logLevel: readLogLevel(env),
    metricsPort: settings.METRICS_PORT,
  };
}
