/** Definition and parsing of command lines: split by Node's parser, checked by valibot. */
import { type ParseArgsOptionsConfig, parseArgs } from 'node:util';
import { EnclaveError } from 'sui-enclave/errors';
import * as v from 'valibot';
import { PROGRAM } from './places.ts';
import { suggestion } from './suggestion.ts';

export type Environment = Readonly<Record<string, string | undefined>>;

/** The exit codes that most commands have. */
export const EXIT = {
  /** Done, or nothing to do. */
  done: 0,
  /** The command was refused or failed. */
  failed: 1,
  /** The command was not tried: the command line, or something that it names, can't be used. */
  notTried: 2,
} as const;

/** The command line can't be used. The framework adds where to find the command's help. */
export class UsageError extends EnclaveError {
  readonly code = 'USAGE';
  readonly exit = EXIT.notTried;
}

/** Checks the text of an argument or of an option. Its messages follow the name in an error: "must be …". */
type Schema = v.GenericSchema<string, unknown>;

/** A positional argument of a command. */
export interface Argument {
  readonly schema: Schema;
  /** The argument's name in the help and in errors. Default: its key. */
  readonly label?: string;
  /** Whether the argument may be left out. Only arguments at the end may be optional. */
  readonly optional?: boolean;
  /**
   * Whether the argument may be given more than once. At most one argument may be repeated, and none before
   * an optional one.
   */
  readonly repeated?: boolean;
}

/** An option with a value. */
export interface Option {
  /** The placeholder for the value in the help, such as `<file>`. */
  readonly value: string;
  readonly help: string;
  readonly schema: Schema;
  /** Default value, as on the command line. */
  readonly default?: string;
  readonly required?: boolean;
  readonly repeated?: boolean;
  /** The environment variable that gives the value if the command line does not. */
  readonly variable?: string;
}

/** An option without a value. */
export interface Flag {
  readonly help: string;
  readonly schema?: undefined;
}

export type Arguments = Readonly<Record<string, Argument>>;
export type Options = Readonly<Record<string, Option | Flag>>;

export interface CommandLine<A extends Arguments = Arguments, O extends Options = Options> {
  readonly name: string;
  /** Words that start the command. Default: `sui-enclave <name>`. */
  readonly program?: string;
  /** Description for the help, in lines of 120 characters at most. */
  readonly purpose: string;
  /** Positional arguments in their order. */
  readonly arguments: A;
  readonly options: O;
  /**
   * An older order of arguments, which begins with an id and still works. An argument that has become an
   * option has the option's name, with its dashes.
   */
  readonly formerly?: Arguments;
  /** Refuses positional arguments that must be options. @throws UsageError */
  checkPositionals?(positionals: readonly string[]): void;
  /** Words after the name in a complete command line, for the help. Default: none. */
  readonly example?: string;
  /** Words after the name in the first lines of the help, if there are several forms. */
  readonly forms?: readonly string[];
  /** The last lines of the help. */
  readonly notes?: string;
}

type Output<S> = S extends v.GenericSchema<string, infer Value> ? Value : never;

export type ArgumentValues<A extends Arguments> = {
  readonly [Name in keyof A]: A[Name] extends { readonly repeated: true }
    ? readonly Output<A[Name]['schema']>[]
    : A[Name] extends { readonly optional: true }
      ? Output<A[Name]['schema']> | undefined
      : Output<A[Name]['schema']>;
};

export type OptionValues<O extends Options> = {
  readonly [Name in keyof O]: O[Name] extends Option
    ? O[Name] extends { readonly repeated: true }
      ? readonly Output<O[Name]['schema']>[]
      : O[Name] extends { readonly default: string } | { readonly required: true }
        ? Output<O[Name]['schema']>
        : Output<O[Name]['schema']> | undefined
    : boolean;
};

export interface Given<A extends Arguments, O extends Options> {
  readonly args: ArgumentValues<A>;
  readonly options: OptionValues<O>;
  /** Texts of the positional arguments, in their order on the command line. */
  readonly positionals: readonly string[];
}

