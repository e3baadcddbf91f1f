/** The part that the production entries share: `main.ts`, and the bundle in the image. */
import { writeSync } from 'node:fs';
import type { ApplicationModule, Manifest } from '../app.ts';
import { EnclaveError } from '../errors.ts';
import { boot } from './boot.ts';
import { readServerConfig } from './config.ts';
import { createLog, describeError, type Logger } from './log.ts';
import { endOnSignal } from './signals.ts';

export interface StartOptions {
  readonly version: string;
  /** @param name the application that `APP` names */
  load(name: string): Promise<{ manifest: Manifest; module: ApplicationModule }>;
  /** Absolute path of the NSM addon. Default: `build/nsm.node` of the repository. */
  readonly nsmAddon?: string;
}

/** Starts the server with the process's environment. An error exits with 1 after printing one line. */
export async function start({ version, load, nsmAddon }: StartOptions): Promise<void> {
  let reportFd: number | undefined;
  let running: Logger | undefined;
  /** Replaces Node's report of an uncaught error, which prints its message and properties, whatever they contain. */
  const onUncaught = (error: unknown): void => {
    // The registered key is lost when the process exits. Once the server runs, an error outside of a request, such
    // as one in an application's timer, must therefore not stop it.
    if (running) {
      running.error({ err: error }, 'an error outside of any request: the server continues');
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
  const config = readServerConfig(env);
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

/** Reports only the code: readers of the reports are not trusted with more. */
function reportFailure(fd: number, code: string): void {
  try {
    writeSync(fd, `${JSON.stringify({ event: 'failed', code })}\n`);
  } catch {
    // The process exits anyway, and the reason is on standard error.
  }
}
