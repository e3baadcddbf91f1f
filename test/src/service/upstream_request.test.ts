/**
 * Attacks on the content of a request to an upstream, by its options, the defaults of its client and its
 * interceptors. These may come from code or data that the application's author has not written.
 */
import { createServer } from 'node:http';
import { inspect } from 'node:util';
import { Axios, AxiosHeaders, type AxiosInstance, type AxiosRequestConfig } from 'axios';
import { describe, expect, onTestFinished, test } from 'vitest';
import { ApplicationMistake, ConfigError } from '../../../src/library/errors.ts';
import { createUpstream } from '../../../src/service/upstream.ts';
import { type Echo, echo, listen } from './hosts.ts';

/** Starts the host of a client, and an evil host, which must never get a connection. */
async function setUp() {
  const ours = await echo({ timeoutMs: 5000 });
  let evilConnections = 0;
  const server = createServer((_request, response) => response.end('{"evil":true}'));
  server.on('connection', () => evilConnections++);
  const port = await listen(server);
  return { ...ours, port, evilOrigin: `http://127.0.0.1:${port}`, evil: () => evilConnections };
}

type Config = AxiosRequestConfig & Record<string, unknown>;

/** Places from which options get into a request. */
const SOURCES: [string, (client: AxiosInstance, options: Config) => Promise<unknown>][] = [
  ['the options of get()', (client, options) => client.get('/', options)],
  ['the options of client()', (client, options) => client({ url: '/', ...options })],
  [
    'the defaults',
    (client, options) => {
      Object.assign(client.defaults, options);
      return client.get('/');
    },
  ],
  [
    'an interceptor',
    (client, options) => {
      client.interceptors.request.use((config) => Object.assign(config, options));
      return client.get('/');
    },
  ],
  [
    'a synchronous interceptor',
    (client, options) => {
      const add = (config: object) => ({ ...config, ...options }) as never;
      client.interceptors.request.use(add, null, { synchronous: true });
      return client.get('/');
    },
  ],
];

/** Expects that the options are refused from each source, and that neither host gets a connection. */
async function expectRefused(
  options: (evil: string, port: number) => Config,
  {
    sources = SOURCES,
    errorClass = ApplicationMistake,
  }: { sources?: typeof SOURCES; errorClass?: typeof ApplicationMistake | typeof ConfigError } = {},
): Promise<void> {
  const { origin, connections, evilOrigin, port, evil } = await setUp();
  for (const [source, ask] of sources) {
    const exchange = ask(createUpstream(origin)(), options(evilOrigin, port));
    await expect(exchange, `by ${source}`).rejects.toBeInstanceOf(errorClass);
  }
  expect([connections(), evil()]).toEqual([0, 0]);
}

describe('an option that redirects a request or lifts a bound', () => {
  const redirections: [string, (evil: string, port: number) => Config][] = [
    ['the adapter fetch', () => ({ adapter: 'fetch' })],
    ['a list of adapters', () => ({ adapter: ['xhr', 'http', 'fetch'] })],
    ['an adapter', () => ({ adapter: async () => expect.fail('was called') })],
    ['no adapter', () => ({ adapter: null as never })],
    ['proxy', (_, port) => ({ proxy: { host: '127.0.0.1', port } })],
    ['socketPath', () => ({ socketPath: '/run/evil.sock' })],
    ['httpAgent', () => ({ httpAgent: {} })],
    ['httpsAgent', () => ({ httpsAgent: { rejectUnauthorized: false } })],
    ['transport', () => ({ transport: {} })],
    ['lookup', () => ({ lookup: () => expect.fail('was called') })],
    ['family', () => ({ family: 6 })],
    ['maxRedirects', () => ({ maxRedirects: 5 })],
    ['beforeRedirect', () => ({ beforeRedirect: () => expect.fail('was called') })],
    ['maxContentLength', () => ({ maxContentLength: Number.POSITIVE_INFINITY })],
    ['decompress', () => ({ decompress: true })],
    ['insecureHTTPParser', () => ({ insecureHTTPParser: true })],
    ['httpVersion', () => ({ httpVersion: 2, http2Options: {} })],
    ['fetchOptions', () => ({ fetchOptions: { redirect: 'follow' } })],
    ['env', () => ({ env: { fetch: () => expect.fail('was called') } })],
    ['responseEncoding', () => ({ responseEncoding: 'latin1' })],
    ['onDownloadProgress', () => ({ onDownloadProgress: () => {} })],
  ];

  test.each(redirections)('is refused: %s', async (_name, options) =>
    expectRefused(options, { errorClass: ConfigError }),
  );

  test('is refused by a message that names the option and the reason, without its value', async () => {
    const { client } = await echo();
    await expect(client.get('/', { proxy: { host: 'hunter2' } } as object)).rejects.toThrow(
      'an upstream request can not have the option proxy: it has connections of its own, without a proxy',
    );
  });

  test('is accepted if its value changes nothing', async () => {
    const { client } = await echo();
    const options = {
      proxy: false,
      maxRedirects: 0,
      decompress: false,
      maxContentLength: -1,
      httpAgent: undefined,
    };
    expect((await client.get('/x', options as object)).data.url).toBe('/x');
  });
});

