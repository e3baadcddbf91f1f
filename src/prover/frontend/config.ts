/** Reads the settings of the front end from the environment and the command line. */

import { ConfigError } from 'sui-enclave/errors';
import { isProvable } from 'sui-enclave/token/claims';
import { PROVIDERS, type Provider } from 'sui-enclave/token/providers';
import { CORS_SETTINGS, LOG_SETTINGS, readLogLevel } from 'sui-enclave-service/env';
import type { Origins } from 'sui-enclave-service/http/cors';
import type { Limits } from 'sui-enclave-service/limits';
import { clientEntry, parseClients } from 'sui-enclave-service/oidc/clients';
import type { AcceptedClient } from 'sui-enclave-service/oidc/verify';
import {
  acceptOneOf,
  type Env,
  integerBetween,
  readSettings,
  type SettingTable,
  textSetting,
  zeroOrOne,
} from 'sui-enclave-service/settings';
import * as v from 'valibot';
import { type CircuitProfile, PROFILES } from '../profile.ts';
import { type LineName, readDebug } from './debug.ts';
import { type Keys, type NetworkName, readKeys } from './keys.ts';

/** A client for which the front end makes proofs, or all clients of an issuer. */
export interface ProverClient extends AcceptedClient {
  readonly jwksUrl: URL;
}

export interface FrontendConfig {
  readonly host: string;
  readonly port: number;
  readonly logLevel: string;
  readonly isLogged: (name: LineName) => boolean;
  readonly corsOrigins: '*' | Origins;
  readonly limits: Limits;
  /** Maximum number of requests of one user that reach the backend in a minute. */
  readonly userRequestsPerMinute: number;
  /** URL at which the backend accepts inputs of the circuit. */
  readonly backend: URL;
  readonly timeoutSeconds: number;
  /** Time limit in seconds of a request that is not refused immediately. */
  readonly answerSeconds: number;
  /** Assumed duration of a proof on a backend in seconds, until the first proof was measured. */
  readonly proofSeconds: number;
  readonly keys: Keys;
  readonly profile: CircuitProfile;
  readonly clients: readonly ProverClient[];
  /** Whether CLIENTS is not set, so that every client of the issuers in `clients` is accepted. */
  readonly acceptsAnyClient: boolean;
  /** Port of the metrics on loopback; undefined if none are served. */
  readonly metricsPort: number | undefined;
}

/**
 * Maximum size of a request in bytes. A request has about 3 KB: a token of at most 2 KB, and five short
 * properties.
 */
const BODY_LIMIT_BYTES = 16 * 1024;
const MAX_CONNECTIONS = 1024;
/** Default of ANSWER_SECONDS, in seconds. */
const ANSWER_SECONDS = 12;
/**
 * Time in milliseconds that a request may take in addition to the call to the backend: to receive its body,
 * fetch the issuer's keys, and check the token.
 */
const MARGIN_MS = 25_000;

