/**
 * Tests that requests to an upstream have limits, use no proxy, and reach only a host that proves its name.
 */
import { execFile } from 'node:child_process';
import { generateKeyPairSync } from 'node:crypto';
import { createServer, type RequestListener } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import { createServer as createTcpServer, type Socket } from 'node:net';
import { connect, type SecureContextOptions } from 'node:tls';
import { inspect } from 'node:util';
import { brotliCompressSync } from 'node:zlib';
import { beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest';
import {
  createUpstream,
  createUpstreams,
  isUpstreamError,
  type UpstreamError,
} from '../../../src/service/upstream.ts';
import { createCertificate, toPem } from '../../../src/testing/attestation_ca.ts';
import { makeTls, type TlsFiles } from '../../../src/testing/tls.ts';
import { COMPILE_CACHE } from '../../compile_cache.ts';
import { echo, host, listen, RAW, rawHost } from './hosts.ts';

const BOUNDS = { timeoutMs: 5000, maxSize: 1000 };

describe('a request', () => {
  test('contains only what the application specifies, without additions of a library', async () => {
    const { client, origin } = await echo();
    const requestConfig = { params: { 'a#b': "ä&' +:/" }, headers: { 'X-Key': 'k' } };
    const { status, data } = await client.get("/v1/x%20y?q=O'Brien&z", requestConfig);
    expect(status).toBe(200);
    expect(data).toEqual({
      method: 'GET',
      url: '/v1/x%20y?q=O%27Brien&z&a%23b=%C3%A4%26%27+%2B%3A%2F',
      headers: {
        accept: '*/*',
        'accept-encoding': 'identity',
        connection: 'keep-alive',
        host: new URL(origin).host,
        'user-agent': 'sui-enclave',
        'x-key': 'k',
      },
      body: '',
    });
  });

  test.each(['{"a":1}', new TextEncoder().encode('{"a":1}')])(
    'has the body that the application passes: %o',
    async (body) => {
      const { client } = await echo();
      const headers = { 'Content-Type': 'application/json', accept: 'application/json' };
      const { data } = await client.post('/', body, { headers });
      expect(data).toMatchObject({
        method: 'POST',
        headers: { 'content-type': 'application/json', 'content-length': '7', accept: 'application/json' },
        body: '{"a":1}',
      });
    },
  );

  test('reuses the connection of the previous request', async () => {
    const { client, connections } = await echo();
    for (let i = 0; i < 4; i++) await client.get('/');
    expect(connections()).toBe(1);
  });

  test('does not follow redirects or send cookies', async () => {
    const requests: unknown[] = [];
    const { client } = await host((request, response) => {
      requests.push([request.url, request.headers.cookie]);
      response.writeHead(302, { location: '/other', 'set-cookie': 'a=b' }).end();
    });
    expect((await client.get('/first', RAW)).status).toBe(302);
    await client.get('/second', RAW);
    expect(requests).toEqual([
      ['/first', undefined],
      ['/second', undefined],
    ]);
  });

  test('does not decompress an answer', async () => {
    const bomb = brotliCompressSync(Buffer.alloc(10 * 1024 ** 2));
    const { client } = await host((_request, response) => {
      response.setHeader('content-encoding', 'br').end(bomb);
    });
    expect((await client.get('/', RAW)).data).toEqual(bomb);
  });
});

describe('an exchange fails', () => {
  test.each(['100 Continue', '103 Early Hints'])('at the seventeenth interim answer: %s', async (status) => {
    const interim = `HTTP/1.1 ${status}\r\n\r\n`;
    const answer = 'HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}';
    const ask = async (count: number) => {
      const { client, open } = await rawHost((socket) => socket.write(interim.repeat(count) + answer));
      const outcome = await client.get('/').catch((error) => error.reason);
      return { outcome, open };
    };
    expect((await ask(16)).outcome).toMatchObject({ status: 200 });
    const { outcome, open } = await ask(17);
    expect(outcome).toBe('unreachable');
    await expect.poll(() => open()).toBe(0);
  });

  const failures: [string, RequestListener, UpstreamError['reason']][] = [
    ['without an answer', (_request, response) => response.destroy(), 'unreachable'],
    ['without an answer in time', () => {}, 'timeout'],
    [
      'with an answer that arrives too slowly',
      (_request, response) => {
        response.writeHead(200);
        const timer = setInterval(() => response.write('.'), 50);
        response.once('close', () => clearInterval(timer));
      },
      'slow body',
    ],
    [
      'with an answer that ends early',
      (_request, response) => {
        response.writeHead(200, { 'content-length': 100 }).write('{');
        setTimeout(() => response.destroy(), 20);
      },
      'broken',
    ],
    ['with an answer that is too large', (_request, response) => response.end('x'.repeat(1001)), 'too large'],
    [
      'with an answer that never ends',
      (_request, response) => {
        response.on('error', () => {});
        const more = () => response.writable && response.write('x'.repeat(100_000), more);
        more();
      },
      'too large',
    ],
  ];

  test.each(failures)('%s, and its error does not reveal the request', async (_caseName, answer, reason) => {
    const { client } = await host(answer, { timeoutMs: 300, maxSize: 1000 });
    const exchange = client.get('/?key=hunter2', { headers: { key: 'hunter2' } });
    const error: unknown = await exchange.catch((thrown) => thrown);
    expect(isUpstreamError(error)).toBe(true);
    expect(error).toMatchObject({ reason });
    expect(inspect(error, { depth: 10, showHidden: true })).not.toMatch(/hunter2|127\.0\.0\.1/);
  });

  test.each([
    ['where no server listens', async () => 'http://127.0.0.1:1', 'ECONNREFUSED'],
    ['where the name does not exist', async () => 'https://name.invalid', /^(ENOTFOUND|EAI_AGAIN)$/],
    [
      'where the peer does not speak HTTP',
      async () =>
        `http://127.0.0.1:${await listen(createTcpServer((socket) => socket.on('error', () => {}).end('SSH-2.0-x\r\n')))}`,
      /^HPE_/,
    ],
    [
      'where the peer does not speak TLS',
      async () => (await host((_request, response) => response.end())).origin.replace('http', 'https'),
      /^(ERR_SSL_|EPROTO|ECONNRESET)/,
    ],
  ])("%s, and has the code of Node's error", async (_caseName, origin, code) => {
    const exchange = createUpstream(await origin())(BOUNDS).get('/?key=hunter2');
    const error = (await exchange.catch((thrown: unknown) => thrown)) as UpstreamError;
    expect(error).toMatchObject({ reason: 'unreachable', code: expect.stringMatching(code) });
    expect(inspect(error, { depth: 10, showHidden: true })).not.toMatch(/hunter2/);
  });

  test('at the time limit if TLS never begins', async () => {
    const port = await listen(createTcpServer((socket) => socket.on('error', () => {})));
    const exchange = createUpstream(`https://127.0.0.1:${port}`)({ timeoutMs: 200 }).get('/');
    await expect(exchange).rejects.toMatchObject({ reason: 'timeout' });
  });

  test('at the time limit if all connections of the pool are busy', async () => {
    const { client, connections } = await host(() => {}, { timeoutMs: 5000 });
    const exchanges = Array.from({ length: 300 }, () => client.get('/'));
    const all = Promise.allSettled(exchanges);
    await expect.poll(connections).toBe(256);
    for (const outcome of await all) expect(outcome).toMatchObject({ reason: { reason: 'timeout' } });
  });
});

const ok = (body: string) => `HTTP/1.1 200 OK\r\nContent-Length: ${body.length}\r\n\r\n${body}`;

describe('a connection', () => {
  test.each(['GET', 'HEAD'] as const)(
    'that the host closes on reuse does not make a %s request fail',
    async (method) => {
      const { client, connections } = await rawHost((socket, nth) => {
        if (nth === 1) socket.write(method === 'HEAD' ? ok('a').slice(0, -1) : ok('a'));
        else socket.resetAndDestroy();
      });
      for (let i = 0; i < 5; i++) expect((await client('/', { ...RAW, method })).status).toBe(200);
      expect(connections()).toBe(5);
    },
  );

  test('that the host closes on reuse makes a POST fail, and a GET that was partly answered', async () => {
    const post = await rawHost((socket, nth) => (nth === 1 ? socket.write(ok('a')) : socket.end()));
    await post.client.post('/', {}, RAW);
    await expect(post.client.post('/', {}, RAW)).rejects.toMatchObject({ reason: 'unreachable' });
    const part = await rawHost((socket, nth) =>
      nth === 1 ? socket.write(ok('a')) : socket.end(ok('abc').slice(0, -1)),
    );
    await part.client.get('/', RAW);
    await expect(part.client.get('/', RAW)).rejects.toMatchObject({ reason: 'broken' });
    expect([post.connections(), part.connections()]).toEqual([1, 1]);
  });

  test('that is new is not replaced when the host closes it', async () => {
    const { client, connections } = await rawHost((socket) => socket.end());
    await expect(client.get('/')).rejects.toMatchObject({ reason: 'unreachable', code: 'ECONNRESET' });
    expect(connections()).toBe(1);
  });

  test.each([0, 20])(
    'does not pass bytes that the host sends %i ms after its answer to another request',
    async (ms) => {
      const additions = [ok('EVIL'), 'HTTP/1.1 200 OK\r\nContent-', 'HTTP/1.1 200 OK\r\n\r\n', '\r\n', 'x'];
      let requestCount = 0;
      const { client } = await rawHost((socket) => {
        const addition = additions[requestCount % additions.length] as string;
        socket.write(ok(`${requestCount}`) + (ms === 0 ? addition : ''));
        if (ms > 0) setTimeout(() => socket.write(addition), ms);
      });
      for (; requestCount < 2 * additions.length; requestCount++) {
        const outcome = await client.get('/', RAW).then(
          ({ data }) => data.toString(),
          ({ reason }) => reason,
        );
        expect([`${requestCount}`, 'broken']).toContain(outcome);
        await new Promise((resolve) => setTimeout(resolve, 3 * ms));
        // On a busy machine both timers are due at once, and the bytes from the host are still unread then.
        await new Promise((resolve) => setImmediate(resolve));
      }
    },
  );

  test('is closed if the host answered before it had read the request', async () => {
    const sockets: Socket[] = [];
    const { client, open } = await rawHost((socket, nth) => {
      if (nth > 1) return;
      sockets.push(socket.pause());
      socket.write(ok('no'));
    });
    const headers = { 'content-type': 'application/octet-stream' };
    const body = new Uint8Array(20 * 1024 ** 2);
    expect((await client.post('/', body, { ...RAW, headers })).data.toString()).toBe('no');
    for (const socket of sockets) socket.resume();
    await expect.poll(open).toBe(0);
  });
});

test('an answer in pieces of one byte takes memory for its bytes, not for its pieces', async () => {
  const size = 200_000;
  const { client } = await rawHost(
    (socket) => {
      socket.write(
        `HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n${'1\r\nx\r\n'.repeat(size)}0\r\n\r\n`,
      );
    },
    { timeoutMs: 20_000, maxSize: size },
  );
  const concat = vi.spyOn(Buffer, 'concat');
  onTestFinished(() => concat.mockRestore());
  const { data } = await client.get<Buffer>('/', RAW);
  expect(data.equals(Buffer.alloc(size, 'x'))).toBe(true);
  for (const [pieces] of concat.mock.calls) expect(pieces.length).toBeLessThan(1000);
});

describe('a client over TLS', () => {
  let trusted: TlsFiles;
  let rsa: TlsFiles;
  let foreign: TlsFiles;
  beforeAll(() => {
    trusted = makeTls(['localhost']);
    rsa = makeTls(['localhost'], generateKeyPairSync('rsa', { modulusLength: 2048 }));
    foreign = makeTls(['localhost']);
  });

  async function secureHost({ cert, key }: TlsFiles, options: SecureContextOptions = {}): Promise<number> {
    return await listen(
      createTlsServer({ cert, key, ...options }, (_request, response) => response.end('yes')),
    );
  }

  const WITHOUT_ECDHE = ['AES128-GCM-SHA256', 'AES256-SHA', 'DHE-RSA-AES128-GCM-SHA256'];

  test.each(WITHOUT_ECDHE)('rejects a host that supports only %s', async (ciphers) => {
    const port = await secureHost(rsa, {
      ciphers,
      maxVersion: 'TLSv1.2',
      dhparam: 'auto',
    } as SecureContextOptions);
    const exchange = createUpstream(`https://localhost:${port}`, rsa.ca)(BOUNDS).get('/');
    await expect(exchange).rejects.toMatchObject({ reason: 'unreachable' });
    // A client that allows these ciphers can connect to the host.
    const socket = connect({
      host: '127.0.0.1',
      port,
      servername: 'localhost',
      ca: rsa.ca,
      ciphers,
      maxVersion: 'TLSv1.2',
    });
    await new Promise((resolve, reject) => socket.once('secureConnect', resolve).once('error', reject));
    expect(socket.getCipher().standardName).toMatch(/^TLS_(RSA|DHE)_/);
    socket.destroy();
  });

  test('rejects a host that supports only TLS 1.1', async () => {
    const old = { minVersion: 'TLSv1', maxVersion: 'TLSv1.1', ciphers: 'DEFAULT@SECLEVEL=0' } as const;
    const exchange = createUpstream(
      `https://localhost:${await secureHost(rsa, old)}`,
      rsa.ca,
    )(BOUNDS).get('/');
    await expect(exchange).rejects.toMatchObject({ reason: 'unreachable' });
  });

  test.each([
    ['TLS 1.3', {}],
    ['TLS 1.2 with ECDHE and AES-128', { maxVersion: 'TLSv1.2', ciphers: 'ECDHE-RSA-AES128-GCM-SHA256' }],
    ['TLS 1.2 with ECDHE and ChaCha20', { maxVersion: 'TLSv1.2', ciphers: 'ECDHE-RSA-CHACHA20-POLY1305' }],
  ] as const)('sends requests to a host with %s', async (_caseName, options) => {
    const port = await secureHost(rsa, options);
    const client = createUpstream(`https://localhost:${port}`, rsa.ca)(BOUNDS);
    expect((await client.get('/', RAW)).data.toString()).toBe('yes');
  });

  test('accepts a certificate of the pinned authority', async () => {
    const origins = { 'pinned.example': `https://localhost:${await secureHost(trusted)}` };
    const dates = { notBefore: new Date(Date.now() - 1000), notAfter: new Date(Date.now() + 60_000) };
    const ca = { name: 'another authority', ca: true, keyUsage: ['keyCertSign'], ...dates } as const;
    const otherAuthority = toPem(createCertificate(ca).certificate);
    const ask = (ca: string) => {
      const pinned = { endpoints: ['pinned.example'], authorities: { 'pinned.example': ca } };
      return createUpstreams(pinned, origins)('pinned.example', BOUNDS).get('/', RAW);
    };
    expect((await ask(trusted.ca)).status).toBe(200);
    expect((await ask(`${otherAuthority}\n${trusted.ca}`)).status).toBe(200);
    await expect(ask(otherAuthority)).rejects.toMatchObject({ reason: 'unreachable' });
    await expect(ask(foreign.ca)).rejects.toMatchObject({ reason: 'unreachable' });
  });

  test('rejects a certificate for another name or of an unknown authority', async () => {
    const port = await secureHost(trusted);
    for (const [origin, ca, code] of [
      [`https://127.0.0.1:${port}`, trusted.ca, 'ERR_TLS_CERT_ALTNAME_INVALID'],
      [`https://localhost:${port}`, undefined, 'UNABLE_TO_VERIFY_LEAF_SIGNATURE'],
    ] as const) {
      const exchange = createUpstream(origin, ca)(BOUNDS).get('/');
      await expect(exchange).rejects.toMatchObject({ reason: 'unreachable', code });
    }
  });

  /**
   * Program that requests both hosts by clients of upstreams, and the plain host also by Node's `http.get`.
   */
  const CHILD = `
    import { get } from 'node:http';
    import { text } from 'node:stream/consumers';
    import { createUpstream } from ${JSON.stringify(new URL('../../../src/service/upstream.ts', import.meta.url).href)};
    const { PLAIN, SECURE, CA } = process.env;
    const clients = [createUpstream(PLAIN)(), createUpstream(SECURE, CA)()];
    const answers = clients.map((client) => client.get('/', { responseType: 'text' }));
    const bodies = (await Promise.all(answers)).map(({ data }) => data);
    const proxied = await new Promise((resolve) => get(PLAIN, (answer) => resolve(text(answer))));
    console.log(JSON.stringify([...bodies, proxied]));`;

  test.each([
    ['NODE_USE_ENV_PROXY', { NODE_USE_ENV_PROXY: '1' }, []],
    ['--use-env-proxy', {}, ['--use-env-proxy']],
  ])('sends no request to a proxy, even with %s', async (_caseName, extraEnv, flags) => {
    let proxyRequestCount = 0;
    const proxy = createServer((_request, response) => {
      proxyRequestCount++;
      response.end('the proxy');
    }).on('connect', (_request, socket) => {
      proxyRequestCount++;
      socket.end('HTTP/1.1 502 No\r\nContent-Length: 0\r\n\r\n');
    });
    const proxyUrl = `http://127.0.0.1:${await listen(proxy)}`;
    const { origin } = await host((_request, response) => response.end('yes'));
    const env = {
      ...COMPILE_CACHE,
      HTTP_PROXY: proxyUrl,
      HTTPS_PROXY: proxyUrl,
      http_proxy: proxyUrl,
      https_proxy: proxyUrl,
      PLAIN: origin,
      SECURE: `https://localhost:${await secureHost(trusted)}`,
      CA: trusted.ca,
      ...extraEnv,
    };
    const printed = await new Promise<string>((resolve, reject) => {
      const args = [...flags, '--input-type=module', '-e', CHILD];
      execFile(process.execPath, args, { env }, (error, stdout) => (error ? reject(error) : resolve(stdout)));
    });
    expect(JSON.parse(printed)).toEqual(['yes', 'yes', 'the proxy']);
    expect(proxyRequestCount).toBe(1);
  });
});
