/** What the commands have in common that do not talk to Sui: arguments, help, and how they end. */
import { type ParseArgsOptionsConfig, parseArgs } from 'node:util';
import { EnclaveError } from '../src/errors.ts';

/** The command was called in a way that can't be meant. */
export class Usage extends EnclaveError {
  readonly code = 'USAGE';
}

/**
 * The command line, by the options that parseArgs takes; `--help` prints the usage and ends the process.
 *
 * @throws Usage, with the usage after it
 */
export function readArguments<Options extends ParseArgsOptionsConfig>(
  usage: string,
  options: Options,
  allowPositionals = false,
) {
  if (process.argv.includes('--help')) {
    console.log(usage);
    process.exit(0);
  }
  try {
    return parseArgs({ options, allowPositionals });
  } catch (error) {
    // The parser's advice about a leading dash helps nobody here.
    throw new Usage(`${(error as Error).message.split('. ')[0]}\n${usage}`);
  }
}

/** The value of an option. @throws Usage */
export function wholeNumber(option: string, text: string, from: number, to: number): number {
  const number = /^\d{1,9}$/.test(text) ? Number(text) : Number.NaN;
  if (!(number >= from && number <= to)) {
    throw new Usage(`--${option} must be a whole number from ${from} to ${to}`);
  }
  return number;
}

/**
 * Runs a command's main function; a mistake that is known is one line, any other one keeps its stack. Exit codes:
 * 0 done; 1 refused or failed; 2 the command line can't be used.
 */
export async function runMain(main: () => void | Promise<void>): Promise<void> {
  try {
    await main();
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : '';
    if (!(error instanceof EnclaveError) && !code.startsWith('ERR_PARSE_ARGS')) throw error;
    console.error(`${code}: ${(error as Error).message}`);
    process.exitCode = error instanceof Usage || code.startsWith('ERR_PARSE_ARGS') ? 2 : 1;
  }
}