/** Settings of the front end. Links in their meanings are relative to `src/prover`. */
export const FRONTEND_SETTINGS = {
  PROVER_URI: {
    schema: v.pipe(
      textSetting(
        'be the URL at which the backend takes inputs, with its path: for example http://backend:8080/input',
        isInputUrl,
      ),
      v.transform((text) => new URL(text)),
    ),
    meaning:
      'the URL at which the backend accepts inputs, with its path: `http://backend:8080/input`. Inputs are private: keep this connection within your network, or use https',
  },
  PROVER_PORT: {
    schema: integerBetween(0, 65_535),
    default: '8080',
    meaning: 'the port; also the first argument of the command',
  },
  HOST: {
    schema: v.string(),
    default: '127.0.0.1',
    meaning: 'the address to listen on; `0.0.0.0` in a container',
  },
  PROVER_TIMEOUT: {
    schema: integerBetween(1, 3600),
    default: '15',
    meaning: 'time limit in seconds of the call to the backend, including the wait in its queue',
  },
  ANSWER_SECONDS: {
    schema: integerBetween(1, 3600),
    optional: true,
    meaning:
      'time limit in seconds of a request, at most `PROVER_TIMEOUT`. If it is not set, the limit is 12, or ' +
      '`PROVER_TIMEOUT` if that is less. A request that would wait longer is refused at once with ' +
      '`PROVER_BUSY`, before its token is read. An admitted request takes longer only if an engine or a ' +
      'witness generator fails, and at most `PROVER_TIMEOUT`. If the engine hangs during a proof, the ' +
      'request is sent again only if the remaining time is enough for the proofs of all other admitted ' +
      'requests and for its own proof',
  },
  PROOF_SECONDS: {
    schema: integerBetween(1, 3600),
    default: '2',
    meaning:
      'duration in seconds of a proof with its witness, divided by the number of backends. It is an estimate for the start, which the durations of the last ten proofs replace',
  },
  VERIFYING_KEY: {
    schema: v.string(),
    default: 'main',
    meaning: '`main` (mainnet and testnet), `test` (devnet), or the path of a `vkey.json` of snarkjs',
  },
  ALLOW_INSECURE_DEV_KEY: {
    schema: zeroOrOne,
    default: '0',
    meaning: '`1` allows a verifying key that is not published, for development',
  },
  CIRCUIT_SIZE: {
    schema: acceptOneOf('full', 'small'),
    default: 'full',
    meaning: '`small` for the small development circuit',
  },
  CLIENTS: {
    schema: v.string(),
    optional: true,
    meaning:
      'the accepted clients, as JSON: `[{"issuer": "https://accounts.google.com", "client_id": "<yours>"}]`, as in [`SALT_CLIENTS`](../apps/salt/README.md#environment) without `seed`, including `presenters`, and `jwks_url` for other issuers. By default, every client of the network\'s known issuers is accepted',
  },
  CORS_ORIGINS: { ...CORS_SETTINGS.CORS_ORIGINS, default: 'none' },
  DEBUG: {
    schema: v.string(),
    default: '',
    meaning:
      'names of the log lines to write: `zkLogin:info` (outcome and times of each request), `jwks` (requests for keys), or `*` for both. No line contains a token, claim, salt or randomness',
  },
  ...LOG_SETTINGS,
  USER_REQUESTS_PER_MINUTE: {
    schema: integerBetween(1, 10_000),
    default: '10',
    meaning: 'maximum number of requests of one user in a minute',
  },
  MAX_CONCURRENT_REQUESTS: {
    schema: integerBetween(1, 100_000),
    default: '256',
    meaning:
      "maximum number of requests in progress. A request that only waits for the proof of an identical request, or for an issuer's keys that another request fetches, does not count. At most 256 requests wait in this way, and at most 128 of them for the same proof or keys",
  },
  METRICS_PORT: {
    schema: integerBetween(0, 65_535),
    optional: true,
    meaning: 'the port on 127.0.0.1 for [metrics](#metrics), at `/metrics`',
  },
  NODE_ENV: {
    schema: v.string(),
    default: '',
    meaning: 'accepted and ignored: the service always runs as in production',
  },
} as const satisfies SettingTable;

/**
 * Reads the settings of the front end.
 *
 * @param arguments_ arguments of the command line: none, or the port
 * @throws ConfigError, which names the setting and its valid values
 */
