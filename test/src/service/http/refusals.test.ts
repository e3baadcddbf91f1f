import type { IncomingMessage } from 'node:http';
import { connect, type Socket } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import {
  createHttpServer,
  type HttpServerParts,
  listen,
  shutDown,
} from '../../../../src/service/http/http_server.ts';
import type { InFlight, RequestEnd } from '../../../../src/service/http/in_flight.ts';
import { sendJson } from '../../../../src/service/http/respond.ts';
import { createLog } from '../../../../src/service/log.ts';

/** Starts a service with one slot. `/held` holds the slot until `release` is called. */
async function startService({
  level = 'info',
  ...parts
}: Partial<HttpServerParts> & { level?: string } = {}) {
  let printed = '';
  let inFlight = undefined as unknown as InFlight;
  const held = Promise.withResolvers<void>();
  const begun = Promise.withResolvers<void>();
  const ends: RequestEnd[] = [];
  const server = createHttpServer({
    limits: { bodyLimitBytes: 1024, maxConcurrentRequests: 1, maxConnections: 64, requestTimeoutMs: 60_000 },
    log: createLog(level, { write: (line) => (printed += line) }),
    upstreamHosts: 0,
    corsOrigins: '*',
    trustedProxies: 0,
    slotEndpoints: [
      { method: 'POST', path: '/sum' },
      { method: 'GET', path: '/list' },
    ],
    onEnd: (end) => ends.push(end),
    routes: (app, requests, bodies) => {
      inFlight = requests;
      app.post('/sum', async (request, response) => {
        const body = await bodies.read(request);
        await requests.work(response, () => sendJson(response, 200, { body }));
      });
      app.get('/list', (_request, response) => requests.work(response, () => sendJson(response, 200, {})));
      app.get('/held', (_request, response) =>
        requests.work(response, async () => {
          begun.resolve();
          await held.promise;
          sendJson(response, 200, { held: true });
        }),
      );
      app.get('/livez', (_request, response) => sendJson(response, 200, { live: true }));
    },
    ...parts,
  });
  const url = await listen(server, { host: '127.0.0.1', port: 0, maxConnections: 64 });
  onTestFinished(() => shutDown(server, 0));
  const port = Number(new URL(url).port);
  return {
    url,
    ends,
    begun: begun.promise,
    release: held.resolve,
    printed: () => printed,
    size: () => inFlight.size,
    close: () => shutDown(server, 60_000),
    open: () => open(port),
  };
}

/** Starts a service whose slot is taken. */
async function startFull(parts: Parameters<typeof startService>[0] = {}) {
  const service = await startService(parts);
  const busy = service.open();
  busy.send(get('/held'));
  await service.begun;
  return { ...service, busy };
}

interface Peer {
  readonly socket: Socket;
  send(bytes: string): void;
  /** Waits for this many answers, or the end of the connection. Returns all that was received. */
  answers(count: number): Promise<string>;
}

function open(port: number): Peer {
  const socket = connect(port, '127.0.0.1').setNoDelay();
  onTestFinished(() => void socket.destroy());
  let received = '';
  socket.on('data', (chunk) => (received += chunk));
  socket.on('error', () => {});
  const countAnswers = () => (socket.closed ? Infinity : received.split(/\}$|\}(?=HTTP)/).length - 1);
  return {
    socket,
    send: (bytes) => void socket.write(bytes),
    async answers(count) {
      await expect.poll(countAnswers, { interval: 5 }).toBeGreaterThanOrEqual(count);
      return received;
    },
  };
}

const get = (path: string, headers = '') => `GET ${path} HTTP/1.1\r\nHost: x\r\n${headers}\r\n`;
const postHead = (body: string, headers = '') =>
  `POST /sum HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n${headers}\r\n`;
const post = (body: string, headers = '') => postHead(body, headers) + body;
const listStatuses = (received: string) =>
  [...received.matchAll(/HTTP\/1\.1 (\d+)/g)].map(([, status]) => status);
/** Replaces the parts in which two answers differ. */
const normalise = (received: string) =>
  received
    .replace(/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/, '<id>')
    .replace(/Date: .*\r/, 'Date: <date>\r');
