import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { type CacheBounds, LoadingCache } from '../cache.ts';

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['performance'] });
});
afterEach(() => {
  vi.useRealTimers();
});

/** Creates a cache, which by default keeps values for 30 s and failures for 5 s. */
function makeCache(bounds: Partial<CacheBounds> = {}) {
  return new LoadingCache<number>({ ttlMs: 30_000, maxEntries: 10, failureMs: () => 5000, ...bounds });
}

function counter() {
  let count = 0;
  return async () => ++count;
}

describe('LoadingCache', () => {
  test('keeps a value until it expires', async () => {
    const cache = makeCache();
    const load = counter();
    expect(await cache.get('a', load)).toBe(1);
    vi.advanceTimersByTime(29_999);
    expect(await cache.get('a', load)).toBe(1);
    vi.advanceTimersByTime(1);
    expect(await cache.get('a', load)).toBe(2);
  });

  test('shares a load in flight', async () => {
    const cache = makeCache();
    const load = counter();
    expect(await Promise.all([cache.get('a', load), cache.get('a', load), cache.get('b', load)])).toEqual([
      1, 1, 2,
    ]);
  });

  test('keeps nothing with a lifetime of 0, but still shares a load in flight', async () => {
    const cache = makeCache({ ttlMs: 0 });
    const load = counter();
    expect(await Promise.all([cache.get('a', load), cache.get('a', load)])).toEqual([1, 1]);
    expect(await cache.get('a', load)).toBe(2);
  });

  test('gives a failure to all waiting callers, and to later callers until the failure expires', async () => {
    const cache = makeCache();
    let loads = 0;
    const fail = async () => {
      loads++;
      throw new Error('no');
    };
    const both = await Promise.allSettled([cache.get('a', fail), cache.get('a', fail)]);
    expect(both.map(({ status }) => status)).toEqual(['rejected', 'rejected']);
    vi.advanceTimersByTime(4999);
    await expect(cache.get('a', fail)).rejects.toThrow('no');
    expect(loads).toBe(1);
    vi.advanceTimersByTime(1);
    expect(await cache.get('a', counter())).toBe(1);
  });

  test('does not keep a failure whose lifetime is 0', async () => {
    const cache = makeCache({ failureMs: (error) => ((error as Error).message === 'kept' ? 5000 : 0) });
    const failWith = (message: string) => async () => {
      throw new Error(message);
    };
    await expect(cache.get('a', failWith('once'))).rejects.toThrow('once');
    await expect(cache.get('a', failWith('kept'))).rejects.toThrow('kept');
    await expect(cache.get('a', failWith('never'))).rejects.toThrow('kept');
  });

  test('replaces an expired value by a failure', async () => {
    const cache = makeCache();
    await cache.get('a', counter());
    vi.advanceTimersByTime(30_000);
    const fail = () => Promise.reject(new Error('no'));
    await expect(cache.get('a', fail)).rejects.toThrow('no');
    await expect(cache.get('a', counter())).rejects.toThrow('no');
  });

  test('removes the oldest entry at the limit', async () => {
    const cache = makeCache({ maxEntries: 2 });
    const load = counter();
    for (const key of ['a', 'b', 'c']) await cache.get(key, load);
    expect(await cache.get('c', load)).toBe(3);
    expect(await cache.get('b', load)).toBe(2);
    expect(await cache.get('a', load)).toBe(4);
    expect(await cache.get('b', load)).toBe(5);
  });

  test('counts a renewed entry as new', async () => {
    const cache = makeCache({ maxEntries: 2 });
    const load = counter();
    await cache.get('a', load);
    await cache.get('b', load);
    vi.advanceTimersByTime(30_000);
    await cache.get('a', load);
    await cache.get('c', load);
    expect(await cache.get('a', load)).toBe(3);
  });
});
