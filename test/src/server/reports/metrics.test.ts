/** Metrics of an enclave, and above all, what they hide about sealed requests. */
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { decodeAttestation } from '../../../../src/library/attestation/index.ts';
import { SEALED_TYPE, type SealedCall, sealRequest } from '../../../../src/library/sealing/request.ts';
import { decodeUserData } from '../../../../src/library/sealing/user_data.ts';
import { defineApp, endpoint, signedType, struct, u8 } from '../../../../src/server/index.ts';
import { SNAPSHOT_MS } from '../../../../src/server/reports/metrics.ts';
import { EmulatedNsm } from '../../../../src/testing/emulated_nsm.ts';
import { startServer, startWeather, type TestServer } from '../support.ts';

const nsm = new EmulatedNsm();
const METRICS = { METRICS_PORT: '0' };

/** Stops the timer, so that only `nextSnapshot` takes snapshots. */
function holdSnapshots() {
  vi.useFakeTimers({ toFake: ['setInterval'] });
  onTestFinished(() => {
    vi.useRealTimers();
  });
}

async function scrape(server: TestServer): Promise<string> {
  const response = await fetch(server.metricsUrl as string);
  expect(response.headers.get('content-type')).toBe(
    'application/openmetrics-text; version=1.0.0; charset=utf-8',
  );
  return await response.text();
}

async function nextSnapshot(server: TestServer): Promise<string> {
  // The server records the end of a request once its connection has taken the answer.
  await new Promise((done) => setTimeout(done, 50));
  vi.advanceTimersByTime(SNAPSHOT_MS);
  return await scrape(server);
}

const figure = (text: string, series: string) =>
  Number(
    text
      .split('\n')
      .find((line) => line.startsWith(`${series} `))
      ?.split(' ')[1],
  );

/** Removes the time, the number of sealed requests, and the resources of the process. */
function withoutProcess(text: string): string {
  const varies = /^(process_|sui_enclave_(snapshot_seconds|sealed_requests_total|event_loop_delay_seconds) )/;
  return text
    .split('\n')
    .filter((line) => !varies.test(line))
    .join('\n');
}

/** Returns a function that sends a sealed call, and returns the status of the opened answer. */
async function createSealedCaller(server: TestServer): Promise<(call: SealedCall) => Promise<number>> {
  const { attestation } = (await (await server.get('/get_attestation')).json()) as { attestation: string };
  const { userData } = decodeAttestation(Uint8Array.from(Buffer.from(attestation, 'hex')));
  const { sealingKey } = decodeUserData(userData as Uint8Array);
  return async (call) => {
    const { message, openAnswer } = await sealRequest(sealingKey, call);
    const response = await server.post('/sealed', message, { headers: { 'content-type': SEALED_TYPE } });
    return (await openAnswer(new Uint8Array(await response.arrayBuffer()))).status;
  };
}

const weatherAt = (location: unknown): SealedCall => ({
  method: 'POST',
  path: '/process_data',
  body: { payload: { location } },
});

test('no listener serves metrics without METRICS_PORT', async () => {
  expect((await startServer({ nsm })).metricsUrl).toBeUndefined();
});

