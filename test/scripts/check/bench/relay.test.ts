import { expect, onTestFinished, test } from 'vitest';
import { loadByNewConnections } from '../../../../scripts/check/bench/relay.ts';
import { listenOnLoopback } from '../../../../src/testing/fakes.ts';

const AMOUNT = { connections: 4, seconds: 0.2 };

test('the load sends one request on each connection, and counts the answers', async () => {
  const peers = new Set<number | undefined>();
  let requestCount = 0;
  const { origin, close } = await listenOnLoopback((request, response) => {
    requestCount += 1;
    peers.add(request.socket.remotePort);
    response.end('Pong!');
  });
  onTestFinished(close);
  const { requests, perSecond } = await loadByNewConnections(origin, { path: '/' }, AMOUNT);
  expect([requests, peers.size]).toEqual([requestCount, requestCount]);
  expect(perSecond).toBeGreaterThan(0);
});

test('no figure comes from requests that were refused', async () => {
  const { origin, close } = await listenOnLoopback(
    (_request, response) => void response.writeHead(503).end(),
  );
  onTestFinished(close);
  await expect(loadByNewConnections(origin, { path: '/' }, AMOUNT)).rejects.toThrow(/refused: HTTP\/1.1 503/);
});
