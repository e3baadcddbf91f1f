/** `npm run prover:frontend -- [port]`: the front end of the proving service, with the settings of the environment. */
import { createLog } from '../../server/log.ts';
import { endOnSignal } from '../../server/signals.ts';
import { handleUncaught } from '../../server/uncaught.ts';
import { readFrontendConfig } from './config.ts';
import { startFrontend } from './server.ts';

const isRunning = handleUncaught();
const config = readFrontendConfig(process.env, process.argv.slice(2));
const log = createLog(config.logLevel);
const frontend = await startFrontend({ config, log });
isRunning(log);
endOnSignal(async (signal) => {
  log.info({ signal }, 'finishing the requests in flight');
  await frontend.close();
});
