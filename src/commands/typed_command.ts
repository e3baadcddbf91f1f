/**
 * The framework of every command. A command is a module that exports `main`, made by `command`; the program
 * (`main.ts`) loads it by its name. Only `runAsProcess` touches the process, so tests call `main` directly.
 */
import { EnclaveError } from 'sui-enclave/errors';
import {
  type Context,
  type Environment,
  EXIT,
  type Failure,
  type Main,
  type Result,
  UsageError,
} from './command.ts';
import {
  type Arguments,
  type CommandLine,
  type Given,
  helpOf,
  type Options,
  type OptionValues,
  parseCommandLine,
  programOf,
  type Texts,
} from './command_line.ts';

export interface Command<A extends Arguments, O extends Options> extends CommandLine<A, O> {
  /** Names the positional arguments, where the order alone doesn't. */
  assign?(positionals: readonly string[], options: OptionValues<O>, env: Environment): Texts;
  run(given: Given<A, O>, context: Context): Promise<Result> | Result;
  /**
   * The exit code for an error of the library, which has none of its own. Default: `EXIT.failed`.
   */
  exitOf?(error: EnclaveError): number | undefined;
  /** Whether unexpected errors are reported without their message, which may contain a secret. */
  readonly handlesSecrets?: boolean;
  /** Changes how an error is reported; undefined for a fault of the program. */
  report?(error: unknown, failure: Failure | undefined): Failure | undefined;
}

/** The `main` of a command. */
export function command<const A extends Arguments, const O extends Options>(spec: Command<A, O>): Main {
  return async (argv, env, io) => {
    if (argv.includes('--help')) {
      io.log(helpOf(spec, env));
      return EXIT.done;
    }
    // Not from the parsed options: an error in the command line is reported as JSON too.
    const asJson = argv.includes('--json');
    try {
      const { assign } = spec;
      const given = parseCommandLine(
        spec,
        argv,
        env,
        assign && ((positionals, options) => assign(positionals, options, env)),
      );
      const context = { env, io: asJson ? { ...io, log: io.error } : io, asJson };
      const { exit = EXIT.done, json, text } = await spec.run(given, context);
      if (asJson) io.log(formatJson(json));
      else if (text !== undefined) io.log(text);
      return exit;
    } catch (error) {
      const failure = failureOf(error, spec, env);
      if (failure === undefined) throw error;
      if (asJson) io.log(formatJson(failure.json));
      else io.error(failure.text);
      return failure.exit;
    }
  };
}

function formatJson(value: object): string {
  return JSON.stringify(value, (_name, each) => (typeof each === 'bigint' ? each.toString() : each), 2);
}

type Reporting = Pick<CommandLine, 'name' | 'program'> &
  Pick<Command<Arguments, Options>, 'exitOf' | 'handlesSecrets' | 'report'>;

/** How a command reports an error; undefined for a fault of the program, which is thrown on. */
function failureOf(error: unknown, spec: Reporting, env: Environment): Failure | undefined {
  const known = error instanceof EnclaveError ? knownFailure(error, spec, env) : undefined;
  const failure = known ?? (spec.handlesSecrets ? INTERNAL : undefined);
  return spec.report ? spec.report(error, failure) : failure;
}

const INTERNAL: Failure = {
  exit: EXIT.failed,
  text: 'INTERNAL: an internal error',
  json: { status: 'failed', code: 'INTERNAL', error: 'an internal error' },
};

function knownFailure(error: EnclaveError, spec: Reporting, env: Environment): Failure {
  const { code } = error;
  const message =
    error instanceof UsageError ? `${error.message}. See ${programOf(spec, env)} --help` : error.message;
  const own = 'exit' in error && typeof error.exit === 'number' ? error.exit : undefined;
  return {
    exit: own ?? spec.exitOf?.(error) ?? EXIT.failed,
    text: `${code}: ${message}`,
    json: { status: 'failed', code, error: message },
  };
}
