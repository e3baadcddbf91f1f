/** The one request that every client of this project sends. */
import { afterEach, expect, test, vi } from 'vitest';
import { fetchText, isTimeout, NoAnswerError } from '../../src/fetch.ts';

const url = new URL('https://service.example');

afterEach(() => {
  vi.unstubAllGlobals();
});

test('follows no redirect, sends no cookie and ignores every cache, whatever the caller asks for', async () => {
  const fetch = vi.fn(async () => new Response('yes'));
  const wishes = { method: 'POST', redirect: 'follow', credentials: 'include', cache: 'default' } as const;
  for (const init of [{}, wishes]) {
    await fetchText(url, init, { fetch, timeoutMs: 1000, maxSize: 3 });
    expect(fetch).toHaveBeenLastCalledWith(url, {
      ...init,
      redirect: 'error',
      credentials: 'omit',
      cache: 'no-store',
      signal: expect.any(AbortSignal),
    });
  }
});

test('calls the platform’s current fetch or the given one, but not as a method', async () => {
  const made = (name: string) =>
    async function (this: unknown) {
      // As a browser's does.
      if (this !== undefined && this !== globalThis) throw new TypeError('Illegal invocation');
      return new Response(name);
    };
  const bounds = { timeoutMs: 1000, maxSize: 10 };
  for (const name of ['one', 'other']) {
    vi.stubGlobal('fetch', made(name));
    expect(await fetchText(url, {}, bounds)).toMatchObject({ text: name });
  }
  expect(await fetchText(url, {}, { ...bounds, fetch: made('given') })).toMatchObject({ text: 'given' });
});

test.each([1, 0.5, 10_000, 2_147_483_647])('%d milliseconds is a valid time-out', async (timeoutMs) => {
  expect(isTimeout(timeoutMs)).toBe(true);
  const bounds = { fetch: async () => new Response('yes'), timeoutMs, maxSize: 3 };
  expect(await fetchText(url, {}, bounds)).toEqual({ status: 200, ok: true, text: 'yes' });
});

test.each([0, -1, Number.NaN, Number.POSITIVE_INFINITY, 2_147_483_648, '1000', 5n, null, undefined])(
  '%o is not a valid time-out',
  (value) => {
    expect(isTimeout(value)).toBe(false);
  },
);

test('a mistake of the caller is not reported as a missing answer', async () => {
  const bounds = { fetch: async () => new Response('yes'), timeoutMs: Number.NaN, maxSize: 3 };
  await expect(fetchText(url, {}, bounds)).rejects.not.toBeInstanceOf(NoAnswerError);
});

test('an answer that is too large is refused', async () => {
  const bounds = { fetch: async () => new Response('yes!'), timeoutMs: 1000, maxSize: 3 };
  await expect(fetchText(url, {}, bounds)).rejects.toMatchObject({ reason: 'too large' });
});
