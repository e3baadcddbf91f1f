import { createServer, type Server } from 'node:net';
import type { AxiosInstance } from 'axios';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { UpstreamHealth } from '../../../../src/server/reports/health.ts';
import { createUpstream } from '../../../../src/service/upstream.ts';
import { upstreamError } from '../../../../src/service/upstream_answer.ts';

/** Starts a server that answers everything with these bytes. */
async function startHost(bytes: string): Promise<string> {
  const server: Server = createServer((socket) => {
    socket.on('error', () => {});
    socket.once('data', () => socket.end(bytes));
  });
  onTestFinished(() => void server.close());
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return `http://127.0.0.1:${(server.address() as { port: number }).port}`;
}

test.each([
  ['HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n', true],
  ['HTTP/1.1 503 x\r\nContent-Length: 100\r\n\r\ncut', true],
  ['HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n', false],
  ['HTTP/1.1 100 Continue\r\n\r\n', false],
  ['SSH-2.0-x\r\n', false],
  ['', false],
])('an upstream that answers %j: reachable is %s', async (bytes, reachable) => {
  const origin = await startHost(bytes);
  const health = new UpstreamHealth(['x.example'], (_host, bounds) => createUpstream(origin)(bounds), 1000);
  expect(await health.status()).toEqual({ 'x.example': reachable });
});

describe('a round of probes', () => {
  /** Makes an upstream that answers when the test says so, and a clock that the test sets. */
  function start() {
    const probes: PromiseWithResolvers<void>[] = [];
    const clock = { now: 1000 };
    const spy = vi.spyOn(performance, 'now').mockImplementation(() => clock.now);
    onTestFinished(() => spy.mockRestore());
    const head = async () => {
      const probe = Promise.withResolvers<void>();
      probes.push(probe);
      await probe.promise;
    };
    const health = new UpstreamHealth(['x.example'], () => ({ head }) as unknown as AxiosInstance);
    return { health, clock, probes };
  }
  const REACHABLE = { 'x.example': true };
  const UNREACHABLE = { 'x.example': false };
  const FAILURE = upstreamError('unreachable', {} as never);

  test('is begun by a call, never by a timer, and serves all simultaneous callers', async () => {
    const { health, probes } = start();
    expect(probes).toHaveLength(0);
    const callers = [health.status(), health.status()];
    expect(probes).toHaveLength(1);
    probes[0]?.resolve();
    expect(await Promise.all(callers)).toEqual([REACHABLE, REACHABLE]);
  });

  test('provides its results for 10 seconds after it began; a later call begins the next round without waiting for it', async () => {
    const { health, clock, probes } = start();
    const first = health.status();
    clock.now += 4000;
    probes[0]?.resolve();
    await first;
    clock.now += 5999;
    expect(await health.status()).toEqual(REACHABLE);
    expect(probes).toHaveLength(1);
    clock.now += 1;
    expect(await health.status()).toEqual(REACHABLE);
    expect(probes).toHaveLength(2);
    probes[1]?.reject(FAILURE);
    await expect.poll(async () => await health.status()).toEqual(UNREACHABLE);
    expect(probes).toHaveLength(2);
  });

  test('provides no results from 20 seconds after it began: callers then wait for the next round', async () => {
    const { health, clock, probes } = start();
    const first = health.status();
    probes[0]?.resolve();
    await first;
    clock.now += 19_999;
    expect(await health.status()).toEqual(REACHABLE);
    clock.now += 1;
    const late = health.status();
    probes[1]?.reject(FAILURE);
    expect(await late).toEqual(UNREACHABLE);
    expect(probes).toHaveLength(2);
  });

  test('that fails by a mistake fails for all waiting callers, and the next call begins another round', async () => {
    const { health, probes } = start();
    const first = health.status();
    probes[0]?.reject(new Error('a mistake'));
    await expect(first).rejects.toThrow('a mistake');
    const second = health.status();
    probes[1]?.resolve();
    expect(await second).toEqual(REACHABLE);
  });
});
