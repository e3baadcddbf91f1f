/** A token bucket for each caller. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { RateLimit } from '../../../src/service/rate_limit.ts';

describe('a rate limit', () => {
  test('allows a burst of its size, then single requests, and returns the seconds until the next request', () => {
    let now = 0;
    const limit = new RateLimit(3, () => now);
    expect([limit.take('a'), limit.take('a'), limit.take('a')]).toEqual([0, 0, 0]);
    expect(limit.take('a')).toBe(20);
    now = 18_999;
    expect(limit.take('a')).toBe(2);
    now = 19_999;
    expect(limit.take('a')).toBe(1);
    now = 20_000;
    expect([limit.take('a'), limit.take('a')]).toEqual([0, 20]);
  });

  test('is full again after a minute, and does not grow further', () => {
    let now = 0;
    const limit = new RateLimit(2, () => now);
    for (const time of [0, 60_000, 10_000_000]) {
      now = time;
      expect([limit.take('a'), limit.take('a'), limit.take('a') > 0]).toEqual([0, 0, true]);
    }
  });

  const pauses = fc.array(fc.nat(30_000), { maxLength: 200 });

  test('never allows more requests within an interval than its size plus the refill', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 100 }), pauses, (perMinute, waits) => {
        let now = 0;
        const limit = new RateLimit(perMinute, () => now);
        const grantedTimes: number[] = [];
        for (const wait of waits) {
          now += wait;
          if (limit.take('a') === 0) grantedTimes.push(now);
        }
        for (const [index, start] of grantedTimes.entries()) {
          const spanMs = (grantedTimes.at(-1) ?? 0) - start;
          expect(grantedTimes.length - index).toBeLessThanOrEqual(
            perMinute + (perMinute * spanMs) / 60_000 + 1e-6,
          );
        }
      }),
    );
  });

  test('allows a request after the wait that it returned, for any limit', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 100_000 }), pauses, (perMinute, waits) => {
        let now = 0.1;
        const limit = new RateLimit(perMinute, () => now);
        for (const wait of waits) {
          now += wait / 7;
          let waitSeconds = 0;
          for (let i = 0; i < 5 && waitSeconds === 0; i++) waitSeconds = limit.take('a');
          now += waitSeconds * 1000;
          if (waitSeconds > 0) expect(limit.take('a')).toBe(0);
        }
      }),
    );
  });

  test('allows another request each 60 / perMinute seconds, despite rounding errors', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 1000 }),
        fc.integer({ max: 1_000_000, min: 0 }),
        (perMinute, start) => {
          let now = start / 7;
          const limit = new RateLimit(perMinute, () => now);
          for (let i = 0; i < perMinute; i++) expect(limit.take('a')).toBe(0);
          for (let i = 0; i < 50; i++) {
            now += 60_000 / perMinute;
            expect(limit.take('a')).toBe(0);
          }
        },
      ),
    );
  });
});
