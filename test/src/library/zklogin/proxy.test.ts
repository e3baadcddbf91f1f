/** Tests the proxy in Express, in front of a proving service on loopback. */
import {
  createServer,
  request as httpRequest,
  type IncomingHttpHeaders,
  type ServerResponse,
} from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import express, { type RequestHandler } from 'express';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { type ProxyOptions, proverProxy } from '../../../../src/library/zklogin/index.ts';

interface ReceivedRequest {
  readonly body: string;
  readonly headers: IncomingHttpHeaders;
}

async function listen(server: ReturnType<typeof createServer>): Promise<string> {
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** Starts a dapp's back end whose /prove forwards to a service. @param answer answers for the service */
async function setUp(
  answer: (response: ServerResponse) => unknown,
  { parser, ...options }: ProxyOptions & { parser?: RequestHandler | undefined } = {},
) {
  const requests: ReceivedRequest[] = [];
  const service = await listen(
    createServer(async (request, response) => {
      requests.push({ body: await text(request), headers: request.headers });
      answer(response);
    }),
  );
  const dapp = express();
  if (parser) dapp.use(parser);
  dapp.use('/prove', proverProxy(`${service}/v1`, options));
  const url = `${await listen(createServer(dapp))}/prove`;
  const post = async (body: BodyInit, headers: Record<string, string> = {}) => {
    const response = await fetch(url, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body,
    });
    return { status: response.status, headers: response.headers, text: await response.text() };
  };
  return { requests, url, service, post };
}

const json =
  (status: number, body: string, headers = {}) =>
  (response: ServerResponse) =>
    response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(body);
const REQUEST = '{"jwt":"a.b.c","salt":"5"}';

