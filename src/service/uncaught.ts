import { EnclaveError } from 'sui-enclave/errors';
import type { Logger } from './log.ts';
import { codeOf, describeError, isInstance, messageOf } from './thrown.ts';

/**
 * Replaces Node's report of an uncaught error, which prints its message and properties, whatever they
 * contain. Until the returned function is called with a log, an uncaught error is printed as one line and
 * ends the process with exit code 1. From then on, uncaught errors are logged: an error outside of a request,
 * such as one in a timer, must not end the requests in flight.
 *
 * @param beforeExit called with the error's code before the process exits
 */
export function handleUncaught(
  beforeExit: (code: string) => void = () => {},
): (log: Logger, onUncaught?: (error: unknown) => void) => void {
  let runningLog: Logger | undefined;
  let report: (error: unknown) => void = () => {};
  const onUncaught = (error: unknown): void => {
    if (runningLog) {
      runningLog.error({ err: error }, 'an error occurred outside of any request: the server continues');
      try {
        report(error);
      } catch (err) {
        // An error in this handler would end the process.
        runningLog.error({ err }, 'an error outside of any request could not be reported');
      }
      return;
    }
    const isOurs = isInstance(error, EnclaveError);
    const text = isOurs ? messageOf(error) : undefined;
    process.stderr.write(`sui-enclave: ${text ?? JSON.stringify(describeError(error))}\n`);
    beforeExit((isOurs ? codeOf(error) : undefined) ?? 'INTERNAL');
    process.exit(1);
  };
  process.on('uncaughtException', onUncaught);
  process.on('unhandledRejection', onUncaught);
  return (log, onUncaught = () => {}) => {
    runningLog = log;
    report = onUncaught;
  };
}
