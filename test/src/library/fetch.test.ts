/** The function that sends every request of this project's clients. */
import { afterEach, describe, expect, test, vi } from 'vitest';
import { failedToConnect, fetchText, isTimeout, NoAnswerError } from '../../../src/library/fetch.ts';
import { platformFetch } from '../../../src/library/platform_fetch.ts';

const url = new URL('https://service.example');

afterEach(() => {
  vi.unstubAllGlobals();
});

test('a request follows no redirect, sends no cookie and ignores every cache, even if the caller asks otherwise', async () => {
  const fetch = vi.fn(async () => new Response('yes'));
  const callerInit = {
    method: 'POST',
    redirect: 'follow',
    credentials: 'include',
    cache: 'default',
  } as const;
  for (const init of [{}, callerInit]) {
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

test('outside Node, a request calls the platform’s current fetch, or the fetch in its bounds, but not as a method', async () => {
  const createFetch = (name: string) =>
    async function (this: unknown) {
      // A browser's fetch throws this error too.
      if (this !== undefined && this !== globalThis) throw new TypeError('Illegal invocation');
      return new Response(name);
    };
  const bounds = { timeoutMs: 1000, maxSize: 10 };
  for (const name of ['one', 'other']) {
    vi.stubGlobal('fetch', createFetch(name));
    expect(await fetchText(url, {}, { ...bounds, fetch: platformFetch })).toMatchObject({ text: name });
  }
  expect(await fetchText(url, {}, { ...bounds, fetch: createFetch('given') })).toMatchObject({
    text: 'given',
  });
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

describe('an abort signal', () => {
  /** Fakes a fetch that ends with the signal, as the platform's does. */
  const fetchUntilAborted = (_url: unknown, { signal }: RequestInit = {}) =>
    new Promise<Response>((_, reject) => {
      signal?.addEventListener('abort', () => reject(signal.reason));
    });
  const bounds = { fetch: fetchUntilAborted as typeof fetch, timeoutMs: 1000, maxSize: 3 };
  const reason = new Error('the user left');

  test('ends a request with its reason, and a time-out is still reported as a time-out', async () => {
    const controller = new AbortController();
    const request = fetchText(url, {}, { ...bounds, signal: controller.signal });
    controller.abort(reason);
    await expect(request).rejects.toBe(reason);
    const { signal } = new AbortController();
    const late = fetchText(url, {}, { ...bounds, timeoutMs: 10, signal });
    await expect(late).rejects.toMatchObject({ reason: 'timeout' });
  });

  test('that is already aborted keeps the request from being sent', async () => {
    const fetch = vi.fn(async () => new Response('yes'));
    const request = fetchText(url, {}, { ...bounds, fetch, signal: AbortSignal.abort(reason) });
    await expect(request).rejects.toBe(reason);
    expect(fetch).not.toHaveBeenCalled();
  });
});

test.each<[string | undefined, string | undefined]>([
  ['ab'.repeat(32), 'ab'.repeat(32)],
  ['AB'.repeat(32), undefined],
  ['ab'.repeat(33), undefined],
  ['ab', undefined],
  [undefined, undefined],
])(
  'the header X-Enclave-Key is read only if it is 32 bytes in lower case: %s',
  async (keyHeader, expectedKey) => {
    const headers: Record<string, string> = keyHeader === undefined ? {} : { 'x-enclave-key': keyHeader };
    const bounds = { fetch: async () => new Response('yes', { headers }), timeoutMs: 1000, maxSize: 3 };
    expect((await fetchText(url, {}, bounds)).enclaveKey).toBe(expectedKey);
  },
);

describe('failedToConnect returns whether a request failed before it was sent', () => {
  const failed = (inner: unknown) => failedToConnect(new TypeError('fetch failed', { cause: inner }));
  const nodeError = (properties: object) => Object.assign(new Error('no'), properties);
  const refused = nodeError({ code: 'ECONNREFUSED', syscall: 'connect' });
  const reset = nodeError({ code: 'ECONNRESET', syscall: 'read' });

  test.each([
    ['a refused connection', refused, true],
    ['a connection that was refused at each address', new AggregateError([refused, refused]), true],
    ['a host that was not found', nodeError({ code: 'ENOTFOUND', syscall: 'getaddrinfo' }), true],
    ['a connection that took too long', nodeError({ code: 'UND_ERR_CONNECT_TIMEOUT' }), true],
    ['a reset connection', reset, false],
    ['a connection that was reset at one address', new AggregateError([refused, reset]), false],
    ['a lost connection', nodeError({ code: 'UND_ERR_SOCKET' }), false],
    ['a failure without a reason, as in a browser', undefined, false],
    ['an empty list of failures', new AggregateError([]), false],
  ])('for %s', (_, inner, expected) => {
    expect(failed(inner)).toBe(expected);
  });
});
