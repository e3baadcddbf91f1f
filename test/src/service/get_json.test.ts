/**
 * Tests that an application gets JSON that fits its schema, or an error of its own class that reveals nothing
 * of the request.
 */
import { inspect } from 'node:util';
import * as v from 'valibot';
import { describe, expect, test } from 'vitest';
import { ApplicationMistake, createBudget, errorClass, getJson } from '../../../src/server/index.ts';
import { createUpstream } from '../../../src/service/upstream.ts';
import { echo, host, rawHost } from './hosts.ts';

class PriceError extends errorClass({
  PRICE_UNAVAILABLE: { status: 502, meaning: 'no price' },
  PRICE_TIMEOUT: { status: 504, meaning: 'no price in time' },
}) {}

const errors = { class: PriceError, unavailable: 'PRICE_UNAVAILABLE', timeout: 'PRICE_TIMEOUT' } as const;
const Cents = v.pipe(
  v.object({ cents: v.number() }),
  v.transform(({ cents }) => BigInt(cents)),
);
const KEY = 'hunter2';
/** Options as an application would pass them, with a key wherever one is possible. */
const requestConfig = { errors, params: { key: KEY }, headers: { authorization: `Bearer ${KEY}` } };

type Client = Parameters<typeof getJson>[0];
const ask = (client: Client) => getJson(client, `/v1/${KEY}`, Cents, requestConfig);

test('getJson returns the output of the schema for an answer', async () => {
  const { client } = await host((_request, response) => response.end('{"cents": 5, "more": true}'));
  expect(await ask(client)).toBe(5n);
});

test('getJson ends when its signal is aborted, without an error of the application', async () => {
  const { client } = await host(() => {});
  const controller = new AbortController();
  const call = getJson(client, '/v1', Cents, { errors, signal: controller.signal });
  controller.abort();
  await expect(call).rejects.toMatchObject({ name: 'CanceledError' });
});

test('getJson sends the path, the parameters and the headers', async () => {
  const { client } = await echo();
  const Echo = v.object({ method: v.string(), url: v.string(), headers: v.record(v.string(), v.string()) });
  const { method, url, headers } = await getJson(client, '/v1/SUI', Echo, {
    errors,
    params: { q: 'a b', n: 1 },
    headers: { 'x-key': KEY },
  });
  expect([method, url]).toEqual(['GET', '/v1/SUI?q=a+b&n=1']);
  expect(headers).toMatchObject({ accept: 'application/json', 'x-key': KEY });
});

describe("getJson throws an error of the application's class:", () => {
  const startClient = async (status: number, body: string) =>
    (await host((_request, response) => response.writeHead(status).end(body))).client;
  const bounds = { timeoutMs: 300, maxSize: 2000 };

  test.each<[string, string, RegExp, () => Promise<Client>]>([
    [
      'no server listens',
      'PRICE_UNAVAILABLE',
      /reached$/,
      async () => createUpstream('http://127.0.0.1:1')(),
    ],
    [
      'the connection breaks in the body',
      'PRICE_UNAVAILABLE',
      /broke$/,
      async () =>
        (await rawHost((socket) => socket.end('HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{"cents"')))
          .client,
    ],
    ['the answer is too large', 'PRICE_UNAVAILABLE', /too large$/, () => startClient(200, ' '.repeat(2001))],
    [
      'another status, which repeats the key',
      'PRICE_UNAVAILABLE',
      /status 403$/,
      () => startClient(403, `"${KEY}"`),
    ],
    ['another status of success', 'PRICE_UNAVAILABLE', /status 201$/, () => startClient(201, '{"cents": 5}')],
    ['a redirect', 'PRICE_UNAVAILABLE', /status 302$/, () => startClient(302, '')],
    [
      'a body that is not JSON',
      'PRICE_UNAVAILABLE',
      /expected$/,
      () => startClient(200, `{"cents": ${KEY}}`),
    ],
    ['an empty body', 'PRICE_UNAVAILABLE', /expected$/, () => startClient(200, '')],
    [
      'JSON that does not fit the schema',
      'PRICE_UNAVAILABLE',
      /expected$/,
      () => startClient(200, `{"cents": "${KEY}"}`),
    ],
    ['JSON that is not an object', 'PRICE_UNAVAILABLE', /expected$/, () => startClient(200, 'null')],
    [
      'no answer in time',
      'PRICE_TIMEOUT',
      /did not answer in time$/,
      async () => (await rawHost(() => {}, bounds)).client,
    ],
    [
      'no whole answer in time',
      'PRICE_TIMEOUT',
      // On a busy machine even the status line may be late.
      /(not complete|did not answer) in time$/,
      async () =>
        (await rawHost((socket) => socket.write('HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{'), bounds))
          .client,
    ],
  ])('%s, with the code %s', async (_caseName, code, message, make) => {
    const error = await ask(await make()).catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(PriceError);
    expect(error).toMatchObject({ code, message: expect.stringMatching(message) });
    // The cause is an UpstreamError, which contains neither the request nor the answer.
    expect(error).toMatchObject({ cause: { name: 'AxiosError', reason: expect.any(String) } });
    for (const text of [
      inspect(error, { depth: 10, showHidden: true }),
      JSON.stringify(error),
      String(error),
    ]) {
      expect(text).not.toContain(KEY);
    }
  });
});

describe('getJson passes on an error that the host did not cause:', () => {
  test('a used-up budget', async () => {
    const budget = createBudget({ UPSTREAM_CALLS_PER_MINUTE: '1' });
    const { client, connections } = await host((_request, response) => response.end('{"cents": 5}'), {
      budget,
    });
    await ask(client);
    await expect(ask(client)).rejects.toMatchObject({ code: 'UPSTREAM_BUDGET_EXCEEDED' });
    expect(connections()).toBe(1);
  });

  test('a mistake in the request', async () => {
    const { client } = await echo();
    await expect(getJson(client, '//evil.example/', Cents, requestConfig)).rejects.toThrow(
      ApplicationMistake,
    );
    const headers = { host: 'evil.example' };
    await expect(getJson(client, '/', Cents, { errors, headers })).rejects.toThrow(ApplicationMistake);
  });
});

test("the compiler accepts only the codes of the class, and only the schema's output type", async () => {
  const { client } = await host((_request, response) => response.end('{"cents": 5}'));
  // @ts-expect-error the class does not have this code
  await getJson(client, '/', Cents, { errors: { ...errors, timeout: 'PRICE_LATE' } });
  // @ts-expect-error a code is missing
  await getJson(client, '/', Cents, { errors: { class: PriceError, unavailable: 'PRICE_UNAVAILABLE' } });
  // @ts-expect-error the schema's transformation returns a bigint
  const cents: number = await ask(client);
  expect(cents).toBe(5n);
});