describe('the figures', () => {
  test('count plain requests and their effects', async () => {
    holdSnapshots();
    const { server, ask } = await startWeather({ env: METRICS, nsm });
    expect((await ask('Oslo')).status).toBe(200);
    expect((await ask('Oslo')).status).toBe(200);
    expect((await server.get('/nowhere')).status).toBe(404);
    const text = await nextSnapshot(server);
    expect(figure(text, 'sui_enclave_plain_requests_total{outcome="answered"}')).toBe(2);
    expect(figure(text, 'sui_enclave_plain_requests_total{outcome="refused"}')).toBe(1);
    expect(figure(text, 'sui_enclave_plain_signatures_total')).toBe(1);
    expect(figure(text, 'sui_enclave_plain_upstream_requests_total{outcome="answered"}')).toBe(1);
    expect(figure(text, 'sui_enclave_plain_request_seconds_count')).toBe(3);
    expect(figure(text, 'sui_enclave_sealed_requests_total')).toBe(0);
    expect(figure(text, 'sui_enclave_clock_confirmed')).toBe(1);
  });

  test('contain only the number of sealed requests, not whether these were signed, cached or refused', async () => {
    holdSnapshots();
    const { server, weather } = await startWeather({ env: METRICS, nsm });
    const ask = await createSealedCaller(server);
    const calls: [SealedCall, status: number, requests: number][] = [
      [weatherAt('Oslo'), 200, 1],
      // The answer comes from the cache.
      [weatherAt('Oslo'), 200, 1],
      [weatherAt(7), 400, 1],
      [{ method: 'GET', path: '/nowhere' }, 404, 1],
    ];
    for (const [at, [call, status, expectedRequests]] of calls.entries()) {
      const before = await nextSnapshot(server);
      expect([await ask(call), weather.asked.length]).toEqual([status, expectedRequests]);
      const after = await nextSnapshot(server);
      expect(withoutProcess(after)).toBe(withoutProcess(before));
      expect(figure(after, 'sui_enclave_sealed_requests_total')).toBe(at + 1);
    }
  });

  test('count a sealed request that is refused in the clear, and contain nothing else about it', async () => {
    holdSnapshots();
    const server = await startServer({ env: METRICS, nsm });
    const before = await nextSnapshot(server);
    const refused = await server.post('/sealed', 'x', { headers: { 'content-type': SEALED_TYPE } });
    expect(refused.status).toBe(400);
    const after = await nextSnapshot(server);
    expect(withoutProcess(after)).toBe(withoutProcess(before));
    expect(figure(after, 'sui_enclave_sealed_requests_total')).toBe(1);
  });

  test('are the same bytes for 15 seconds', async () => {
    holdSnapshots();
    const server = await startServer({ env: METRICS, nsm });
    const first = await scrape(server);
    await server.get('/nowhere');
    await new Promise((done) => setTimeout(done, 50));
    vi.advanceTimersByTime(SNAPSHOT_MS - 1);
    expect(await scrape(server)).toBe(first);
    vi.advanceTimersByTime(1);
    expect(await scrape(server)).not.toBe(first);
  });

  test('are at most 40 series, and with REQUESTS=sealed only those of the process', async () => {
    holdSnapshots();
    const readSeries = (text: string) =>
      text.split('\n').filter((line) => line !== '' && !line.startsWith('#'));
    const any = readSeries(await scrape(await startServer({ env: METRICS, nsm })));
    expect(any.length).toBeLessThanOrEqual(40);
    const server = await startServer({ env: { ...METRICS, REQUESTS: 'sealed' }, nsm });
    await server.post('/process_data', { payload: { location: 'Oslo' } });
    const sealed = readSeries(await nextSnapshot(server));
    expect(sealed.filter((line) => line.includes('plain') || line.includes('{'))).toEqual([]);
    expect(sealed).toHaveLength(10);
  });

  test('do not contain later effects of a sealed request: a timer that signs, an uncaught error', async () => {
    holdSnapshots();
    const Mark = signedType(1, struct('Mark', { value: u8 }));
    let server: TestServer | undefined;
    const later = async () => {
      await new Promise((done) => setTimeout(done, 5));
      server?.onUncaught(new Error('left behind'));
    };
    const module = defineApp({
      signs: [Mark],
      create: ({ sign }) => ({
        endpoints: [
          endpoint({
            method: 'GET',
            path: '/later',
            async handle() {
              setTimeout(() => {
                sign(Mark, 1n, { value: 1 });
                void later();
              }, 5);
              return {};
            },
          }),
        ],
      }),
    });
    server = await startServer({ env: METRICS, nsm, module, manifest: { endpoints: [], secrets: [] } });
    const ask = await createSealedCaller(server);
    expect(await ask({ method: 'GET', path: '/later' })).toBe(200);
    const sealed = await nextSnapshot(server);
    expect(figure(sealed, 'sui_enclave_plain_signatures_total')).toBe(0);
    expect(figure(sealed, 'sui_enclave_uncaught_errors_total')).toBe(0);
    await server.get('/later');
    const plain = await nextSnapshot(server);
    expect(figure(plain, 'sui_enclave_plain_signatures_total')).toBe(1);
    expect(figure(plain, 'sui_enclave_uncaught_errors_total')).toBe(1);
  });
});

test("Node's handlers of uncaught errors run in the context of the request that caused the error", async () => {
  const waiting = JSON.stringify(new URL('../../../../src/service/waiting.ts', import.meta.url));
  const { stdout } = await promisify(execFile)(process.execPath, [
    '--input-type=module',
    '--eval',
    `import { presentCause, runAsSealed } from ${waiting};
     const say = ({ message }) => process.stdout.write(message + ' ' + presentCause() + '\\n');
     process.on('uncaughtException', say).on('unhandledRejection', say);
     const fail = (text) => { throw new Error(text); };
     runAsSealed(() => {
       Promise.reject(new Error('rejected'));
       setTimeout(fail, 1, 'timer');
       setImmediate(async () => { await 1; fail('async'); });
     });
     setTimeout(fail, 20, 'outside');`,
  ]);
  expect(stdout.trim().split('\n').sort()).toEqual([
    'async sealed',
    'outside undefined',
    'rejected sealed',
    'timer sealed',
  ]);
});
