/**
 * `npm run prover:backend`: starts the backend of the proving service, with the settings of the environment.
 */
import { createLog } from 'sui-enclave-service/log';
import { endOnSignal } from 'sui-enclave-service/signals';
import { handleUncaught } from 'sui-enclave-service/uncaught';
import { startBackend } from './backend.ts';
import { readBackendConfig } from './config.ts';

const isRunning = handleUncaught();
const config = readBackendConfig(process.env);
const log = createLog(config.logLevel);
const backend = await startBackend({ config, log });
isRunning(log);
endOnSignal(async (signal) => {
  log.info({ signal }, 'finishing the proof that has begun');
  await backend.close();
});
