/** Collects each program's answer at `/metrics` when it has no fault. */
import { readFileSync } from 'node:fs';
import { onTestFinished, vi } from 'vitest';
import { findFreePort } from '../../../scripts/check/bench/ports.ts';
import { ALERTS } from '../../../src/cli/keeper/alerts.ts';
import { Metrics as KeeperMetrics } from '../../../src/cli/keeper/metrics.ts';
import { ALERTS as POSTER_ALERTS } from '../../../src/cli/poster/alerts.ts';
import { Metrics as PosterMetrics } from '../../../src/cli/poster/metrics.ts';
import { Metrics as WatcherMetrics } from '../../../src/cli/provision/metrics.ts';
import { startBackend } from '../../../src/prover/backend/backend.ts';
import { readBackendConfig } from '../../../src/prover/backend/config.ts';
import { defineApp, task } from '../../../src/server/index.ts';
import { SNAPSHOT_MS } from '../../../src/server/reports/metrics.ts';
import { EmulatedNsm } from '../../../src/testing/emulated_nsm.ts';
import { startServer } from '../../../src/testing/start_server.ts';
import { fakeGenerator, keyFile, recordedLog } from '../../src/prover/backend/support.ts';
import { fakeWorker, LOADS, PROVES } from '../../src/prover/fake_worker.ts';
import { startTestFrontend } from '../../src/prover/frontend/support.ts';

/** Codes of the keeper's alerts. */
export const KEEPER_CODES = Object.keys(ALERTS);
/** Codes of the poster's alerts. */
export const POSTER_CODES = Object.keys(POSTER_ALERTS);

const read = async (url: string | undefined) => await (await fetch(url as string)).text();

/**
 * Reads a recorded answer: `relay` from the relay's test build with two enclaves, `haproxy` from HAProxy 2.6.
 */
const readRecording = (name: string) => readFileSync(new URL(`scrapes/${name}.txt`, import.meta.url), 'utf8');

/** Returns the answers, by the jobs of `deploy/observe/prometheus.yml`. */
export async function collectScrapes(): Promise<Readonly<Record<string, string>>> {
  return {
    enclave: await scrapeEnclave(),
    prover_frontend: await read((await startTestFrontend({ METRICS_PORT: '0' })).metricsUrl),
    prover_backend: await scrapeProverBackend(),
    keeper: await scrapeKeeper(),
    poster: await scrapePoster(),
    provision: await scrapeWatcher(),
    relay: readRecording('relay'),
    haproxy: readRecording('haproxy'),
  };
}

async function scrapeEnclave(): Promise<string> {
  const env = { METRICS_PORT: '0', EVENTS: 'true' };
  const mark = task({ name: 'mark', everyMs: 1000, jitterMs: 0, timeoutMs: 1000, run: async () => {} });
  const module = defineApp({ signs: [], create: () => ({ tasks: [mark] }) });
  const manifest = { endpoints: [], secrets: [] };
  // The server takes the first snapshot before it knows the tasks, and a further one every 15 seconds.
  vi.useFakeTimers({ toFake: ['setInterval'] });
  try {
    const { metricsUrl } = await startServer({ env, nsm: new EmulatedNsm(), module, manifest });
    vi.advanceTimersByTime(SNAPSHOT_MS);
    return await read(metricsUrl);
  } finally {
    vi.useRealTimers();
  }
}

async function scrapeProverBackend(): Promise<string> {
  const config = readBackendConfig({
    ZKEY: keyFile('a key'),
    WITNESS_BINARIES: fakeGenerator(),
    PROVER_ENGINE: fakeWorker(LOADS + PROVES),
    ALLOW_INSECURE_DEV_KEY: '1',
    PORT: '0',
    METRICS_PORT: '0',
  });
  const backend = await startBackend({ config, log: recordedLog().log });
  onTestFinished(() => backend.close());
  return await read(backend.metricsUrl);
}

async function scrapeKeeper(): Promise<string> {
  const metrics = new KeeperMetrics({ spent: () => 10n, left: () => 90n });
  metrics.note({ done: [], alerts: [], accepted: 2, silent: 0, hasFailed: false }, Date.now());
  return await metrics.text();
}

async function scrapePoster(): Promise<string> {
  const metrics = new PosterMetrics({ spent: () => 10n, left: () => 90n });
  const timestampMs = BigInt(Date.now());
  const done = [{ result: 'posted' as const, digest: 'd', url: 'https://one.example', timestampMs }];
  metrics.note({ done, alerts: [], values: 2, inFlight: 0, hasFailed: false }, Date.now());
  return await metrics.text();
}

async function scrapeWatcher(): Promise<string> {
  const metrics = new WatcherMetrics();
  metrics.note('claim', Date.now());
  const { url, close } = await metrics.serve(await findFreePort());
  onTestFinished(close);
  return await read(url);
}
