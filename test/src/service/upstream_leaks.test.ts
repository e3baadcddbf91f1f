/**
 * Tests that the errors and answers of an upstream's client show no part of the request, however they are
 * printed.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer as createTlsServer } from 'node:https';
import { createServer as createTcpServer } from 'node:net';
import { text } from 'node:stream/consumers';
import { inspect } from 'node:util';
import type { AxiosInstance, AxiosRequestConfig } from 'axios';
import fc from 'fast-check';
import * as v from 'valibot';
import { describe, expect, test } from 'vitest';
import { type AppContext, processData } from '../../../src/server/application/app.ts';
import { createBudget } from '../../../src/service/budget.ts';
import { createLog } from '../../../src/service/log.ts';
import { createUpstream, isUpstreamError, type UpstreamError } from '../../../src/service/upstream.ts';
import { makeTls } from '../../../src/testing/tls.ts';
import { COMPILE_CACHE } from '../../compile_cache.ts';
import { startServer } from '../server/support.ts';
import { host, listen } from './hosts.ts';

const KEY = 'hunter2-0123456789abcdef';

/** Options of a request with the key in every part. */
const PARTS: AxiosRequestConfig & { headers: Record<string, string> } = {
  method: 'POST',
  url: `/${KEY}/v1?key=${KEY}`,
  params: { key: KEY, [KEY]: 1 },
  headers: { authorization: `Bearer ${KEY}`, [`x-${KEY}`]: KEY },
  data: { key: KEY, [KEY]: [KEY] },
};
const AUTH = { username: KEY, password: KEY };

/** Returns all text that printing, serialising or copying a value shows. */
function printInAllWays(value: object): string {
  const unlimited = { depth: Number.POSITIVE_INFINITY, maxArrayLength: null, maxStringLength: null };
  const texts = [true, false].flatMap((showHidden) =>
    [true, false].map((customInspect) => inspect(value, { ...unlimited, showHidden, customInspect })),
  );
  texts.push(printByLog(value), String(value), inspect(Object.entries(value), unlimited));
  const readers: ((thrownError: object) => unknown)[] = [
    JSON.stringify,
    structuredClone,
    (thrownError) => JSON.stringify({ ...thrownError }),
  ];
  for (const read of readers) {
    try {
      texts.push(inspect(read(value), unlimited));
    } catch {
      // A cycle or a function can't be read in this way.
    }
  }
  if (value instanceof Error) {
    texts.push(String(value.stack), value.message);
    if (value.cause instanceof Error) texts.push(printInAllWays(value.cause));
  }
  return texts.join('\n');
}

/** Logs a value in each possible way, and returns the printed text. */
function printByLog(value: object | undefined = {}): string {
  let printed = '';
  const log = createLog('trace', {
    write(line) {
      printed += line;
    },
  });
  log.info({ err: value, value, list: [value] }, 'a line with %o', value);
  log.child({ value }).error(value);
  return printed;
}

/**
 * Expects that the key occurs neither as text nor as bytes, in the forms in which inspect and JSON print
 * them.
 */
function expectNoKey(value: object): void {
  const bytes = [...Buffer.from(KEY.slice(0, 7))];
  const hex = bytes.map((byte) => byte.toString(16));
  const text = printInAllWays(value);
  const base64 = Buffer.from(KEY.slice(0, 18)).toString('base64');
  for (const form of [KEY, base64, hex.join(' '), hex.join(''), bytes.join(','), bytes.join(', ')]) {
    expect(text).not.toContain(form);
  }
}

const catchError = (exchange: Promise<unknown>): Promise<Error> =>
  exchange.then(
    () => expect.fail('the request was answered'),
    (thrown) => thrown,
  );

