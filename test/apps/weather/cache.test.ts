import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { AnswerCache } from '../../../src/apps/weather/cache.ts';

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['performance'] });
});
afterEach(() => {
  vi.useRealTimers();
});

function counter() {
  let count = 0;
  return async () => ++count;
}

describe('AnswerCache', () => {
  test('keeps an answer for its time, and no longer', async () => {
    const cache = new AnswerCache<number>(30_000, 10);
    const load = counter();
    expect(await cache.get('a', load)).toBe(1);
    vi.advanceTimersByTime(29_999);
    expect(await cache.get('a', load)).toBe(1);
    vi.advanceTimersByTime(1);
    expect(await cache.get('a', load)).toBe(2);
  });

  test('shares a load in flight', async () => {
    const cache = new AnswerCache<number>(30_000, 10);
    const load = counter();
    expect(await Promise.all([cache.get('a', load), cache.get('a', load), cache.get('b', load)])).toEqual([
      1, 1, 2,
    ]);
  });

  test('turned off, still shares a load in flight but keeps nothing', async () => {
    const cache = new AnswerCache<number>(0, 10);
    const load = counter();
    expect(await Promise.all([cache.get('a', load), cache.get('a', load)])).toEqual([1, 1]);
    expect(await cache.get('a', load)).toBe(2);
  });

  test('gives a failure to all who waited, and forgets it', async () => {
    const cache = new AnswerCache<number>(30_000, 10);
    const fail = async () => {
      throw new Error('no');
    };
    const both = await Promise.allSettled([cache.get('a', fail), cache.get('a', fail)]);
    expect(both.map(({ status }) => status)).toEqual(['rejected', 'rejected']);
    expect(await cache.get('a', counter())).toBe(1);
  });

  test('holds no more entries than it may: the oldest goes', async () => {
    const cache = new AnswerCache<number>(30_000, 2);
    const load = counter();
    for (const key of ['a', 'b', 'c']) await cache.get(key, load);
    expect(await cache.get('c', load)).toBe(3);
    expect(await cache.get('b', load)).toBe(2);
    expect(await cache.get('a', load)).toBe(4);
    expect(await cache.get('b', load)).toBe(5);
  });

  test('counts a renewed entry as young', async () => {
    const cache = new AnswerCache<number>(30_000, 2);
    const load = counter();
    await cache.get('a', load);
    await cache.get('b', load);
    vi.advanceTimersByTime(30_000);
    await cache.get('a', load);
    await cache.get('c', load);
    expect(await cache.get('a', load)).toBe(3);
  });
});
