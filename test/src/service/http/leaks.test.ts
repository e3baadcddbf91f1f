/** Tests that a connection leaves nothing in memory when it closes, whatever it has sent. */
import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { connect, type Socket } from 'node:net';
import fc from 'fast-check';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { Connections } from '../../../../src/service/http/connections.ts';
import { createHttpServer, listen, shutDown } from '../../../../src/service/http/http_server.ts';
import type { InFlight } from '../../../../src/service/http/in_flight.ts';
import type { JsonBodies } from '../../../../src/service/http/json_body.ts';
import { sendJson } from '../../../../src/service/http/respond.ts';
import { createLog } from '../../../../src/service/log.ts';
import { sleep } from '../../server/support.ts';

/** Number of connections to try; LEAK_CONNECTIONS sets it, for example to 100000. */
const CONNECTIONS = Number(process.env['LEAK_CONNECTIONS'] ?? 1000);
const AT_ONCE = 25;

interface LeakTest {
  readonly port: number;
  readonly requests: IncomingMessage[];
  /**
   * Counts what the server keeps: requests in flight, bytes of incomplete bodies, requests that wait for an
   * answer, and connections.
   */
  held(): number[];
}

async function start(): Promise<LeakTest> {
  const addConnection = vi.spyOn(Connections.prototype, 'addConnection');
  onTestFinished(() => addConnection.mockRestore());
  let inFlight = undefined as unknown as InFlight;
  let bodies = undefined as unknown as JsonBodies;
  const server = createHttpServer({
    limits: {
      bodyLimitBytes: 64 * 1024,
      maxConcurrentRequests: 256,
      maxConnections: 400,
      requestTimeoutMs: 30_000,
    },
    log: createLog('silent', { write() {} }),
    upstreamHosts: 0,
    corsOrigins: '*',
    trustedProxies: 0,
    routes: (app, ...routeParts) => {
      [inFlight, bodies] = routeParts;
      for (const ms of [0, 20, 300]) {
        app.get(`/${ms}`, (_request, response) =>
          inFlight.work(response, async () => {
            await sleep(ms);
            sendJson(response, 200, { ms });
          }),
        );
      }
      app.post('/echo', async (request, response) => {
        const body = await bodies.read(request);
        await inFlight.work(response, () => sendJson(response, 200, { body }));
      });
    },
  });
  const requests: IncomingMessage[] = [];
  server.on('request', (request) => void requests.push(request));
  const url = await listen(server, { host: '127.0.0.1', port: 0, maxConnections: 400 });
  onTestFinished(() => shutDown(server, 0));
  const connections = () => addConnection.mock.contexts[0] as Connections | undefined;
  return {
    port: Number(new URL(url).port),
    requests,
    held: () => [inFlight.size, bodies.held, connections()?.pending ?? 0, connections()?.size ?? 0],
  };
}

const NOTHING = [0, 0, 0, 0];

async function send(port: number, bytes: string): Promise<Socket> {
  const socket = connect(port, '127.0.0.1');
  socket.on('error', () => {});
  socket.resume();
  onTestFinished(() => void socket.destroy());
  await once(socket, 'connect');
  if (bytes !== '') await new Promise((resolve) => socket.write(bytes, resolve));
  return socket;
}

const ask = (path: string, head = '') => `GET ${path} HTTP/1.1\r\nHost: x\r\n${head}\r\n`;
const JSON_HEAD = 'Content-Type: application/json\r\n';
const echo = (body: string, head = JSON_HEAD) =>
  `POST /echo HTTP/1.1\r\nHost: x\r\n${head}Content-Length: ${body.length}\r\n\r\n${body}`;

/** Requests of a client, by kind. */
const PIECES = {
  'a GET': ask('/0'),
  'a slow GET': ask('/20'),
  'a GET with a body': `${ask('/0', 'Content-Length: 5000\r\n')}${'x'.repeat(5000)}`,
  'a GET with chunks': `${ask('/20', 'Transfer-Encoding: chunked\r\n')}3e8\r\n${'x'.repeat(1000)}\r\n0\r\n\r\n`,
  'a POST': echo(`"${'x'.repeat(3000)}"`),
  'a POST that expects 100-continue': echo('"x"', `${JSON_HEAD}Expect: 100-continue\r\n`),
  'a POST of another type': echo('x'.repeat(2000), 'Content-Type: text/plain\r\n'),
  'a POST that is too large': `POST /echo HTTP/1.1\r\nHost: x\r\n${JSON_HEAD}Content-Length: 70000\r\n\r\n${'x'.repeat(500)}`,
  'an unknown path': ask('/nowhere', 'Content-Length: 10\r\n') + 'x'.repeat(10),
  'an upgrade': ask('/20', 'Connection: upgrade\r\nUpgrade: websocket\r\n'),
  'a CONNECT': 'CONNECT x:1 HTTP/1.1\r\nHost: x\r\n\r\n',
  garbage: 'hello\r\n\r\n',
};