const bounds = { timeoutMs: 200, maxSize: 1000 };
/** Limits for failures other than a time-out. The time limit is long, since a busy machine is slow. */
const longBounds = { ...bounds, timeoutMs: 15_000 };
/** Headers that repeat the key in every part of an answer except its data. */
const TELLTALE = { location: `/${KEY}`, 'set-cookie': `key=${KEY}`, 'x-key': KEY };

type Start = () => Promise<AxiosInstance>;

const startAnswering = (status: number, body: string): Start => {
  return async () =>
    (await host((_, response) => response.writeHead(status, KEY, TELLTALE).end(body))).client;
};

const failures: [string, Start, string | undefined][] = [
  ['no server listens', async () => createUpstream('http://127.0.0.1:1')(longBounds), 'unreachable'],
  ['the host hangs up', async () => (await host((_, response) => response.destroy())).client, 'unreachable'],
  ['the host does not answer', async () => (await host(() => {}, bounds)).client, 'timeout'],
  [
    'the host repeats the request, as something that is not HTTP',
    async () => {
      const port = await listen(createTcpServer((socket) => socket.on('error', () => {}).pipe(socket)));
      return createUpstream(`http://127.0.0.1:${port}`)(longBounds);
    },
    'unreachable',
  ],
  [
    'the host has the certificate of another host',
    async () => {
      const tls = makeTls(['other.example']);
      const port = await listen(createTlsServer(tls, (_, response) => response.end()));
      return createUpstream(`https://127.0.0.1:${port}`, tls.ca)(longBounds);
    },
    'unreachable',
  ],
  [
    'the answer ends early',
    async () =>
      (
        await host((_, response) => {
          response.writeHead(200, { 'content-length': 100, ...TELLTALE }).write(KEY);
          setTimeout(() => response.destroy(), 20);
        })
      ).client,
    'broken',
  ],
  [
    'the answer does not end',
    async () =>
      (await host((_, response) => void response.writeHead(200, TELLTALE).write(KEY), bounds)).client,
    'slow body',
  ],
  ['the answer is too large', startAnswering(200, KEY.repeat(100)), 'too large'],
  ['the answer is not JSON', startAnswering(200, `<html>${KEY}`), 'malformed'],
  ['the host refuses the key, and repeats it', startAnswering(401, JSON.stringify({ error: KEY })), 'status'],
  ['the host redirects', startAnswering(302, KEY), 'status'],
];

