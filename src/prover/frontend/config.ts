/** The settings of the front end, from the environment and the command line. */

import { ConfigError } from 'sui-enclave/errors';
import { isProvable } from 'sui-enclave/token/claims';
import { PROVIDERS, type Provider } from 'sui-enclave/token/providers';
import { type Env, flag, integer, readCorsOrigins, readLogLevel, string } from 'sui-enclave-service/env';
import type { Limits } from 'sui-enclave-service/limits';
import { clientEntry, parseClients } from 'sui-enclave-service/oidc/clients';
import type { AcceptedClient } from 'sui-enclave-service/oidc/verify';
import * as v from 'valibot';
import { type CircuitProfile, PROFILES } from '../profile.ts';
import { type LineName, readDebug } from './debug.ts';
import { type Keys, type NetworkName, readKeys } from './keys.ts';

/** A client that the front end makes proofs for, or every client of an issuer. */
export interface ProverClient extends AcceptedClient {
  readonly jwksUrl: URL;
}

export interface FrontendConfig {
  readonly host: string;
  readonly port: number;
  readonly logLevel: string;
  readonly isLogged: (name: LineName) => boolean;
  readonly corsOrigins: '*' | readonly string[];
  readonly limits: Limits;
  /** Requests of one user that may reach the backend in a minute. */
  readonly userRequestsPerMinute: number;
  /** Where the backend takes the inputs of the circuit. */
  readonly backend: URL;
  readonly timeoutSeconds: number;
  readonly keys: Keys;
  readonly profile: CircuitProfile;
  readonly clients: readonly ProverClient[];
  /** Whether CLIENTS is not set, so that every client of `clients`' issuers is accepted. */
  readonly acceptsAnyClient: boolean;
}

/** A request is about 3 KB: a token of at most 2 KB, and five short properties. */
const BODY_LIMIT_BYTES = 16 * 1024;
const MAX_CONNECTIONS = 1024;
/** The time that a request may take besides the call to the backend: its body, the issuer's keys, and the checks in a queue. */
const MARGIN_MS = 25_000;

/**
 * @param arguments_ of the command line: nothing, or the port
 * @throws ConfigError that names the setting and what it must be
 */
export function readFrontendConfig(env: Env, arguments_: readonly string[] = []): FrontendConfig {
  if (env['NODE_TLS_REJECT_UNAUTHORIZED'] === '0') {
    throw new ConfigError(
      'NODE_TLS_REJECT_UNAUTHORIZED must not be 0: anyone could impersonate an issuer. For your own certificate authority set NODE_EXTRA_CA_CERTS',
    );
  }
  const timeoutSeconds = integer(env, 'PROVER_TIMEOUT', { from: 1, to: 3600, otherwise: 15 });
  const isDevelopment = flag(env, 'ALLOW_INSECURE_DEV_KEY');
  const keys = readKeys(string(env, 'VERIFYING_KEY') ?? 'main', isDevelopment);
  const clients = readClients(env, keys.own.network);
  return {
    host: string(env, 'HOST') ?? '127.0.0.1',
    port: readPort(env, arguments_),
    logLevel: readLogLevel(env),
    isLogged: readDebug(env['DEBUG'] ?? ''),
    corsOrigins: readCorsOrigins(env, 'none'),
    limits: {
      bodyLimitBytes: BODY_LIMIT_BYTES,
      maxConcurrentRequests: integer(env, 'MAX_CONCURRENT_REQUESTS', {
        from: 1,
        to: 100_000,
        otherwise: 256,
      }),
      maxConnections: MAX_CONNECTIONS,
      requestTimeoutMs: timeoutSeconds * 1000 + MARGIN_MS,
    },
    userRequestsPerMinute: integer(env, 'USER_REQUESTS_PER_MINUTE', { from: 1, to: 10_000, otherwise: 10 }),
    backend: readBackend(env),
    timeoutSeconds,
    keys,
    profile: readProfile(env, keys.own.network),
    clients,
    acceptsAnyClient: clients.every(({ clientId }) => clientId === undefined),
  };
}

/** The command line takes precedence. */
function readPort(env: Env, arguments_: readonly string[]): number {
  if (arguments_.length > 1) {
    throw new ConfigError('the command line takes one argument, the port: set all else in the environment');
  }
  const [given = env['PROVER_PORT']] = arguments_;
  return integer({ PROVER_PORT: given }, 'PROVER_PORT', { from: 0, to: 65_535, otherwise: 8080 });
}

function readBackend(env: Env): URL {
  const value = string(env, 'PROVER_URI');
  const url = value === undefined ? null : URL.parse(value);
  // The path must be one that an upstream can be asked for.
  const isPath = url && /^\/[^/]/.test(url.pathname) && !url.search.includes('\\');
  const isWhole = isPath && /^https?:$/.test(url.protocol) && !url.username && !url.password;
  if (!isWhole || url.hash !== '') {
    throw new ConfigError(
      'PROVER_URI must be the URL at which the backend takes inputs, with its path: for example http://backend:8080/input',
    );
  }
  return url;
}

function readProfile(env: Env, network: NetworkName): CircuitProfile {
  const size = string(env, 'CIRCUIT_SIZE') ?? 'full';
  if (size !== 'full' && size !== 'small') throw new ConfigError('CIRCUIT_SIZE must be full or small');
  if (size === 'small' && network !== 'development') {
    throw new ConfigError(
      'CIRCUIT_SIZE=small is for a development key: the published keys are for the full size',
    );
  }
  return PROFILES[size];
}

function readClients(env: Env, network: NetworkName): ProverClient[] {
  const json = string(env, 'CLIENTS');
  if (json === undefined) return knownIssuers(network);
  const clients = parseClients('CLIENTS', json, v.strictObject(clientEntry(isProvable)), SHAPE).map(
    ({ client }) => client,
  );
  const names = clients.map(({ issuer, clientId }) => JSON.stringify([issuer, clientId]));
  const again = names.findIndex((name, index) => names.indexOf(name) < index);
  if (again !== -1) {
    throw new ConfigError(`CLIENTS, entry ${again}: repeats the issuer and client id of an earlier entry`);
  }
  return clients;
}

const SHAPE = '{"issuer": string, "client_id": string}';

/** Every client of the providers whose tokens some validators of the network accept. */
function knownIssuers(network: NetworkName): ProverClient[] {
  const providers: readonly Provider[] = Object.values(PROVIDERS);
  const networks =
    network === 'mainnet and testnet' ? (['mainnet', 'testnet'] as const) : (['devnet'] as const);
  return providers
    .filter((provider) => networks.some((each) => provider.networks.includes(each)))
    .map(({ issuer, jwksUrl }) => ({ issuer, presenters: [], jwksUrl: new URL(jwksUrl) }));
}
