import { describe, expect, test } from 'vitest';
import { addressKey, SaltRateLimit, Semaphore } from '../limits.ts';

describe('a rate limit', () => {
  const setUp = (perMinute: number) => {
    const clock = { now: 0 };
    return { clock, limit: new SaltRateLimit(perMinute, () => clock.now) };
  };

  test.each([1, 3, 7, 30, 300])(
    'of %i a minute allows that many requests at once, and then one after each equal part of a minute',
    (perMinute) => {
      const { clock, limit } = setUp(perMinute);
      for (let i = 0; i < perMinute; i++) limit.take('a');
      expect(() => limit.take('a')).toThrow(/too many requests/);
      for (let i = 0; i < 3 * perMinute; i++) {
        clock.now += 60_000 / perMinute + 0.01;
        limit.take('a');
        expect(() => limit.take('a')).toThrow();
      }
    },
  );

  test('says how long to wait, and does not count refused requests', () => {
    const { clock, limit } = setUp(2);
    limit.take('a');
    limit.take('a');
    for (let i = 0; i < 10; i++) {
      expect(() => limit.take('a')).toThrow(expect.objectContaining({ retryAfterSeconds: 30 }));
    }
    clock.now += 30_000;
    limit.take('a');
  });

  test('is separate for each caller', () => {
    const { limit } = setUp(1);
    limit.take('a');
    limit.take('b');
    expect(() => limit.take('a')).toThrow();
  });

  test('forgets the least recently active caller when there are too many', () => {
    const { limit } = setUp(1);
    limit.take('first');
    for (let i = 0; i < 99_999; i++) limit.take(`caller ${i}`);
    expect(() => limit.take('first')).toThrow();
    limit.take('one more');
    limit.take('first');
    expect(() => limit.take('one more')).toThrow();
  });
});

describe('the semaphore', () => {
  test('refuses work when all its permits are in use, and releases them after success and failure', async () => {
    const semaphore = new Semaphore(1);
    const { promise, resolve } = Promise.withResolvers<string>();
    const first = semaphore.run(() => promise);
    await expect(semaphore.run(async () => 'second')).rejects.toMatchObject({
      code: 'SALT_BUSY',
      retryAfterSeconds: 1,
    });
    resolve('first');
    expect(await first).toBe('first');
    await expect(
      semaphore.run(async () => {
        throw new Error('third');
      }),
    ).rejects.toThrow('third');
    expect(await semaphore.run(async () => 'fourth')).toBe('fourth');
  });
});

test.each([
  ['198.51.100.7', '198.51.100.7'],
  ['::ffff:198.51.100.7', '198.51.100.7'],
  ['::FFFF:198.51.100.7', '198.51.100.7'],
  ['::ffff:c633:6407', '198.51.100.7'],
  ['0:0:0:0:0:FFFF:C633:6407', '198.51.100.7'],
  ['0000:0000::ffff:198.51.100.7', '198.51.100.7'],
  ['::ffff:0:1', '0.0.0.1'],
  ['::ffff:0:198.51.100.7', '0:0:0:0'],
  ['::fffe:198.51.100.7', '0:0:0:0'],
  ['1::ffff:198.51.100.7', '1:0:0:0'],
  ['::ffff:198.51.100.300', 'unknown'],
  ['198.51.100.07', 'unknown'],
  ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2'],
  ['2001:0DB8:0001:0002::1', '2001:db8:1:2'],
  ['2001:db8::1', '2001:db8:0:0'],
  ['::1', '0:0:0:0'],
  ['::', '0:0:0:0'],
  ['fe80::1%eth0', 'unknown'],
  ['unknown', 'unknown'],
  ['', 'unknown'],
  ['<script>', 'unknown'],
])('the address %j counts as %j', (address, key) => {
  expect(addressKey(address)).toBe(key);
});
