/** What users of axios write: each call works as its documentation says, or is refused by an error that says why. */
import { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import axios, { type AxiosError, AxiosHeaders, type AxiosInstance, isAxiosError, isCancel } from 'axios';
import axiosRetry from 'axios-retry';
import { describe, expect, test } from 'vitest';
import { ApplicationMistake, ConfigError } from '../../../src/library/errors.ts';
import { createUpstream, createUpstreams, type UpstreamClient } from '../../../src/service/upstream.ts';
import { type Echo, echo, host } from './hosts.ts';

/** What the host gets, in short. */
const sent = async (asked: Promise<{ data: Echo }>) => {
  const { method, url, body } = (await asked).data;
  return `${method} ${url} ${body}`.trim();
};
const header = async (asked: Promise<{ data: Echo }>, name: string) => (await asked).data.headers[name];
const form = (fields: Record<string, string | Blob>) => {
  const data = new FormData();
  for (const [name, value] of Object.entries(fields)) data.append(name, value);
  return data;
};
/** Of a multipart body: names and values, without its boundary. */
const parts = (body: string) =>
  [...body.matchAll(/name="([^"]*)".*?\r\n\r\n(.*?)\r\n--/gs)].map(([, name, value]) => `${name}=${value}`);

type Row = readonly [habit: string, run: (client: UpstreamClient) => unknown, expected: unknown];

const WORK: readonly Row[] = [
  ['a path', (client) => sent(client.get('/v1/x')), 'GET /v1/x'],
  ['a relative path', (client) => sent(client.get('v1/x')), 'GET /v1/x'],
  ['no path', (client) => sent(client({ method: 'get' })), 'GET /'],
  ['the client as a function', (client) => sent(client('/x', { method: 'delete' })), 'DELETE /x'],
  ['request()', (client) => sent(client.request({ url: '/x', method: 'PUT', data: 'a' })), 'PUT /x a'],
  ['options()', (client) => sent(client.options('/x')), 'OPTIONS /x'],
  ['query()', (client) => sent(client.query('/x', { a: 1 })), 'QUERY /x {"a":1}'],
  [
    'an absolute URL of the host',
    (client) => sent(client.get(`${client.defaults.baseURL}/x?a=1`)),
    'GET /x?a=1',
  ],
  [
    'a baseURL of the host',
    (client) => sent(client.get('x', { baseURL: `${client.defaults.baseURL}/v1/` })),
    'GET /v1/x',
  ],
  ['a baseURL that is a path', (client) => sent(client.get('/x', { baseURL: '/v1' })), 'GET /v1/x'],
  [
    'params that are a list',
    (client) => sent(client.get('/', { params: { a: [1, 2] } })),
    'GET /?a%5B%5D=1&a%5B%5D=2',
  ],
  [
    'params that are dates',
    (client) => sent(client.get('/', { params: { a: new Date(0) } })),
    'GET /?a=1970-01-01T00%3A00%3A00.000Z',
  ],
  ['nested params', (client) => sent(client.get('/', { params: { a: { b: 'c' } } })), 'GET /?a%5Bb%5D=c'],
  [
    'paramsSerializer with indexes',
    (client) => sent(client.get('/', { params: { a: [1, 2] }, paramsSerializer: { indexes: null } })),
    'GET /?a=1&a=2',
  ],
  [
    'a paramsSerializer that is a function',
    (client) => sent(client.get('/', { params: { a: 1 }, paramsSerializer: { serialize: () => 'own=1' } })),
    'GET /?own=1',
  ],
  [
    'params of defaults',
    (client) => {
      client.defaults.params = { key: 'k' };
      return sent(client.get('/', { params: { q: 1 } }));
    },
    'GET /?key=k&q=1',
  ],
  [
    'auth',
    (client) => header(client.get('/', { auth: { username: 'ä', password: 'b:c' } }), 'authorization'),
    `Basic ${Buffer.from('ä:b:c').toString('base64')}`,
  ],
  [
    'headers of AxiosHeaders',
    (client) => header(client.get('/', { headers: new AxiosHeaders({ 'X-A': 'b' }) }), 'x-a'),
    'b',
  ],
  [
    'defaults for a method',
    (client) => {
      client.defaults.headers.post['x-a'] = 'b';
      return header(client.post('/'), 'x-a');
    },
    'b',
  ],
  [
    'a text without a type',
    (client) => header(client.post('/', 'a=1'), 'content-type'),
    'application/x-www-form-urlencoded',
  ],
  [
    'an object as a form',
    (client) =>
      sent(
        client.post('/', { a: 'b c' }, { headers: { 'content-type': 'application/x-www-form-urlencoded' } }),
      ),
    'POST / a=b+c',
  ],
  ['an ArrayBuffer', (client) => sent(client.post('/', new TextEncoder().encode('a').buffer)), 'POST / a'],
  [
    'FormData',
    async (client) => parts((await client.post<Echo>('/', form({ a: 'b', f: new Blob(['c']) }))).data.body),
    ['a=b', 'f=c'],
  ],
  [
    'FormData, with its length and boundary',
    async (client) => {
      const { headers, body } = (await client.post<Echo>('/', form({ a: 'b' }))).data;
      const [, boundary] = /^multipart\/form-data; boundary=(.+)$/.exec(headers['content-type'] ?? '') ?? [];
      return [
        headers['content-length'] === String(Buffer.byteLength(body)),
        body.startsWith(`--${boundary}\r\n`),
      ];
    },
    [true, true],
  ],
  [
    'postForm()',
    async (client) => parts((await client.postForm<Echo>('/', { a: 'b', l: [1, 2] })).data.body),
    ['a=b', 'l[]=1', 'l[]=2'],
  ],
  [
    'putForm() and patchForm()',
    async (client) => [
      parts((await client.putForm<Echo>('/', { a: 'b' })).data.body),
      parts((await client.patchForm<Echo>('/', { a: 'b' })).data.body),
    ],
    [['a=b'], ['a=b']],
  ],
  [
    'a Blob',
    async (client) =>
      header(
        client.put('/', new Blob(['x'], { type: 'image/png' }), { headers: { 'content-type': 'image/png' } }),
        'content-type',
      ),
    'image/png',
  ],
  [
    'a stream',
    async (client) => {
      const { headers, body } = (await client.post<Echo>('/', Readable.from(['a', 'b']))).data;
      return [body, headers['content-length'], headers['transfer-encoding']];
    },
    ['ab', '2', undefined],
  ],
  ['a ReadableStream', (client) => sent(client.post('/', new Blob(['ab']).stream())), 'POST / ab'],
  ['a body with DELETE', (client) => sent(client.delete('/', { data: { a: 1 } })), 'DELETE / {"a":1}'],
  [
    'maxBodyLength',
    (client) => client.post('/', 'ab', { maxBodyLength: 1 }).catch(({ code }) => code),
    'APPLICATION',
  ],
  [
    'transformRequest',
    (client) => sent(client.post('/', { a: 1 }, { transformRequest: (data) => `x=${data.a}` })),
    'POST / x=1',
  ],
  [
    'transformRequest that sets a header',
    (client) =>
      header(
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
    'transformResponse, which gets text',
    async (client) => (await client.get('/', { transformResponse: (data) => typeof data })).data,
    'string',
  ],
  [
    'transformResponse after the default',
    async (client) =>
      (
        await client.get('/x', {
          transformResponse: [client.defaults.transformResponse ?? [], (data: Echo) => data.url].flat(),
        })
      ).data,
    '/x',
  ],
  [
    'parseReviver',
    async (client) =>
      (await client.get('/', { parseReviver: (key, value) => (key === 'method' ? 'revived' : value) })).data
        .method,
    'revived',
  ],
  [
    'responseType text',
    async (client) => typeof (await client.get('/', { responseType: 'text' })).data,
    'string',
  ],
  [
    'responseType arraybuffer',
    async (client) => Buffer.isBuffer((await client.get('/', { responseType: 'arraybuffer' })).data),
    true,
  ],
  [
    'responseType stream',
    async (client) => JSON.parse(await text((await client.get('/x', { responseType: 'stream' })).data)).url,
    '/x',
  ],
  [
    'create()',
    (client) =>
      sent(client.create({ params: { key: 'k' }, baseURL: `${client.defaults.baseURL}/v2` }).get('/x')),
    'GET /v2/x?key=k',
  ],
  [
    'create(), with interceptors of its own',
    async (client) => {
      client.interceptors.request.use(() => expect.fail('was called'));
      return await sent(client.create().get('/'));
    },
    'GET /',
  ],
  [
    'getUri()',
    (client) => client.getUri({ url: '/x', params: { a: 1 } }).replace(client.defaults.baseURL ?? '', ''),
    '/x?a=1',
  ],
  [
    'an interceptor with runWhen',
    (client) => {
      client.interceptors.request.use(() => expect.fail('was called'), null, {
        runWhen: ({ method }) => method === 'post',
      });
      return sent(client.get('/'));
    },
    'GET /',
  ],
  [
    'an interceptor that is synchronous',
    async (client) => {
      let isCalled = false;
      const call = <Config>(config: Config) => {
        isCalled = true;
        return config;
      };
      client.interceptors.request.use(call, null, { synchronous: true });
      const asked = client.get('/');
      return [isCalled, (await asked).status];
    },
    [true, 200],
  ],
  [
    'an interceptor that adds its own options',
    async (client) => {
      client.interceptors.request.use((config) => Object.assign(config, { metadata: { start: 1 } }));
      return ((await client.get('/')).config as { metadata?: unknown }).metadata;
    },
    { start: 1 },
  ],
  [
    'an interceptor that asks again',
    async (client) => {
      let turn = 0;
      client.interceptors.response.use((answer) => (turn++ === 0 ? client(answer.config) : answer));
      return [await sent(client.post('/x', { a: 1 })), turn];
    },
    ['POST /x {"a":1}', 2],
  ],
  ['validateStatus null', async (client) => (await client.get('/', { validateStatus: null })).status, 200],
  ['timeout 0', async (client) => (await client.get('/', { timeout: 0 })).status, 200],
  ['signal', (client) => client.get('/', { signal: AbortSignal.abort() }).catch(isCancel), true],
  [
    'CancelToken',
    (client) => {
      const { token, cancel } = axios.CancelToken.source();
      cancel('left');
      return client
        .get('/', { cancelToken: token })
        .catch((error) => [isCancel(error), error.message, error.code]);
    },
    [true, 'left', 'ERR_CANCELED'],
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
    'another baseURL',
    (client) => client.get('/', { baseURL: 'https://evil.example' }),
    ApplicationMistake,
    /host of upstream\(\)/,
  ],
  ['a body with GET', (client) => client.get('/', { data: {} }), ApplicationMistake, /GET and HEAD/],
  [
    'proxy',
    (client) => client.get('/', { proxy: { host: 'a', port: 1 } }),
    ConfigError,
    /option proxy: .*without a proxy/,
  ],
  [
    'an agent',
    (client) => client.get('/', { httpsAgent: {} }),
    ConfigError,
    /option httpsAgent: .*connections/,
  ],
  ['another adapter', (client) => client.get('/', { adapter: 'fetch' }), ConfigError, /option adapter: /],
  [
    'redirects',
    (client) => client.get('/', { maxRedirects: 5 }),
    ConfigError,
    /option maxRedirects: it follows no redirect/,
  ],
  [
    'decompress',
    (client) => client.get('/', { decompress: true }),
    ConfigError,
    /option decompress: it does not decode/,
  ],
  [
    'create() with another adapter',
    async (client) => client.create({ adapter: 'http' }),
    ConfigError,
    /option adapter: /,
  ],
];

describe('works:', () => {
  test.each(WORK)('%s', async (_habit, run, expected) => {
    const { client } = await echo({ maxSize: 5000 });
    expect(await run(client)).toEqual(expected);
  });
});

describe('is refused, and not sent:', () => {
  test.each(REFUSED)('%s', async (_habit, run, error, reason) => {
    const { client, connections } = await echo();
    const asked = Promise.resolve(run(client));
    await expect(asked).rejects.toBeInstanceOf(error as new () => Error);
    await expect(asked).rejects.toThrow(reason);
    expect(connections()).toBe(0);
  });
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

  test('without an answer has the code of Node, or that of axios', async () => {
    const nobody = createUpstream('http://127.0.0.1:1')();
    await expect(nobody.get('/')).rejects.toMatchObject({ code: 'ECONNREFUSED', reason: 'unreachable' });
    const { client } = await host(() => {}, { timeoutMs: 100 });
    await expect(client.get('/')).rejects.toMatchObject({ code: 'ECONNABORTED', reason: 'timeout' });
  });

  test('is tried again by axios-retry, with its body, by the adapter of upstream()', async () => {
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

describe('JSON is strict:', () => {
  test.each([
    ['text', {}, 'text'],
    ['other than UTF-8', {}, Buffer.from('"ä"', 'latin1')],
    ['encoded', { 'content-encoding': 'gzip' }, '{}'],
  ])('an answer that is %s reaches no code of the application', async (_what, headers, body) => {
    const { client } = await host((_request, response) => response.writeHead(200, headers).end(body));
    client.defaults.transformResponse = () => expect.fail('was called');
    await expect(client.get('/')).rejects.toMatchObject({
      reason: 'malformed',
      code: 'ERR_BAD_RESPONSE',
      status: 200,
    });
  });
});

describe('a body that is read first is bounded', () => {
  async function* endless() {
    for (;;) yield Buffer.alloc(65_536);
  }

  test.each([
    ['without an end', () => Readable.from(endless()), ApplicationMistake],
    ['of a form', () => form({ f: new Blob([Buffer.alloc(2 ** 21)]) }), ApplicationMistake],
    ['of other things', () => Readable.from([{ a: 1 }]), ApplicationMistake],
  ])('%s', async (_what, data, error) => {
    const { client, connections } = await echo();
    await expect(client.post('/', data())).rejects.toBeInstanceOf(error);
    expect(connections()).toBe(0);
  });

  test('in time', async () => {
    const { client, connections } = await echo({ timeoutMs: 100 });
    await expect(client.post('/', new Readable({ read() {} }))).rejects.toMatchObject({ reason: 'timeout' });
    expect(connections()).toBe(0);
  });
});

describe('nothing displaces the adapter:', () => {
  const evil = async () => expect.fail('was called');
  const ATTACKS: readonly (readonly [string, (client: AxiosInstance) => unknown])[] = [
    [
      'an interceptor deletes it',
      (client) => client.interceptors.request.use(({ adapter, ...config }) => config as never),
    ],
    [
      'an interceptor names fetch',
      (client) => client.interceptors.request.use((config) => Object.assign(config, { adapter: 'fetch' })),
    ],
    [
      'an interceptor names all',
      (client) =>
        client.interceptors.request.use((config) =>
          Object.assign(config, { adapter: ['xhr', 'http', 'fetch'] }),
        ),
    ],
    [
      'an interceptor sets a function',
      (client) => client.interceptors.request.use((config) => Object.assign(config, { adapter: evil })),
    ],
    [
      'an interceptor returns a new object',
      (client) => client.interceptors.request.use(({ url, headers }) => ({ url, headers }) as never),
    ],
    ['defaults without it', (client) => Object.assign(client.defaults, { adapter: undefined })],
    ['defaults that name fetch', (client) => Object.assign(client.defaults, { adapter: 'fetch' })],
  ];

  test.each(ATTACKS)('%s', async (_what, attack) => {
    const { client, connections } = await echo();
    attack(client);
    await expect(client.get('/')).rejects.toBeInstanceOf(ConfigError);
    expect(connections()).toBe(0);
  });

  test('a synchronous interceptor throws, and forgives itself', async () => {
    const { client, connections } = await echo();
    const replace = (config: object) => {
      Object.assign(config, { adapter: 'fetch' });
      throw new Error('forgiven');
    };
    client.interceptors.request.use(replace as never, () => undefined, { synchronous: true });
    await expect(client.get('/')).rejects.toThrow('forgiven');
    expect(connections()).toBe(0);
  });

  test('code that gets the options at any time changes nothing by them', async () => {
    const { client } = await echo();
    function spoil<Data>(this: object, data: Data): Data {
      Object.assign(this, { adapter: 'fetch', proxy: { host: 'evil' } });
      return data;
    }
    const { data } = await client.get<Echo>('/x', {
      transformRequest: spoil,
      transformResponse: [client.defaults.transformResponse ?? [], spoil].flat(),
    });
    expect(data.url).toBe('/x');
    function redirect(this: { url?: string }) {
      this.url = 'https://evil.example/';
    }
    await expect(client.get('/x', { transformRequest: redirect })).rejects.toBeInstanceOf(ApplicationMistake);
  });

  test('options of one host are not sent to another', async () => {
    const { origin } = await echo();
    const upstream = createUpstreams(
      { endpoints: ['a.example', 'b.example'] },
      { 'a.example': origin, 'b.example': origin },
    );
    const { config } = await upstream('a.example').get('/');
    expect(config.baseURL).toBe('https://a.example');
    expect((await upstream('a.example')(config)).status).toBe(200);
    await expect(upstream('b.example')(config)).rejects.toBeInstanceOf(ApplicationMistake);
  });
});

test('the compiler knows the options that are refused', async () => {
  const { client } = await echo();
  // @ts-expect-error refused
  await expect(client.get('/', { proxy: { host: 'a', port: 1 } })).rejects.toBeInstanceOf(ConfigError);
  // @ts-expect-error refused
  expect(() => client.create({ adapter: 'fetch' })).toThrow(ConfigError);
});
