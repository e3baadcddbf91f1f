import { EnclaveError } from 'sui-enclave/errors';
import type { Logger } from './log.ts';
import { describeError } from './thrown.ts';

/**
 * Replaces Node's report of an uncaught error, which prints its message and properties, whatever they contain. Until
 * the returned function was called with a log, such an error prints one line and exits with 1. From then on it is
 * logged: an error outside of a request, such as one in a timer, must not end the requests in flight.
 *
 * @param beforeExit gets the error's code
 */
export function handleUncaught(
  beforeExit: (code: string) => void = () => {},
): (log: Logger, onUncaught?: (error: unknown) => void) => void {
  let running: Logger | undefined;
  let tell: (error: unknown) => void = () => {};
  const onUncaught = (error: unknown): void => {
    if (running) {
      running.error({ err: error }, 'an error occurred outside of any request: the server continues');
      tell(error);
      return;
    }
    const known = error instanceof EnclaveError;
    process.stderr.write(`sui-enclave: ${known ? error.message : JSON.stringify(describeError(error))}\n`);
    beforeExit(known ? error.code : 'INTERNAL');
    process.exit(1);
  };
  process.on('uncaughtException', onUncaught);
  process.on('unhandledRejection', onUncaught);
  return (log, onUncaught = () => {}) => {
    running = log;
    tell = onUncaught;
  };
}