/** Options that every command has. */
const COMMON: Options = {
  json: { help: 'print the result, or the error, as JSON' },
  help: { help: 'print this help; -h does the same' },
};

/** Texts of positional arguments, by their names. */
type Texts = Readonly<Record<string, string | readonly string[] | undefined>>;

/** Parses a command line. @throws UsageError, whose message names the argument and what it must be */
export function parseCommandLine<A extends Arguments, O extends Options>(
  line: CommandLine<A, O>,
  argv: readonly string[],
  env: Environment,
): Given<A, O> {
  const { values, positionals } = split(line.options, argv);
  const { formerly } = line;
  line.checkPositionals?.(positionals);
  const isFormer = formerly !== undefined && isId(positionals[0]);
  const texts = assignTexts(isFormer ? formerly : line.arguments, positionals);
  const options = Object.fromEntries(
    Object.entries(line.options).map(([name, option]) => {
      const positional = texts[`--${name}`] as string | undefined;
      if (positional !== undefined && values[name] !== undefined)
        throw new UsageError(`--${name} is given twice`);
      return [name, parseOption(name, option, positional ?? values[name], env)];
    }),
  ) as OptionValues<O>;
  requireOptions(line.options, options);
  const args = Object.fromEntries(
    Object.entries(line.arguments).map(([name, argument]) => [
      name,
      check(formatWord(name, argument), argument.schema, texts[name]),
    ]),
  ) as ArgumentValues<A>;
  return { args, options, positionals };
}

/** Returns whether an argument is, or was meant to be, an id on chain. */
export function isId(text: string | undefined): boolean {
  return /^0x[^:]*$/i.test(text ?? '');
}

type Value = string | boolean | (string | boolean)[] | undefined;

/**
 * Splits a command line. parseArgs mistakes -5 for an option, but no option here is a digit. Each such
 * argument therefore gets the prefix NUL, which no argument of a process can contain, until it is parsed.
 */
function split(options: Options, argv: readonly string[]) {
  const restore = <T>(value: T) => (typeof value === 'string' ? value.replace('\0', '') : value);
  try {
    const { values, positionals } = parseArgs({
      args: argv.map((arg) => arg.replace(/^-(?=\.?\d)/, '\0-')),
      options: Object.fromEntries(
        Object.entries({ ...options, ...COMMON }).map(([name, option]) => [name, toParserOption(option)]),
      ),
      allowPositionals: true,
    });
    const restored = Object.entries(values).map(([name, value]): [string, Value] => [
      name,
      Array.isArray(value) ? value.map(restore) : restore(value),
    ]);
    return { values: Object.fromEntries(restored), positionals: positionals.map(restore) };
  } catch (error) {
    // The parser adds advice about a leading dash, which does not help here.
    const [text = ''] = (error as Error).message.split(/\.\s/);
    const [, unknown = ''] = /^Unknown option '(--[^']+)'/.exec(text) ?? [];
    const names = Object.keys({ ...options, ...COMMON }).map((name) => `--${name}`);
    throw new UsageError(`${text}${suggestion(unknown, names)}`);
  }
}

function toParserOption(option: Option | Flag): ParseArgsOptionsConfig[string] {
  if (option.schema === undefined) return { type: 'boolean' };
  return { type: 'string', ...(option.repeated && { multiple: true }) };
}

function parseOption(name: string, option: Option | Flag, optionValue: Value, env: Environment): unknown {
  if (option.schema === undefined) return optionValue === true;
  const { schema, variable, repeated } = option;
  const label = `--${name}`;
  if (repeated) return check(label, schema, (optionValue ?? []) as string[]);
  if (optionValue !== undefined) return check(label, schema, optionValue as string);
  const variableText = variable === undefined ? undefined : env[variable];
  if (variableText === '') throw new UsageError(`${variable} is set but empty: give it a value or unset it`);
  if (variableText !== undefined) return check(`${variable}`, schema, variableText);
  return check(label, schema, option.default);
}

/** @throws UsageError */
function requireOptions(options: Options, values: Readonly<Record<string, unknown>>): void {
  for (const [name, option] of Object.entries(options)) {
    const isRequired = option.schema !== undefined && option.required;
    if (isRequired && values[name] === undefined) throw new UsageError(`--${name} is required`);
  }
}

