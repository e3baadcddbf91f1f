import { isAbsolute } from 'node:path';
import { ConfigError } from '../errors.ts';

export type Env = Readonly<Record<string, string | undefined>>;

/** Everything about the server itself that can be set from outside. Applications read their own variables. */
export interface Config {
  /** Folder name of the application below `src/apps`. */
  readonly app: string;
  readonly host: string;
  /** 0 lets the system choose (tests). */
  readonly port: number;
  readonly logLevel: string;
  /** `'*'`, or the only origins whose pages may read answers; `none` in the environment is an empty list. */
  readonly corsOrigins: '*' | readonly string[];
  readonly bodyLimitBytes: number;
  readonly maxConcurrentRequests: number;
  /** Open connections; a new one takes the place of an idle or slow one. */
  readonly maxConnections: number;
  /** How many proxies before this server add to `X-Forwarded-For`; 0: nobody's address is known. */
  readonly trustedProxies: number;
  /** To receive a request, and again to answer it. */
  readonly requestTimeoutMs: number;
  /** How long SIGTERM waits for requests in flight. */
  readonly shutdownGraceMs: number;
  readonly nsmRequired: boolean;
  /** Whether nothing is signed without a document of the NSM that confirms the clock. */
  readonly clockRequired: boolean;
  /** Path of the NSM's character device. */
  readonly nsmDevice: string;
  /** An open descriptor that secrets arrive on; without it they are read from the environment. */
  readonly secretsFd: number | undefined;
  /** An open descriptor that the boot report, or the code of what stopped the start, is written to. */
  readonly reportFd: number | undefined;
  /** Where init keeps the state of the clock. */
  readonly clockState: string | undefined;
  /** Where init keeps why a part of the enclave last ended. */
  readonly lastEnd: string | undefined;
}

/** @throws ConfigError that names the variable and what it wants. Values are not repeated. */
export function readConfig(env: Env): Config {
  if (env['NODE_TLS_REJECT_UNAUTHORIZED'] === '0') {
    throw new ConfigError(
      'NODE_TLS_REJECT_UNAUTHORIZED must not be 0: anybody could answer for an endpoint. For an authority of your own set NODE_EXTRA_CA_CERTS',
    );
  }
  return {
    app: readApp(env),
    host: text(env, 'HOST') ?? '127.0.0.1',
    port: integer(env, 'PORT', { from: 0, to: 65_535, otherwise: 3000 }),
    logLevel: readLogLevel(env),
    corsOrigins: readCorsOrigins(env),
    bodyLimitBytes: integer(env, 'BODY_LIMIT_BYTES', {
      from: 1024,
      to: 16 * 1024 ** 2,
      otherwise: 64 * 1024,
    }),
    maxConcurrentRequests: integer(env, 'MAX_CONCURRENT_REQUESTS', { from: 1, to: 100_000, otherwise: 256 }),
    maxConnections: integer(env, 'MAX_CONNECTIONS', { from: 16, to: 100_000, otherwise: 2048 }),
    trustedProxies: integer(env, 'TRUSTED_PROXIES', { from: 0, to: 16, otherwise: 0 }),
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

/** The variable's text; undefined when it is not set. Set but empty is a mistake, never a default. */
export function text(env: Env, name: string): string | undefined {
  const value = env[name];
  if (value === '') throw new ConfigError(`${name} is set but empty: give it a value or unset it`);
  return value;
}

/** A whole number of the environment, for the server's own configuration and for applications. */
export function integer(
  env: Env,
  name: string,
  { from, to, otherwise }: { from: number; to: number; otherwise?: number },
): number {
  const value = text(env, name);
  if (value === undefined && otherwise !== undefined) return otherwise;
  const number = /^[0-9]{1,15}$/.test(value ?? '') ? Number(value) : Number.NaN;
  if (!(number >= from && number <= to)) {
    throw new ConfigError(`${name} must be a whole number from ${from} to ${to}`);
  }
  return number;
}

function boolean(env: Env, name: string, otherwise: boolean): boolean {
  const value = text(env, name);
  if (value === undefined) return otherwise;
  if (value !== 'true' && value !== 'false') throw new ConfigError(`${name} must be true or false`);
  return value === 'true';
}

function readApp(env: Env): string {
  const app = text(env, 'APP');
  if (app === undefined || !/^[a-z][a-z0-9_-]{0,63}$/.test(app)) {
    throw new ConfigError(
      'APP must name the application to run, a folder of src/apps in lower case: for example APP=weather',
    );
  }
  return app;
}

function absolutePath(env: Env, name: string): string | undefined {
  const path = text(env, name);
  if (path !== undefined && !isAbsolute(path)) {
    throw new ConfigError(`${name} must be an absolute path: for example /dev/nsm`);
  }
  return path;
}

function readCorsOrigins(env: Env): '*' | string[] {
  const value = text(env, 'CORS_ORIGINS') ?? '*';
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
/** Names under which RUST_LOG may address this server: its own, and the one of the Rust reference. */
const OWN_MODULES = ['sui_enclave', 'nautilus_server'];

/**
 * `LOG_LEVEL` must be a level. `RUST_LOG` is shared with other programs of the shell, so it never stops the start:
 * its directives are read as Rust's env_logger reads them, and those that mean nothing to this server are skipped.
 */
function readLogLevel(env: Env): string {
  const level = text(env, 'LOG_LEVEL');
  if (level === undefined) return readRustLog(env['RUST_LOG'] ?? '') ?? 'info';
  if (!LEVELS.includes(level)) throw new ConfigError(`LOG_LEVEL must be one of ${LEVELS.join(', ')}`);
  return level;
}

/**
 * A directive is a bare level, `module=level`, or a bare module for everything of it; a filter may follow after a
 * slash. The last directive of this server's own module wins over the last bare level.
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
