import { createServer, type Server } from 'node:net';
import { expect, onTestFinished, test, vi } from 'vitest';
import { EndpointHealth } from '../../../src/server/health.ts';
import { createUpstream } from '../../../src/server/upstream.ts';

/** A server that answers everything with these bytes. */
async function answering(bytes: string): Promise<string> {
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
])('an endpoint that answers %j: reachable is %s', async (bytes, reachable) => {
  const origin = await answering(bytes);
  const health = new EndpointHealth(['x.example'], () => createUpstream(origin), 1000);
  expect(await health.status()).toEqual({ 'x.example': reachable });
});

test('a round serves all callers for 10 seconds, and the next one detects changes', async () => {
  let now = 1000;
  const clock = vi.spyOn(performance, 'now').mockImplementation(() => now);
  onTestFinished(() => clock.mockRestore());
  let origin = await answering('HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n');
  let rounds = 0;
  const health = new EndpointHealth(['x.example'], () => {
    rounds++;
    return createUpstream(origin);
  });
  expect(await health.status()).toEqual({ 'x.example': true });
  origin = await answering('');
  now += 9999;
  expect(await health.status()).toEqual({ 'x.example': true });
  expect(rounds).toBe(1);
  now += 1;
  expect(await health.status()).toEqual({ 'x.example': false });
  now += 9999;
  await health.status();
  expect(rounds).toBe(2);
});
