/**
 * Reads the environment: single variables for applications, and the settings that this project's programs
 * share.
 */
import * as v from 'valibot';
import {
  acceptOneOf,
  type Env,
  integerBetween,
  readSetting,
  readSettings,
  type SettingTable,
  textSetting,
  trueOrFalse,
} from './settings.ts';

/** Returns the variable's value; undefined if it is not set. @throws ConfigError if it is set but empty */
export function string(env: Env, name: string): string | undefined {
  return env[name] === undefined ? undefined : readSetting(env, name, { schema: v.string() });
}

/** Returns an integer from the environment. @throws ConfigError */
export function integer(
  env: Env,
  name: string,
  { from, to, default: defaultValue }: { from: number; to: number; default?: number },
): number {
  if (env[name] === undefined && defaultValue !== undefined) return defaultValue;
  return readSetting(env, name, { schema: integerBetween(from, to) });
}

/** Reads a variable that is `true` or `false`. @throws ConfigError */
export function boolean(env: Env, name: string, defaultValue: boolean): boolean {
  return readSetting(env, name, { schema: trueOrFalse, default: `${defaultValue}` });
}

/** Settings of services that pages call. */
export const CORS_SETTINGS = {
  CORS_ORIGINS: {
    schema: v.pipe(
      textSetting(
        'be *, none, or origins separated by commas, without paths: for example https://app.example.com,http://localhost:5173',
        (text) => text === '*' || originsIn(text).every((origin) => URL.parse(origin)?.origin === origin),
      ),
      v.transform((text): '*' | string[] => (text === '*' ? '*' : originsIn(text))),
    ),
    default: '*',
    meaning: 'the origins whose pages may read answers, separated by commas; `*` means all, `none` no origin',
  },
} as const satisfies SettingTable;

const originsIn = (text: string) => (text === 'none' ? [] : text.split(',').map((origin) => origin.trim()));

/** Levels of pino. In RUST_LOG, `silent` is called `off`. */
const LEVELS = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'] as const;
/**
 * Module names by which RUST_LOG may address this server: its own name, and the name of Nautilus' server.
 */
const OWN_MODULES = ['sui_enclave', 'nautilus_server'];

/**
 * `LOG_LEVEL` must be a level. `RUST_LOG` is shared with other programs of the shell, so it never prevents
 * the start. Its directives are read as Rust's env_logger reads them; directives for other modules are
 * skipped.
 */
export const LOG_SETTINGS = {
  LOG_LEVEL: {
    schema: acceptOneOf(...LEVELS),
    default: 'info',
    meaning:
      "the log has lines of this level and above. At `info`, each failed request has a line with its error's `code`. Requests that are refused with `OVERLOADED` have no lines of their own: at `warn`, one line a second gives their number. At `debug`, every request has a line. At most 4 MiB of lines wait for a slow reader; further lines are lost, and their number is logged as `lines`",
  },
  RUST_LOG: {
    schema: v.pipe(v.string(), v.transform(readRustLog)),
    default: '',
    meaning:
      'used if `LOG_LEVEL` is not set: a level, `off`, or a list such as `nautilus_server=debug,info`. An invalid value does not stop the start: directives for other modules and unknown levels are skipped, and an empty value counts as not set',
  },
} as const satisfies SettingTable;

/** Returns the log's level according to `LOG_SETTINGS`. @throws ConfigError */
export function readLogLevel(env: Env): string {
  const { LOG_LEVEL, RUST_LOG } = readSettings(LOG_SETTINGS, env);
  return (env['LOG_LEVEL'] === undefined && RUST_LOG) || LOG_LEVEL;
}

/**
 * Reads the directives of RUST_LOG. A directive is a bare level, `module=level`, or a bare module, which
 * enables all levels. A filter may follow after a slash. The last directive for this server's module takes
 * precedence over the last bare level.
 */
function readRustLog(value: string): string | undefined {
  const [directives = ''] = value.split('/');
  let bareLevel: string | undefined;
  let ownLevel: string | undefined;
  for (const directive of directives.split(',')) {
    const [name = '', level] = directive.split('=').map((part) => part.trim());
    if (OWN_MODULES.includes(name.replace(/(::|\[).*/, '')))
      ownLevel = level ? (rustLevel(level) ?? ownLevel) : 'trace';
    else if (level === undefined) bareLevel = rustLevel(name) ?? bareLevel;
  }
  return ownLevel ?? bareLevel;
}

function rustLevel(name: string): string | undefined {
  const level = name.toLowerCase() === 'off' ? 'silent' : name.toLowerCase();
  return LEVELS.find((candidate) => candidate === level);
}