describe('an option with an invalid value is refused:', () => {
  const values: [string, () => Config][] = [
    ['responseType blob', () => ({ responseType: 'blob' })],
    ['something that is not an AbortSignal', () => ({ signal: { aborted: false } })],
    ['a validateStatus that is not a function', () => ({ validateStatus: true as never })],
    ['something that is not a CancelToken', () => ({ cancelToken: { throwIfRequested() {} } as never })],
  ];

  test.each(values)('%s', async (_name, options) => expectRefused(options));
});

describe('a URL', () => {
  const urls = [
    '//127.0.0.1:1/x',
    '///x',
    '/\\evil',
    '\\evil',
    '\\\\evil',
    'http://127.0.0.1:1@evil.example/',
    'http://evil.example/',
    'HTTPS://evil.example',
    'https:/evil.example',
    'file:///etc/passwd',
    'http://user@127.0.0.1:1/',
    '/a/../b',
    '/a/%2e%2e/b',
    '/a/.%2E',
    '/.',
    '/a/./b',
    '/a#b',
    '/#',
    '/a b',
    '/a\tb',
    ' /a',
    '/a ',
    '/?a\nb',
    '/?a\r\nHost: evil',
    '/\0',
    '/?\x7f',
    '/?a\\b',
    '/?\u2028',
    '/ä',
    '/"',
    '/?\ud800',
    5,
    {},
    new URL('http://evil.example/'),
  ];

  test.each(urls)('that is not a path of the host is refused: %j', async (url) => {
    const { client, connections } = await echo();
    const exchanges = [
      client.get(url as string),
      client.post(url as string, {}),
      client({ url } as Config),
      client.get(url as string, { params: { a: 'b' } }),
    ];
    client.interceptors.request.use((config) => ({ ...config, url }) as never);
    exchanges.push(client.get('/'));
    for (const outcome of await Promise.allSettled(exchanges)) {
      expect(outcome).toMatchObject({ status: 'rejected', reason: expect.any(ApplicationMistake) });
    }
    expect(connections()).toBe(0);
  });

  test('that is a path of the host arrives unchanged', async () => {
    const { client, origin } = await echo();
    const urls = [
      '/',
      '/a//b',
      '/a/',
      '/%2f%2fevil',
      '/a;b=c:d@e',
      '/..a/b..',
      '/?',
      '/?//evil',
      '/x?a=/../b',
    ];
    for (const url of urls) {
      const { data } = await client.get<Echo>(url);
      expect([data.url, data.headers.host]).toEqual([url === '/?' ? '/' : url, new URL(origin).host]);
    }
  });
});

describe('a method', () => {
  const methods = ['PURGE', 'CONNECT', 'TRACE', 'GET ', 'GET /evil HTTP/1.1\r\nX:', '', 5, null];

  test.each(methods)('%j is refused', async (method) => {
    const { client, connections } = await echo();
    client.interceptors.request.use((config) => ({ ...config, method }) as never);
    await expect(client.get('/')).rejects.toBeInstanceOf(ApplicationMistake);
    expect(connections()).toBe(0);
  });
});

