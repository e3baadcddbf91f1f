/**
 * Tests the bytes that common calls send. They were recorded before axios built the requests, and must not
 * change.
 */
import { createServer } from 'node:net';
import type { AxiosInstance } from 'axios';
import { describe, expect, test } from 'vitest';
import { createUpstream } from '../../../src/service/upstream.ts';
import { listen, RAW } from './hosts.ts';

const DEFAULTS = 'accept: */*|accept-encoding: identity|user-agent: sui-enclave';

type Call = (client: AxiosInstance) => Promise<unknown>;

/**
 * Returns the request that a call sends as text. The lines of its head are joined by `|`, `Host` and
 * `Connection` are left out, and `DEFAULTS` replaces the default headers.
 */
async function record(call: Call): Promise<string> {
  const requestText = Promise.withResolvers<string>();
  const server = createServer((socket) => {
    let text = '';
    socket.on('error', () => {});
    socket.on('data', (chunk) => {
      text += chunk.toString('latin1');
      const [head = '', body = ''] = text.split('\r\n\r\n');
      const length = Number(/content-length: (\d+)/i.exec(head)?.[1] ?? 0);
      if (!text.includes('\r\n\r\n') || body.length < length) return;
      const lines = head.split('\r\n').filter((line) => !/^(Host|Connection): /.test(line));
      requestText.resolve(`${lines.join('|')}||${body}`.replace(DEFAULTS, 'DEFAULTS'));
      socket.end(`HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n${head.startsWith('HEAD ') ? '' : '{}'}`);
    });
  });
  const client = createUpstream(`http://127.0.0.1:${await listen(server)}`)();
  await call(client);
  return await requestText.promise;
}

const bytes = new TextEncoder().encode('{"a":1}');
const view = new Uint8Array(new TextEncoder().encode('before{"a":1}after').buffer, 6, 7);

