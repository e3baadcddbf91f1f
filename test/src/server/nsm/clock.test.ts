import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import { Clock } from '../../../../src/server/nsm/clock.ts';
import type { NsmTransport } from '../../../../src/server/nsm/transport.ts';
import { EmulatedNsm } from '../../../../src/testing/emulated_nsm.ts';
import { startServer, startWeather } from '../support.ts';

let path: string;

beforeEach(() => {
  path = join(mkdtempSync(join(tmpdir(), 'clock-')), 'clock');
});
afterEach(() => rmSync(join(path, '..'), { recursive: true }));

const UNCONFIRMED = 'no document of the NSM from the last 10 minutes confirms the clock';

describe('the clock', () => {
  test("is the kernel's without a state file", () => {
    const clock = new Clock(undefined);
    expect(clock.state()).toEqual({ source: 'kernel' });
    expect(clock.warnings()).toEqual([UNCONFIRMED]);
  });

  test.each([
    ['{"source":"kernel"}\n', { source: 'kernel' }],
    ['{"source":"ptp0","difference_ms":-12}\n', { source: 'ptp0', difference_ms: -12 }],
    ['{"source":"ptp0","difference_ms":5000}\n', { source: 'ptp0', difference_ms: 5000 }],
    ['{"source":"nsm","difference_ms":-5000}\n', { source: 'nsm', difference_ms: -5000 }],
  ])('has the state %s', (text, state) => {
    writeFileSync(path, text);
    const clock = new Clock(path);
    expect(clock.state()).toEqual(state);
    expect(clock.warnings()).toEqual([UNCONFIRMED]);
  });

  test.each([
    '',
    '{',
    '{"source":"ptp0"}',
    '{"source":"nsm"}',
    '{"source":"nsm","difference_ms":0.5}',
    '{"source":"moon"}',
    '{"source":"kernel","difference_ms":1}',
  ])('has an unknown state if the file has the text %j', (text) => {
    writeFileSync(path, text);
    const clock = new Clock(path);
    expect(clock.state()).toEqual({ source: 'unknown' });
    expect(clock.warnings()).toEqual(['the state of the clock is unknown', UNCONFIRMED]);
  });

  test.each([
    ['ptp0', "the clock differed from the hypervisor's by -5001 ms"],
    ['nsm', "the clock differed from the NSM's by -5001 ms"],
  ])('causes a warning of /readyz while its last correction exceeds 5 s (%s)', async (source, warning) => {
    writeFileSync(path, `{"source":"${source}","difference_ms":-5001}\n`);
    const { url } = await startServer({ nsm: new EmulatedNsm(), env: { CLOCK_STATE: path } });
    const ready = async () => (await fetch(`${url}/readyz`)).json();
    expect(await ready()).toEqual({ ready: true, warnings: [warning] });
    writeFileSync(path, `{"source":"${source}","difference_ms":3}\n`);
    expect(await ready()).toEqual({ ready: true });
    expect(await (await fetch(`${url}/boot`)).json()).toMatchObject({
      clock: { source, difference_ms: 3 },
    });
  });
});

describe('the NSM confirms the clock', () => {
  const timeMs = 1_795_000_000_000;
  const createClock = () => {
    let now = 0;
    return { clock: new Clock(undefined, () => now), pass: (ms: number) => (now += ms) };
  };

  test.each([
    [timeMs - 5000, timeMs, timeMs],
    [timeMs + 5000, timeMs, timeMs],
    // The NSM made the document at some time between the request and the answer.
    [timeMs + 2000, timeMs, timeMs + 4000],
    [timeMs + 9000, timeMs, timeMs + 4000],
  ])(
    'by a document with the time %i, requested at %i and answered at %i',
    (documentMs, requestedAt, answeredAt) => {
      const { clock } = createClock();
      clock.compare(documentMs, requestedAt, answeredAt);
      expect(clock.warnings()).toEqual([]);
      expect(() => clock.requireConfirmed()).not.toThrow();
    },
  );

  test.each([
    [timeMs - 5001, timeMs, timeMs, 5001],
    [timeMs + 5001, timeMs, timeMs, -5001],
    [timeMs + 9001, timeMs, timeMs + 4000, -5001],
  ])(
    'but not by a document with the time %i, requested at %i and answered at %i',
    (documentMs, requestedAt, answeredAt, differenceMs) => {
      const { clock } = createClock();
      clock.compare(timeMs, timeMs, timeMs);
      clock.compare(documentMs, requestedAt, answeredAt);
      expect(clock.warnings()).toEqual([`the clock differs from the NSM's by ${differenceMs} ms`]);
      expect(() => clock.requireConfirmed()).toThrow(expect.objectContaining({ code: 'CLOCK_UNCONFIRMED' }));
      clock.compare(timeMs, timeMs, timeMs);
      expect(clock.warnings()).toEqual([]);
    },
  );

  test('for 10 minutes after each document', () => {
    const { clock, pass } = createClock();
    clock.compare(timeMs, timeMs, timeMs);
    pass(599_999);
    expect(clock.warnings()).toEqual([]);
    pass(1);
    expect(clock.warnings()).toEqual([UNCONFIRMED]);
    expect(() => clock.requireConfirmed()).toThrow(expect.objectContaining({ code: 'CLOCK_UNCONFIRMED' }));
  });

  test('when the server starts, and then every minute', async () => {
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval', 'performance'] });
    onTestFinished(() => void vi.useRealTimers());
    let offset = 0;
    const nsm = new EmulatedNsm(() => Date.now() + offset);
    const { get } = await startServer({ nsm });
    const ready = async () => (await get('/readyz')).json();
    expect(await ready()).toEqual({ ready: true });
    offset = 60_000;
    vi.advanceTimersByTime(60_000);
    await expect.poll(ready).toEqual({
      ready: true,
      warnings: [expect.stringMatching(/^the clock differs from the NSM's by -(60000|59\d{3}) ms$/)],
    });
    offset = 0;
    vi.advanceTimersByTime(60_000);
    await expect.poll(ready).toEqual({ ready: true });
  });
});

describe('CLOCK_REQUIRED', () => {
  const required = { CLOCK_REQUIRED: 'true' };

  test('allows signing while the NSM confirms the clock', async () => {
    const { ask } = await startWeather({ env: required, nsm: new EmulatedNsm() });
    expect((await ask('Paris')).status).toBe(200);
  });

  test.each<[string, NsmTransport | undefined]>([
    ['without an NSM', undefined],
    ['with an NSM whose time differs', new EmulatedNsm(() => Date.now() - 6000)],
  ])('refuses to sign %s (503), while other endpoints work', async (_, nsm) => {
    const env = { ...required, NSM_DEVICE: '/nonexistent/nsm' };
    const { server, ask } = await startWeather({ env, ...(nsm && { nsm }) });
    const answer = await ask('Paris');
    expect(answer.status).toBe(503);
    expect(answer.headers.get('retry-after')).toBe('60');
    expect(await answer.json()).toEqual({ error: expect.any(String), code: 'CLOCK_UNCONFIRMED' });
    expect((await server.get('/readyz')).status).toBe(200);
    expect((await server.get('/health_check')).status).toBe(200);
  });

  test('is off by default: only /readyz warns', async () => {
    const { ask, server } = await startWeather({ nsm: new EmulatedNsm(() => Date.now() - 6000) });
    expect((await ask('Paris')).status).toBe(200);
    expect(await (await server.get('/readyz')).json()).toMatchObject({ warnings: [expect.any(String)] });
  });
});