describe('a header', () => {
  const forbidden = [
    'Host',
    'HOST',
    'Connection',
    'Keep-Alive',
    'Transfer-Encoding',
    'Content-Length',
    'Upgrade',
    'TE',
    'Trailer',
    'Expect',
    'Accept-Encoding',
    'HTTP2-Settings',
    'Proxy-Authorization',
    'proxy-connection',
  ];

  test.each(forbidden)('%s is refused', async (name) => {
    const [, , ...otherSources] = SOURCES;
    await expectRefused(() => ({ headers: { [name]: 'evil.example' } }));
    await expectRefused(() => ({ headers: new AxiosHeaders({ [name]: 'evil.example' }) }), {
      sources: otherSources,
    });
    await expectRefused(() => ({ headers: { common: { [name]: 'evil.example' } } as never }));
    await expectRefused(() => ({ headers: { get: { [name]: 'evil.example' } } as never }));
    await expectRefused(() => ({ headers: `${name}: evil.example` as never }));
    await expectRefused(() => ({ headers: [[name, 'evil.example']] as never }));
  });

  const invalid: [string, unknown][] = [
    ['x y', 'z'],
    ['x\n', 'z'],
    ['', 'z'],
    ['x:', 'z'],
    ['key', 'hunter2\r\nHost: evil'],
    ['key', 'hunter2\0'],
    ['key', 'hunter2\u{1f600}'],
    ['key', [['hunter2']]],
    ['key', { hunter2: { hunter2: 'hunter2' } }],
    ['key', () => 'hunter2'],
  ];

  test.each(invalid)('%j: %o is refused, without a part of it in the message', async (name, value) => {
    const [callWithConfig, call, defaults] = SOURCES;
    for (const [, ask] of [callWithConfig, call, defaults] as typeof SOURCES) {
      const { client, connections } = await echo();
      const exchange = ask(client, { headers: { [name]: value } } as Config);
      await expect(exchange).rejects.toBeInstanceOf(ApplicationMistake);
      await expect(exchange).rejects.not.toThrow(/hunter2/);
      expect(connections()).toBe(0);
    }
  });

  test('is sent once, whatever the case of its letters, and not at all if it is null', async () => {
    const { client } = await echo();
    client.defaults.headers.common['x-a'] = '1';
    client.defaults.headers.common['x-b'] = '1';
    const { data } = await client.get<Echo>('/', {
      headers: { 'X-A': '2', 'x-b': null, 'x-c': 3, 'X-D': true },
    });
    expect(data.headers).toMatchObject({ 'x-a': '2', 'x-c': '3', 'x-d': 'true' });
    expect(data.headers).not.toHaveProperty('x-b');
  });
});

describe('params', () => {
  test('are encoded, so that they can not change the path, the query or the host', async () => {
    const { client } = await echo();
    const odd = { 'a&b=c#d': '&=#?/\\\r\n', '//evil': '../..', __proto__x: 'é', '': '' };
    const { data } = await client.get<Echo>('/x?a=1', { params: odd });
    const url = new URL(data.url, 'http://host.invalid');
    expect(url.pathname).toBe('/x');
    expect(Object.fromEntries(url.searchParams)).toEqual({ a: '1', ...odd });
    const polluting = JSON.parse('{"__proto__":"x","constructor":"y","toString":"z"}');
    const pollutedUrl = new URL(
      (await client.get<Echo>('/', { params: polluting })).data.url,
      'http://host.invalid',
    );
    expect(pollutedUrl.searchParams.get('toString')).toBe('z');
  });

  test('may be numbers, booleans and URLSearchParams; undefined and null are left out', async () => {
    const { client } = await echo();
    const ask = async (params: unknown) => (await client.get<Echo>('/', { params })).data.url;
    expect(await ask({ a: 1, b: true, c: undefined, d: null, e: 2n ** 64n })).toBe(
      '/?a=1&b=true&e=18446744073709551616',
    );
    const list = new URLSearchParams([
      ['a', '1'],
      ['a', '& '],
    ]);
    expect(await ask(list)).toBe('/?a=1&a=%26+');
    await expect(ask(Object.assign(list, { toString: () => '#' }))).rejects.toBeInstanceOf(
      ApplicationMistake,
    );
    expect(await ask({})).toBe('/');
  });

  const invalidParams: unknown[] = [{ a: '\ud800' }, { '\ud800': 'a' }];

  test.each(invalidParams)('%o are refused', async (params) => {
    await expectRefused(() => ({ params }));
  });
});

