/** What every production entry does, whether the application comes from its folder or from the image's bundle. */
import { writeSync } from 'node:fs';
import type { ApplicationModule, Manifest } from '../app.ts';
import { EnclaveError } from '../errors.ts';
import { boot } from './boot.ts';
import { readConfig } from './config.ts';
import { createLog, describeError, type Logger } from './log.ts';
import { endOnSignal } from './signals.ts';

export interface StartOptions {
  readonly version: string;
  /** @param name the application that `APP` names */
  load(name: string): Promise<{ manifest: Manifest; module: ApplicationModule }>;
  /** Absolute path of the NSM addon, where it is not `build/nsm.node` of the repository. */
  readonly nsmAddon?: string;
}

/** Starts the server with the process's environment; a mistake ends the process with one line. */
export async function start({ version, load, nsmAddon }: StartOptions): Promise<void> {
  let reportFd: number | undefined;
  let running: Logger | undefined;
  /** Node's own report of an uncaught error prints its message and members, whatever they hold. */
  const onUncaught = (error: unknown): void => {
    // The key that the application is registered with would end with the process: once it serves, an error that
    // belongs to no request, such as one in an application's timer, must not end it.
    if (running) {
      running.error({ err: error }, 'an error outside of any request: the server goes on');
      return;
    }
    const known = error instanceof EnclaveError;
    process.stderr.write(`sui-enclave: ${known ? error.message : JSON.stringify(describeError(error))}\n`);
    if (reportFd !== undefined) reportFailure(reportFd, known ? error.code : 'INTERNAL');
    process.exit(1);
  };
  process.on('uncaughtException', onUncaught);
  process.on('unhandledRejection', onUncaught);

  const env = process.env;
  const config = readConfig(env);
  reportFd = config.reportFd;
  const log = createLog(config.logLevel);
  const server = await boot({
    config,
    env,
    log,
    version,
    ...(await load(config.app)),
    ...(nsmAddon !== undefined && { nsmAddon }),
  });
  running = log;

  endOnSignal(async (signal) => {
    log.info({ signal }, 'finishing the requests in flight');
    await server.close();
  });
}

/** The code alone: whoever reads the reports is not trusted with more. */
function reportFailure(fd: number, code: string): void {
  try {
    writeSync(fd, `${JSON.stringify({ event: 'failed', code })}\n`);
  } catch {
    // The process ends anyway, and standard error has the reason.
  }
}
