import { EnclaveError } from '../src/errors.ts';

/** Runs a command's main function; a mistake that is known is one line, any other one keeps its stack. */
export async function runMain(main: () => void | Promise<void>): Promise<void> {
  try {
    await main();
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : '';
    if (!(error instanceof EnclaveError) && !code.startsWith('ERR_PARSE_ARGS')) throw error;
    console.error(`${code}: ${(error as Error).message}`);
    process.exitCode = 1;
  }
}