describe('a thrown error contains nothing of the request', () => {
  test.each(failures)('if %s', async (_caseName, start, reason) => {
    const client = await start();
    client.defaults.headers.common['x-default'] = KEY;
    client.interceptors.request.use((config) => {
      config.headers.set('x-set', KEY);
      return config;
    });
    const errors: Error[] = [];
    client.interceptors.response.use(null, (error) => {
      errors.push(error);
      throw error;
    });
    errors.push(await catchError(client({ ...PARTS, auth: AUTH })));
    expect(errors[0]).toBe(errors[1]);
    expect(errors[0]).toMatchObject({ reason });
    expect(isUpstreamError(errors[0])).toBe(true);
    expect(errors[0]).not.toHaveProperty('request');
    // Code can read all options by name, for example to send the request again.
    const { config } = errors[0] as UpstreamError;
    expect([config?.url, config?.params, config?.auth]).toEqual([PARTS.url, PARTS.params, AUTH]);
    expect(JSON.stringify(config)).toBe('{}');
    expect(inspect(config)).not.toContain(KEY);
    expect(printByLog(config)).not.toContain(KEY);
    expectNoKey(errors[0] as Error);
    expectNoKey(client);
  });

  test('but its `response` has the data of a refused answer', async () => {
    const client = await startAnswering(401, JSON.stringify({ error: KEY }))();
    const error = (await catchError(client(PARTS))) as UpstreamError;
    expect([error.status, error.response?.data]).toEqual([401, { error: KEY }]);
    expectNoKey(new Error('a translation', { cause: error }));
  });

  const mistakes: [string, AxiosRequestConfig | Record<string, unknown>][] = [
    ['a refused option', { proxy: { host: KEY } }],
    ['an absolute URL', { url: `https://${KEY}@evil.example/${KEY}` }],
    ['a malformed URL', { url: `https:${KEY}` }],
    ['a path with a fragment', { url: `/#${KEY}` }],
    ['a header with a line break', { headers: { key: `${KEY}\r\nx: y` } }],
    ['a header that is not allowed', { headers: { host: KEY } }],
    ['a header with an object', { headers: { key: { [KEY]: KEY }, x: [[KEY]] } }],
    ['an invalid method', { method: KEY }],
    ['a lone surrogate', { params: { key: `${KEY}\ud800` } }],
    ['a body that JSON can not represent', { data: { [KEY]: 1n, key: KEY } }],
    ['an invalid time limit', { timeout: KEY }],
    ['an invalid response type', { responseType: KEY }],
    ['an invalid serializer', { paramsSerializer: { encode: KEY } }],
  ];

  test.each(mistakes)('if the request has a mistake: %s', async (_caseName, options) => {
    const client = await startAnswering(200, '{}')();
    expectNoKey(await catchError(client({ ...PARTS, ...options } as AxiosRequestConfig)));
    client.interceptors.request.use((config) => Object.assign(config, options) as never);
    expectNoKey(await catchError(client(PARTS)));
    Object.assign(client.defaults, options);
    expectNoKey(await catchError(client(PARTS)));
  });

  test('if axios itself rejects an option', async () => {
    const client = await startAnswering(200, '{}')();
    const exchange = client({ ...PARTS, transitional: { [KEY]: KEY } } as AxiosRequestConfig);
    expectNoKey(await catchError(exchange));
    await expect(exchange).rejects.toMatchObject({ code: 'APPLICATION' });
    expect(() => client.getUri({ url: `https:${KEY}` })).toThrow(/ERR_INVALID_URL/);
    expect(() => client.getUri({ url: `https:${KEY}` })).not.toThrow(new RegExp(KEY));
  });

  test('if the parameters or the data have a cycle, which axios itself rejects', async () => {
    const client = await startAnswering(200, '{}')();
    const params: Record<string, unknown> = { key: KEY };
    params[KEY] = params;
    expectNoKey(await catchError(client.get(`/${KEY}`, { params })));
    expectNoKey(await catchError(client.post(`/${KEY}`, params)));
  });

  test('if a signal aborts the call, or if the budget is used up', async () => {
    const { origin } = await host(() => {});
    const client = createUpstream(origin)({ budget: createBudget({ UPSTREAM_CALLS_PER_MINUTE: '1' }) });
    const controller = new AbortController();
    const errorOfCall = catchError(client({ ...PARTS, signal: controller.signal }));
    setTimeout(() => controller.abort(), 50);
    expectNoKey(await errorOfCall);
    expectNoKey(await catchError(client({ ...PARTS, signal: controller.signal })));
    const budgetError = await catchError(client(PARTS));
    expect(budgetError).toMatchObject({ code: 'UPSTREAM_BUDGET_EXCEEDED' });
    expectNoKey(budgetError);
  });

  test('whatever text any part of the request contains', async () => {
    const client = await startAnswering(500, KEY)();
    const text = fc.string({ unit: 'binary' }).map((noise) => noise.slice(0, 5) + KEY + noise.slice(5));
    const part = fc.constantFrom('url', 'params', 'headers', 'data', 'method', 'key', 'timeout');
    const property = fc.asyncProperty(part, text, text, async (part, name, value) => {
      const requestConfig = part === 'url' ? `/${value}` : { [name]: value, key: value };
      expectNoKey(await catchError(client({ url: '/', method: 'post', [part]: requestConfig })));
    });
    await fc.assert(property, { numRuns: 100 });
  });
});

