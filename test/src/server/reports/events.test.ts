/**
 * Events of a production enclave. They have fixed fields, and of a sealed request they say only that it
 * arrived.
 */
import { execFileSync } from 'node:child_process';
import { closeSync, constants, mkdtempSync, openSync, readSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { decodeAttestation } from '../../../../src/library/attestation/index.ts';
import { SEALED_TYPE, type SealedCall, sealRequest } from '../../../../src/library/sealing/request.ts';
import type { Answer } from '../../../../src/library/sealing/response.ts';
import { decodeUserData } from '../../../../src/library/sealing/user_data.ts';
import { defineApp, endpoint } from '../../../../src/server/index.ts';
import { type EventSink, Events, pipeSink } from '../../../../src/server/reports/events.ts';
import { EmulatedNsm } from '../../../../src/testing/emulated_nsm.ts';
import { HOSTILE_THROWN } from '../../service/hostile_thrown.ts';
import { startServer, type TestServer } from '../support.ts';

const nsm = new EmulatedNsm();
const manifest = { endpoints: [], secrets: [], events: { drawn: ['from', 'to'], empty: [] } };

const module = defineApp({
  signs: [],
  events: { drawn: ['from', 'to'], empty: [] },
  create: ({ emit }) => ({
    endpoints: [
      endpoint({
        method: 'GET',
        path: '/draw',
        async handle() {
          emit('drawn', { to: 6, from: 1 });
          setTimeout(() => emit('empty', {}), 5);
          return {};
        },
      }),
      endpoint({
        method: 'GET',
        path: '/mistake',
        async handle() {
          // @ts-expect-error app.yaml does not declare it
          emit('other', {});
          return {};
        },
      }),
      endpoint({
        method: 'GET',
        path: '/gap',
        async handle() {
          // @ts-expect-error a field is missing
          emit('drawn', { from: 1 });
          return {};
        },
      }),
      endpoint({
        method: 'GET',
        path: '/endless',
        async handle() {
          emit('drawn', { from: 1, to: Number.POSITIVE_INFINITY });
          return {};
        },
      }),
    ],
  }),
});

async function start(env: Record<string, string> = { EVENTS: 'true' }): Promise<TestServer> {
  return await startServer({ env, nsm, module, manifest });
}

type Line = Record<string, unknown> & { event: string };

/** Returns the events so far, without those of the start. */
async function readEvents(server: TestServer): Promise<Line[]> {
  // The server records the end of a request once its connection has taken the answer.
  await new Promise((done) => setTimeout(done, 50));
  const lines = server
    .printed()
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));
  return lines
    .filter(({ msg }) => msg === 'event')
    .map(({ level: _level, time: _time, msg: _msg, ...event }) => event)
    .filter(({ event }) => event !== 'listening' && event !== 'clock');
}

async function askSealed(server: TestServer, call: SealedCall): Promise<Answer & { clearId: string | null }> {
  const { attestation } = (await (await server.get('/get_attestation')).json()) as { attestation: string };
  const { userData } = decodeAttestation(Uint8Array.from(Buffer.from(attestation, 'hex')));
  const { message, openAnswer } = await sealRequest(decodeUserData(userData as Uint8Array).sealingKey, call);
  const response = await server.post('/sealed', message, { headers: { 'content-type': SEALED_TYPE } });
  const answer = await openAnswer(new Uint8Array(await response.arrayBuffer()));
  return { ...answer, clearId: response.headers.get('x-request-id') };
}

describe('by default', () => {
  test('the server sends no events', async () => {
    const server = await start({});
    await server.get('/nowhere');
    await server.get('/draw');
    expect(await readEvents(server)).toEqual([]);
  });

  test('an application that sends an undeclared event fails nevertheless', async () => {
    const server = await start({});
    for (const path of ['/mistake', '/gap', '/endless']) expect((await server.get(path)).status).toBe(500);
    expect(server.printed()).toContain('other is not among the events of app.yaml');
    expect(server.printed()).toContain('exactly these fields, each a finite number: from, to');
  });
});