const listLines = (printed: string) =>
  printed
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line));

test.each([
  ['all origins', '*', 'https://a.test'],
  ['an allowed origin', ['https://a.test'], 'https://a.test'],
  ['another origin', ['https://a.test'], 'https://b.test'],
] as const)(
  'a full service answers a page of %s byte for byte as the endpoint would after reading the body',
  async (_, corsOrigins, origin) => {
    const { open } = await startFull({ corsOrigins, exposedHeaders: ['x-key'] });
    const [earlyPeer, latePeer] = [open(), open()];
    earlyPeer.send(post('{}', `Origin: ${origin}\r\n`));
    const answer = await earlyPeer.answers(1);
    // This body arrives after its head, so the endpoint reads it.
    latePeer.send(postHead('{}', `Origin: ${origin}\r\n`));
    await new Promise((resolve) => setTimeout(resolve, 50));
    latePeer.send('{}');
    expect(normalise(answer)).toBe(normalise(await latePeer.answers(1)));
    expect(answer).toMatch(/^HTTP\/1\.1 503 /);
    expect(answer).toMatch(/\r\nretry-after: 1\r\n/);
    expect(answer).toMatch(/\r\ncache-control: no-store\r\n/);
    expect(answer).toMatch(
      /\r\n\r\n\{"error":"the server is busy with 1 request: try again","code":"OVERLOADED"\}$/,
    );
    expect(answer.includes('access-control-allow-origin')).toBe(origin !== 'https://b.test');
    expect(answer.includes('vary: Origin')).toBe(corsOrigins !== '*');
  },
);

test('a full service keeps the connection, on which later requests are answered', async () => {
  const { open, release, busy } = await startFull();
  const peer = open();
  peer.send(post('not JSON'));
  await peer.answers(1);
  peer.send(get('/list?a=b'));
  expect(listStatuses(await peer.answers(2))).toEqual(['503', '503']);
  release();
  await busy.answers(1);
  peer.send(post('{"a":1}'));
  const received = await peer.answers(3);
  expect(listStatuses(received)).toEqual(['503', '503', '200']);
  expect(received).toMatch(/\{"body":\{"a":1\}\}$/);
});

test('a full service answers a request whose body comes when a slot is free again', async () => {
  const { open, release, busy } = await startFull();
  const peer = open();
  peer.send(postHead('{"a":1}'));
  await new Promise((resolve) => setTimeout(resolve, 50));
  release();
  await busy.answers(1);
  peer.send('{"a":1}');
  expect(await peer.answers(1)).toMatch(/^HTTP\/1\.1 200 .*\{"body":\{"a":1\}\}$/s);
});

test('a full service answers pipelined requests in their order', async () => {
  const { open } = await startFull();
  const peer = open();
  peer.send(get('/livez') + post('{}') + get('/livez') + get('/list') + get('/livez'));
  expect(listStatuses(await peer.answers(5))).toEqual(['200', '503', '200', '503', '200']);
});

test('a full service refuses pipelined requests beyond the eighth by closing the connection', async () => {
  const { open, size } = await startFull();
  const peer = open();
  peer.send(get('/list').repeat(2000));
  const received = await peer.answers(Number.POSITIVE_INFINITY);
  expect(listStatuses(received).length).toBeLessThanOrEqual(8);
  await expect.poll(size).toBe(1);
});

test.each([
  ['without Host', 'GET /list HTTP/1.1\r\n\r\n', '400 '],
  ['with two Host headers', get('/list', 'Host: y\r\n'), '400 '],
  ['with too many headers', get('/list', 'A: b\r\n'.repeat(101)), '431 '],
  ['for an unknown path', get('/lists'), '404 '],
  ['for a method that the endpoint lacks', 'PUT /sum HTTP/1.1\r\nHost: x\r\n\r\n', '405 '],
  ['for liveness', get('/livez'), '200 '],
  ['with a body beyond the limit', postHead('x'.repeat(1025)), '413 '],
])('a full service leaves a request %s to the application', async (_, request, status) => {
  const { open } = await startFull();
  const peer = open();
  peer.send(request);
  expect((await peer.answers(1)).slice('HTTP/1.1 '.length)).toMatch(new RegExp(`^${status}`));
});

