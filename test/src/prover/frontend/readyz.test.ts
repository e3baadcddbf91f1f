/** Tests `GET /readyz`, which tells an orchestrator or a load balancer whether the front end is ready. */
import { expect, test, vi } from 'vitest';
import type { NetworkName } from '../../../../src/prover/frontend/keys.ts';
import { FakeBackend, startTestFrontend } from './support.ts';

/** Starts a front end of this network. */
async function start(backend: FakeBackend, network: NetworkName = 'development') {
  const { url } = await startTestFrontend({
    backend,
    configure: (config) => ({
      ...config,
      keys: { ...config.keys, own: { ...config.keys.own, network } },
    }),
  });
  return async () => {
    const answer = await fetch(`${url}/readyz`);
    const { code, ...body } = (await answer.json()) as Record<string, unknown>;
    return { status: answer.status, retryAfter: answer.headers.get('retry-after'), code, body };
  };
}

test('the front end is ready when the backend has the key of its network', async () => {
  const readyz = await start(await FakeBackend.start());
  expect(await readyz()).toMatchObject({
    status: 200,
    body: { ready: true, network: 'development', backend: 'development' },
  });
});

test('the front end is ready with a backend that does not name its network', async () => {
  const backend = await FakeBackend.start();
  backend.network = undefined;
  const readyz = await start(backend);
  expect(await readyz()).toMatchObject({ status: 200, body: { ready: true, backend: null } });
});

test('the front end of a key that is not published is ready with a backend of a pinned key', async () => {
  const backend = await FakeBackend.start();
  backend.network = 'unknown';
  const readyz = await start(backend);
  const body = { ready: true, network: 'development', backend: 'unknown' };
  expect(await readyz()).toMatchObject({ status: 200, body });
});

test("the front end of a network's key is not ready with a backend of a pinned key", async () => {
  const backend = await FakeBackend.start();
  backend.network = 'unknown';
  const readyz = await start(backend, 'mainnet and testnet');
  expect(await readyz()).toMatchObject({ status: 503, code: 'PROVER_WRONG_NETWORK' });
});

test.each<[string, (backend: FakeBackend) => void, string, RegExp]>([
  ['unreachable', (backend) => backend.stop(), 'PROVER_NOT_READY', /does not answer/],
  [
    'still loading its key',
    (backend) => Object.assign(backend, { healthStatus: 503 }),
    'PROVER_NOT_READY',
    /being loaded/,
  ],
  [
    'behind an HAProxy that has no backend in service',
    (backend) => Object.assign(backend, { network: undefined, healthStatus: 503 }),
    'PROVER_NOT_READY',
    /no backend is in service/,
  ],
  [
    'one whose health check fails',
    (backend) => Object.assign(backend, { healthStatus: 502 }),
    'PROVER_NOT_READY',
    /no backend is ready/,
  ],
  [
    "one with another network's key",
    (backend) => Object.assign(backend, { network: 'devnet' }),
    'PROVER_WRONG_NETWORK',
    /the key of devnet/,
  ],
])('the front end is not ready while the backend is %s', async (_, change, code, message) => {
  const backend = await FakeBackend.start();
  const readyz = await start(backend);
  await expect.poll(() => backend.healthRequests).toBe(1);
  change(backend);
  const answer = await readyz();
  expect(answer).toMatchObject({ status: 503, code });
  expect(String(answer.body['error'])).toMatch(message);
});

test('the front end asks the backend once for many requests, and again after two seconds', async () => {
  const backend = await FakeBackend.start();
  const readyz = await start(backend);
  await expect.poll(() => backend.healthRequests).toBe(1);
  await Promise.all(Array.from({ length: 50 }, () => readyz()));
  expect(backend.healthRequests).toBe(2);
  vi.spyOn(performance, 'now').mockReturnValue(performance.now() + 2001);
  backend.network = 'devnet';
  expect(await readyz()).toMatchObject({ status: 503, code: 'PROVER_WRONG_NETWORK' });
  vi.restoreAllMocks();
});
