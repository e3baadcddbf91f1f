/**
 * Tests that a strict host parses exactly the requests that were sent on a kept connection, so that no body
 * becomes the next request.
 */
import { createServer, type Socket } from 'node:net';
import type { Method } from 'axios';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { ApplicationMistake } from '../../../src/library/errors.ts';
import { createUpstream, type UpstreamBounds } from '../../../src/service/upstream.ts';
import { listen, RAW } from './hosts.ts';

interface ParsedRequest {
  readonly method: string;
  readonly target: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer;
}

const TOKEN = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;

/**
 * Reads one request by RFC 9112 alone: with any method, there is a body only with a Content-Length.
 *
 * @returns undefined if more bytes are needed
 * @throws if the bytes are not a request of HTTP/1.1, if it is chunked, or if it repeats a header
 */
function parseRequest(bytes: Buffer): { request: ParsedRequest; length: number } | undefined {
  const headLength = bytes.indexOf('\r\n\r\n');
  if (headLength === -1) return undefined;
  const [requestLine = '', ...lines] = bytes.toString('latin1', 0, headLength).split('\r\n');
  const [, method = '', target = ''] = /^([A-Z]+) (\/[!-~]*) HTTP\/1\.1$/.exec(requestLine) ?? [];
  if (method === '') throw new Error(`not a request line: ${requestLine}`);
  const headers: Record<string, string> = Object.create(null);
  for (const line of lines) {
    const colon = line.indexOf(':');
    const name = line.slice(0, colon).toLowerCase();
    if (!TOKEN.test(name) || name in headers) throw new Error(`not a header, or repeated: ${line}`);
    headers[name] = trimBlanks(line.slice(colon + 1));
  }
  const { 'content-length': bodyLength = '0', 'transfer-encoding': coding } = headers;
  if (coding !== undefined || !/^(0|[1-9]\d*)$/.test(bodyLength)) throw new Error('not a length');
  const start = headLength + 4;
  const length = start + Number(bodyLength);
  if (bytes.length < length) return undefined;
  return { request: { method, target, headers, body: bytes.subarray(start, length) }, length };
}

/** Starts a host that answers each request with the request's X-Id, and keeps its connections open. */
async function startStrictHost(bounds?: UpstreamBounds) {
  const requests: ParsedRequest[] = [];
  const faults: unknown[] = [];
  let connections = 0;
  const serve = (socket: Socket) => {
    connections += 1;
    let bytes: Buffer = Buffer.alloc(0);
    socket.on('error', () => {});
    socket.on('data', (chunk: Buffer) => {
      bytes = Buffer.concat([bytes, chunk]);
      try {
        for (let parsed = parseRequest(bytes); parsed; parsed = parseRequest(bytes)) {
          bytes = Buffer.from(bytes.subarray(parsed.length));
          const id = parsed.request.headers['x-id'] ?? 'none';
          requests.push(parsed.request);
          const body = parsed.request.method === 'HEAD' ? '' : id;
          socket.write(`HTTP/1.1 200 OK\r\nX-Id: ${id}\r\nContent-Length: ${id.length}\r\n\r\n${body}`);
        }
      } catch (fault) {
        faults.push(fault);
        socket.destroy();
      }
    });
  };
  const client = createUpstream(`http://127.0.0.1:${await listen(createServer(serve))}`)(bounds);
  return { client, requests, faults, connections: () => connections };
}

/** Body that a host would parse as a request if it got no length. */
const SMUGGLED = 'POST /smuggled HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n';

interface Call {
  readonly method: Method;
  readonly headers: Readonly<Record<string, string>>;
  readonly data: unknown;
}

const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'get', 'head', 'delete'] as const;
const TYPE = { 'content-type': 'application/octet-stream' };
const JSON_TYPE = { 'content-type': 'application/vnd.x+json' };

