/** Tests the client of an upstream: axios, with limits that no option can lift. */
import { globSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { type AxiosInstance, type AxiosRequestConfig, isCancel } from 'axios';
import { describe, expect, expectTypeOf, test } from 'vitest';
import { ApplicationMistake, ConfigError } from '../../../src/library/errors.ts';
import {
  createUpstream,
  createUpstreams,
  isUpstreamError,
  parseJson,
  type UpstreamError,
} from '../../../src/service/upstream.ts';
import { type Echo, echo, host } from './hosts.ts';

/** Returns the UpstreamError that a request throws. */
async function catchFailure(call: Promise<unknown>): Promise<UpstreamError> {
  const error: unknown = await call.then(
    () => expect.fail('the request was answered'),
    (thrown) => thrown,
  );
  expect(isUpstreamError(error)).toBe(true);
  return error as UpstreamError;
}

describe('a client', () => {
  test('is an instance of axios: callable, and with its methods', async () => {
    const { client } = await echo();
    expectTypeOf(client).toExtend<AxiosInstance>();
    const calls = [
      client('/x'),
      client('/x', { method: 'POST' }),
      client({ url: '/x', method: 'put' }),
      client.request({ url: '/x' }),
      client.get('/x'),
      client.delete('/x'),
      client.post('/x'),
      client.put('/x', '', { headers: { 'content-type': 'text/plain' } }),
      client.patch('/x', null),
    ];
    const methods = (await Promise.all(calls)).map(({ data }) => `${data.method} ${data.url}`);
    expect(methods).toEqual(
      ['GET', 'POST', 'PUT', 'GET', 'GET', 'DELETE', 'POST', 'PUT', 'PATCH'].map((method) => `${method} /x`),
    );
    const head = await client.head('/x');
    expect(head).toMatchObject({ status: 200, statusText: 'OK', data: undefined });
    expect(head.headers['content-length']).toBeUndefined();
    expect((head.headers as { get(name: string): unknown }).get('Connection')).toBe('keep-alive');
  });

  test('has defaults and interceptors of its own, which apply as in axios', async () => {
    const { client, origin } = await echo();
    const otherClient = createUpstream(origin)();
    client.defaults.headers.common['x-common'] = 'c';
    client.defaults.headers['x-all'] = 'a';
    client.defaults.headers.post['x-post'] = 'p';
    client.defaults.params = { key: 'k' };
    const calls: string[] = [];
    client.interceptors.request.use((config) => {
      calls.push('first added');
      config.headers.set('x-set', 's');
      return config;
    });
    const last = client.interceptors.request.use((config) => {
      calls.push('last added');
      return { ...config, url: `${config.url}/y` };
    });
    client.interceptors.request.use(
      () => {
        throw new Error('never called');
      },
      null,
      { runWhen: () => false },
    );
    client.interceptors.response.use((answer) => ({ ...answer, data: { ...answer.data, seen: true } }));
    const { data } = await client.get<Echo>('/x', { params: { q: 1 } });
    expect(data).toMatchObject({ url: '/x/y?key=k&q=1', seen: true });
    expect(data.headers).toMatchObject({ 'x-common': 'c', 'x-all': 'a', 'x-set': 's' });
    expect(data.headers).not.toHaveProperty('x-post');
    expect((await client.post<Echo>('/x')).data.headers).toMatchObject({ 'x-common': 'c', 'x-post': 'p' });
    calls.splice(2);
    expect(calls).toEqual(['last added', 'first added']);
    client.interceptors.request.eject(last);
    expect((await client.get<Echo>('/x')).data.url).toBe('/x?key=k');
    const { url, headers } = (await otherClient.get<Echo>('/x')).data;
    expect([url, headers['x-common'], headers['x-set']]).toEqual(['/x', undefined, undefined]);
  });

  test('passes failures to its response interceptors, and throws what request interceptors throw', async () => {
    const { client } = await host((_request, response) => response.writeHead(404).end('{}'));
    const reasons: unknown[] = [];
    client.interceptors.response.use(null, (error) => {
      reasons.push(error.reason);
      throw error;
    });
    await expect(client.get('/')).rejects.toMatchObject({ reason: 'status', status: 404 });
    const thrown = new Error('thrown by an interceptor');
    client.interceptors.request.use(() => Promise.reject(thrown));
    await expect(client.get('/')).rejects.toBe(thrown);
    expect(reasons).toEqual(['status', undefined]);
  });

  test('shares its connections with other clients of its host, but not its bounds', async () => {
    const { origin, connections } = await echo();
    const upstream = createUpstream(origin);
    await upstream().get('/');
    await upstream().get('/');
    expect((await catchFailure(upstream({ maxSize: 10 }).get('/'))).reason).toBe('too large');
    expect(connections()).toBe(1);
  });

  test('is made only for a host of app.yaml', () => {
    const upstream = createUpstreams({ endpoints: ['prices.example'] });
    upstream('prices.example');
    for (const otherHost of ['evil.example', 'PRICES.example', 'prices.example:8443', '__proto__', '']) {
      expect(() => upstream(otherHost)).toThrow(ApplicationMistake);
    }
  });

  test.each([{ timeoutMs: 0 }, { timeoutMs: Number.NaN }, { maxSize: Number.NaN }, { maxSize: -1 }])(
    'can not be made with the bounds %o',
    (bounds) => expect(() => createUpstream('http://127.0.0.1:1')(bounds)).toThrow(ConfigError),
  );

  test('has limits of 5 s and 64 KiB by default', async () => {
    const { origin } = await host((request, response) => {
      response.end('x'.repeat(request.url === '/more' ? 65_537 : 65_536));
    });
    const client = createUpstream(origin)();
    expect((await client.get('/', { responseType: 'text' })).data).toHaveLength(65_536);
    expect((await catchFailure(client.get('/more'))).reason).toBe('too large');
    await client.get('/', { responseType: 'text', timeout: 5000 });
    await expect(client.get('/', { timeout: 5001 })).rejects.toBeInstanceOf(ApplicationMistake);
  });
});

describe('the time limit of a request', () => {
  test('may be lower than the limit of its client, by an option or by a default', async () => {
    const { client } = await host(() => {}, { timeoutMs: 60_000 });
    expect((await catchFailure(client.get('/', { timeout: 100 }))).reason).toBe('timeout');
    client.defaults.timeout = 100;
    expect((await catchFailure(client.get('/'))).reason).toBe('timeout');
  });

  test.each([-1, Number.NaN, Number.POSITIVE_INFINITY, 1001, '100'])('can not be %o', async (timeout) => {
    const { client, connections } = await echo({ timeoutMs: 1000 });
    await expect(client.get('/', { timeout: timeout as number })).rejects.toBeInstanceOf(ApplicationMistake);
    client.defaults.timeout = timeout as number;
    await expect(client.get('/')).rejects.toBeInstanceOf(ApplicationMistake);
    expect(connections()).toBe(0);
  });
});

describe('the signal of a request', () => {
  test('cancels the request, and closes its connection', async () => {
    const closed = Promise.withResolvers<void>();
    const arrived = Promise.withResolvers<void>();
    const { client } = await host((request) => {
      request.socket.on('close', () => closed.resolve());
      arrived.resolve();
    });
    const controller = new AbortController();
    const call = client.get('/', { signal: controller.signal });
    await arrived.promise;
    controller.abort();
    await expect(call).rejects.toSatisfy(isCancel);
    await closed.promise;
  });

  test('keeps the request from being sent if it is already aborted, and has no effect after the answer', async () => {
    const { client, connections } = await echo();
    await expect(client.get('/', { signal: AbortSignal.abort() })).rejects.toSatisfy(isCancel);
    expect(connections()).toBe(0);
    const controller = new AbortController();
    const { data } = await client.get<Echo>('/x', { signal: controller.signal });
    controller.abort();
    expect(data.url).toBe('/x');
  });
});

describe('an answer', () => {
  async function startClient(status: number, body: string | Buffer) {
    const headers = { 'retry-after': '7', 'set-cookie': ['a=1', 'b=2'] };
    return (await host((_request, response) => response.writeHead(status, headers).end(body))).client;
  }

  test.each(['{"ä":[1]}', ' null ', '"text"', '0'])('is parsed as JSON: %s', async (body) => {
    const { data, headers } = await (await startClient(200, body)).get('/');
    expect(data).toEqual(JSON.parse(body));
    expect(headers).toMatchObject({ 'retry-after': '7', 'set-cookie': ['a=1', 'b=2'] });
  });

  const malformed: (string | Buffer)[] = [
    '',
    '<html>',
    '{"a":1',
    '{"a":1}x',
    '\ufeff{}',
    Buffer.from('{"ä":1}', 'latin1'),
    '{"a\\\\b":1}',
  ];
  test.each(malformed)(
    'is malformed, and is not returned as text, if it is not JSON in UTF-8: %o',
    async (body) => {
      const client = await startClient(200, body);
      expect(await catchFailure(client.get('/'))).toMatchObject({ reason: 'malformed', status: 200 });
      expect(await catchFailure(client.get('/', { responseType: 'json' }))).toMatchObject({
        reason: 'malformed',
      });
      const { data } = await client.get<Buffer>('/', { responseType: 'arraybuffer' });
      expect(data).toEqual(Buffer.from(body));
    },
  );

  test('has the same names, whatever JSON was parsed before', async () => {
    const client = await startClient(200, '{"q":1,"Z\\u00fcrich":5}');
    // V8 may take the first characters of a name with an escape for a name that it has seen.
    JSON.parse('{"q":1,"Z\\\\u00f":1}');
    expect((await client.get('/')).data).toEqual({ q: 1, Zürich: 5 });
    const parsed = await client.get('/', { transformResponse: [(text: string) => text] });
    expect(parsed.data).toBe('{"q":1,"Z\\u00fcrich":5}');
  });

  test('can be requested as text, which must be UTF-8', async () => {
    const getText = (client: AxiosInstance) => client.get('/', { responseType: 'text' });
    expect((await getText(await startClient(200, '{"ä":1}'))).data).toBe('{"ä":1}');
    expect((await getText(await startClient(200, ''))).data).toBe('');
    const latin = await startClient(200, Buffer.from('ä', 'latin1'));
    expect(await catchFailure(getText(latin))).toMatchObject({ reason: 'malformed' });
  });

  test.each([204, 205])('with status %i has no content', async (status) => {
    expect(await (await startClient(status, '')).get('/')).toMatchObject({ status, data: undefined });
  });

  test.each([300, 302, 304, 404, 500, 999])(
    'with status %i causes an error that contains its data',
    async (status) => {
      const client = await startClient(status, status === 304 ? '' : '{"a":1}');
      const error = await catchFailure(client.get('/'));
      expect(error).toMatchObject({ reason: 'status', status });
      expect(error.response?.data).toEqual(status === 304 ? undefined : { a: 1 });
    },
  );

  test('that is refused by its status need not be JSON', async () => {
    const client = await startClient(500, '<html>');
    const error = await catchFailure(client.get('/'));
    expect([error.reason, error.response?.data]).toEqual(['status', '<html>']);
    expect((await catchFailure(client.get('/', { responseType: 'text' }))).response?.data).toBe('<html>');
  });

  test('succeeds if validateStatus accepts its status', async () => {
    const client = await startClient(404, '{"a":1}');
    const accepting404: AxiosRequestConfig = { validateStatus: (status) => status === 404 };
    expect(await client.get('/', accepting404)).toMatchObject({ status: 404, data: { a: 1 } });
    expect(await client.get('/', { validateStatus: null })).toMatchObject({ status: 404 });
    // axios would accept any status here.
    expect(await catchFailure(client.get('/', { validateStatus: undefined } as object))).toMatchObject({
      status: 404,
    });
    client.defaults.validateStatus = () => true;
    expect(await client.get('/')).toMatchObject({ status: 404 });
  });
});

test('parseJson accepts only JSON in UTF-8', () => {
  expect(parseJson(Buffer.from('{"ä":1}'))).toEqual({ ä: 1 });
  expect(parseJson(Buffer.from('{"ä":1}', 'latin1'))).toBeUndefined();
  expect(parseJson(Buffer.from('<html>'))).toBeUndefined();
});

test('applications and probes send requests only through upstreams', () => {
  const root = fileURLToPath(new URL('../../..', import.meta.url));
  const files = [
    'src/server/reports/health.ts',
    ...globSync('src/apps/*/*.ts', { cwd: root, exclude: ['**/stand_in.ts'] }),
  ];
  expect(files.length).toBeGreaterThan(10);
  const networkImports =
    /from '(axios|undici|(node:)?(http|https|http2|net|tls|dgram)|[./]+\/(fetch|exchange)\.ts|[./]+\/axios\.cjs)'|(?<![#.\w])fetch\(|createUpstream\(/;
  const offenders = files.filter((file) => {
    const code = readFileSync(root + file, 'utf8')
      .replace("import { isIPv4, isIPv6 } from 'node:net';", '')
      .replace(/^import type \{[\w, ]+\} from 'axios';$/m, '');
    return networkImports.test(code);
  });
  expect(offenders).toEqual([]);
});
