/**
 * Compares the library's sender of requests in Node with Node's own fetch. They differ only in the listed
 * ways.
 */
import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { createServer as createHttpServer } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import { createServer } from 'node:net';
import { networkInterfaces } from 'node:os';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { rolldown } from 'rolldown';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { failedToConnect, fetchBytes, NoAnswerError, unreachableReason } from '../../../src/library/fetch.ts';
import { platformFetch } from '../../../src/library/platform_fetch_node.ts';
import { makeTls } from '../../../src/testing/tls.ts';
import { listen, serve, serveRaw } from './loopback.ts';
import {
  answer,
  BOUNDS,
  BROKEN,
  FAILED,
  findOutcome,
  LENGTH,
  MANY_HEADERS,
  type Outcome,
  POST,
  REDIRECT,
  waitUntilClosed,
  YES,
} from './outcomes.ts';

/** Bytes that a server writes before it ends the connection, with the expected outcome of the request. */
const ANSWERS: readonly [name: string, bytes: string, outcome: Outcome][] = [
  ['an answer', answer(LENGTH), YES],
  ['no length', answer('\r\nyes'), YES],
  ['HTTP/1.0', 'HTTP/1.0 200 OK\r\n\r\nyes', YES],
  ['HTTP/1.0 and a kept connection', `HTTP/1.0 200 OK\r\nconnection: keep-alive\r\n${LENGTH}`, YES],
  ['HTTP/0.9', 'yes', FAILED],
  ['another protocol', '220 ready\r\n', FAILED],
  ['nothing', '', FAILED],
  ['half of its headers', 'HTTP/1.1 200 OK\r\ncontent-le', FAILED],
  ['early hints first', `HTTP/1.1 103 Early Hints\r\na: b\r\n\r\n${answer(LENGTH)}`, YES],
  ['early hints that are encoded', `HTTP/1.1 103 E\r\ncontent-encoding: gzip\r\n\r\n${answer(LENGTH)}`, YES],
  ['an upgrade', 'HTTP/1.1 101 Up\r\nupgrade: x\r\nconnection: upgrade\r\n\r\nyes', FAILED],
  ['a body that its length cuts', answer('content-length: 3\r\n\r\nyes, and more'), YES],
  ['a second answer', answer(LENGTH) + answer(LENGTH), YES],
  ['fewer bytes than its length', answer('content-length: 9\r\n\r\nyes'), BROKEN],
  ['a chunk without an end', answer('transfer-encoding: chunked\r\n\r\n3\r\nyes\r\n'), BROKEN],
  ['a malformed chunk', answer('transfer-encoding: chunked\r\n\r\n3\r\nyes\r\nx\r\n'), BROKEN],
  [
    'trailers',
    answer('transfer-encoding: chunked\r\n\r\n3\r\nyes\r\n0\r\ncontent-encoding: gzip\r\n\r\n'),
    YES,
  ],
  ['an unknown transfer coding', answer('transfer-encoding: gzip\r\n\r\nyes'), YES],
  ['two framings', answer('transfer-encoding: chunked', 'content-length: 3\r\n\r\n0\r\n\r\n'), FAILED],
  ['two lengths', answer('content-length: 3', 'content-length: 4\r\n\r\nyes'), FAILED],
  ['a negative length', answer('content-length: -1\r\n\r\nyes'), FAILED],
  ['8 KiB of headers', answer(`a: ${'x'.repeat(8192)}`, LENGTH), YES],
  ['17 KiB of headers', answer(`a: ${'x'.repeat(17_408)}`, LENGTH), FAILED],
  ['2500 headers', answer(MANY_HEADERS, LENGTH), YES],
  ['a folded header', answer('a: b\r\n c', LENGTH), FAILED],
  ['a zero byte in a header', answer('a: \0', LENGTH), FAILED],
  ['bytes above ASCII in a header', answer('a: \u00ff', LENGTH), YES],
  ['bare line feeds', `HTTP/1.1 200 OK\n${LENGTH.replaceAll('\r', '')}`, FAILED],
  ['no content', 'HTTP/1.1 204 No Content\r\n\r\n', { status: 204, text: '' }],
  ['the status 205 (Reset Content)', `HTTP/1.1 205 Reset\r\n${LENGTH}`, { status: 205, text: '' }],
  ['not modified', 'HTTP/1.1 304 Not Modified\r\n\r\n', { status: 304, text: '' }],
  ['choices', `HTTP/1.1 300 Choices\r\nlocation: /b\r\n${LENGTH}`, { status: 300, text: 'yes' }],
  ...[301, 302, 303, 307, 308].map((status): [string, string, Outcome] => [
    `a redirect, ${status}`,
    `HTTP/1.1 ${status} X\r\nlocation: /b\r\n${LENGTH}`,
    REDIRECT,
  ]),
  ['a redirect to nowhere', `HTTP/1.1 302 X\r\n${LENGTH}`, REDIRECT],
  ['a refusal', `HTTP/1.1 404 X\r\n${LENGTH}`, { status: 404, text: 'yes' }],
  ['an unassigned status', `HTTP/1.1 999 X\r\n${LENGTH}`, { status: 999, text: 'yes' }],
  ['a status below 100', `HTTP/1.1 099 X\r\n${LENGTH}`, FAILED],
  ['more than the bound', answer(`content-length: 1001\r\n\r\n${'x'.repeat(1001)}`), { reason: 'too large' }],
];

