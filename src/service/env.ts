/** Reads settings from the environment, for every service here and for applications. */
import { ConfigError } from 'sui-enclave/errors';

export type Env = Readonly<Record<string, string | undefined>>;

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
