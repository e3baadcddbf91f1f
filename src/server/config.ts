import { isAbsolute } from 'node:path';
import { ConfigError } from 'sui-enclave/errors';
import { boolean, type Env, integer, readCorsOrigins, readLogLevel, string } from 'sui-enclave-service/env';
import type { Address, Limits } from 'sui-enclave-service/limits';
import { FEWEST_CONNECTIONS } from 'sui-enclave-service/open_files';

/** The settings of the server itself, from the environment. Applications read their own variables. */
export interface Config extends Address, Limits {
  /** Folder name of the application below `src/apps`. */
  readonly app: string;
  readonly logLevel: string;
  /** `'*'`, or the only origins whose pages may read answers. `none` in the environment is an empty list. */
  readonly corsOrigins: '*' | readonly string[];
  /** How many proxies in front of this server add to `X-Forwarded-For`. 0: callers have no address. */
  readonly trustedProxies: number;
  /** `sealed`: the application's endpoints take sealed requests only. */
  readonly requests: 'any' | 'sealed';
  /** `sealed`: secrets are accepted sealed only, never from the environment. */
  readonly secrets: 'any' | 'sealed';
  /** Sealed answers are padded to a multiple of this number of bytes. 0: no padding. */
  readonly sealedPaddingBytes: number;
  /** How long SIGTERM waits for requests in flight. */
  readonly shutdownGraceMs: number;
  readonly nsmRequired: boolean;
  /** True: sign only while a document from the NSM confirms the clock. */
  readonly clockRequired: boolean;
  /** Path of the NSM's character device. */
  readonly nsmDevice: string;
  /** An open descriptor to read the secrets from. Undefined: they come from the environment. */
  readonly secretsFd: number | undefined;
  /** An open descriptor for the boot report, or for the code of the error that prevented the start. */
  readonly reportFd: number | undefined;
  /** The file in which init keeps the state of the clock. */
  readonly clockState: string | undefined;
  /** The file in which init records why a part of the enclave last ended. */
  readonly lastEnd: string | undefined;
}

/** @throws ConfigError that names the variable and what it must be, without repeating its value */
export function readServerConfig(env: Env): Config {
  if (env['NODE_TLS_REJECT_UNAUTHORIZED'] === '0') {
    throw new ConfigError(
      'NODE_TLS_REJECT_UNAUTHORIZED must not be 0: anyone could impersonate an endpoint. For your own certificate authority set NODE_EXTRA_CA_CERTS',
    );
  }
  return {
    app: readApp(env),
    host: string(env, 'HOST') ?? '127.0.0.1',
    port: integer(env, 'PORT', { from: 0, to: 65_535, otherwise: 3000 }),
    logLevel: readLogLevel(env),
    corsOrigins: readCorsOrigins(env),
    bodyLimitBytes: integer(env, 'BODY_LIMIT_BYTES', {
      from: 1024,
      to: 16 * 1024 ** 2,
      otherwise: 64 * 1024,
    }),
    maxConcurrentRequests: integer(env, 'MAX_CONCURRENT_REQUESTS', { from: 1, to: 100_000, otherwise: 256 }),
    maxConnections: integer(env, 'MAX_CONNECTIONS', {
      from: FEWEST_CONNECTIONS,
      to: 100_000,
      otherwise: 2048,
    }),
    trustedProxies: integer(env, 'TRUSTED_PROXIES', { from: 0, to: 16, otherwise: 0 }),
    requests: anyOrSealed('REQUESTS', string(env, 'REQUESTS')),
    secrets: anyOrSealed('SECRETS', string(env, 'SECRETS')),
    sealedPaddingBytes: integer(env, 'SEALED_PADDING_BYTES', { from: 0, to: 64 * 1024, otherwise: 0 }),
    requestTimeoutMs: integer(env, 'REQUEST_TIMEOUT_MS', { from: 1000, to: 600_000, otherwise: 30_000 }),
    shutdownGraceMs: integer(env, 'SHUTDOWN_GRACE_MS', { from: 0, to: 600_000, otherwise: 10_000 }),
    nsmRequired: boolean(env, 'NSM_REQUIRED', false),
    clockRequired: boolean(env, 'CLOCK_REQUIRED', false),
    nsmDevice: absolutePath(env, 'NSM_DEVICE') ?? '/dev/nsm',
    secretsFd:
      env['SECRETS_FD'] === undefined ? undefined : integer(env, 'SECRETS_FD', { from: 3, to: 1023 }),
    reportFd: env['REPORT_FD'] === undefined ? undefined : integer(env, 'REPORT_FD', { from: 3, to: 1023 }),
    clockState: absolutePath(env, 'CLOCK_STATE'),
    lastEnd: absolutePath(env, 'LAST_END'),
  };
}

function anyOrSealed(name: string, value = 'any'): 'any' | 'sealed' {
  if (value !== 'any' && value !== 'sealed') throw new ConfigError(`${name} must be any or sealed`);
  return value;
}

function readApp(env: Env): string {
  const app = string(env, 'APP');
  if (app === undefined || !/^[a-z][a-z0-9_-]{0,63}$/.test(app)) {
    throw new ConfigError(
      'APP must name the application to run, a folder of src/apps in lower case: for example APP=weather',
    );
  }
  return app;
}

function absolutePath(env: Env, name: string): string | undefined {
  const path = string(env, name);
  if (path !== undefined && !isAbsolute(path)) {
    throw new ConfigError(`${name} must be an absolute path: for example /dev/nsm`);
  }
  return path;
}
