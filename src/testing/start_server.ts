/** Starts a server for tests by `boot`, on a free port, and records its log. */
import { fileURLToPath } from 'node:url';
import { type BootOptions, boot, type RunningServer } from 'sui-enclave-server/boot';
import { BUILT_ADDON } from 'sui-enclave-server/built_addon';
import { readServerConfig } from 'sui-enclave-server/config';
import { loadApplication, loadFolder, nameOfFolder } from 'sui-enclave-server/load_application';
import { NsmDevice } from 'sui-enclave-server/nsm/device';
import { createLog } from 'sui-enclave-service/log';
import { onTestFinished } from 'vitest';
import { HeldClock } from './held_clock.ts';
import { allowOnlyLoopback } from './only_loopback.ts';
import { DEV_API_KEY, type FakeWeatherApi, startFakeWeatherApi } from './weather_api.ts';

export const APPS = new URL('../apps/', import.meta.url);

export interface TestServer extends RunningServer {
  /** Returns everything that was logged so far, as it was printed. */
  printed(): string;
  /**
   * Moves the clock of the tasks forward by this number of milliseconds. The clock doesn't move by itself.
   * Returns when all runs that begin in this time have ended. The clock of `Date` and the time limits of
   * runs do not change: a run that never ends is only ended by its time limit.
   */
  passTime(ms: number): Promise<void>;
  get(path: string, init?: RequestInit): Promise<Response>;
  post(path: string, body: unknown, init?: RequestInit): Promise<Response>;
}

export interface TestOptions extends Partial<BootOptions> {
  readonly env?: Readonly<Record<string, string>>;
  /** Folder of the application, which ends in a slash. Its `app.yaml` has the application's name. */
  readonly application?: URL;
  /**
   * Folder of the applications, which ends in a slash. `APP` names one of them. Default: the applications of
   * a clone.
   */
  readonly apps?: URL;
  /**
   * Whether application and test may connect to other machines without `upstream()`, which is impossible in
   * an enclave. Default: false.
   */
  readonly allowNetwork?: boolean;
  /** Time limit that replaces REQUEST_TIMEOUT_MS, and that may be below its minimum. */
  readonly requestTimeoutMs?: number;
}

/** Starts a server that ends with the test. The log has the level trace. */
export async function startServer({
  env: extraEnv = {},
  application: folder,
  apps = APPS,
  requestTimeoutMs,
  allowNetwork = false,
  ...options
}: TestOptions = {}): Promise<TestServer> {
  const name = folder && nameOfFolder(fileURLToPath(folder));
  const env = {
    APP: name ?? 'weather',
    PORT: '0',
    LOG_LEVEL: 'trace',
    API_KEY: DEV_API_KEY,
    ...extraEnv,
  };
  const config = { ...readServerConfig(env), ...(requestTimeoutMs !== undefined && { requestTimeoutMs }) };
  let printed = '';
  const log = createLog(config.logLevel, {
    write(line) {
      printed += line;
    },
  });
  const application = await (folder
    ? loadFolder(fileURLToPath(folder), config.app)
    : loadApplication(apps, config.app));
  const nsm = new NsmDevice({ path: config.nsmDevice, addonPath: BUILT_ADDON });
  if (!allowNetwork) onTestFinished(allowOnlyLoopback());
  const clock = new HeldClock();
  const server = await boot({ config, env, log, nsm, taskClock: clock, ...application, ...options });
  onTestFinished(() => server.close());
  return {
    ...server,
    printed: () => printed,
    passTime: (ms) => clock.pass(ms),
    get: (path, init) => fetch(server.url + path, init),
    post: (path, body, init) =>
      fetch(server.url + path, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: typeof body === 'string' || body instanceof Uint8Array ? body : JSON.stringify(body),
        ...init,
      } as RequestInit),
  };
}

/** Starts a weather server and its fake upstream, which both end with the test. */
export async function startWeather(
  options: TestOptions & { beforeAnswer?: () => Promise<void> } = {},
): Promise<{ server: TestServer; weather: FakeWeatherApi; ask: (location: string) => Promise<Response> }> {
  const { beforeAnswer, ...serverOptions } = options;
  const weather = await startFakeWeatherApi(beforeAnswer);
  onTestFinished(() => weather.close());
  const server = await startServer({ ...serverOptions, origins: { 'api.weatherapi.com': weather.origin } });
  return { server, weather, ask: (location) => server.post('/process_data', { payload: { location } }) };
}
