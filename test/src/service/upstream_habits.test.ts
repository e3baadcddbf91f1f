/**
 * Tests calls that are common among users of axios. Each works as axios documents it, or is refused by an
 * error that says why.
 */
import { readFileSync } from 'node:fs';
import { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import axios, { AxiosError, AxiosHeaders, type AxiosInstance, isAxiosError, isCancel } from 'axios';
import axiosRetry from 'axios-retry';
import { describe, expect, test } from 'vitest';
import { ApplicationMistake, ConfigError } from '../../../src/library/errors.ts';
import { createUpstream, type UpstreamClient } from '../../../src/service/upstream.ts';
import { type Echo, echo, host } from './hosts.ts';

/** Returns the method, URL and body of the request that the host received. */
const readRequest = async (exchange: Promise<{ data: Echo }>) => {
  const { method, url, body } = (await exchange).data;
  return `${method} ${url} ${body}`.trim();
};
const readHeader = async (exchange: Promise<{ data: Echo }>, name: string) =>
  (await exchange).data.headers[name];
const createForm = (fields: Record<string, string | Blob>) => {
  const data = new FormData();
  for (const [name, value] of Object.entries(fields)) data.append(name, value);
  return data;
};
/** Lists the names and values of a multipart body, without its boundary. */
const listParts = (body: string) =>
  [...body.matchAll(/name="([^"]*)".*?\r\n\r\n(.*?)\r\n--/gs)].map(([, name, value]) => `${name}=${value}`);

type Row = readonly [habit: string, run: (client: UpstreamClient) => unknown, expected: unknown];

const SUPPORTED: readonly Row[] = [
  ['`get("/v1/x")`', (client) => readRequest(client.get('/v1/x')), 'GET /v1/x'],
  ['`get("v1/x")`', (client) => readRequest(client.get('v1/x')), 'GET /v1/x'],
  ['no `url`', (client) => readRequest(client({ method: 'get' })), 'GET /'],
  ['`client(url, options)`', (client) => readRequest(client('/x', { method: 'delete' })), 'DELETE /x'],
  [
    '`request(options)`',
    (client) => readRequest(client.request({ url: '/x', method: 'PUT', data: 'a' })),
    'PUT /x a',
  ],
  ['`options(url)`', (client) => readRequest(client.options('/x')), 'OPTIONS /x'],
  ['`query(url, data)`', (client) => readRequest(client.query('/x', { a: 1 })), 'QUERY /x {"a":1}'],
  [
    'an absolute URL of the host',
    (client) => readRequest(client.get(`${client.defaults.baseURL}/x?a=1`)),
    'GET /x?a=1',
  ],
  [
    '`baseURL` of the host',
    (client) => readRequest(client.get('x', { baseURL: `${client.defaults.baseURL}/v1/` })),
    'GET /v1/x',
  ],
  ['`baseURL` that is a path', (client) => readRequest(client.get('/x', { baseURL: '/v1' })), 'GET /v1/x'],
  [
    '`params` with a list',
    (client) => readRequest(client.get('/', { params: { a: [1, 2] } })),
    'GET /?a%5B%5D=1&a%5B%5D=2',
  ],
  [
    '`params` with a date',
    (client) => readRequest(client.get('/', { params: { a: new Date(0) } })),
    'GET /?a=1970-01-01T00%3A00%3A00.000Z',
  ],
  [
    '`params` with an object',
    (client) => readRequest(client.get('/', { params: { a: { b: 'c' } } })),
    'GET /?a%5Bb%5D=c',
  ],
  [
    '`paramsSerializer: { indexes: null }`',
    (client) => readRequest(client.get('/', { params: { a: [1, 2] }, paramsSerializer: { indexes: null } })),
    'GET /?a=1&a=2',
  ],
  [
    '`paramsSerializer: { serialize }`',
    (client) =>
      readRequest(client.get('/', { params: { a: 1 }, paramsSerializer: { serialize: () => 'own=1' } })),
    'GET /?own=1',
  ],
  [
    '`defaults.params`',
    (client) => {
      client.defaults.params = { key: 'k' };
      return readRequest(client.get('/', { params: { q: 1 } }));
    },
    'GET /?key=k&q=1',
  ],
  [
    '`auth`',
    (client) => readHeader(client.get('/', { auth: { username: 'ä', password: 'b:c' } }), 'authorization'),
    `Basic ${Buffer.from('ä:b:c').toString('base64')}`,
  ],
  [
    '`headers: new AxiosHeaders(…)`',
    (client) => readHeader(client.get('/', { headers: new AxiosHeaders({ 'X-A': 'b' }) }), 'x-a'),
    'b',
  ],
  [
    '`defaults.headers.post`',
    (client) => {
      client.defaults.headers.post['x-a'] = 'b';
      return readHeader(client.post('/'), 'x-a');
    },
    'b',
  ],
  [
    'text as data',
    (client) => readHeader(client.post('/', 'a=1'), 'content-type'),
    'application/x-www-form-urlencoded',
  ],
  [
    'an object as `application/x-www-form-urlencoded`',
    (client) =>
      readRequest(
        client.post('/', { a: 'b c' }, { headers: { 'content-type': 'application/x-www-form-urlencoded' } }),
      ),
    'POST / a=b+c',
  ],
  [
    'an `ArrayBuffer`, a `Buffer` or a view as data',
    (client) => readRequest(client.post('/', new TextEncoder().encode('a').buffer)),
    'POST / a',
  ],
  [
    '`FormData`',
    async (client) =>
      listParts((await client.post<Echo>('/', createForm({ a: 'b', f: new Blob(['c']) }))).data.body),
    ['a=b', 'f=c'],
  ],
  [
    'the boundary and length of a form',
    async (client) => {
      const { headers, body } = (await client.post<Echo>('/', createForm({ a: 'b' }))).data;
      const [, boundary] = /^multipart\/form-data; boundary=(.+)$/.exec(headers['content-type'] ?? '') ?? [];
      return [
        headers['content-length'] === String(Buffer.byteLength(body)),
        body.startsWith(`--${boundary}\r\n`),
      ];
    },
    [true, true],
  ],
  [
    '`postForm(url, object)`',
    async (client) => listParts((await client.postForm<Echo>('/', { a: 'b', l: [1, 2] })).data.body),
    ['a=b', 'l[]=1', 'l[]=2'],
  ],
  [
    '`putForm`, `patchForm`',
    async (client) => [
      listParts((await client.putForm<Echo>('/', { a: 'b' })).data.body),
      listParts((await client.patchForm<Echo>('/', { a: 'b' })).data.body),
    ],
    [['a=b'], ['a=b']],
  ],
  [
    'a `Blob` as data',
    async (client) =>
      readHeader(
        client.put('/', new Blob(['x'], { type: 'image/png' }), { headers: { 'content-type': 'image/png' } }),
        'content-type',
      ),
    'image/png',
  ],
  [
    'a stream as data',
    async (client) => {
      const { headers, body } = (await client.post<Echo>('/', Readable.from(['a', 'b']))).data;
      return [body, headers['content-length'], headers['transfer-encoding']];
    },
    ['ab', '2', undefined],
  ],
  [
    'a `ReadableStream` as data',
    (client) => readRequest(client.post('/', new Blob(['ab']).stream())),
    'POST / ab',
  ],
  [
    '`delete(url, { data })`',
    (client) => readRequest(client.delete('/', { data: { a: 1 } })),
    'DELETE / {"a":1}',
  ],
  [
    '`maxBodyLength`',
    (client) => client.post('/', 'ab', { maxBodyLength: 1 }).catch(({ code }) => code),
    'APPLICATION',
  ],
  [
    '`transformRequest`',
    (client) => readRequest(client.post('/', { a: 1 }, { transformRequest: (data) => `x=${data.a}` })),
    'POST / x=1',
  ],
  [
    '`transformRequest` that sets a header',
    (client) =>
      readHeader(
        client.post(
          '/',
          {},
          {
            transformRequest: [
              (data, headers) => {
                headers.set('x-a', 'b');
                return JSON.stringify(data);
              },
            ],
          },
        ),
        'x-a',
      ),
    'b',
  ],
  [
    '`transformResponse`',
    async (client) => (await client.get('/', { transformResponse: (data) => typeof data })).data,
    'string',
  ],
  [
    '`transformResponse` after the default',
    async (client) =>
      (
        await client.get('/x', {
          transformResponse: [client.defaults.transformResponse ?? [], (data: Echo) => data.url].flat(),
        })
      ).data,
    '/x',
  ],
  [
    '`parseReviver`',
    async (client) =>
      (await client.get('/', { parseReviver: (key, value) => (key === 'method' ? 'revived' : value) })).data
        .method,
    'revived',
  ],
  [
    '`responseType: "text"`',
    async (client) => typeof (await client.get('/', { responseType: 'text' })).data,
    'string',
  ],
  [
    '`responseType: "arraybuffer"`',
    async (client) => Buffer.isBuffer((await client.get('/', { responseType: 'arraybuffer' })).data),
    true,
  ],
  [
    '`responseType: "stream"`',
    async (client) => JSON.parse(await text((await client.get('/x', { responseType: 'stream' })).data)).url,
    '/x',
  ],
  [
    '`create(defaults)`',
    (client) =>
      readRequest(
        client.create({ params: { key: 'k' }, baseURL: `${client.defaults.baseURL}/v2` }).get('/x'),
      ),
    'GET /v2/x?key=k',
  ],
  [
    'interceptors of `create()`',
    async (client) => {
      client.interceptors.request.use(() => expect.fail('was called'));
      return await readRequest(client.create().get('/'));
    },
    'GET /',
  ],
  [
    '`getUri(options)`',
    (client) => client.getUri({ url: '/x', params: { a: 1 } }).replace(client.defaults.baseURL ?? '', ''),
    '/x?a=1',
  ],
  [
    'an interceptor with `runWhen`',
    (client) => {
      client.interceptors.request.use(() => expect.fail('was called'), null, {
        runWhen: ({ method }) => method === 'post',
      });
      return readRequest(client.get('/'));
    },
    'GET /',
  ],
  [
    'an interceptor with `synchronous`',
    async (client) => {
      let isCalled = false;
      const call = <Config>(config: Config) => {
        isCalled = true;
        return config;
      };
      client.interceptors.request.use(call, null, { synchronous: true });
      const exchange = client.get('/');
      return [isCalled, (await exchange).status];
    },
    [true, 200],
  ],
  [
    'an interceptor that adds options of its own',
    async (client) => {
      client.interceptors.request.use((config) => Object.assign(config, { metadata: { start: 1 } }));
      return ((await client.get('/')).config as { metadata?: unknown }).metadata;
    },
    { start: 1 },
  ],
  [
    'an interceptor that sends `config` again',
    async (client) => {
      let turn = 0;
      client.interceptors.response.use((answer) => (turn++ === 0 ? client(answer.config) : answer));
      return [await readRequest(client.post('/x', { a: 1 })), turn];
    },
    ['POST /x {"a":1}', 2],
  ],
  ['`validateStatus: null`', async (client) => (await client.get('/', { validateStatus: null })).status, 200],
  ['`timeout: 0`', async (client) => (await client.get('/', { timeout: 0 })).status, 200],
  ['`signal`', (client) => client.get('/', { signal: AbortSignal.abort() }).catch(isCancel), true],
  [
    '`cancelToken`, `isCancel`',
    (client) => {
      const { token, cancel } = axios.CancelToken.source();
      cancel('left');
      return client
        .get('/', { cancelToken: token })
        .catch((error) => [isCancel(error), error.message, error.code]);
    },
    [true, 'left', 'ERR_CANCELED'],
  ],
  [
    '`axiosRetry(upstream(host))`',
    async (client) => {
      let turn = 0;
      axiosRetry(client, { retries: 1, retryDelay: () => 1, retryCondition: () => true });
      return [(await client.get('/', { validateStatus: () => turn++ > 0 })).status, turn];
    },
    [200, 2],
  ],
  [
    '`isAxiosError(error)`, `error.response`, `error.config`',
    async (client) => {
      const error: unknown = await client
        .get('/x', { validateStatus: () => false })
        .catch((thrown) => thrown);
      return isAxiosError(error) && [error.response?.status, error.response?.data.url, error.config?.url];
    },
    [200, '/x', '/x'],
  ],
  [
    '`error instanceof AxiosError`',
    (client) =>
      client.get('/', { validateStatus: () => false }).catch((error) => error instanceof AxiosError),
    false,
  ],
  [
    '`error.request`, `response.request`',
    async (client) => [
      (await client.get('/')).request,
      await client.get('/', { validateStatus: () => false }).catch(({ request }) => request),
    ],
    [undefined, undefined],
  ],
  [
    '`error.toJSON()`',
    (client) => client.get('/x', { validateStatus: () => false }).catch((error) => error.toJSON()),
    {
      message: 'Request failed with status code 200',
      name: 'AxiosError',
      code: 'ERR_BAD_RESPONSE',
      status: 200,
      reason: 'status',
    },
  ],
];

const REFUSED: readonly (readonly [
  habit: string,
  run: (client: AxiosInstance) => unknown,
  error: unknown,
  reason: RegExp,
])[] = [
  [
    'another host',
    (client) => client.get('https://evil.example/'),
    ApplicationMistake,
    /host of upstream\(\)/,
  ],
  [
    '`baseURL` of another host',
    (client) => client.get('/', { baseURL: 'https://evil.example' }),
    ApplicationMistake,
    /host of upstream\(\)/,
  ],
  ['a body with GET or HEAD', (client) => client.get('/', { data: {} }), ApplicationMistake, /GET and HEAD/],
  [
    '`proxy`',
    (client) => client.get('/', { proxy: { host: 'a', port: 1 } }),
    ConfigError,
    /option proxy: .*without a proxy/,
  ],
  [
    '`httpAgent`, `httpsAgent`',
    (client) => client.get('/', { httpsAgent: {} }),
    ConfigError,
    /option httpsAgent: .*connections/,
  ],
  ['`adapter`', (client) => client.get('/', { adapter: 'fetch' }), ConfigError, /option adapter: /],
  [
    '`maxRedirects` above 0',
    (client) => client.get('/', { maxRedirects: 5 }),
    ConfigError,
    /option maxRedirects: it does not follow redirects/,
  ],
  [
    '`decompress: true`',
    (client) => client.get('/', { decompress: true }),
    ConfigError,
    /option decompress: it does not decode/,
  ],
  [
    '`create({ adapter })`',
    async (client) => client.create({ adapter: 'http' }),
    ConfigError,
    /option adapter: /,
  ],
  [
    'a user name in the URL',
    (client) => client.get(`${client.defaults.baseURL?.replace('//', '//user@')}/`),
    ApplicationMistake,
    /no user name/,
  ],
  [
    'a URL that starts with `//`',
    (client) => client.get('//evil.example/'),
    ApplicationMistake,
    /host of upstream\(\)/,
  ],
  [
    'a URL with white space, `..`, `\\` or `#`',
    (client) => client.get('/a b'),
    ApplicationMistake,
    /percent-encoded/,
  ],
  [
    '`Host`, `Connection`, `Content-Length` and their like as headers',
    (client) => client.get('/', { headers: { Host: 'evil.example' } }),
    ApplicationMistake,
    /sets host itself/,
  ],
  [
    'a header with CR, LF or other invalid bytes',
    (client) => client.get('/', { headers: { 'x-a': 'b\r\nHost: evil.example' } }),
    ApplicationMistake,
    /invalid in HTTP/,
  ],
  [
    '`timeout` above the limit of `upstream()`',
    (client) => client.get('/', { timeout: 5001 }),
    ApplicationMistake,
    /may only lower the limit/,
  ],
  [
    '`responseType: "blob"`, `"document"`',
    (client) => client.get('/', { responseType: 'blob' }),
    ApplicationMistake,
    /responseType/,
  ],
  [
    '`maxContentLength`',
    (client) => client.get('/', { maxContentLength: 1 }),
    ConfigError,
    /option maxContentLength: maxSize/,
  ],
  [
    '`onUploadProgress`, `onDownloadProgress`',
    (client) => client.get('/', { onDownloadProgress: () => {} }),
    ConfigError,
    /option onDownloadProgress: .*whole/,
  ],
  [
    '`socketPath`, `lookup`, `family`, `httpVersion`, `maxRate`',
    (client) => client.get('/', { socketPath: '/run/docker.sock' }),
    ConfigError,
    /option socketPath: /,
  ],
  [
    '`responseEncoding`',
    (client) => client.get('/', { responseEncoding: 'latin1' }),
    ConfigError,
    /option responseEncoding: /,
  ],
];

/** Outcomes in the table of src/apps/README.md, by habit. */
const ROWS: ReadonlyMap<string, string> = new Map(
  readFileSync(new URL('../../../src/apps/README.md', import.meta.url), 'utf8')
    .split('\n| habit of axios | here |\n| --- | --- |\n')[1]
    ?.split('\n\n')[0]
    ?.split('\n')
    .map((row) => row.slice(2, -2).split(' | ') as [string, string]),
);

describe('a client', () => {
  test.each(SUPPORTED)('supports %s as axios does', async (_habit, run, expected) => {
    const { client } = await echo({ maxSize: 5000 });
    expect(await run(client)).toEqual(expected);
  });
});

describe('a client', () => {
  test.each(REFUSED)('refuses %s, and sends nothing', async (habit, run, error, reason) => {
    const { client, connections } = await echo();
    const exchange = Promise.resolve(run(client));
    await expect(exchange).rejects.toBeInstanceOf(error as new () => Error);
    await expect(exchange).rejects.toThrow(reason);
    expect(connections()).toBe(0);
    const code = error === ConfigError ? 'CONFIG' : 'APPLICATION';
    expect(ROWS.get(habit)?.startsWith(`refused: \`${code}\``)).toBe(true);
  });
});

test('the table in src/apps/README.md has exactly these habits', () => {
  expect([...ROWS.keys()]).toEqual([...SUPPORTED, ...REFUSED].map(([habit]) => habit));
});

describe('a failure', () => {
  test.each([
    [404, 'ERR_BAD_REQUEST'],
    [500, 'ERR_BAD_RESPONSE'],
    [302, 'ERR_BAD_RESPONSE'],
  ])('with status %i is an error of axios', async (status, code) => {
    const { client } = await host((_request, response) =>
      response.writeHead(status, { 'x-a': 'b' }).end('{"a":1}'),
    );
    const error = (await client.get('/x', { params: { a: 1 } }).catch((thrown) => thrown)) as AxiosError;
    expect(isAxiosError(error) && error.response?.status === status).toBe(true);
    expect(error).toMatchObject({ name: 'AxiosError', code, status, reason: 'status' });
    expect(error.message).toBe(`Request failed with status code ${status}`);
    expect(error.response?.data).toEqual({ a: 1 });
    expect(error.response?.headers['x-a']).toBe('b');
    expect([error.config?.url, error.config?.params, error.config?.method]).toEqual(['/x', { a: 1 }, 'get']);
    expect(error.request).toBeUndefined();
  });

  test("without an answer has the code of Node's error, or else a code of axios", async () => {
    const unreachableClient = createUpstream('http://127.0.0.1:1')();
    await expect(unreachableClient.get('/')).rejects.toMatchObject({
      code: 'ECONNREFUSED',
      reason: 'unreachable',
    });
    const { client } = await host(() => {}, { timeoutMs: 100 });
    await expect(client.get('/')).rejects.toMatchObject({ code: 'ECONNABORTED', reason: 'timeout' });
  });

  test('is retried by axios-retry, with its body, by the adapter of upstream()', async () => {
    const bodies: string[] = [];
    const { client } = await host(async (request, response) => {
      bodies.push(`${request.headers['content-type']} ${await text(request)}`);
      response.writeHead(bodies.length < 3 ? 503 : 200).end('{"a":1}');
    });
    axiosRetry(client, { retries: 3, retryDelay: () => 1, retryCondition: () => true });
    expect((await client.post('/', { a: 'ä' }, { timeout: 4000 })).data).toEqual({ a: 1 });
    expect(bodies).toEqual(Array(3).fill('application/json {"a":"ä"}'));
    bodies.length = 0;
    await client.post('/', Readable.from(['a', 'b']), { headers: { 'content-type': 'text/plain' } });
    expect(bodies).toEqual(Array(3).fill('text/plain ab'));
  });
});

test('the compiler refuses the options that an upstream refuses', async () => {
  const { client } = await echo();
  // @ts-expect-error the option is refused
  await expect(client.get('/', { proxy: { host: 'a', port: 1 } })).rejects.toBeInstanceOf(ConfigError);
  // @ts-expect-error the option is refused
  expect(() => client.create({ adapter: 'fetch' })).toThrow(ConfigError);
});
