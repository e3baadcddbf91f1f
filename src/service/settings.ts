/**
 * Tables of settings. One entry contains a setting's check, its error message, its default and its row in a
 * README.
 */
import { ConfigError } from 'sui-enclave/errors';
import * as v from 'valibot';

/** Environment variables, by their names. */
export type Env = Readonly<Record<string, string | undefined>>;

/** A variable of the environment. */
export interface Setting {
  /**
   * The schema of the variable's text. Its `description` is the rest of the message after `NAME must`. Its
   * `title` shows the possible values in the README's table.
   */
  readonly schema: v.GenericSchema<string, unknown>;
  /**
   * The text that applies if the variable is not set. A variable may be set to '' only if '' is its default.
   */
  readonly default?: string;
  /** Allows a variable without a default to be unset; its value is then undefined. */
  readonly optional?: true;
  /** Text for the README, in Markdown; its links are relative to the folder of the README. */
  readonly meaning: string;
}

/** A program's settings by the names of their variables. */
export type SettingTable = Readonly<Record<string, Setting>>;

export type SettingsOf<Table extends SettingTable> = {
  readonly [Name in keyof Table]:
    | v.InferOutput<Table[Name]['schema']>
    | (Table[Name] extends { readonly optional: true } ? undefined : never);
};

/**
 * Reads the settings of a table from the environment.
 *
 * @throws ConfigError that names the variable and what it must be, without repeating its value
 */
export function readSettings<Table extends SettingTable>(table: Table, env: Env): SettingsOf<Table> {
  const values = Object.entries(table).map(([name, setting]) => {
    const isUnset = setting.optional && env[name] === undefined;
    return [name, isUnset ? undefined : readSetting(env, name, setting)];
  });
  return Object.fromEntries(values);
}

/** Reads one setting from the environment. @throws as `readSettings` */
export function readSetting<Value>(
  env: Env,
  name: string,
  { schema, default: defaultText }: { schema: v.GenericSchema<string, Value>; default?: string },
): Value {
  const text = env[name] ?? defaultText;
  if (text === '' && defaultText !== '') {
    throw new ConfigError(`${name} is set but empty: give it a value or unset it`);
  }
  const parsed = v.safeParse(schema, text);
  if (!parsed.success) throw new ConfigError(`${name} must ${v.getDescription(schema) ?? 'be set'}`);
  return parsed.output;
}

/** Accepts decimal integers of at most 15 digits, so that each is a safe integer. */
export const integerBetween = (from: number, to: number) =>
  v.pipe(
    v.string(),
    v.regex(/^[0-9]{1,15}$/),
    v.transform(Number),
    v.minValue(from),
    v.maxValue(to),
    v.title(`${from} to ${to}`),
    v.description(`be an integer from ${from} to ${to}`),
  );

export const acceptOneOf = <const Words extends readonly [string, string, ...string[]]>(...words: Words) =>
  v.pipe(
    v.picklist(words),
    v.title(words.map((word) => `\`${word}\``).join(', ')),
    v.description(words.length > 2 ? `be one of ${words.join(', ')}` : `be ${words.join(' or ')}`),
  );

export const trueOrFalse = v.pipe(
  acceptOneOf('true', 'false'),
  v.transform((word) => word === 'true'),
);

/** A switch: `1` is true, and `0` is false. */
export const zeroOrOne = v.pipe(
  acceptOneOf('0', '1'),
  v.transform((digit) => digit === '1'),
);

/**
 * Creates the schema of a setting that is a text.
 *
 * @param must the message after `NAME must`, such as `be an absolute path`
 */
export const textSetting = (must: string, isValid: (text: string) => boolean = () => true) =>
  v.pipe(v.string(), v.check(isValid), v.description(must));
