import type { IncomingMessage } from 'node:http';
import { PassThrough } from 'node:stream';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { JsonBodies } from '../../../../src/service/http/json_body.ts';

const KIB = 1024;

function createReader(limitBytes = 64 * KIB, timeoutMs = 30_000): JsonBodies {
  const reader = new JsonBodies(limitBytes, timeoutMs);
  onTestFinished(() => reader.stop());
  return reader;
}

/** Makes a request whose body the test sends. */
function createRequest(headers: Record<string, string> = {}): PassThrough & IncomingMessage {
  const request = new PassThrough({ highWaterMark: 64 * KIB });
  return Object.assign(request, {
    headers: { 'content-type': 'application/json', ...headers },
  }) as unknown as PassThrough & IncomingMessage;
}

/** Resolves to the body's value, or to the code of the error. */
const outcome = (reading: Promise<unknown>) => reading.catch(({ code }: { code: string }) => code);

const nextTurn = () => new Promise((resolve) => setImmediate(resolve));

function useFakeClock(): (ms: number) => Promise<void> {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval', 'performance'] });
  onTestFinished(() => void vi.useRealTimers());
  return async (ms) => {
    await nextTurn();
    vi.advanceTimersByTime(ms);
    await nextTurn();
  };
}

describe('a JSON body', () => {
  test('is read as the same value in one piece and in many', async () => {
    const text = JSON.stringify({ text: 'é🌦'.repeat(500), list: [1, 2, 3] });
    const bytes = Buffer.from(text);
    for (const size of [16, 31, bytes.length]) {
      const request = createRequest();
      const read = createReader(bytes.length).read(request);
      for (let at = 0; at < bytes.length; at += size) {
        request.write(bytes.subarray(at, at + size));
        if (at % 50 === 0) await nextTurn();
      }
      request.end();
      expect(await read).toEqual(JSON.parse(text));
    }
  });

  test('uses at most twice its size in memory, even in the smallest pieces', async () => {
    const reader = createReader();
    const request = createRequest();
    void outcome(reader.read(request));
    for (let size = 1; size <= 200; size += 1) {
      request.write('[');
      await nextTurn();
      expect(reader.held).toBeLessThanOrEqual(2 * size);
    }
    request.destroy(new Error('gone'));
    await nextTurn();
    expect(reader.held).toBe(0);
  });

  test.each([
    ['{}', 2, {}],
    ['{} ', 2, 'BODY_TOO_LARGE'],
  ])(
    'may be as long as the limit, and no longer: %j with a limit of %i bytes',
    async (text, limit, expected) => {
      const request = createRequest();
      const read = outcome(createReader(limit).read(request));
      for (const piece of text) request.write(piece);
      request.end();
      expect(await read).toEqual(expected);
    },
  );
});

describe('the time for a body to arrive', () => {
  test('is 5 seconds', async () => {
    const pass = useFakeClock();
    const reader = createReader();
    const read = outcome(reader.read(createRequest()));
    let settled = false;
    void read.then(() => {
      settled = true;
    });
    await pass(5000);
    expect(settled).toBe(false);
    await pass(250);
    expect(await read).toBe('REQUEST_TIMEOUT');
    expect(reader.held).toBe(0);
  });

  test('is extended by a second for every 16 KiB', async () => {
    const pass = useFakeClock();
    const request = createRequest();
    const read = outcome(createReader().read(request));
    request.write(`"${'x'.repeat(32 * KIB)}`);
    await pass(7000);
    request.write('"');
    request.end();
    expect(await read).toHaveLength(32 * KIB);
  });

  test('is not extended by single bytes', async () => {
    const pass = useFakeClock();
    const request = createRequest();
    const read = outcome(createReader().read(request));
    for (let second = 0; second < 6; second += 1) {
      request.write('[');
      await pass(1000);
    }
    expect(await read).toBe('REQUEST_TIMEOUT');
  });

  test('is at most REQUEST_TIMEOUT_MS if no bytes arrive', async () => {
    const pass = useFakeClock();
    const read = outcome(createReader(64 * KIB, 1000).read(createRequest()));
    await pass(1250);
    expect(await read).toBe('REQUEST_TIMEOUT');
  });
});

test('incomplete bodies use at most 16 MiB together: beyond that, the oldest fails and a new body is read', async () => {
  const limit = 4 * KIB * KIB;
  const reader = createReader(limit);
  const outcomes: Promise<unknown>[] = [];
  for (let index = 0; index < 5; index += 1) {
    const request = createRequest();
    outcomes.push(outcome(reader.read(request)));
    request.write(Buffer.alloc(limit - 1, '['));
    await nextTurn();
    expect(reader.held).toBeLessThanOrEqual(16 * KIB * KIB);
  }
  expect(await outcomes[0]).toBe('OVERLOADED');
  const honest = createRequest();
  const read = reader.read(honest);
  honest.end('{"sides":6}');
  expect(await read).toEqual({ sides: 6 });
});