/** Assigns the positional arguments to their names, in order. @throws UsageError */
function assignTexts(args: Arguments, positionals: readonly string[]): Texts {
  const names = Object.keys(args);
  const repeatedIndex = names.findIndex((name) => args[name]?.repeated);
  const unexpected = repeatedIndex < 0 ? positionals[names.length] : undefined;
  if (unexpected !== undefined) throw new UsageError(`unexpected argument: ${unexpected}`);
  const missing = names.slice(positionals.length).filter((name) => !args[name]?.optional);
  if (missing.length > 0) throw new UsageError(`missing: ${formatWords(args, missing)}`);
  if (repeatedIndex < 0) return Object.fromEntries(names.map((name, index) => [name, positionals[index]]));
  const countAfter = names.length - repeatedIndex - 1;
  const end = Math.max(repeatedIndex, positionals.length - countAfter);
  return Object.fromEntries(
    names.map((name, index) => {
      if (index < repeatedIndex) return [name, positionals[index]];
      return [
        name,
        index === repeatedIndex
          ? positionals.slice(repeatedIndex, end)
          : positionals[end + index - repeatedIndex - 1],
      ];
    }),
  );
}

/** @throws UsageError */
function check(label: string, schema: Schema, text: string | readonly string[] | undefined): unknown {
  if (text === undefined) return undefined;
  if (typeof text !== 'string') return text.map((word) => check(label, schema, word));
  const parsed = v.safeParse(schema, text);
  if (!parsed.success) throw new UsageError(`${label} ${parsed.issues[0].message}`);
  return parsed.output;
}

/** Returns an argument in the help and in errors, such as `<a>`. */
function formatWord(name: string, argument: Argument | undefined): string {
  return `<${argument?.label ?? name}>`;
}

/** Formats arguments as `<a> <b>`. */
function formatWords(args: Arguments, names: readonly string[] = Object.keys(args)): string {
  return names.map((name) => formatWord(name, args[name])).join(' ');
}

/** Returns the words after the name in a command line, such as `<from> [<to>] [options]`. */
function formatForm(args: Arguments): string {
  const words = Object.entries(args).map(([name, argument]) => {
    const word = `${formatWord(name, argument)}${argument.repeated ? '...' : ''}`;
    return argument.optional ? `[${word}]` : word;
  });
  return [...words, '[options]'].join(' ');
}

/** Returns the words that start a command. */
export function formatProgram({
  name,
  program = `sui-enclave ${name}`,
}: Pick<CommandLine, 'name' | 'program'>): string {
  return program;
}

/** Returns the output of `--help`. */
export function formatHelp(line: CommandLine): string {
  const { purpose, arguments: args, options, forms = [formatForm(args)], notes, example = '' } = line;
  const rows = Object.entries({ ...options, ...COMMON }).map(([name, option]): [string, string] =>
    option.schema === undefined
      ? [`--${name}`, option.help]
      : [`--${name} ${option.value}`, `${option.help}${formatRemarks(option)}`],
  );
  const width = Math.max(...rows.map(([left]) => left.length)) + 2;
  return [
    ...forms.map((form, index) =>
      `${index === 0 ? 'usage:' : '      '} ${formatProgram(line)} ${form}`.trimEnd(),
    ),
    '',
    purpose,
    '',
    ...rows.map(([left, right]) => `  ${left.padEnd(width)}${right}`),
    ...(notes === undefined ? [] : ['', notes]),
    '',
    `example: ${line.program ?? `${PROGRAM} ${line.name}`} ${example}`.trimEnd(),
  ].join('\n');
}

function formatRemarks({ default: value, repeated, required, variable }: Option): string {
  const remarks = [
    ...(required ? ['required'] : []),
    ...(value === undefined ? [] : [`default: ${value}`]),
    ...(variable === undefined ? [] : [`or ${variable}`]),
    ...(repeated ? ['may be repeated'] : []),
  ];
  return remarks.length === 0 ? '' : ` (${remarks.join('; ')})`;
}
