import { connect, type Socket } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { type MetricsListenerOptions, serveMetrics } from '../../../../src/service/http/metrics_listener.ts';
import { closed } from '../../../closed.ts';

const TEXT = 'a_total 1\n# EOF\n';

async function start(options: Partial<MetricsListenerOptions> = {}) {
  const listener = await serveMetrics({
    port: 0,
    expose: () => ({ contentType: 'text/plain', text: TEXT }),
    ...options,
  });
  onTestFinished(() => listener.close());
  return listener;
}

function dial(url: string): Socket {
  const socket = connect(Number(new URL(url).port), '127.0.0.1');
  socket.on('error', () => {});
  onTestFinished(() => {
    socket.destroy();
  });
  return socket;
}

async function readAll(socket: Socket): Promise<string> {
  let text = '';
  socket.on('data', (chunk) => {
    text += chunk;
  });
  await closed(socket);
  return text;
}

test('the listener answers GET /metrics, and nothing else', async () => {
  const { url } = await start();
  expect(await (await fetch(url)).text()).toBe(TEXT);
  const requestStatus = async (path: string, init?: RequestInit) =>
    (await fetch(new URL(path, url), init)).status;
  expect(await requestStatus('/')).toBe(404);
  expect(await requestStatus('/metrics/')).toBe(404);
  expect(await requestStatus('/metrics?name=x')).toBe(404);
  expect(await requestStatus('/metrics', { method: 'POST', body: 'x'.repeat(100_000) })).toBe(405);
});

test('the listener listens only on loopback, and names its setting if the port is taken', async () => {
  const { url } = await start();
  expect(url).toMatch(/^http:\/\/127\.0\.0\.1:/);
  const port = Number(new URL(url).port);
  await expect(start({ port })).rejects.toMatchObject({
    code: 'CONFIG',
    message: `can't listen on 127.0.0.1 and METRICS_PORT ${port}: EADDRINUSE`,
  });
});

test('the listener closes a connection after its answer, even if a second request was sent in advance', async () => {
  const { url } = await start({ maxAgeMs: 60_000 });
  const socket = dial(url);
  const request = 'GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n';
  socket.write(request + request);
  const text = await readAll(socket);
  expect(text.match(/HTTP\/1\.1/g)).toHaveLength(1);
});

test.each([
  ['an incomplete request', 'GET /met'],
  ['headers that do not end', 'GET /metrics HTTP/1.1\r\nHost: a\r\n'],
  ['a body that does not arrive', 'POST /metrics HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\n'],
  ['an upgrade', 'GET /metrics HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n'],
  ['CONNECT', 'CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n'],
  ['another protocol', '\x16\x03\x01\x00\xa5'],
  ['headers that are too long', `GET /metrics HTTP/1.1\r\nHost: ${'a'.repeat(8000)}\r\n\r\n`],
])('the listener closes a connection with %s', async (_caseName, bytes) => {
  const { url } = await start({ maxAgeMs: 200 });
  const socket = dial(url);
  socket.write(bytes);
  await readAll(socket);
  expect(await (await fetch(url)).text()).toBe(TEXT);
});

test('the listener closes a connection that sends bytes for ever', async () => {
  const { url } = await start({ maxAgeMs: 300 });
  const socket = dial(url);
  socket.write('GET /metrics HTTP/1.1\r\n');
  const sending = setInterval(() => socket.write('A: b\r\n'), 20);
  onTestFinished(() => clearInterval(sending));
  // The connection is reset if bytes were still on the way.
  socket.on('error', () => {}).resume();
  await closed(socket);
});

test('the listener keeps 16 connections of a flood, and still answers', async () => {
  // The age limit is far longer than the test, so it does not end a connection.
  const { url } = await start({ maxAgeMs: 60_000 });
  const sockets = Array.from({ length: 300 }, () => dial(url));
  await expect.poll(() => sockets.filter((socket) => socket.closed).length).toBe(300 - 16);
  expect((await fetch(url)).status).toBe(200);
});

test('the listener answers while silent connections take all places', async () => {
  const { url } = await start({ maxAgeMs: 60_000 });
  const sockets = Array.from({ length: 40 }, () => dial(url));
  await expect.poll(() => sockets.filter((socket) => socket.closed).length).toBe(40 - 16);
  for (let times = 0; times < 20; times += 1) expect((await fetch(url)).status).toBe(200);
});

test('the listener closes the connection if the metrics can not be produced', async () => {
  const { url } = await start({
    expose: () => {
      throw new Error('not now');
    },
  });
  await expect(fetch(url)).rejects.toThrow();
});
