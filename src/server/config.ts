import { isAbsolute } from 'node:path';
import { ConfigError } from '../errors.ts';
import { FEWEST_CONNECTIONS } from './open_files.ts';

export type Env = Readonly<Record<string, string | undefined>>;

/** The settings of the server itself, from the environment. Applications read their own variables. */
export interface Config {
  /** Folder name of the application below `src/apps`. */
  readonly app: string;
  readonly host: string;
  /** 0: the system chooses a free port (tests). */
  readonly port: number;
  readonly logLevel: string;
  /** `'*'`, or the only origins whose pages may read answers. `none` in the environment is an empty list. */
  readonly corsOrigins: '*' | readonly string[];
  readonly bodyLimitBytes: number;
  readonly maxConcurrentRequests: number;
  /** Open connections. Beyond the limit, a new one replaces an idle or slow one. */
  readonly maxConnections: number;
  /** How many proxies in front of this server add to `X-Forwarded-For`. 0: callers have no address. */
  readonly trustedProxies: number;
  /** `sealed`: the application's endpoints take sealed requests only. */
  readonly requests: 'any' | 'sealed';
  /** `sealed`: secrets are accepted sealed only, never from the environment. */
  readonly secrets: 'any' | 'sealed';
  /** Sealed answers are padded to a multiple of so many bytes. 0: not at all. */
  readonly sealedPaddingBytes: number;
  /** Applies to receiving a request, and again to answering it. */
  readonly requestTimeoutMs: number;
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

/** The variable's value; undefined if it is not set. @throws ConfigError if it is set but empty */
export function string(env: Env, name: string): string | undefined {
  const value = env[name];
  if (value === '') throw new ConfigError(`${name} is set but empty: give it a value or unset it`);
  return value;
}

/** An integer from the environment, for the server's configuration and for applications. @throws ConfigError */
export function integer(
  env: Env,
  name: string,
  { from, to, otherwise }: { from: number; to: number; otherwise?: number },
): number {
  const value = string(env, name);
  if (value === undefined && otherwise !== undefined) return otherwise;
  const number = /^[0-9]{1,15}$/.test(value ?? '') ? Number(value) : Number.NaN;
  if (!(number >= from && number <= to)) {
    throw new ConfigError(`${name} must be an integer from ${from} to ${to}`);
  }
  return number;
}

/** `true` or `false`, for the server's configuration and for applications. @throws ConfigError */
export function boolean(env: Env, name: string, otherwise: boolean): boolean {
  const value = string(env, name);
  if (value === undefined) return otherwise;
  if (value !== 'true' && value !== 'false') throw new ConfigError(`${name} must be true or false`);
  return value === 'true';
}

/** `0` or `1`; not set: false. @throws ConfigError */
export function flag(env: Env, name: string): boolean {
  const value = string(env, name);
  if (value !== undefined && value !== '0' && value !== '1') throw new ConfigError(`${name} must be 0 or 1`);
  return value === '1';
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

/** `CORS_ORIGINS`. @throws ConfigError */
export function readCorsOrigins(env: Env, otherwise: '*' | 'none' = '*'): '*' | string[] {
  const value = string(env, 'CORS_ORIGINS') ?? otherwise;
  if (value === '*') return '*';
  if (value === 'none') return [];
  const origins = value.split(',').map((origin) => origin.trim());
  if (!origins.every((origin) => URL.canParse(origin) && new URL(origin).origin === origin)) {
    throw new ConfigError(
      'CORS_ORIGINS must be *, none, or origins separated by commas, without paths: for example https://app.example.com,http://localhost:5173',
    );
  }
  return origins;
}

/** pino's levels, and RUST_LOG's `off`. */
const LEVELS = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'];
/** Module names by which RUST_LOG may address this server: its own, and that of the Rust reference. */
const OWN_MODULES = ['sui_enclave', 'nautilus_server'];

/**
 * `LOG_LEVEL` must be a level. `RUST_LOG` is shared with other programs of the shell, so it never prevents the
 * start: its directives are read as Rust's env_logger reads them, and those for other modules are skipped.
 */
export function readLogLevel(env: Env): string {
  const level = string(env, 'LOG_LEVEL');
  if (level === undefined) return readRustLog(env['RUST_LOG'] ?? '') ?? 'info';
  if (!LEVELS.includes(level)) throw new ConfigError(`LOG_LEVEL must be one of ${LEVELS.join(', ')}`);
  return level;
}

/**
 * A directive is a bare level, `module=level`, or a bare module, which enables all levels. A filter may follow after
 * a slash. The last directive for this server's module takes precedence over the last bare level.
 */
function readRustLog(value: string): string | undefined {
  const [directives = ''] = value.split('/');
  let bare: string | undefined;
  let own: string | undefined;
  for (const directive of directives.split(',')) {
    const [name = '', level] = directive.split('=').map((part) => part.trim());
    if (OWN_MODULES.includes(name.replace(/(::|\[).*/, '')))
      own = level ? (rustLevel(level) ?? own) : 'trace';
    else if (level === undefined) bare = rustLevel(name) ?? bare;
  }
  return own ?? bare;
}

function rustLevel(name: string): string | undefined {
  const level = name.toLowerCase() === 'off' ? 'silent' : name.toLowerCase();
  return LEVELS.includes(level) ? level : undefined;
}