const CALLS: readonly (readonly [call: Call, request: string])[] = [
  [(client) => client.get('/'), 'GET / HTTP/1.1|DEFAULTS||'],
  [
    (client) =>
      client.get("/v1/x%20y?q=O'Brien&z", { params: { 'a#b': "ä&' +:/" }, headers: { 'X-Key': 'k' } }),
    'GET /v1/x%20y?q=O%27Brien&z&a%23b=%C3%A4%26%27+%2B%3A%2F HTTP/1.1|DEFAULTS|x-key: k||',
  ],
  [
    (client) => client.get('/v1', { params: { q: 'New York, US', t: '12:30', p: '$5', s: "!'()*~-_." } }),
    'GET /v1?q=New+York%2C+US&t=12%3A30&p=%245&s=%21%27%28%29*%7E-_. HTTP/1.1|DEFAULTS||',
  ],
  [
    (client) => client.get('/v1', { params: { n: 1.5, yes: true, no: undefined, none: null, empty: '' } }),
    'GET /v1?n=1.5&yes=true&empty= HTTP/1.1|DEFAULTS||',
  ],
  [
    (client) =>
      client.get('/v1?a=1', {
        params: new URLSearchParams([
          ['a', '1'],
          ['a', '& '],
        ]),
      }),
    'GET /v1?a=1&a=1&a=%26+ HTTP/1.1|DEFAULTS||',
  ],
  [(client) => client.get('/v1', { params: {} }), 'GET /v1 HTTP/1.1|DEFAULTS||'],
  [
    (client) =>
      client.get('/v1/current.json', {
        params: { key: 'k', q: 'Paris' },
        headers: { accept: 'application/json' },
      }),
    'GET /v1/current.json?key=k&q=Paris HTTP/1.1|accept: application/json|accept-encoding: identity|user-agent: sui-enclave||',
  ],
  [(client) => client.head('/'), 'HEAD / HTTP/1.1|DEFAULTS||'],
  [(client) => client.delete('/x'), 'DELETE /x HTTP/1.1|DEFAULTS||'],
  [
    (client) => client.delete('/x', { data: { a: 1 } }),
    'DELETE /x HTTP/1.1|DEFAULTS|content-type: application/json|content-length: 7||{"a":1}',
  ],
  [(client) => client.post('/x'), 'POST /x HTTP/1.1|DEFAULTS|Content-Length: 0||'],
  [(client) => client.post('/x', null), 'POST /x HTTP/1.1|DEFAULTS|Content-Length: 0||'],
  [
    (client) => client.post('/x', {}),
    'POST /x HTTP/1.1|DEFAULTS|content-type: application/json|content-length: 2||{}',
  ],
  [
    (client) => client.post('/x', { a: 'ä', b: [1, null], c: { d: 'e' } }),
    'POST /x HTTP/1.1|DEFAULTS|content-type: application/json|content-length: 37||{"a":"Ã¤","b":[1,null],"c":{"d":"e"}}',
  ],
  [
    (client) => client.post('/x', [1, 2]),
    'POST /x HTTP/1.1|DEFAULTS|content-type: application/json|content-length: 5||[1,2]',
  ],
  [
    (client) => client.put('/x', { a: 1 }, { headers: { authorization: 'Bearer t' } }),
    'PUT /x HTTP/1.1|DEFAULTS|authorization: Bearer t|content-type: application/json|content-length: 7||{"a":1}',
  ],
  [
    (client) =>
      client.patch(
        '/x',
        { a: 1 },
        { headers: { 'Content-Type': 'application/graphql+json; charset=utf-8' } },
      ),
    'PATCH /x HTTP/1.1|DEFAULTS|content-type: application/graphql+json; charset=utf-8|content-length: 7||{"a":1}',
  ],
  [
    (client) =>
      client.post('/x', '{"a":1}', {
        headers: { 'Content-Type': 'application/json', accept: 'application/json' },
      }),
    'POST /x HTTP/1.1|accept: application/json|accept-encoding: identity|user-agent: sui-enclave|content-type: application/json|content-length: 7||{"a":1}',
  ],
  [
    (client) => client.post('/x', '{"a": 1}', { headers: { 'content-type': 'text/plain' } }),
    'POST /x HTTP/1.1|DEFAULTS|content-type: text/plain|content-length: 8||{"a": 1}',
  ],
  [
    (client) => client.post('/x', '', { headers: { 'content-type': 'text/plain' } }),
    'POST /x HTTP/1.1|DEFAULTS|content-type: text/plain|content-length: 0||',
  ],
  [
    (client) => client.post('/x', bytes, { headers: { 'content-type': 'application/octet-stream' } }),
    'POST /x HTTP/1.1|DEFAULTS|content-type: application/octet-stream|content-length: 7||{"a":1}',
  ],
  [
    (client) => client.post('/x', view, { headers: { 'content-type': 'application/octet-stream' } }),
    'POST /x HTTP/1.1|DEFAULTS|content-type: application/octet-stream|content-length: 7||{"a":1}',
  ],
  [
    (client) =>
      client.post('/x', Buffer.from(bytes), { headers: { 'content-type': 'application/json' }, ...RAW }),
    'POST /x HTTP/1.1|DEFAULTS|content-type: application/json|content-length: 7||{"a":1}',
  ],
  [
    (client) => client.post('/x', new URLSearchParams({ a: '&b', c: 'ä' })),
    'POST /x HTTP/1.1|DEFAULTS|content-type: application/x-www-form-urlencoded|content-length: 15||a=%26b&c=%C3%A4',
  ],
  [
    (client) => client('/x', { method: 'POST', data: { a: 1 } }),
    'POST /x HTTP/1.1|DEFAULTS|content-type: application/json|content-length: 7||{"a":1}',
  ],
  [
    (client) => client.request({ url: '/x', method: 'put', data: { a: 1 } }),
    'PUT /x HTTP/1.1|DEFAULTS|content-type: application/json|content-length: 7||{"a":1}',
  ],
  [
    (client) =>
      client.get('/x', { headers: { 'x-n': 3, 'X-D': true, 'x-null': null, 'user-agent': 'mine' }, ...RAW }),
    'GET /x HTTP/1.1|accept: */*|accept-encoding: identity|user-agent: mine|x-n: 3|x-d: true||',
  ],
];

describe('a call sends exactly its recorded bytes:', () => {
  test.each(CALLS)('%s', async (call, request) => {
    expect(await record(call)).toBe(request);
  });
});
