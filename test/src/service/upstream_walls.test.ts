/**
 * Tests attacks on the checks below axios: by axios' own adapters, by endless bodies, and by answers that
 * must not reach the application.
 */
import { Readable } from 'node:stream';
import { gzipSync } from 'node:zlib';
import type { AxiosInstance, InternalAxiosRequestConfig } from 'axios';
import { describe, expect, test } from 'vitest';
import { ApplicationMistake, ConfigError } from '../../../src/library/errors.ts';
import { createUpstreams } from '../../../src/service/upstream.ts';
import { type Echo, echo, host, rawHost } from './hosts.ts';

function createForm(fields: Record<string, string | Blob>): FormData {
  const data = new FormData();
  for (const [name, value] of Object.entries(fields)) data.append(name, value);
  return data;
}

describe('an invalid body', () => {
  test.each([
    ['not JSON', {}, 'text'],
    ['not UTF-8', {}, Buffer.from('"ä"', 'latin1')],
    ['compressed', { 'content-encoding': 'gzip' }, '{}'],
  ])("does not reach the application's code: an answer that is %s", async (_caseName, headers, body) => {
    const { client } = await host((_request, response) => response.writeHead(200, headers).end(body));
    client.defaults.transformResponse = () => expect.fail('was called');
    await expect(client.get('/')).rejects.toMatchObject({
      reason: 'malformed',
      code: 'ERR_BAD_RESPONSE',
      status: 200,
    });
  });
});

describe('a body that is read before it is sent is refused', () => {
  async function* endless() {
    for (;;) yield Buffer.alloc(65_536);
  }

  test.each([
    ['endless', () => Readable.from(endless()), ApplicationMistake],
    [
      'a form that is too large',
      () => createForm({ f: new Blob([Buffer.alloc(2 ** 21)]) }),
      ApplicationMistake,
    ],
    ['a stream of objects', () => Readable.from([{ a: 1 }]), ApplicationMistake],
  ])('if it is %s', async (_caseName, data, error) => {
    const { client, connections } = await echo();
    await expect(client.post('/', data())).rejects.toBeInstanceOf(error);
    expect(connections()).toBe(0);
  });

  test('if it does not end in time', async () => {
    const { client, connections } = await echo({ timeoutMs: 100 });
    await expect(client.post('/', new Readable({ read() {} }))).rejects.toMatchObject({ reason: 'timeout' });
    expect(connections()).toBe(0);
  });
});