export function readFrontendConfig(env: Env, arguments_: readonly string[] = []): FrontendConfig {
  if (env['NODE_TLS_REJECT_UNAUTHORIZED'] === '0') {
    throw new ConfigError(
      'NODE_TLS_REJECT_UNAUTHORIZED must not be 0: anyone could impersonate an issuer. For your own certificate authority, set NODE_EXTRA_CA_CERTS',
    );
  }
  const settings = readSettings(FRONTEND_SETTINGS, withPort(env, arguments_));
  const timeoutSeconds = settings.PROVER_TIMEOUT;
  const answerSeconds = settings.ANSWER_SECONDS ?? Math.min(ANSWER_SECONDS, timeoutSeconds);
  if (answerSeconds > timeoutSeconds) {
    throw new ConfigError(
      'ANSWER_SECONDS must be at most PROVER_TIMEOUT, which ends the call to the backend',
    );
  }
  const keys = readKeys(settings.VERIFYING_KEY, settings.ALLOW_INSECURE_DEV_KEY);
  const clients = readClients(settings.CLIENTS, keys.own.network);
  return {
    host: settings.HOST,
    port: settings.PROVER_PORT,
    logLevel: readLogLevel(env),
    isLogged: readDebug(settings.DEBUG),
    corsOrigins: settings.CORS_ORIGINS,
    limits: {
      bodyLimitBytes: BODY_LIMIT_BYTES,
      maxConcurrentRequests: settings.MAX_CONCURRENT_REQUESTS,
      maxConnections: MAX_CONNECTIONS,
      requestTimeoutMs: timeoutSeconds * 1000 + MARGIN_MS,
    },
    userRequestsPerMinute: settings.USER_REQUESTS_PER_MINUTE,
    backend: settings.PROVER_URI,
    timeoutSeconds,
    answerSeconds,
    proofSeconds: settings.PROOF_SECONDS,
    keys,
    profile: chooseProfile(settings.CIRCUIT_SIZE, keys.own.network),
    clients,
    metricsPort: settings.METRICS_PORT,
    acceptsAnyClient: clients.every(({ clientId }) => clientId === undefined),
  };
}

/** Adds the port of the command line to the environment. The command line takes precedence. */
function withPort(env: Env, arguments_: readonly string[]): Env {
  if (arguments_.length > 1) {
    throw new ConfigError(
      'the command line takes one argument, the port: set everything else in the environment',
    );
  }
  const [portArgument] = arguments_;
  return portArgument === undefined ? env : { ...env, PROVER_PORT: portArgument };
}

function isInputUrl(text: string): boolean {
  const url = URL.parse(text);
  // The path must be valid for requests to an upstream.
  const isPath = url && /^\/[^/]/.test(url.pathname) && !url.search.includes('\\');
  return Boolean(isPath && /^https?:$/.test(url.protocol) && !url.username && !url.password && !url.hash);
}

function chooseProfile(size: 'full' | 'small', network: NetworkName): CircuitProfile {
  if (size === 'small' && network !== 'development') {
    throw new ConfigError(
      'CIRCUIT_SIZE=small is for a development key: the published keys are for the full size',
    );
  }
  return PROFILES[size];
}

function readClients(json: string | undefined, network: NetworkName): ProverClient[] {
  if (json === undefined) return knownIssuers(network);
  const clients = parseClients('CLIENTS', json, v.strictObject(clientEntry(isProvable)), SHAPE).map(
    ({ client }) => client,
  );
  const names = clients.map(({ issuer, clientId }) => JSON.stringify([issuer, clientId]));
  const repeatedIndex = names.findIndex((name, index) => names.indexOf(name) < index);
  if (repeatedIndex !== -1) {
    throw new ConfigError(
      `CLIENTS, entry ${repeatedIndex}: repeats the issuer and client id of an earlier entry`,
    );
  }
  return clients;
}

const SHAPE = '{"issuer": string, "client_id": string}';

/**
 * Returns the providers whose tokens at least one of the key's networks accepts, each with all of its
 * clients.
 */
function knownIssuers(network: NetworkName): ProverClient[] {
  const providers: readonly Provider[] = Object.values(PROVIDERS);
  const networks =
    network === 'mainnet and testnet' ? (['mainnet', 'testnet'] as const) : (['devnet'] as const);
  return providers
    .filter((provider) => networks.some((network) => provider.networks.includes(network)))
    .map(({ issuer, jwksUrl }) => ({ issuer, presenters: [], jwksUrl: new URL(jwksUrl) }));
}
