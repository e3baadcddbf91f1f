/** Limits on the requests to an upstream. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { budgetFrom, TokenBucket } from '../../../src/service/budget.ts';
import { createUpstream } from '../../../src/service/upstream.ts';
import { host } from './hosts.ts';

describe('a token bucket', () => {
  test('allows a burst of its size, and then one token at a time', () => {
    let now = 0;
    const bucket = new TokenBucket(3, () => now);
    expect([bucket.take(), bucket.take(), bucket.take()]).toEqual([0, 0, 0]);
    expect(bucket.take()).toBe(20_000);
    now = 19_999;
    expect(bucket.take()).toBe(1);
    now = 20_000;
    expect([bucket.take(), bucket.take()]).toEqual([0, 20_000]);
  });

  test('is full again after a minute, and never more than full', () => {
    let now = 0;
    const bucket = new TokenBucket(2, () => now);
    for (const later of [0, 60_000, 10_000_000]) {
      now = later;
      expect([bucket.take(), bucket.take(), bucket.take() > 0]).toEqual([0, 0, true]);
    }
  });

  const pauses = fc.array(fc.nat(30_000), { maxLength: 200 });

  test('never gives more within an interval than its size and the refill', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 100 }), pauses, (perMinute, waits) => {
        let now = 0;
        const bucket = new TokenBucket(perMinute, () => now);
        const given: number[] = [];
        for (const wait of waits) {
          now += wait;
          if (bucket.take() === 0) given.push(now);
        }
        for (const [index, start] of given.entries()) {
          const spanMs = (given.at(-1) ?? 0) - start;
          expect(given.length - index).toBeLessThanOrEqual(perMinute + (perMinute * spanMs) / 60_000 + 1e-6);
        }
      }),
    );
  });

  test('has a token after the wait that it returned, at any rate', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 100_000 }), pauses, (perMinute, waits) => {
        let now = 0.1;
        const bucket = new TokenBucket(perMinute, () => now);
        for (const wait of waits) {
          now += wait / 7;
          let told = 0;
          for (let i = 0; i < 5 && told === 0; i++) told = bucket.take();
          now += told;
          if (told > 0) expect(bucket.take()).toBe(0);
        }
      }),
    );
  });
});

test('a client sends no request beyond its budget, and spends it on no request that is refused', async () => {
  let asked = 0;
  const { origin } = await host((_request, response) => {
    asked++;
    response.end('{}');
  });
  const client = createUpstream(origin)({ budget: budgetFrom({ UPSTREAM_CALLS_PER_MINUTE: '2' }) });
  await expect(client.get('//')).rejects.toMatchObject({ code: 'APPLICATION' });
  await expect(client.get('/', { signal: AbortSignal.abort() })).rejects.toThrow();
  await client.get('/');
  await client.get('/');
  // Neither can an interceptor be removed that would count, nor does one avoid it.
  client.interceptors.request.clear();
  client.interceptors.request.use((config) => ({ ...config, url: '/other' }));
  await expect(client.get('/')).rejects.toMatchObject({
    code: 'UPSTREAM_BUDGET_EXCEEDED',
    retryAfterSeconds: 30,
  });
  expect(asked).toBe(2);
});
