/** The part that the production entries share: `main.ts`, and the bundle in the image. */
import { writeSync } from 'node:fs';
import { createLog } from 'sui-enclave-service/log';
import { endOnSignal } from 'sui-enclave-service/signals';
import { handleUncaught } from 'sui-enclave-service/uncaught';
import type { ApplicationModule } from './application/app.ts';
import type { Manifest } from './application/manifest.ts';
import { boot } from './boot.ts';
import { readServerConfig } from './config.ts';
import { NsmDevice } from './nsm/device.ts';

export interface StartOptions {
  readonly version: string;
  /** @param name the application that `APP` names */
  load(name: string): Promise<{ manifest: Manifest; module: ApplicationModule; schema: string | undefined }>;
  /** The application to start if `APP` is not set. Default: none, so that `APP` must be set. */
  readonly defaultApp?: string;
  /** Absolute path of the NSM addon. */
  readonly nsmAddon: string;
}

/** Starts the server with the process's environment. If it fails, prints one line and exits with 1. */
export async function start({ version, load, defaultApp, nsmAddon }: StartOptions): Promise<void> {
  let reportFd: number | undefined;
  // The registered key is lost when the process exits: once the server runs, only a signal may end it.
  const isRunning = handleUncaught((code) => {
    if (reportFd !== undefined) reportFailure(reportFd, code);
  });

  const usesDefault = defaultApp !== undefined && process.env['APP'] === undefined;
  const env = usesDefault ? { ...process.env, APP: defaultApp } : process.env;
  const config = readServerConfig(env);
  reportFd = config.reportFd;
  const log = createLog(config.logLevel);
  const server = await boot({
    config,
    env,
    log,
    version,
    ...(await load(config.app)),
    nsm: new NsmDevice({ path: config.nsmDevice, addonPath: nsmAddon }),
  });
  isRunning(log, (error) => server.onUncaught(error));
  if (usesDefault) log.info({ app: defaultApp }, 'APP is not set: this application is the default');

  endOnSignal(async (signal) => {
    log.info({ signal }, 'finishing the requests in flight');
    await server.close();
  });
}

/** Reports only the code, since readers of the reports are not trusted with more. */
function reportFailure(fd: number, code: string): void {
  try {
    writeSync(fd, `${JSON.stringify({ event: 'failed', code })}\n`);
  } catch {
    // The process exits anyway, and the reason is on standard error.
  }
}