/**
 * Answers that the fetch of Node 22 accepts because it joins folded header lines. Newer versions refuse them.
 */
const UNFOLDED_BY_FETCH = process.versions.node.startsWith('22.') ? ['a folded header'] : [];

describe.each([
  ["Node's fetch", globalThis.fetch],
  ["the library's fetch", platformFetch],
])('%s', (_name, fetch) => {
  test.each(ANSWERS)('reads an answer: %s', async (caseName, bytes, outcome) => {
    const { url } = await serveRaw((socket) => socket.end(bytes, 'latin1'));
    const isUnfolded = fetch === globalThis.fetch && UNFOLDED_BY_FETCH.includes(caseName);
    expect(await findOutcome(fetch, url)).toEqual(isUnfolded ? YES : outcome);
  });

  test('sends a request once, with its body and its length, and a GET without a body', async () => {
    const receivedRequests: object[] = [];
    const url = await serve(async (request, response) => {
      let body = '';
      for await (const piece of request) body += piece;
      const { accept, host, connection, cookie } = request.headers;
      const { 'content-length': length, 'content-type': type, 'user-agent': agent } = request.headers;
      const cache = request.headers['cache-control'];
      receivedRequests.push({ method: request.method, url: request.url, body, length, type });
      expect({ accept, host, connection, agent, cache, cookie }).toEqual({
        accept: '*/*',
        host: new URL(url).host,
        connection: 'keep-alive',
        agent: 'node',
        cache: 'no-cache',
        cookie: undefined,
      });
      response.end('yes');
    });
    const bytes = { method: 'PUT', body: Uint8Array.of(1, 2, 3) };
    const inits = [{}, POST, { method: 'DELETE', body: 'GET / HTTP/1.1\r\n\r\n' }, bytes, { method: 'POST' }];
    for (const init of inits) expect(await findOutcome(fetch, `${url}/a?b=c#d`, init)).toEqual(YES);
    expect(receivedRequests).toEqual([
      { method: 'GET', url: '/a?b=c', body: '', length: undefined, type: undefined },
      { method: 'POST', url: '/a?b=c', body: 'question', length: '8', type: 'text/plain' },
      {
        method: 'DELETE',
        url: '/a?b=c',
        body: 'GET / HTTP/1.1\r\n\r\n',
        length: '18',
        type: 'text/plain;charset=UTF-8',
      },
      { method: 'PUT', url: '/a?b=c', body: '\x01\x02\x03', length: '3', type: undefined },
      { method: 'POST', url: '/a?b=c', body: '', length: '0', type: undefined },
    ]);
  });

  test('returns the headers of an answer, and repeated headers as a list', async () => {
    const lines = [
      'content-type: a/b',
      'content-type: c/d',
      'retry-after: 5',
      `x-enclave-key: ${'ab'.repeat(32)}`,
    ];
    const { url } = await serveRaw((socket) => socket.end(answer(...lines, LENGTH)));
    expect(await fetchBytes(new URL(url), {}, { ...BOUNDS, fetch })).toMatchObject({
      type: 'a/b, c/d',
      retryAfterSeconds: 5,
      enclaveKey: 'ab'.repeat(32),
    });
  });

  test.each(['expect', 'keep-alive', 'transfer-encoding', 'upgrade'])(
    'sends nothing if the caller sets the header %s',
    async (name) => {
      const { url, sockets } = await serveRaw((socket) => socket.end(answer(LENGTH)));
      expect(await findOutcome(fetch, url, { ...POST, headers: { [name]: 'chunked' } })).toEqual(FAILED);
      expect(sockets.map(({ bytesRead }) => bytesRead).filter((count) => count > 0)).toEqual([]);
    },
  );

  test('keeps a connection open, opens another after the server has closed it, and sends no request twice', async () => {
    let requests = 0;
    const { url, sockets } = await serveRaw((socket) => {
      requests += 1;
      if (requests === 3) socket.destroy();
      else socket.write(answer(LENGTH));
    });
    const outcomes = [];
    for (let count = 0; count < 3; count += 1) outcomes.push(await findOutcome(fetch, url));
    expect(outcomes).toEqual([YES, YES, FAILED]);
    expect(requests).toBe(3);
    expect(await findOutcome(fetch, url)).toEqual(YES);
    expect([requests, sockets.length < requests]).toEqual([4, true]);
  });

  test('accepts the answer to a request that the server does not read to its end', async () => {
    const { url, sockets } = await serveRaw((socket) => {
      // After the socket is resumed, the server gets further pieces of the request.
      if (socket.bytesWritten > 0) return;
      socket.pause();
      socket.write(`HTTP/1.1 413 Too Large\r\n${LENGTH}`);
    });
    const init = { method: 'POST', body: new Uint8Array(20_000_000) };
    expect(await findOutcome(fetch, url, init)).toEqual({ status: 413, text: 'yes' });
    // The connection can't be used again.
    const [socket] = sockets;
    await waitUntilClosed(socket?.resume());
  });

  test('ends a connection whose answer never ends', async () => {
    const { url, sockets } = await serveRaw((socket) => {
      const write = () => {
        while (socket.write('x'.repeat(10_000)));
        socket.once('drain', write);
      };
      socket.write(answer('\r\n'));
      write();
    });
    expect(await findOutcome(fetch, url)).toEqual({ reason: 'too large' });
    await waitUntilClosed(sockets[0]);
  });

  test.each([
    ['silent', ''],
    ['dripping', answer('content-length: 900\r\n\r\n')],
  ])('closes the connection to a server that is %s when the time is over', async (_case, start) => {
    const { url, sockets } = await serveRaw((socket) => socket.write(start));
    const outcome = await findOutcome(fetch, url, POST, { timeoutMs: 50 });
    expect(outcome).toEqual({ reason: 'timeout', why: 'timeout' });
    await waitUntilClosed(sockets[0]);
  });

  test.each([
    ['before it is sent', 'never'],
    ['before its answer', ''],
    ['within its answer', answer('content-length: 9\r\n\r\nyes')],
  ])('rejects with the reason of a signal that aborts the request %s', async (_case, start) => {
    const controller = new AbortController();
    const reason = { left: true };
    const { url, sockets } = await serveRaw((socket) => {
      socket.write(start);
      setImmediate(() => controller.abort(reason));
    });
    if (start === 'never') controller.abort(reason);
    const { signal } = controller;
    await expect(
      fetch(url, { ...POST, redirect: 'error', signal }).then((response) => response.text()),
    ).rejects.toBe(reason);
    if (start === 'never') expect(sockets).toEqual([]);
    else await waitUntilClosed(sockets[0]);
  });

  test.each([
    ['ftp://127.0.0.1/', FAILED],
    ['file:///etc/passwd', FAILED],
    ['about:blank', FAILED],
    ['http://127.0.0.1:25/', FAILED],
    ['http://user:word@127.0.0.1/', { reason: 'unreachable', why: 'unknown' }],
    ['http://name.invalid/', { reason: 'unreachable', why: 'dns' }],
  ])('has the expected outcome for %s', async (url, outcome) => {
    expect(await findOutcome(fetch, url)).toEqual(outcome);
  });

  test('reports a GET with a body and a method that is not allowed as mistakes of the caller', async () => {
    for (const init of [{ body: 'x' }, { method: 'TRACE' }, { method: 'a b' }]) {
      await expect(fetch('http://127.0.0.1:9999/', { ...init, redirect: 'error' })).rejects.toThrow(
        TypeError,
      );
    }
  });

  test('reports that nothing was sent if the connection was refused', async () => {
    const url = `http://127.0.0.1:${await findClosedPort()}/`;
    const error = await fetch(url, { redirect: 'error' }).catch((thrown) => thrown);
    expect(failedToConnect(error)).toBe(true);
  });

  test.runIf(
    Object.values(networkInterfaces())
      .flat()
      .some((address) => address?.address === '::1'),
  )('connects to an IPv6 address', async () => {
    const port = await listen(
      createHttpServer((_, response) => response.end('yes')),
      '::1',
    );
    expect(await findOutcome(fetch, `http://[::1]:${port}`)).toEqual(YES);
  });

  test('refuses a server without TLS, or with the certificate of an unknown authority or of another name', async () => {
    const tls = makeTls(['localhost']);
    const port = await listen(createTlsServer(tls, (_, response) => response.end('yes')));
    const plain = await serve((_, response) => response.end('yes'));
    const urls = [plain.replace('http', 'https'), `https://localhost:${port}`, `https://127.0.0.1:${port}`];
    for (const url of urls) {
      expect(await findOutcome(fetch, url)).toEqual({ reason: 'unreachable', why: 'tls' });
    }
  });
});

