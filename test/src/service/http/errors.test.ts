/**
 * Tests how connections with malformed HTTP end (in_flight.test.ts tests the answers), and how a bug is
 * answered.
 */
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { Duplex } from 'node:stream';
import { setImmediate } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { endpoint } from '../../../../src/server/application/app.ts';
import { answerError, onClientError } from '../../../../src/service/http/errors.ts';
import { sendJson } from '../../../../src/service/http/respond.ts';
import { createLog } from '../../../../src/service/log.ts';
import { startServer } from '../../server/support.ts';
import { HOSTILE_THROWN } from '../hostile_thrown.ts';

/** Makes a connection that records what is written to it. */
function createConnection() {
  const record = { written: '', errors: [] as Error[] };
  const socket = new Duplex({
    read() {},
    write(chunk, _encoding, done) {
      record.written += chunk;
      done();
    },
  });
  socket.on('error', (error) => record.errors.push(error));
  return { socket: socket as Socket, record };
}

const createError = (code: string) => Object.assign(new Error(code), { code });

test('an open connection gets an answer', async () => {
  const { socket, record } = createConnection();
  onClientError(createError('HPE_INVALID_METHOD'), socket);
  await setImmediate();
  expect(record.written).toMatch(/^HTTP\/1\.1 400 Bad Request\r\n/);
  expect(socket.writableEnded).toBe(true);
});

test('a reset connection is destroyed', async () => {
  const { socket, record } = createConnection();
  onClientError(createError('ECONNRESET'), socket);
  await setImmediate();
  expect(socket.destroyed).toBe(true);
  expect(record).toEqual({ written: '', errors: [] });
});

test('a connection after its last answer is destroyed', async () => {
  const { socket, record } = createConnection();
  socket.end('the answer');
  onClientError(createError('HPE_INVALID_METHOD'), socket);
  await setImmediate();
  expect(socket.destroyed).toBe(true);
  expect(record).toEqual({ written: 'the answer', errors: [] });
});

/**
 * Values that a handler may throw by mistake. A router or a proxy could take them for a signal or an answer.
 */
const THROWN = [
  undefined,
  null,
  0,
  'hunter2',
  'route',
  'router',
  Symbol('hunter2'),
  Object.create(null),
  ...HOSTILE_THROWN.map(([, make]) => make()),
  Object.assign(new Error('hunter2'), {
    status: 404,
    statusCode: 404,
    expose: true,
    headers: { a: 'hunter2' },
  }),
];

test('any value that a handler throws or rejects with is answered with 500 and the same text', async () => {
  const endpoints = THROWN.flatMap((thrown, number) => [
    endpoint({
      method: 'GET',
      path: `/throws-${number}`,
      handle() {
        throw thrown;
      },
    }),
    endpoint({ method: 'GET', path: `/rejects-${number}`, handle: () => Promise.reject(thrown) }),
  ]);
  const { get, printed } = await startServer({
    manifest: { endpoints: [], secrets: [] },
    module: { signs: [], create: () => ({ endpoints }) },
  });
  for (const { path } of endpoints) {
    const answer = await get(path);
    expect([path, answer.status, await answer.json()]).toEqual([
      path,
      500,
      { error: 'an internal error; see the log', code: 'INTERNAL' },
    ]);
  }
  expect(printed()).not.toContain('hunter2');
});

test('an answer that waits for the end of its turn is sent despite a later error', async () => {
  const delays: boolean[] = [];
  const listener: RequestListener = (request, response) => {
    sendJson(response, 200, { whole: true });
    delays.push(!response.writableEnded);
    answerError(new Error('a bug'), request, response, createLog('silent'));
  };
  const server = createServer(listener);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  try {
    const { port } = server.address() as AddressInfo;
    const answer = await fetch(`http://127.0.0.1:${port}/`);
    expect(await answer.json()).toEqual({ whole: true });
    expect(delays).toEqual([true]);
  } finally {
    server.close();
  }
});
