/**
 * `npm run prover:frontend -- [port]`: starts the front end of the proving service, with the settings of the
 * environment.
 */
import { createLog } from 'sui-enclave-service/log';
import { endOnSignal } from 'sui-enclave-service/signals';
import { handleUncaught } from 'sui-enclave-service/uncaught';
import { readFrontendConfig } from './config.ts';

const isRunning = handleUncaught();
const env = { ...process.env };
// Express and other packages read the same variable when they are loaded. They would print debug lines with
// the queries of requests, but only this service's own lines may be selected.
delete process.env['DEBUG'];
const { startFrontend } = await import('./server.ts');
const config = readFrontendConfig(env, process.argv.slice(2));
const log = createLog(config.logLevel);
const frontend = await startFrontend({ config, log });
isRunning(log);
endOnSignal(async (signal) => {
  log.info({ signal }, 'finishing the requests in flight');
  await frontend.close();
});