describe('the proxy', () => {
  test.each<[string, RequestHandler | undefined]>([
    ['no parser', undefined],
    ['express.json()', express.json()],
    ['express.text()', express.text({ type: 'application/json' })],
    ['express.raw()', express.raw({ type: 'application/json' })],
  ])('forwards the request and returns the answer, after %s', async (_name, parser) => {
    const { requests, post } = await setUp(json(200, '{"proofPoints":1}'), { parser });
    const { status, headers, text } = await post(REQUEST);
    expect([status, text]).toEqual([200, '{"proofPoints":1}']);
    expect(headers.get('cache-control')).toBe('no-store');
    expect(headers.get('content-type')).toMatch(/^application\/json/);
    expect(requests.map(({ body }) => body)).toEqual([REQUEST]);
  });

  test('adds the headers of the back end, and forwards no headers of the page', async () => {
    const { requests, post } = await setUp(json(200, '{}'), {
      headers: { authorization: 'Bearer mine' },
    });
    await post(REQUEST, {
      authorization: 'Bearer theirs',
      cookie: 'session=1',
      'x-forwarded-for': '1.2.3.4',
    });
    expect(requests[0]?.headers).toMatchObject({
      authorization: 'Bearer mine',
      'content-type': 'application/json',
    });
    expect(requests[0]?.headers).not.toHaveProperty('cookie');
    expect(requests[0]?.headers).not.toHaveProperty('x-forwarded-for');
  });

  test('returns errors with their status, and Retry-After', async () => {
    const busy = '{"error":"busy","code":"PROVER_BUSY"}';
    const { post } = await setUp(json(503, busy, { 'retry-after': '7', 'set-cookie': 'a=b' }));
    const { status, headers, text } = await post(REQUEST);
    expect([status, text, headers.get('retry-after')]).toEqual([503, busy, '7']);
    expect(headers.get('set-cookie')).toBeNull();
  });

  test.each<[string, (response: ServerResponse) => unknown, number, string]>([
    ['hangs up', (response) => response.destroy(), 502, 'ZKLOGIN_UNREACHABLE'],
    [
      'redirects',
      (response) => response.writeHead(307, { location: '/x' }).end(),
      502,
      'ZKLOGIN_UNREACHABLE',
    ],
    ['answers HTML', (response) => response.end('<html>'), 502, 'ZKLOGIN_MALFORMED_ANSWER'],
    ['fails with HTML', (response) => response.writeHead(503).end('<html>'), 503, 'ZKLOGIN_MALFORMED_ANSWER'],
    [
      'answers with too many bytes',
      (response) => response.end(' '.repeat(100_000)),
      502,
      'ZKLOGIN_MALFORMED_ANSWER',
    ],
    [
      'breaks off',
      (response) => response.write('{') && setTimeout(() => response.destroy(), 20),
      502,
      'ZKLOGIN_UNREACHABLE',
    ],
    ['is slow', () => {}, 504, 'ZKLOGIN_TIMEOUT'],
  ])('returns an error for a service that %s', async (_, answer, status, code) => {
    const { post } = await setUp(answer, { timeoutMs: 500 });
    const { text, ...refused } = await post(REQUEST);
    expect([refused.status, JSON.parse(text).code]).toEqual([status, code]);
    expect(text).not.toContain('a.b.c');
  });

  test.each<[string, BodyInit, Record<string, string>, number]>([
    ['another type', REQUEST, { 'content-type': 'text/plain' }, 415],
    ['invalid JSON', '{"jwt":', {}, 400],
    ['bytes that are not UTF-8', Uint8Array.of(0x22, 0xff, 0x22), {}, 400],
    ['more than 16 KiB', JSON.stringify('x'.repeat(17_000)), {}, 413],
  ])('refuses %s, and forwards nothing', async (_, body, headers, status) => {
    const { requests, post } = await setUp(json(200, '{}'));
    const refused = await post(body, headers);
    expect([refused.status, JSON.parse(refused.text).code]).toEqual([status, 'ZKLOGIN_OPTION']);
    expect(requests).toEqual([]);
  });

  test('refuses more than 16 KiB that arrive in pieces, or that a parser has read', async () => {
    const { url, requests } = await setUp(json(200, '{}'));
    const status = await new Promise((resolve, reject) => {
      const headers = { 'content-type': 'application/json' };
      const sending = httpRequest(url, { method: 'POST', headers }, ({ statusCode }) => resolve(statusCode));
      sending.on('error', reject);
      for (let piece = 0; piece < 20; piece++) sending.write(' '.repeat(1000));
      sending.end();
    });
    expect(status).toBe(413);
    const parsed = await setUp(json(200, '{}'), { parser: express.json({ limit: '1mb' }) });
    expect((await parsed.post(JSON.stringify({ jwt: 'x'.repeat(17_000) }))).status).toBe(413);
    expect([...requests, ...parsed.requests]).toEqual([]);
  });

  test('refuses other methods', async () => {
    const { url } = await setUp(json(200, '{}'));
    const response = await fetch(url);
    expect([response.status, response.headers.get('allow')]).toEqual([405, 'POST']);
  });

  test('continues after a caller left in the middle of a request', async () => {
    const { url, post } = await setUp(json(200, '{}'));
    const half = httpRequest(url, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'content-length': 9 },
    });
    half.on('error', () => {});
    half.write('{"a"');
    await new Promise((resolve) => setTimeout(resolve, 50));
    half.destroy();
    expect((await post(REQUEST)).status).toBe(200);
  });

  test('prints nothing', async () => {
    const spies = [
      vi.spyOn(process.stdout, 'write'),
      vi.spyOn(process.stderr, 'write'),
      ...(['log', 'info', 'warn', 'error'] as const).map((name) => vi.spyOn(console, name)),
    ];
    onTestFinished(() => {
      for (const spy of spies) spy.mockRestore();
    });
    const { post } = await setUp((response) => response.destroy());
    await post(REQUEST);
    await post('{');
    expect(spies.flatMap(({ mock }) => mock.calls.flat().join('')).join('')).not.toMatch(
      /jwt|a\.b\.c|proving/,
    );
  });
});

test.each<[string, unknown, object?]>([
  ['http to another machine', 'http://prover.example/v1'],
  ['a relative URL', '/v1'],
  ['a user name', 'https://user@prover.example/v1'],
  ['a time-out of 0', 'https://prover.example/v1', { timeoutMs: 0 }],
  ['an invalid header', 'https://prover.example/v1', { headers: { 'x y': '1' } }],
])('proverProxy refuses %s immediately', (_, url, options) => {
  expect(() => proverProxy(url as string, options)).toThrow(
    expect.objectContaining({ code: 'ZKLOGIN_OPTION' }),
  );
});

test('a proxy to a service in a private network needs allowHttp', () => {
  expect(() => proverProxy('http://prover:8080/v1', { allowHttp: true })).not.toThrow();
});