test('a full service leaves a request that a development server does not admit to the application', async () => {
  const corsOrigins = { includes: () => false, admits: ({ url }: IncomingMessage) => url === '/held' };
  const { open } = await startFull({ corsOrigins });
  const peer = open();
  peer.send(get('/list'));
  expect(await peer.answers(1)).toMatch(/^HTTP\/1\.1 400 /);
});

test('a full service answers a preflight', async () => {
  const { open } = await startFull();
  const peer = open();
  peer.send(
    'OPTIONS /sum HTTP/1.1\r\nHost: x\r\nConnection: close\r\nOrigin: https://a.test\r\nAccess-Control-Request-Method: POST\r\n\r\n',
  );
  expect(await peer.answers(Number.POSITIVE_INFINITY)).toMatch(/^HTTP\/1\.1 204 /);
});

test('a full service logs each refusal at level debug, and logs a warning with their number once a second', async () => {
  const { open, ends, printed } = await startFull({ level: 'debug' });
  const peer = open();
  for (let count = 1; count <= 3; count += 1) {
    peer.send(post('hunter2'));
    await peer.answers(count);
  }
  const received = await peer.answers(3);
  const ids = [...received.matchAll(/x-request-id: (\S+)/g)].map(([, id]) => id);
  const refusal = { route: '/sum', status: 503, code: 'OVERLOADED', isComplete: true, isSealed: false };
  expect(ends).toMatchObject(ids.map((id) => ({ id, ...refusal })));
  await expect.poll(printed).toContain('"level":"warn"');
  const lines = listLines(printed());
  expect(lines.filter(({ level }) => level === 'warn')).toMatchObject([{ code: 'OVERLOADED', requests: 3 }]);
  expect(
    lines
      .filter(({ msg }) => msg === 'request')
      .map(({ request_id, method, route, status, code }) => ({ request_id, method, route, status, code })),
  ).toEqual(
    ids.map((request_id) => ({ request_id, method: 'POST', route: '/sum', status: 503, code: 'OVERLOADED' })),
  );
  expect(printed()).not.toContain('hunter2');
});

test('a full service does not log single refusals at level info', async () => {
  const { open, printed } = await startFull();
  const peer = open();
  peer.send(get('/list'));
  await peer.answers(1);
  await expect.poll(printed).toContain('"requests":1');
  expect(listLines(printed())).toMatchObject([{ level: 'warn', code: 'OVERLOADED', requests: 1 }]);
});

test('a full service that stops reports the refusals that it has not reported yet', async () => {
  const { open, close, release, printed } = await startFull({ level: 'warn' });
  const peer = open();
  peer.send(get('/list'));
  await peer.answers(1);
  release();
  await close();
  expect(listLines(printed())).toMatchObject([{ level: 'warn', code: 'OVERLOADED', requests: 1 }]);
});

test('a full service that shuts down refuses requests, and closes their connections', async () => {
  const { open, close, release } = await startFull();
  const peer = open();
  peer.send(get('/list'));
  await peer.answers(1);
  const peerWithOpenHead = open();
  peerWithOpenHead.send('GET /list HTTP/1.1\r\n');
  await expect.poll(() => peerWithOpenHead.socket.bytesWritten).toBeGreaterThan(0);
  await new Promise((resolve) => setTimeout(resolve, 50));
  const closed = close();
  peerWithOpenHead.send('Host: x\r\n\r\n');
  expect(await peerWithOpenHead.answers(Number.POSITIVE_INFINITY)).toMatch(/^HTTP\/1\.1 503 /);
  release();
  await closed;
});

test('a full service forgets callers who leave before they are refused', async () => {
  const { open, size, printed } = await startFull();
  for (let count = 0; count < 50; count += 1) {
    const peer = open();
    peer.send(count % 2 === 0 ? get('/list') : postHead('{}'));
    await new Promise((resolve) => peer.socket.once('connect', resolve));
    peer.socket.resetAndDestroy();
  }
  await expect.poll(size).toBe(1);
  expect(printed()).not.toMatch(/"level":"error"|INTERNAL/);
});
