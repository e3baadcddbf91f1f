/** The production entry: `npm start`. Real configuration, real services, the real NSM. */
import { loadApplication } from './app.ts';
import { boot } from './boot.ts';
import { readConfig } from './config.ts';
import { EnclaveError } from './errors.ts';
import { createLog, describeError } from './log.ts';

process.on('uncaughtException', endWith);
process.on('unhandledRejection', endWith);

const config = readConfig(process.env);
const log = createLog(config.logLevel);
const application = await loadApplication(new URL('./apps/', import.meta.url), config.app);
const server = await boot({ config, env: process.env, log, ...application });

let ending = false;
for (const signal of ['SIGTERM', 'SIGINT'] as const) {
  process.on(signal, async () => {
    // Whoever asks twice doesn't want to wait.
    if (ending) process.exit(1);
    ending = true;
    log.info({ signal }, 'finishing the requests in flight');
    await server.close();
    process.exit(0);
  });
}

/** Node's own report of an uncaught error prints its message and members, whatever they hold. */
function endWith(error: unknown): never {
  const report = error instanceof EnclaveError ? error.message : JSON.stringify(describeError(error));
  process.stderr.write(`sui-enclave: ${report}\n`);
  process.exit(1);
}
