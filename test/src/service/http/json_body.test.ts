import type { IncomingMessage } from 'node:http';
import { PassThrough } from 'node:stream';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { JsonBodies } from '../../../../src/service/http/json_body.ts';

const KIB = 1024;

function bodies(limitBytes = 64 * KIB, timeoutMs = 30_000): JsonBodies {
  const reader = new JsonBodies(limitBytes, timeoutMs);
  onTestFinished(() => reader.stop());
  return reader;
}

/** Makes a request whose body the test sends. */
function open(headers: Record<string, string> = {}): PassThrough & IncomingMessage {
  const request = new PassThrough({ highWaterMark: 64 * KIB });
  return Object.assign(request, {
    headers: { 'content-type': 'application/json', ...headers },
  }) as unknown as PassThrough & IncomingMessage;
}

/** Resolves to the value, or to the code of the error. */
const outcome = (reading: Promise<unknown>) => reading.catch(({ code }: { code: string }) => code);

const turn = () => new Promise((resolve) => setImmediate(resolve));

function fakeClock(): (ms: number) => Promise<void> {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval', 'performance'] });
  onTestFinished(() => void vi.useRealTimers());
  return async (ms) => {
    await turn();
    vi.advanceTimersByTime(ms);
    await turn();
  };
}

describe('a JSON body', () => {
  test('is read as the same value in one piece and in many', async () => {
    const text = JSON.stringify({ text: 'é🌦'.repeat(500), list: [1, 2, 3] });
    const bytes = Buffer.from(text);
    for (const size of [16, 31, bytes.length]) {
      const request = open();
      const read = bodies(bytes.length).read(request);
      for (let at = 0; at < bytes.length; at += size) {
        request.write(bytes.subarray(at, at + size));
        if (at % 50 === 0) await turn();
      }
      request.end();
      expect(await read).toEqual(JSON.parse(text));
    }
  });

  test('uses at most twice its size in memory, even in the smallest pieces', async () => {
    const reader = bodies();
    const request = open();
    void outcome(reader.read(request));
    for (let sent = 1; sent <= 200; sent += 1) {
      request.write('[');
      await turn();
      expect(reader.held).toBeLessThanOrEqual(2 * sent);
    }
    request.destroy(new Error('gone'));
    await turn();
    expect(reader.held).toBe(0);
  });

  test.each([
    ['{}', 2, {}],
    ['{} ', 2, 'BODY_TOO_LARGE'],
  ])(
    'may be as long as the limit, and no longer: %j with a limit of %i bytes',
    async (text, limit, result) => {
      const request = open();
      const read = outcome(bodies(limit).read(request));
      for (const piece of text) request.write(piece);
      request.end();
      expect(await read).toEqual(result);
    },
  );
});

describe('the time for a body to arrive', () => {
  test('is 5 seconds', async () => {
    const pass = fakeClock();
    const reader = bodies();
    const read = outcome(reader.read(open()));
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
    const pass = fakeClock();
    const request = open();
    const read = outcome(bodies().read(request));
    request.write(`"${'x'.repeat(32 * KIB)}`);
    await pass(7000);
    request.write('"');
    request.end();
    expect(await read).toHaveLength(32 * KIB);
  });

  test('is not extended by single bytes', async () => {
    const pass = fakeClock();
    const request = open();
    const read = outcome(bodies().read(request));
    for (let second = 0; second < 6; second += 1) {
      request.write('[');
      await pass(1000);
    }
    expect(await read).toBe('REQUEST_TIMEOUT');
  });

  test('is never longer than REQUEST_TIMEOUT_MS without bytes', async () => {
    const pass = fakeClock();
    const read = outcome(bodies(64 * KIB, 1000).read(open()));
    await pass(1250);
    expect(await read).toBe('REQUEST_TIMEOUT');
  });
});

test('incomplete bodies use at most 16 MiB together: beyond that, the oldest fails and a new body is read', async () => {
  const limit = 4 * KIB * KIB;
  const reader = bodies(limit);
  const outcomes: Promise<unknown>[] = [];
  for (let sent = 0; sent < 5; sent += 1) {
    const request = open();
    outcomes.push(outcome(reader.read(request)));
    request.write(Buffer.alloc(limit - 1, '['));
    await turn();
    expect(reader.held).toBeLessThanOrEqual(16 * KIB * KIB);
  }
  expect(await outcomes[0]).toBe('OVERLOADED');
  const honest = open();
  const read = reader.read(honest);
  honest.end('{"sides":6}');
  expect(await read).toEqual({ sides: 6 });
});