describe('a connection that closes leaves nothing behind after', () => {
  const slow = ask('/300');
  test.each([
    ['nine requests in one write', ask('/20').repeat(9)],
    ['a slow request and eight behind it', slow + ask('/0').repeat(8)],
    ['a slow request and seven behind it', slow + ask('/0').repeat(7)],
    ['a slow request and eight requests with bodies', slow + PIECES['a GET with a body'].repeat(8)],
    ['a slow request and eight bodies to read', slow + PIECES['a POST'].repeat(8)],
    ['a slow request and CONNECT', slow + ask('/0').repeat(3) + PIECES['a CONNECT']],
    ['a slow request and garbage', slow + ask('/0').repeat(3) + PIECES.garbage],
    ['a slow request and an upgrade', slow + PIECES['an upgrade'].repeat(8)],
    ['an incomplete body behind other requests', slow + ask('/0') + PIECES['a POST'].slice(0, -1000)],
    ['an incomplete head behind other requests', `${slow}${ask('/0')}GET /`],
    ['CONNECT alone', PIECES['a CONNECT']],
  ])('%s', async (_, bytes) => {
    const { port, held } = await start();
    const socket = await send(port, bytes);
    await sleep(50);
    socket.destroy();
    await expect.poll(held).toEqual(NOTHING);
  });
});

test('connections that are cut at any byte, in any of three ways, leave nothing behind', async () => {
  const { port, held } = await start();
  const cut = fc.record({
    pieces: fc.array(fc.constantFrom(...Object.values(PIECES)), { minLength: 1, maxLength: 12 }),
    sentShare: fc.double({ min: 0, max: 1, noNaN: true }),
    waitMs: fc.constantFrom(0, 0, 5, 30),
    closeMethod: fc.constantFrom('destroy', 'resetAndDestroy', 'end' as const),
  });
  await fc.assert(
    fc.asyncProperty(fc.array(cut, { minLength: AT_ONCE, maxLength: AT_ONCE }), async (all) => {
      await Promise.all(
        all.map(async ({ pieces, sentShare, waitMs, closeMethod }) => {
          const bytes = pieces.join('');
          const socket = await send(port, bytes.slice(0, Math.ceil(sentShare * bytes.length)));
          if (waitMs > 0) await sleep(waitMs);
          socket[closeMethod]();
          if (closeMethod === 'end') await sleep(5);
          socket.destroy();
        }),
      );
    }),
    { numRuns: CONNECTIONS / AT_ONCE },
  );
  await expect.poll(held).toEqual(NOTHING);
  // The server still takes eight requests at once.
  let received = '';
  const socket = await send(port, ask('/20').repeat(8));
  socket.on('data', (chunk) => {
    received += chunk;
  });
  await expect.poll(() => received.match(/200 OK/g)?.length).toBe(8);
}, 3_600_000);

test('unread bodies are not kept, even behind a slow request', async () => {
  const { port, requests } = await start();
  const unread = [PIECES['a GET with a body'], PIECES['a POST of another type'], PIECES['a GET with chunks']];
  await send(port, ask('/300') + unread.join(''));
  await expect.poll(() => requests.filter(({ complete }) => complete).length).toBe(4);
  expect(requests.map(({ readableLength }) => readableLength)).toEqual([0, 0, 0, 0]);
});

test('2,400 requests in one write create at most nine request objects', async () => {
  const isFull = vi.spyOn(Connections.prototype, 'isFull');
  onTestFinished(() => isFull.mockRestore());
  const { port } = await start();
  const socket = await send(port, ask('/20').repeat(2400));
  await new Promise((resolve) => socket.on('close', resolve));
  // The function is called once for each request object, and once to find out whether the last request is an
  // upgrade.
  expect(isFull.mock.calls.length).toBeLessThanOrEqual(10);
});