describe('data', () => {
  const bodies: [unknown, string, string][] = [
    [{ a: 'ä', b: [1, null] }, 'application/json', '{"a":"ä","b":[1,null]}'],
    [[1, 2], 'application/json', '[1,2]'],
    [{}, 'application/json', '{}'],
    [new URLSearchParams({ a: '&b' }), 'application/x-www-form-urlencoded', 'a=%26b'],
  ];

  test.each(bodies)('%o is sent as %s', async (body, type, text) => {
    const { client } = await echo();
    const { data } = await client.post<Echo>('/', body);
    expect(data).toMatchObject({ body: text, headers: { 'content-type': type } });
    expect(data.headers['content-length']).toBe(String(Buffer.byteLength(text)));
  });

  test('is JSON of another type if a header names that type', async () => {
    const { client } = await echo();
    const headers = { 'Content-Type': 'application/graphql+json; charset=utf-8' };
    expect((await client.post<Echo>('/', { a: 1 }, { headers })).data).toMatchObject({
      body: '{"a":1}',
      headers: { 'content-type': headers['Content-Type'] },
    });
  });

  test.each([5, true, () => '{}', Symbol('x'), '\ud800', { a: 1 }, new Map()])(
    'that is, after its transformation, %o is refused',
    async (body) => {
      const { client, connections } = await echo();
      const exchange = client.post('/', body, { transformRequest: (data: unknown) => data });
      await expect(exchange).rejects.toBeInstanceOf(ApplicationMistake);
      expect(connections()).toBe(0);
    },
  );

  test('that JSON or a form can not contain is refused, without a part of it in the message', async () => {
    const circular: Record<string, unknown> = {};
    circular['hunter2'] = { a: circular };
    const deep = JSON.parse(`${'{"hunter2":'.repeat(200)}1${'}'.repeat(200)}`);
    const { client, connections } = await echo();
    const errors: unknown[] = [];
    client.interceptors.response.use(null, (error) => {
      errors.push(error);
      throw error;
    });
    let data: unknown;
    client.interceptors.request.use((config) => ({ ...config, data }));
    for (data of [{ hunter2: 1n }, circular]) {
      await expect(client.post('/', {})).rejects.toBeInstanceOf(ApplicationMistake);
    }
    for (data of [{ hunter2: { a: Symbol('hunter2') } }, deep]) {
      await expect(client.postForm('/', {})).rejects.toBeInstanceOf(ApplicationMistake);
    }
    expect(inspect(errors)).not.toContain('hunter2');
    expect([errors.length, connections()]).toEqual([4, 0]);
  });

  test('that is a view is sent without the memory around it', async () => {
    const { client } = await echo();
    const memory = new TextEncoder().encode('hunter2 public hunter2').buffer;
    for (const view of [
      new Uint8Array(memory, 8, 6),
      new DataView(memory, 8, 6),
      Buffer.from(memory, 8, 6),
    ]) {
      expect((await client.post<Echo>('/', view)).data.body).toBe('public');
    }
  });
});