describe('with EVENTS', () => {
  test('the start reports that it listens, and that the NSM confirms the clock', async () => {
    const printed = (await start()).printed();
    expect(printed).toMatch(/"event":"listening","time_ms":\d{13},"ms":\d+,"msg":"event"/);
    expect(printed).toMatch(
      /"event":"clock","time_ms":\d{13},"code":"CLOCK_CONFIRMED","difference_ms":-?\d+,/,
    );
  });

  test('a refused plain request is reported with its id, status, code and duration; a successful one is not reported', async () => {
    const server = await start();
    await server.get('/');
    const refused = await server.get('/nowhere?secret=1');
    expect(await readEvents(server)).toEqual([
      {
        event: 'request',
        time_ms: expect.any(Number),
        request_id: refused.headers.get('x-request-id'),
        status: 404,
        code: 'NOT_FOUND',
        ms: expect.any(Number),
      },
    ]);
  });

  test('a sealed request is reported only by its id, whatever its outcome, and its sealed answer has this id', async () => {
    const server = await start();
    const ids: unknown[] = [];
    for (const [path, status] of [
      ['/draw', 200],
      ['/nowhere', 404],
      ['/mistake', 500],
    ] as const) {
      const answer = await askSealed(server, { method: 'GET', path });
      expect(answer.status).toBe(status);
      expect(answer.requestId).toMatch(/^[0-9a-f-]{36}$/);
      expect(answer.requestId).toBe(answer.clearId);
      ids.push(answer.requestId);
    }
    const sealed = ids.map((request_id) => ({ event: 'sealed', time_ms: expect.any(Number), request_id }));
    expect(await readEvents(server)).toEqual(sealed);
  });

  test('a sealed request that is refused in the clear is reported in the same way', async () => {
    const server = await start();
    await server.post('/sealed', 'x', { headers: { 'content-type': SEALED_TYPE } });
    expect((await readEvents(server)).map(({ event }) => event)).toEqual(['sealed']);
  });

  test('the events of an application have the names and fields of app.yaml, and the id of their request', async () => {
    const server = await start();
    const request_id = (await server.get('/draw')).headers.get('x-request-id');
    const time_ms = expect.any(Number);
    expect(await readEvents(server)).toEqual([
      { event: 'application', time_ms, name: 'drawn', request_id, from: 1, to: 6 },
      { event: 'application', time_ms, name: 'empty', request_id },
    ]);
  });

  test('an uncaught error is reported with its class and place, never with its message', async () => {
    const server = await start();
    class Odd extends Error {}
    server.onUncaught(new Odd('hunter2 at /secret.ts:1:1'));
    server.onUncaught('hunter2');
    Object.defineProperty(Odd, 'name', { value: 'hunter 2' });
    server.onUncaught(Object.assign(new Odd(), { stack: 'hunter2\n    at hunter2' }));
    const place = expect.stringMatching(/^events\.test\.ts:\d+:\d+$/);
    expect(await readEvents(server)).toMatchObject([
      { event: 'uncaught', class: 'Odd', place },
      { event: 'uncaught', class: 'string', place: 'unknown' },
      { event: 'uncaught', class: 'Error', place: 'unknown' },
    ]);
    expect(server.printed()).not.toContain('hunter');
  });

  test.each(HOSTILE_THROWN)('the report of an uncaught error survives %s', async (_name, make) => {
    const sink: Line[] = [];
    const events = new Events({ write: (line) => sink.push(JSON.parse(line)) > 0, close() {} });
    events.uncaught(make());
    expect(sink).toMatchObject([
      {
        event: 'uncaught',
        class: expect.stringMatching(/^\w+$/),
        place: expect.stringMatching(/^[\w.:-]+$/),
      },
    ]);
    expect(JSON.stringify(sink)).not.toContain('hunter');
  });

  test('app.yaml and app.ts must declare the same events', async () => {
    const start = (events: Record<string, string[]> | undefined) =>
      startServer({ nsm, module, manifest: { endpoints: [], secrets: [], ...(events && { events }) } });
    for (const events of [undefined, { drawn: ['from', 'to'] }, { drawn: ['from'], empty: [] }]) {
      await expect(start(events)).rejects.toMatchObject({ code: 'CONFIG' });
    }
    await start({ empty: [], drawn: ['to', 'from'] });
  });

  test('EVENTS_FD must be a pipe', async () => {
    await expect(start({ EVENTS: 'true', EVENTS_FD: '1000' })).rejects.toThrow(
      /^EVENTS_FD must be a pipe or a socket/,
    );
  });
});

describe('the bounds', () => {
  const SEALED = { request_id: 'a' };

  function recording(hasRoom: () => boolean): { sink: EventSink; lines: Line[] } {
    const lines: Line[] = [];
    const write = (line: string) => {
      if (hasRoom()) lines.push(JSON.parse(line));
      return hasRoom();
    };
    return { sink: { write, close: () => {} }, lines };
  }

  test('events without room are counted, and their number is reported before the next event', () => {
    let hasRoom = false;
    const { sink, lines } = recording(() => hasRoom);
    const events = new Events(sink);
    for (let sent = 0; sent < 5; sent += 1) events.emit('sealed', SEALED);
    expect([lines, events.dropped]).toEqual([[], 5]);
    hasRoom = true;
    events.emit('sealed', SEALED);
    events.emit('sealed', SEALED);
    expect(lines).toMatchObject([{ event: 'lost', events: 5 }, { event: 'sealed' }, { event: 'sealed' }]);
    expect(events.dropped).toBe(5);
  });

  test('a flood of requests is dropped beyond 1200 a minute, and does not displace rare events', () => {
    const { sink, lines } = recording(() => true);
    const events = new Events(sink);
    for (let sent = 0; sent < 5000; sent += 1) events.emit('sealed', SEALED);
    expect(lines.length).toBeGreaterThanOrEqual(1200);
    expect(lines.length).toBeLessThan(1300);
    events.emit('uncaught', { class: 'Error', place: 'unknown' });
    expect(lines.at(-1)).toMatchObject({ event: 'uncaught' });
    // On a busy machine the budget grows during the test, which causes several reports.
    const lost = lines.filter(({ event }) => event === 'lost').map(({ events }) => Number(events));
    expect(events.dropped).toBe(lost.reduce((sum, count) => sum + count));
  });

  test('a pipe without a reader accepts a bounded number of lines, without waiting', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'events-'));
    onTestFinished(() => rmSync(folder, { recursive: true }));
    const path = join(folder, 'pipe');
    execFileSync('mkfifo', [path]);
    const reader = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
    const sink = pipeSink(openSync(path, constants.O_WRONLY));
    onTestFinished(() => sink.close());
    const line = `${'x'.repeat(999)}\n`;
    let taken = 0;
    for (let sent = 0; sent < 10_000; sent += 1) if (sink.write(line)) taken += 1;
    expect(taken).toBeGreaterThan(60);
    expect(taken).toBeLessThan(200);
    const bytes = Buffer.alloc(64 * 1024);
    expect(readSync(reader, bytes)).toBeGreaterThan(0);
    await expect.poll(() => sink.write(line)).toBe(true);
    closeSync(reader);
    // The pipe has no reader any more. Writing to it must not end the process.
    await expect.poll(() => sink.write(line)).toBe(false);
  });
});