describe('the adapter can not be replaced', () => {
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
      'an interceptor names all adapters',
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
    ['the defaults lack it', (client) => Object.assign(client.defaults, { adapter: undefined })],
    ['the defaults name fetch', (client) => Object.assign(client.defaults, { adapter: 'fetch' })],
  ];

  test.each(ATTACKS)('if %s', async (_caseName, attack) => {
    const { client, connections } = await echo();
    attack(client);
    await expect(client.get('/')).rejects.toBeInstanceOf(ConfigError);
    expect(connections()).toBe(0);
  });

  test('if a synchronous interceptor throws, and catches its own error', async () => {
    const { client, connections } = await echo();
    const replace = (config: object) => {
      Object.assign(config, { adapter: 'fetch' });
      throw new Error('forgiven');
    };
    client.interceptors.request.use(replace as never, () => undefined, { synchronous: true });
    await expect(client.get('/')).rejects.toThrow('forgiven');
    expect(connections()).toBe(0);
  });

  test("if the application's code changes the options at any time", async () => {
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

  test('by the options of a request to another host', async () => {
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

describe('an interceptor', () => {
  const CHANGES: readonly (readonly [string, (config: InternalAxiosRequestConfig) => unknown])[] = [
    ['the URL', (config) => Object.assign(config, { url: 'https://evil.example/' })],
    [
      'the URL to another scheme',
      (config) => Object.assign(config, { url: config.baseURL?.replace('http', 'ftp') }),
    ],
    ['the URL to another port', (config) => Object.assign(config, { url: 'http://127.0.0.1:1/' })],
    ['the baseURL', (config) => Object.assign(config, { baseURL: 'https://evil.example' })],
    [
      'the baseURL, to an empty text',
      (config) => Object.assign(config, { baseURL: '', url: '//evil.example' }),
    ],
    ['Host', (config) => config.headers.set('Host', 'evil.example')],
    ['Transfer-Encoding', (config) => config.headers.set('Transfer-Encoding', 'chunked')],
    ['Content-Length', (config) => config.headers.set('content-length', '1')],
    [
      'the headers, to a header with CR and LF',
      (config) => Object.assign(config, { headers: { a: 'b\r\nHost: evil' } }),
    ],
    ['the headers, to a text of lines', (config) => config.headers.set('a: b\r\nHost: evil.example')],
    [
      'the serializer, to a serializer that returns a URL',
      (config) =>
        Object.assign(config, {
          params: {},
          paramsSerializer: { serialize: () => ' HTTP/1.1\r\nHost: evil' },
        }),
    ],
  ];

  test.each(CHANGES)('is refused if it changes %s', async (_caseName, change) => {
    const { client, connections } = await echo();
    client.interceptors.request.use((config) => {
      change(config);
      return config;
    });
    await expect(client.post('/', {})).rejects.toBeInstanceOf(ApplicationMistake);
    expect(connections()).toBe(0);
  });

  test('can not add a header by CR and LF in a value, which axios removes', async () => {
    const { client } = await echo();
    client.interceptors.request.use((config) => {
      config.headers.set('x-a', 'b\r\nX-Evil: c');
      return config;
    });
    const { headers } = (await client.get<Echo>('/')).data;
    expect(Object.keys(headers)).not.toContain('x-evil');
  });
});

describe('__proto__ pollutes nothing', () => {
  const polluting = (): object =>
    JSON.parse('{"__proto__":{"polluted":true},"constructor":{"prototype":{"polluted":true}}}');
  const ATTACKS: readonly (readonly [string, (client: AxiosInstance) => Promise<unknown>])[] = [
    ['in an answer', (client) => client.post('/', polluting())],
    ['in params', (client) => client.get('/', { params: polluting() })],
    ['in a query', (client) => client.get('/?__proto__[polluted]=true')],
    ['in a form', (client) => client.postForm('/', polluting())],
    [
      'in the names of a form',
      (client) => client.postForm('/', { '__proto__[polluted]': 'true', '__proto__.polluted': 1 }),
    ],
    [
      'in FormData that is sent as JSON',
      (client) =>
        client.post(
          '/',
          createForm({ '__proto__[polluted]': 'true', 'constructor[prototype][polluted]': 'true' }),
          {
            headers: { 'content-type': 'application/json' },
          },
        ),
    ],
    ['in headers', (client) => client.get('/', { headers: JSON.parse('{"__proto__":"polluted"}') })],
    [
      'in options',
      (client) => client.get('/', JSON.parse('{"__proto__":{"polluted":true,"url":"//evil.example"}}')),
    ],
    [
      'in options of an interceptor',
      (client) => {
        client.interceptors.request.use((config) => Object.assign(config, polluting()));
        return client.get('/');
      },
    ],
    ['in defaults of create()', async (client) => client.create(polluting()).get('/')],
  ];

  test.each(ATTACKS)('%s', async (_caseName, attack) => {
    const { client, origin } = await host((request, response) => {
      expect(request.headers.host).toBe(new URL(origin).host);
      response.end('{"__proto__":{"polluted":true},"constructor":{"prototype":{"polluted":true}}}');
    });
    await attack(client).catch((error) => expect(error).toBeInstanceOf(Error));
    for (const value of [{}, [], client, client.defaults, client.defaults.headers, new Headers()]) {
      expect((value as { polluted?: unknown }).polluted).toBeUndefined();
    }
  });
});

describe('an answer', () => {
  test('that is a gzip bomb is not decompressed, and its compressed size is limited', async () => {
    const bomb = gzipSync(Buffer.alloc(2 ** 22));
    const headers = { 'content-encoding': 'gzip' };
    const { client } = await host((_request, response) => response.writeHead(200, headers).end(bomb), {
      maxSize: 10_000,
    });
    const { data } = await client.get<Buffer>('/', { responseType: 'arraybuffer' });
    expect(data.equals(bomb)).toBe(true);
    await expect(client.get('/')).rejects.toMatchObject({ reason: 'malformed' });
    await expect(client.get('/', { responseType: 'text' })).rejects.toMatchObject({ reason: 'malformed' });
    const options = { maxSize: bomb.byteLength - 1 };
    const small = await host((_request, response) => response.writeHead(200, headers).end(bomb), options);
    await expect(small.client.get('/')).rejects.toMatchObject({ reason: 'too large' });
  });

  test('that is longer than its Content-Length is an error', async () => {
    const { client, open } = await rawHost((socket) =>
      socket.write('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}{"evil":true}'),
    );
    await expect(client.get('/')).rejects.toMatchObject({ reason: 'broken' });
    await expect.poll(open).toBe(0);
  });

  test.each(['json', 'text', 'arraybuffer', 'stream'] as const)(
    'that never ends fails at the size limit: %s',
    async (responseType) => {
      const { client, open } = await rawHost((socket) => {
        const send = () =>
          socket.write(`4000\r\n${'1'.repeat(0x4000)}\r\n`, () => socket.destroyed || send());
        socket.write('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n', send);
      });
      await expect(client.get('/', { responseType })).rejects.toMatchObject({ reason: 'too large' });
      await expect.poll(open).toBe(0);
    },
  );
});

describe('a form of 10,000 parts', () => {
  const createParts = (value: string) =>
    Object.fromEntries(Array.from({ length: 10_000 }, (_, i) => [`p${i}`, value]));

  test('arrives whole, below the limit', async () => {
    let size = 0;
    const { client } = await host(async (request, response) => {
      for await (const chunk of request) size += chunk.length;
      response.end(JSON.stringify(Number(request.headers['content-length']) === size));
    });
    const postForm = (data: FormData | object) => client.postForm('/', data, { maxBodyLength: 2 ** 21 });
    expect((await postForm(createForm(createParts('a')))).data).toBe(true);
  });

  test.each([
    ['FormData', () => createForm(createParts('x'.repeat(200)))],
    ['an object', () => createParts('x'.repeat(200))],
    ['many small parts', () => createForm(createParts('a'))],
  ])('is refused above the limit: %s', async (_caseName, data) => {
    const { client, connections } = await echo();
    await expect(client.postForm('/', data(), { maxBodyLength: 100_000 })).rejects.toBeInstanceOf(
      ApplicationMistake,
    );
    expect(connections()).toBe(0);
  });
});
