/** `npm run prover:frontend -- [port]`: the front end of the proving service. */
import { EnclaveError } from '../../errors.ts';
import { createLog, describeError, type Logger } from '../../server/log.ts';
import { endOnSignal } from '../../server/signals.ts';
import { readFrontendConfig } from './config.ts';
import { startFrontend } from './server.ts';

let running: Logger | undefined;

/** Replaces Node's report of an uncaught error, which prints its message and properties, whatever they contain. */
function onUncaught(error: unknown): void {
  if (running) {
    running.error({ err: error }, 'an error outside of any request: the service continues');
    return;
  }
  const text = error instanceof EnclaveError ? error.message : JSON.stringify(describeError(error));
  process.stderr.write(`prover: ${text}\n`);
  process.exit(1);
}

process.on('uncaughtException', onUncaught);
process.on('unhandledRejection', onUncaught);

const config = readFrontendConfig(process.env, process.argv.slice(2));
const log = createLog(config.logLevel);
const frontend = await startFrontend({ config, log });
running = log;

endOnSignal(async (signal) => {
  log.info({ signal }, 'finishing the requests in flight');
  await frontend.close();
});