const data: fc.Arbitrary<Pick<Call, 'data' | 'headers'>> = fc.oneof(
  fc.constantFrom(undefined, null).map((data) => ({ data, headers: {} })),
  fc
    .oneof(
      fc.constantFrom('', '\r\n', '0\r\n\r\n', SMUGGLED, `\r\n\r\n${SMUGGLED}`),
      fc.string({ unit: 'grapheme' }),
      fc.uint8Array({ maxLength: 300 }),
      fc.constant(new TextEncoder().encode(SMUGGLED)),
    )
    .map((data) => ({ data, headers: TYPE })),
  fc.constantFrom({}, [], { a: 'ä' }, [SMUGGLED]).map((data) => ({ data, headers: JSON_TYPE })),
  fc.constantFrom('', 'a=1&b=ä\r\n').map((text) => ({ data: new URLSearchParams(text), headers: {} })),
);
const header = fc.tuple(
  fc.stringMatching(/^X-[!#$%&'*+.^_`|~0-9A-Za-z-]{1,8}$/).filter((name) => !/^x-id$/i.test(name)),
  fc.stringMatching(/^[\t !-~\x80-\xff]{0,20}$/),
);
const headers = fc.uniqueArray(header, { selector: ([name]) => name.toLowerCase() });
const call: fc.Arbitrary<Call> = fc
  .tuple(fc.constantFrom(...METHODS), data, headers)
  .map(([method, { data, headers }, extraHeaders]) => ({
    method,
    data,
    headers: { ...Object.fromEntries(extraHeaders), ...headers },
  }));

/** Removes surrounding white space, which is not part of a header's value. */
const trimBlanks = (text: string) => text.replace(/^[ \t]+|[ \t]+$/g, '');

function toBytes(data: unknown): Buffer {
  if (data === undefined || data === null) return Buffer.alloc(0);
  if (typeof data === 'string' || data instanceof Uint8Array) return Buffer.from(data as string);
  return Buffer.from(data instanceof URLSearchParams ? data.toString() : JSON.stringify(data));
}

const isRefused = ({ method, data }: Call) =>
  /^(get|head)$/i.test(method) && data !== undefined && data !== null;

test('a strict host parses all requests as they were sent, one by one or at once, with any methods, bodies and headers', async () => {
  const { client, requests, faults, connections } = await startStrictHost();
  let callCount = 0;

  /** Makes a call, and expects the answer to this call. */
  const make = async (call: Call) => {
    callCount += 1;
    const id = String(callCount);
    const { method, data, headers } = call;
    const answer = client.request<Buffer>({
      ...RAW,
      url: `/${id}`,
      method,
      data,
      headers: { ...headers, 'X-Id': id },
    });
    if (isRefused(call)) return await expect(answer).rejects.toBeInstanceOf(ApplicationMistake);
    const isHead = /^head$/i.test(method);
    expect(await answer).toMatchObject({ status: 200, data: Buffer.from(isHead ? '' : id) });
    expect((await answer).headers['x-id']).toBe(id);
    const [parsed, ...duplicates] = requests.filter(({ target }) => target === `/${id}`);
    expect(duplicates).toEqual([]);
    expect([parsed?.method, parsed?.body]).toEqual([method.toUpperCase(), toBytes(data)]);
    for (const [name, value] of Object.entries(headers)) {
      expect(parsed?.headers[name.toLowerCase()]).toBe(trimBlanks(value));
    }
  };

  await fc.assert(
    fc.asyncProperty(fc.array(call, { minLength: 1, maxLength: 8 }), fc.boolean(), async (all, isAtOnce) => {
      requests.length = 0;
      if (isAtOnce) await Promise.all(all.map(make));
      else for (const call of all) await make(call);
      expect(faults).toEqual([]);
      expect(requests).toHaveLength(all.filter((call) => !isRefused(call)).length);
    }),
    { numRuns: 150 },
  );
  // Each simultaneous call has a connection, which later calls reuse.
  expect(connections()).toBeLessThanOrEqual(8);
});

describe('data', () => {
  test.each(['get', 'head'] as const)('with %s is refused, by an error that says why', async (method) => {
    const { client, requests } = await startStrictHost();
    for (const data of ['', SMUGGLED, {}, new Uint8Array(0), new URLSearchParams()]) {
      const refusal = client[method]('/', { data, headers: TYPE });
      await expect(refusal).rejects.toBeInstanceOf(ApplicationMistake);
      await expect(refusal).rejects.toThrow(
        /^data of an upstream request must be left out with GET and HEAD/,
      );
    }
    client.interceptors.request.use((config) => ({ ...config, data: SMUGGLED }));
    await expect(client[method]('/', { headers: TYPE })).rejects.toBeInstanceOf(ApplicationMistake);
    expect(requests).toEqual([]);
  });

  test('with DELETE has its length, and the next caller gets the answer to its own request', async () => {
    const { client, requests, connections } = await startStrictHost();
    for (let turn = 0; turn < 20; turn += 1) {
      await client.delete('/', { ...RAW, data: SMUGGLED, headers: { ...TYPE, 'x-id': `evil${turn}` } });
      const { data } = await client.get<Buffer>('/', { ...RAW, headers: { 'x-id': `honest${turn}` } });
      expect(data.toString()).toBe(`honest${turn}`);
    }
    expect(requests.filter(({ target }) => target === '/smuggled')).toEqual([]);
    expect(connections()).toBe(1);
  });

  test('that is bytes is copied at the time of the call, whatever its properties say and however its buffer changes', async () => {
    const buffer = new ArrayBuffer(8, { maxByteLength: 8 });
    const { client, requests } = await startStrictHost({ budget: () => buffer.resize(0) });
    const lying = Object.defineProperties(new TextEncoder().encode('12345678'), {
      length: { value: 2 },
      byteLength: { value: 2 },
      slice: { value: () => new Uint8Array(1) },
    });
    for (const data of [new Uint8Array(buffer).fill(0x61), lying]) {
      await client.post('/', data, { ...RAW, headers: TYPE });
    }
    expect(requests.map(({ body }) => body.toString())).toEqual(['aaaaaaaa', '12345678']);
  });

  test.each([
    ['a text with a lone surrogate', '\ud800'],
    ['a text with a lone surrogate at its end', 'a\udc00'],
  ])('that is %s is refused', async (_caseName, data) => {
    const { client, requests } = await startStrictHost();
    client.interceptors.request.use((config) => ({ ...config, data }));
    await expect(client.post('/', '', { headers: TYPE })).rejects.toBeInstanceOf(ApplicationMistake);
    expect(requests).toEqual([]);
  });
});