test('an uncaught error of a request is printed without the key', async () => {
  const { origin } = await host((_, response) => response.writeHead(401, TELLTALE).end(KEY));
  const module = new URL('../../../src/service/upstream.ts', import.meta.url);
  const options = JSON.stringify({ ...PARTS, auth: AUTH });
  const code = `
    const { createUpstream } = await import(${JSON.stringify(module.href)});
    await createUpstream(${JSON.stringify(origin)})()(JSON.parse(process.env.OPTIONS));
  `;
  const child = spawn(process.execPath, ['--input-type=module', '--eval', code], {
    env: { ...COMPILE_CACHE, OPTIONS: options },
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  const [printed, [status]] = await Promise.all([text(child.stderr), once(child, 'exit')]);
  expect(status).toBe(1);
  expect(printed).toContain('Request failed with status code 401');
  expect(printed).toContain("reason: 'status'");
  expect(printed).not.toContain(KEY);
});

describe("an upstream's answer", () => {
  test('shows only its status and duration when it is printed, serialised or copied', async () => {
    const client = await startAnswering(200, '{"cents":123}')();
    const answer = await client({ ...PARTS, auth: AUTH });
    expectNoKey(answer);
    const printed = { status: 200, statusText: 'OK', duration: expect.any(Number) };
    expect(JSON.parse(JSON.stringify(answer))).toEqual(printed);
    expect({ ...answer }).toEqual(printed);
    // Code can read the other properties by name.
    expect(answer.data).toEqual({ cents: 123 });
    expect(answer.headers['location']).toBe(TELLTALE.location);
    expect(answer.config.url).toBe(PARTS.url);
    expect(inspect(answer.config) + JSON.stringify(answer.config) + printByLog(answer.config)).not.toContain(
      KEY,
    );
    expect(answer.request).toBeUndefined();
  });
});

describe('a server', () => {
  const Payload = v.strictObject({ status: v.string() });

  test('answers INTERNAL if its handler does not catch a failure, and neither sends nor logs the key', async () => {
    const upstream = await host((request, response) => {
      const status = Number(request.url?.match(/status=(\d+)/)?.[1] ?? 204);
      response.writeHead(status, TELLTALE).end(KEY);
    });
    const create = ({ log, upstream, secret }: AppContext) => {
      const client = upstream('prices.example', bounds);
      const handle = async ({ status }: v.InferOutput<typeof Payload>): Promise<never> => {
        const key = secret('PRICE_KEY');
        const { headers, data } = PARTS;
        const exchange = client.post(status === 'mistake' ? `//${key}` : `/${key}?status=${status}`, data, {
          headers,
          ...((status === 'option' && { params: { key }, proxy: { host: key, port: 1 } }) as object),
        });
        await exchange.catch((error) => log.info({ error, err: error }, 'failed %o', error));
        return (await exchange) as never;
      };
      return { endpoints: [processData({ payload: Payload, handle })] };
    };
    const server = await startServer({
      manifest: { endpoints: ['prices.example', 'down.example'], secrets: ['PRICE_KEY'] },
      module: { signs: [], create },
      secrets: { PRICE_KEY: KEY },
      origins: { 'prices.example': upstream.origin, 'down.example': 'http://127.0.0.1:1' },
    });
    for (const status of ['200', '302', '401', '500', 'mistake', 'option']) {
      const answer = await server.post('/process_data', { payload: { status } });
      const text = await answer.text();
      expect([answer.status, JSON.parse(text).code]).toEqual([500, 'INTERNAL']);
      expect(text).not.toContain(KEY);
    }
    await server.get('/health_check');
    expect(server.printed()).toContain('the URL of an upstream request must have the host');
    expect(server.printed()).toContain('"type":"ConfigError","code":"CONFIG"');
    expect(server.printed()).toContain('an upstream request can not have the option proxy');
    expect(server.printed().match(/"type":"AxiosError"/g)?.length).toBeGreaterThanOrEqual(4);
    expect(server.printed()).not.toContain(KEY);
  });
});
