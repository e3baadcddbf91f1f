/** Checks how connections with malformed HTTP end; in_flight.test.ts checks the answers. */
import type { Socket } from 'node:net';
import { Duplex } from 'node:stream';
import { setImmediate } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { onClientError } from '../../../../src/server/http/errors.ts';

/** A connection that records what is written to it. */
function connection() {
  const seen = { written: '', errors: [] as Error[] };
  const socket = new Duplex({
    read() {},
    write(chunk, _encoding, done) {
      seen.written += chunk;
      done();
    },
  });
  socket.on('error', (error) => seen.errors.push(error));
  return { socket: socket as Socket, seen };
}

const failure = (code: string) => Object.assign(new Error(code), { code });

test('an open connection gets an answer', async () => {
  const { socket, seen } = connection();
  onClientError(failure('HPE_INVALID_METHOD'), socket);
  await setImmediate();
  expect(seen.written).toMatch(/^HTTP\/1\.1 400 Bad Request\r\n/);
  expect(socket.writableEnded).toBe(true);
});

test('a reset connection is destroyed', async () => {
  const { socket, seen } = connection();
  onClientError(failure('ECONNRESET'), socket);
  await setImmediate();
  expect(socket.destroyed).toBe(true);
  expect(seen).toEqual({ written: '', errors: [] });
});

test('a connection after its last answer is destroyed', async () => {
  const { socket, seen } = connection();
  socket.end('the answer');
  onClientError(failure('HPE_INVALID_METHOD'), socket);
  await setImmediate();
  expect(socket.destroyed).toBe(true);
  expect(seen).toEqual({ written: 'the answer', errors: [] });
});
