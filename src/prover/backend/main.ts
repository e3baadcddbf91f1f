/** `npm run prover:backend`: the backend of the proving service, with the settings of the environment. */
import { createLog } from '../../service/log.ts';
import { endOnSignal } from '../../service/signals.ts';
import { handleUncaught } from '../../service/uncaught.ts';
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
