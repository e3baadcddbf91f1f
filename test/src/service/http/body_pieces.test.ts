/**
 * Tests that a body in too many pieces ends its connection at the same limit everywhere, even if it is
 * unread.
 */
import { once } from 'node:events';
import { IncomingMessage } from 'node:http';
import { connect, type Socket } from 'node:net';
import express, { Router } from 'express';
import { beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import { SEALED_TYPE } from '../../../../src/library/sealing/request.ts';
import { type ApplicationModule, endpoint } from '../../../../src/server/application/app.ts';
import { Connections } from '../../../../src/service/http/connections.ts';
import { serveMetrics } from '../../../../src/service/http/metrics_listener.ts';
import { startServer } from '../../server/support.ts';

/** Number of one-byte pieces that ends a connection: 256, one for every 16 bytes, and one more. */
const LIMIT = 256 + 17 + 1;
/** Body that takes Node more than two reads. */
const PIECES = '1\r\nx\r\n'.repeat(25_000);

/** Number of pieces of bodies that Node's parsers have handed over. */
let pieceCount = 0;

/** Parsers whose pieces are already counted. Node reuses parsers. */
const countedParsers = new WeakSet<object>();

/** Counts the pieces of a parser: Node calls one function of the parser for each piece. */
function countPieces({ parser }: Socket & { parser?: Record<string, (piece: Buffer) => void> }): void {
  if (parser && countedParsers.has(parser)) return;
  const name = Object.keys(parser ?? {}).find((name) => parser?.[name]?.name === 'parserOnBody');
  const original = name === undefined ? undefined : parser?.[name];
  if (!parser || name === undefined || !original) throw new Error('this Node has another parser');
  countedParsers.add(parser);
  parser[name] = function parserOnBody(this: unknown, piece: Buffer) {
    pieceCount += 1;
    original.call(this, piece);
  };
}

beforeEach(() => {
  pieceCount = 0;
  const { addConnection } = Connections.prototype;
  const spy = vi.spyOn(Connections.prototype, 'addConnection').mockImplementation(function (
    this: Connections,
    socket,
  ) {
    countPieces(socket as never);
    addConnection.call(this, socket);
  });
  onTestFinished(() => spy.mockRestore());
});

function createModule(): ApplicationModule {
  const router = Router();
  router.get('/text', (_request, response) => void response.send('hello'));
  router.get('/hang', () => {});
  router.get('/stream', (_request, response) => void response.write('a part'));
  router.post('/json', express.raw({ type: () => true }), ({ body }, response) => {
    response.json(body.length);
  });
  const quote = endpoint({ method: 'GET', path: '/quote', handle: async () => ({ quote: 1 }) });
  const hang = endpoint({ method: 'GET', path: '/hang', handle: () => new Promise(() => {}) });
  return { signs: [], create: () => ({ endpoints: [quote, hang], routes: { prefix: '/x', router } }) };
}

const start = (env: Record<string, string> = {}) =>
  startServer({ module: createModule(), manifest: { endpoints: [], secrets: [] }, env });

function dial(url: string, bytes: string): Socket {
  const socket = connect(Number(new URL(url).port), '127.0.0.1', () => socket.write(bytes));
  socket.on('error', () => {}).resume();
  onTestFinished(() => void socket.destroy());
  return socket;
}

/** Waits until the connection is closed. A reset counts too, though `once` would throw at a reset. */
async function waitUntilClosed(socket: Socket): Promise<void> {
  if (!socket.closed) await new Promise<void>((resolve) => socket.once('close', () => resolve()));
}

const head = (line: string, headers = '') =>
  `${line} HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n${headers}\r\n`;
const JSON_TYPE = 'Content-Type: application/json\r\n';
const PREFLIGHT = 'Origin: https://a.example\r\nAccess-Control-Request-Method: POST\r\n';

describe('a connection ends after 274 pieces of one byte', () => {
  test.each([
    ['of GET /', head('GET /')],
    ['of HEAD /', head('HEAD /')],
    ['of a GET with a handler', head('GET /quote')],
    ['of a GET whose handler hangs', head('GET /hang')],
    ['of an unknown path', head('GET /nowhere')],
    ['of a POST to an unknown path', head('POST /nowhere', JSON_TYPE)],
    ['of a method that the endpoint lacks', head('DELETE /quote')],
    ['of a preflight', head('OPTIONS /quote', PREFLIGHT)],
    ['of OPTIONS *', head('OPTIONS *')],
    ['of a request without Host', 'GET / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n'],
    ['of a request with too many headers', head('GET /', 'a: b\r\n'.repeat(100))],
    ['of a request that expects 100-continue', head('GET /', 'Expect: 100-continue\r\n')],
    ['of a request that asks for an upgrade', head('GET /', 'Connection: upgrade\r\nUpgrade: x\r\n')],
    ['of a set of secrets', head('POST /secrets', JSON_TYPE)],
    ['of a sealed request', head('POST /sealed', `Content-Type: ${SEALED_TYPE}\r\n`)],
    ['of a sealed request of another type', head('POST /sealed', JSON_TYPE)],
    ["of a GET to the application's routes", head('GET /x/text')],
    ["of a request to the application's routes that hangs", head('GET /x/hang')],
    ["of a request to the application's routes whose answer has begun", head('GET /x/stream')],
    ["of a POST to the application's routes", head('POST /x/json', JSON_TYPE)],
    ["of an unknown path of the application's routes", head('POST /x/nowhere')],
    ['behind a request that hangs', `GET /hang HTTP/1.1\r\nHost: x\r\n\r\n${head('GET /')}`],
    ['behind a request that is answered', `GET / HTTP/1.1\r\nHost: x\r\n\r\n${head('POST /nowhere')}`],
  ])('%s', async (_caseName, bytes) => {
    const { url, get } = await start();
    await waitUntilClosed(dial(url, bytes + PIECES));
    expect(pieceCount).toBeLessThanOrEqual(LIMIT);
    expect((await get('/quote')).status).toBe(200);
  });
});

test.each([20, 60])('%i connections with such bodies do not keep honest callers out', async (count) => {
  const { url, get, post } = await start();
  const attackers = Array.from({ length: count }, () => dial(url, head('GET /') + PIECES));
  const ended = Promise.all(attackers.map((socket) => waitUntilClosed(socket)));
  await Promise.all(attackers.map((socket) => once(socket, 'connect')));
  for (let turn = 0; turn < 5; turn += 1) expect((await get('/quote')).status).toBe(200);
  await ended;
  expect(pieceCount).toBeLessThanOrEqual(count * LIMIT);
  // The stopped parsers are reused for others, whose bodies are read.
  const answers = await Promise.all(Array.from({ length: count }, () => post('/x/json', 'x'.repeat(5000))));
  expect(await Promise.all(answers.map((answer) => answer.json()))).toEqual(Array(count).fill(5000));
});

test('a parser that a request has stopped serves the request behind it, and requests of other connections', async () => {
  const { url, post } = await start();
  const wholeBody = `${'1\r\nx\r\n'.repeat(1000)}0\r\n\r\n`;
  const behind = [
    `CONNECT x:1 HTTP/1.1\r\nHost: x\r\n\r\n`,
    `GET / HTTP/1.1\r\nHost: x\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n`,
    'garbage\r\n\r\n',
    head('GET /') + wholeBody,
  ];
  for (const bytes of behind) await waitUntilClosed(dial(url, head('GET /') + wholeBody + bytes));
  for (let turn = 0; turn < 5; turn += 1) {
    const headers = { connection: 'close', 'content-type': 'text/plain' };
    expect(await (await post('/x/json', 'x'.repeat(5000), { headers })).json()).toBe(5000);
  }
});

test('a body in pieces of 16 bytes may have any number of pieces', async () => {
  const { post } = await start();
  const body = new ReadableStream({
    pull(controller) {
      pieces += 1;
      if (pieces > 2000) controller.close();
      else controller.enqueue(new Uint8Array(16));
    },
  });
  let pieces = 0;
  const answer = await post('/x/json', '', { body, duplex: 'half' } as RequestInit);
  expect(await answer.json()).toBe(32_000);
});

describe('a body that no endpoint reads', () => {
  test('has the same size limit as other bodies, by its Content-Length', async () => {
    const { url } = await start({ BODY_LIMIT_BYTES: '1024' });
    const ask = async (bytes: number) => {
      const socket = dial(url, `GET / HTTP/1.1\r\nHost: x\r\nContent-Length: ${bytes}\r\n\r\n`);
      const [answer] = await once(socket, 'data');
      return String(answer);
    };
    expect(await ask(1025)).toMatch(/^HTTP\/1\.1 413 .*connection: close.*"code":"BODY_TOO_LARGE"/is);
    expect(await ask(1024)).toMatch(/^HTTP\/1\.1 200 .*Pong!$/s);
  });

  test('has the same size limit if it is chunked', async () => {
    const { url } = await start({ BODY_LIMIT_BYTES: '1024' });
    const chunk = `400\r\n${'x'.repeat(1024)}\r\n`;
    const socket = dial(url, head('GET /hang') + chunk);
    await expect.poll(() => pieceCount).toBe(1);
    expect(socket.closed).toBe(false);
    socket.write('1\r\nx\r\n');
    await waitUntilClosed(socket);
  });
});

test('the metrics listener has the same limit', async () => {
  const expose = vi.fn(() => new Promise<never>(() => {}));
  const listener = await serveMetrics({ port: 0, expose, maxAgeMs: 60_000 });
  onTestFinished(() => listener.close());
  const push = vi.spyOn(IncomingMessage.prototype, 'push');
  onTestFinished(() => push.mockRestore());
  const socket = dial(listener.url, head('GET /metrics') + PIECES);
  await waitUntilClosed(socket);
  expect(expose).toHaveBeenCalledOnce();
  expect(push.mock.calls.length).toBeLessThanOrEqual(LIMIT);
});