async function findClosedPort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  const { port } = server.address() as { port: number };
  server.close();
  await once(server, 'close');
  return port;
}

describe("the library's fetch alone", () => {
  test('skips an unsolicited interim answer (RFC 9110, section 15.2)', async () => {
    const { url } = await serveRaw((socket) => socket.end(`HTTP/1.1 100 Continue\r\n\r\n${answer(LENGTH)}`));
    expect(await findOutcome(platformFetch, url)).toEqual(YES);
  });

  test('skips sixteen interim answers, and ends the request at the next one', async () => {
    const answerAfter = async (count: number) => {
      const interim = 'HTTP/1.1 103 Early Hints\r\n\r\n'.repeat(count);
      const { url } = await serveRaw((socket) => socket.write(interim + answer(LENGTH)));
      return await findOutcome(platformFetch, url);
    };
    expect(await answerAfter(16)).toEqual(YES);
    expect(await answerAfter(17)).toEqual(FAILED);
  });

  test('refuses schemes other than http and https, and a request that would follow redirects', async () => {
    expect(await findOutcome(platformFetch, 'data:text/plain,yes')).toEqual(FAILED);
    await expect(platformFetch('http://127.0.0.1:9999/')).rejects.toThrow(
      "redirect must be 'error' or 'manual'",
    );
    const { url } = await serveRaw((socket) => socket.end(`HTTP/1.1 302 X\r\nlocation: /b\r\n${LENGTH}`));
    const response = await platformFetch(url, { redirect: 'manual' });
    expect([response.status, response.headers.get('location')]).toEqual([302, '/b']);
    await response.body?.cancel();
  });

  test('sets the headers of the connection itself, and replaces or refuses those of the caller', async () => {
    const headers = {
      host: 'evil.example',
      connection: 'close',
      'content-length': '99',
      'accept-encoding': 'gzip',
    };
    const { url } = await serveRaw((socket, piece) => {
      const lines = piece.toString().toLowerCase().split('\r\n');
      const sent = lines.filter((line) => /^(host|connection|content-length|accept-encoding):/.test(line));
      socket.end(answer(`\r\n${sent.sort().join(';')}`));
    });
    expect(await findOutcome(platformFetch, url, { ...POST, headers })).toEqual({
      status: 200,
      text: `accept-encoding: identity;connection: keep-alive;content-length: 8;host: ${new URL(url).host}`,
    });
    expect(await findOutcome(platformFetch, url, { ...POST, headers: { trailer: 'a' } })).toEqual(FAILED);
  });

  test('gives up after 10 seconds if the TLS handshake does not complete, and reports that nothing was sent', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    onTestFinished(() => void vi.useRealTimers());
    const accepted = Promise.withResolvers<void>();
    const { url } = await serveRaw(() => accepted.resolve());
    const request = platformFetch(url.replace('http', 'https'), { redirect: 'error' }).catch(
      (thrown) => thrown,
    );
    await accepted.promise;
    await vi.advanceTimersByTimeAsync(9999);
    await vi.advanceTimersByTimeAsync(1);
    const cause = await request;
    expect(failedToConnect(cause)).toBe(true);
    expect(unreachableReason(new NoAnswerError('unreachable', { cause }))).toBe('timeout');
  });

  test('throws no text of the server, which may repeat the request', async () => {
    for (const bytes of ['SECRET', answer('transfer-encoding: chunked\r\n\r\nSECRET')]) {
      const { url } = await serveRaw((socket) => socket.end(bytes));
      const error = await fetchBytes(new URL(url), POST, { ...BOUNDS, fetch: platformFetch }).catch(
        (thrown) => thrown,
      );
      expect(error).toBeInstanceOf(NoAnswerError);
      for (let cause = error; cause instanceof Error; cause = cause.cause) {
        expect(Object.values(cause).map(String).join()).not.toContain('SECRET');
      }
    }
  });
});