describe('an interceptor', () => {
  const evilAdapter = async () => expect.fail('was called');

  test('that replaces the adapter, throws and catches its own error does not skip the check', async () => {
    const { client, connections, evil } = await setUp();
    const replace = (config: Config) => {
      config.adapter = evilAdapter;
      throw new Error('skips the interceptors after it');
    };
    client.interceptors.request.use(replace as never, () => undefined, { synchronous: true });
    await expect(client.get('/')).rejects.toThrow('skips the interceptors after it');
    client.interceptors.request.use((config) => config, null, { synchronous: true });
    await expect(client.get('/')).rejects.toThrow('skips the interceptors after it');
    expect([connections(), evil()]).toEqual([0, 0]);
  });

  test('can neither be added after the check, nor remove it', async () => {
    const { client, connections } = await setUp();
    const { interceptors } = client;
    const runWhen = (config: Config) => {
      config.transitional = { legacyInterceptorReqResOrdering: false } as never;
      return true;
    };
    const replace = (config: object) => ({ ...config, adapter: evilAdapter }) as never;
    interceptors.request.use(replace, null, { runWhen: runWhen as never });
    await expect(client.get('/')).rejects.toBeInstanceOf(ConfigError);
    interceptors.request.clear();
    interceptors.request.handlers = [];
    for (let id = 0; id < 5; id++) interceptors.request.eject(id);
    Object.assign(interceptors.request, { forEach() {} });
    await expect(client.get('/', { adapter: 'fetch' } as object)).rejects.toBeInstanceOf(ConfigError);
    await expect(client.get('//')).rejects.toBeInstanceOf(ApplicationMistake);
    for (const attack of [
      () => Object.assign(interceptors, { request: new Axios().interceptors.request }),
      () => Object.assign(interceptors, { response: new Axios().interceptors.response }),
      () => Object.assign(client, { interceptors: new Axios().interceptors }),
      () => Object.assign(client, { defaults: {} }),
    ])
      expect(attack).toThrow(TypeError);
    expect(client).not.toHaveProperty('_request');
    expect(connections()).toBe(0);
  });

  test('can change nothing once the check has begun', async () => {
    const { client } = await setUp();
    const configs: Config[] = [];
    client.interceptors.request.use((config) => {
      configs.push(config as Config);
      const spoil = () => Object.assign(config, { url: '//evil.example', adapter: evilAdapter });
      queueMicrotask(() => queueMicrotask(() => queueMicrotask(() => queueMicrotask(spoil))));
      setImmediate(spoil);
      return config;
    });
    for (let i = 0; i < 5; i++) {
      const outcome = await client.get<Echo>('/x').then(
        ({ data }) => data.url,
        (error) => error,
      );
      if (outcome !== '/x') expect(outcome).toBeInstanceOf(ApplicationMistake);
    }
    expect(configs).toHaveLength(5);
  });

  test('can not change an option between two reads', async () => {
    const { client } = await setUp();
    client.interceptors.request.use((config) => {
      let reads = 0;
      return Object.defineProperty({ ...config }, 'url', {
        enumerable: true,
        get: () => (reads++ === 0 ? '/first' : '//evil.example'),
      });
    });
    expect((await client.get<Echo>('/x')).data.url).toBe('/first');
  });

  test.each([
    ['nothing', () => undefined],
    ['a text', () => 'http://evil.example/'],
    ['a list', () => []],
    ['an object that inherits its url', (config: object) => Object.create({ ...config, url: '/' })],
  ])('that returns %s makes the request fail as a mistake', async (_caseName, returns) => {
    const { client, connections } = await setUp();
    client.interceptors.request.use(returns as never);
    await expect(client.get('/')).rejects.toBeInstanceOf(ConfigError);
    expect(connections()).toBe(0);
  });
});

describe('a polluted Object.prototype does not change a request:', () => {
  const pollution: [string, (port: number) => unknown][] = [
    ...['url', 'path', 'pathname'].map((name) => [name, () => '//evil.example/x'] as [string, () => unknown]),
    ['baseURL', (port) => `http://127.0.0.1:${port}`],
    ['origin', (port) => `http://127.0.0.1:${port}`],
    ['adapter', () => async () => expect.fail('was called')],
    ['hostname', () => 'evil.example'],
    ['port', (port) => port],
    ['defaultPort', (port) => port],
    ['socketPath', () => '/run/evil.sock'],
    ['lookup', () => () => expect.fail('was called')],
    ['localAddress', () => '192.0.2.1'],
    ['createConnection', () => () => expect.fail('was called')],
    ['agent', () => false],
    ['proxy', (port) => ({ host: '127.0.0.1', port })],
    ['auth', () => 'evil:evil'],
    ['method', () => 'POST'],
    ['params', () => ({ evil: 1 })],
    ['data', () => '{}'],
    ['common', () => ({ evil: 1 })],
    ['transformRequest', () => [() => expect.fail('was called')]],
    ['transformResponse', () => [() => expect.fail('was called')]],
    ['paramsSerializer', () => ({ serialize: () => '#' })],
    ['transitional', () => ({ legacyInterceptorReqResOrdering: false })],
    ['maxSize', () => 0],
    ['timeoutMs', () => 1],
    ['timeout', () => 1],
    ['validateStatus', () => () => false],
    ['responseType', () => 'arraybuffer'],
    ['insecureHTTPParser', () => true],
    ['setHost', () => false],
    ['rejectUnauthorized', () => false],
  ];

  test.each(pollution)('%s', async (name, value) => {
    const { client, port, evil } = await setUp();
    const expected = (await client.get<Echo>('/x', { params: { a: 'b' }, headers: { 'x-a': 'b' } })).data;
    Object.defineProperty(Object.prototype, name, { value: value(port), configurable: true, writable: true });
    onTestFinished(() => {
      Reflect.deleteProperty(Object.prototype, name);
    });
    const { data } = await client.get<Echo>('/x', { params: { a: 'b' }, headers: { 'x-a': 'b' } });
    Reflect.deleteProperty(Object.prototype, name);
    expect(data).toEqual(expected);
    expect(evil()).toBe(0);
  });
});
