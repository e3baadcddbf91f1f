import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { Clock } from '../src/clock.ts';
import { startServer } from './support.ts';

let path: string;

beforeEach(() => {
  path = join(mkdtempSync(join(tmpdir(), 'clock-')), 'clock');
});
afterEach(() => rmSync(join(path, '..'), { recursive: true }));

describe('the clock', () => {
  test("is the kernel's where nobody keeps its state", () => {
    const clock = new Clock(undefined);
    expect(clock.state()).toEqual({ source: 'kernel' });
    expect(clock.warnings()).toEqual([]);
  });

  test.each([
    ['{"source":"kernel"}\n', { source: 'kernel' }],
    ['{"source":"ptp0","difference_ms":-12}\n', { source: 'ptp0', difference_ms: -12 }],
    ['{"source":"ptp0","difference_ms":5000}\n', { source: 'ptp0', difference_ms: 5000 }],
  ])('has the state %s', (text, state) => {
    writeFileSync(path, text);
    const clock = new Clock(path);
    expect(clock.state()).toEqual(state);
    expect(clock.warnings()).toEqual([]);
  });

  test.each(['', '{', '{"source":"ptp0"}', '{"source":"moon"}', '{"source":"kernel","difference_ms":1}'])(
    'is not known from %j',
    (text) => {
      writeFileSync(path, text);
      const clock = new Clock(path);
      expect(clock.state()).toEqual({ source: 'unknown' });
      expect(clock.warnings()).toEqual(['the state of the clock is not known']);
    },
  );

  test('that was over 5 s off is a warning of /readyz, and again none when it is right', async () => {
    writeFileSync(path, '{"source":"ptp0","difference_ms":-5001}\n');
    const { url } = await startServer({ env: { CLOCK_STATE: path } });
    const ready = async () => (await fetch(`${url}/readyz`)).json();
    expect(await ready()).toEqual({
      ready: true,
      warnings: ["the clock differed from the hypervisor's by -5001 ms"],
    });
    writeFileSync(path, '{"source":"ptp0","difference_ms":3}\n');
    expect(await ready()).toEqual({ ready: true });
    expect(await (await fetch(`${url}/boot`)).json()).toMatchObject({
      clock: { source: 'ptp0', difference_ms: 3 },
    });
  });
});
