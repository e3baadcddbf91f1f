/** The one request that every client of this project sends. */
import { expect, test } from 'vitest';
import { fetchText, isTimeout, NoAnswer } from '../src/fetch.ts';

const url = new URL('https://service.example');

test.each([1, 0.5, 10_000, 2_147_483_647])('%d milliseconds can be waited', async (timeoutMs) => {
  expect(isTimeout(timeoutMs)).toBe(true);
  const bounds = { fetch: async () => new Response('yes'), timeoutMs, maxSize: 3 };
  expect(await fetchText(url, {}, bounds)).toEqual({ status: 200, ok: true, text: 'yes' });
});

test.each([0, -1, Number.NaN, Number.POSITIVE_INFINITY, 2_147_483_648, '1000', 5n, null, undefined])(
  '%o is no time',
  (value) => {
    expect(isTimeout(value)).toBe(false);
  },
);

test('a mistake of the caller is no service without an answer', async () => {
  const bounds = { fetch: async () => new Response('yes'), timeoutMs: Number.NaN, maxSize: 3 };
  await expect(fetchText(url, {}, bounds)).rejects.not.toBeInstanceOf(NoAnswer);
});

test('what is too large is cut off', async () => {
  const bounds = { fetch: async () => new Response('yes!'), timeoutMs: 1000, maxSize: 3 };
  await expect(fetchText(url, {}, bounds)).rejects.toMatchObject({ reason: 'too large' });
});