describe('the proxies of the environment', () => {
  const script = `
    import { platformFetch } from ${JSON.stringify(fileURLToPath(new URL('../../../src/library/platform_fetch_node.ts', import.meta.url)))};
    for (const fetch of [globalThis.fetch, platformFetch]) {
      const answer = await fetch(process.argv[1], { redirect: 'error' }).catch((error) => error);
      console.log(answer instanceof Error ? answer.cause.code : await answer.text());
    }
  `;

  test.each([
    // EAI_AGAIN comes from a resolver that can't be reached, and ENOTFOUND from a resolver that can.
    ['are not used', {}, /^(EAI_AGAIN\n|ENOTFOUND\n){2}$/],
    ['are used if NODE_USE_ENV_PROXY is set', { NODE_USE_ENV_PROXY: '1' }, /^by proxy\nby proxy\n$/],
  ])("%s, by Node's fetch and by the library's", async (_case, variables, expectedOutput) => {
    const { url: proxy } = await serveRaw((socket, piece) => {
      if (piece.toString().startsWith('CONNECT ')) socket.write('HTTP/1.1 200 OK\r\n\r\n');
      else socket.end(answer('content-length: 8\r\n\r\nby proxy'));
    });
    const env = {
      ...process.env,
      HTTP_PROXY: proxy,
      http_proxy: proxy,
      NO_PROXY: '',
      no_proxy: '',
      ...variables,
    };
    const argv = ['--no-warnings', '--input-type=module', '-e', script, 'http://name.invalid/'];
    const { stdout } = await promisify(execFile)(process.execPath, argv, { env });
    expect(stdout).toMatch(expectedOutput);
  });
});

describe('the library imports, by the conditions of a runtime or a bundler,', () => {
  const entry = fileURLToPath(new URL('../../../src/library/client/http.ts', import.meta.url));

  test.each([
    ['modules of Node in Node', ['node'], ['node:http', 'node:https']],
    ['none in a browser', ['browser'], []],
    ['none in a worker', ['worker', 'browser', 'node'], []],
    ['none in workerd', ['workerd', 'worker', 'browser'], []],
    ['none at the edge', ['edge-light'], []],
    ['none in Deno', ['deno', 'node'], []],
    ['none in Bun', ['bun', 'node'], []],
    ['none elsewhere', ['react-native'], []],
  ])('%s', async (_case, conditionNames, expectedImports) => {
    const bundle = await rolldown({
      input: entry,
      // The platforms of the bundler would add conditions of their own.
      platform: 'neutral',
      resolve: { conditionNames: [...conditionNames, 'import', 'default'] },
      external: /^node:/,
    });
    const { output } = await bundle.generate();
    await bundle.close();
    expect(output[0].imports.sort()).toEqual(expectedImports);
  });
});
