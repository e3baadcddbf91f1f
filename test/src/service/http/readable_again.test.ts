/**
 * Tests that Express' parsers and streams read bodies in an application's own router, within the server's
 * limits.
 */
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { pipeline } from 'node:stream/promises';
import express, { type RequestHandler, Router } from 'express';
import multer from 'multer';
import { describe, expect, onTestFinished, test } from 'vitest';
import { proverProxy } from '../../../../src/library/zklogin/index.ts';
import { startServer, type TestServer } from '../../server/support.ts';

interface RouterServer extends TestServer {
  /** Messages from the handlers. */
  readonly messages: string[];
}

async function start(
  add: (router: Router, report: (text: string) => void) => void,
  env: Record<string, string> = {},
): Promise<RouterServer> {
  const messages: string[] = [];
  const router = Router();
  add(router, (text) => void messages.push(text));
  const module = { signs: [], create: () => ({ routes: { prefix: '/x', router } }) };
  return { ...(await startServer({ module, manifest: { endpoints: [], secrets: [] }, env })), messages };
}

/** Opens a connection that records the received bytes. */
function open({ url }: TestServer): { socket: Socket; received(): string } {
  const socket = connect({ port: Number(new URL(url).port), host: '127.0.0.1', allowHalfOpen: true });
  onTestFinished(() => void socket.destroy());
  socket.on('error', () => {});
  let received = '';
  socket.setEncoding('latin1').on('data', (chunk: string) => {
    received += chunk;
  });
  return { socket, received: () => received };
}

const request = (line: string, body: string, head = 'Content-Type: application/json\r\n') =>
  `${line} HTTP/1.1\r\nHost: x\r\n${head}Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`;
const echo: RequestHandler = ({ body }, response) => void response.json({ body });

describe('a body can be read', () => {
  test('after a client has closed its side', async () => {
    const server = await start((router) => router.post('/json', express.json(), echo));
    const { socket, received } = open(server);
    socket.end(request('POST /x/json', '{"a":1}'));
    await once(socket, 'end');
    expect(received()).toMatch(/^HTTP\/1\.1 200 .*\{"body":\{"a":1\}\}$/s);
  });

  test('of each request of a connection, pipelined or one after the other', async () => {
    const server = await start((router) => router.post('/json', express.json(), echo));
    const { socket, received } = open(server);
    socket.write(request('POST /x/json', '{"a":1}') + request('POST /x/json', '{"a":2}'));
    await expect.poll(() => received().match(/\{"a":\d\}/g)).toEqual(['{"a":1}', '{"a":2}']);
    socket.write(request('POST /x/json', '{"a":3}'));
    await expect.poll(() => received().match(/\{"a":\d\}/g)?.length).toBe(3);
  });

  test('of a GET, once it has arrived, and of a HEAD', async () => {
    const server = await start((router) => router.use(express.json(), echo));
    const { socket, received } = open(server);
    socket.write(request('GET /x', '{"a":1}').slice(0, -3));
    socket.write(':1}');
    await expect.poll(received).toMatch(/\{"body":\{"a":1\}\}$/);
    const head = open(server);
    head.socket.write(request('HEAD /x', '{"a":1}'));
    await expect.poll(head.received).toMatch(/^HTTP\/1\.1 200 .*content-length: 16\r\n/is);
  });

  test('in chunks, with trailers', async () => {
    const server = await start((router) => {
      router.post('/json', express.json(), (incoming, response) => {
        response.json({ body: incoming.body, trailers: incoming.trailers });
      });
    });
    const { socket, received } = open(server);
    socket.write(
      'POST /x/json HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n',
    );
    socket.write('3\r\n{"a\r\n4\r\n":1}\r\n0\r\nt: u\r\n\r\n');
    await expect.poll(received).toMatch(/\{"body":\{"a":1\},"trailers":\{"t":"u"\}\}$/);
  });

  test('by the proxy of a proving service, with or without a parser before it', async () => {
    const proxy = proverProxy('https://prover.example/v1', {
      fetch: async (_url, init) => new Response(JSON.stringify({ sent: init?.body })),
    });
    const server = await start((router) => {
      router.post('/direct', proxy);
      router.post('/parsed', express.json(), proxy);
      router.post('/text', express.text({ type: '*/*' }), proxy);
    });
    for (const path of ['/x/direct', '/x/parsed', '/x/text']) {
      const answer = await server.post(path, '{"jwt":"a.b.c"}');
      expect([path, await answer.json()]).toEqual([path, { sent: '{"jwt":"a.b.c"}' }]);
    }
  });
});

describe('a handler', () => {
  test.each<[string, RequestHandler]>([
    [
      'that reads a part of the body and throws',
      async (incoming) => {
        for await (const _chunk of incoming) throw new Error('hunter2');
      },
    ],
    [
      'whose stream fails',
      async (incoming) => {
        await pipeline(incoming, async () => {
          throw new Error('hunter2');
        });
      },
    ],
    [
      'that throws and never reads',
      () => {
        throw new Error('hunter2');
      },
    ],
  ])('%s causes an answer with 500, and the connection serves the next request', async (_name, handler) => {
    const server = await start((router) => {
      router.post('/throw', handler);
      router.post('/json', express.json(), echo);
    });
    const { socket, received } = open(server);
    socket.write(request('POST /x/throw', 'x'.repeat(50_000)));
    await expect.poll(received).toMatch(/^HTTP\/1\.1 500 .*"code":"INTERNAL"\}$/s);
    socket.write(request('POST /x/json', '{"a":1}'));
    await expect.poll(received).toMatch(/\{"body":\{"a":1\}\}$/);
    expect(server.printed()).not.toContain('hunter2');
  });

  test('that never reads the body can answer, and its request ends', async () => {
    const server = await start((router, report) => {
      router.post('/never', (incoming, response) => {
        incoming.on('close', () => report(`closed, aborted: ${incoming.aborted}`));
        response.json({});
      });
    });
    const { socket, received } = open(server);
    const twice = request('POST /x/never', 'x'.repeat(1000)).repeat(2);
    socket.write(twice);
    await expect.poll(() => received().match(/200 OK/g)?.length).toBe(2);
    await expect.poll(() => server.messages).toEqual(['closed, aborted: false', 'closed, aborted: false']);
  });

  test('gets events when its caller leaves', async () => {
    const server = await start((router, report) => {
      router.post('/hang', (incoming, response) => {
        incoming.on('aborted', () => report('aborted'));
        incoming.on('error', (error) => report(error.message));
        incoming.on('close', () => report('request'));
        response.on('close', () => report('response'));
        report('begun');
      });
    });
    const { socket } = open(server);
    socket.write(request('POST /x/hang', 'x'));
    await expect.poll(() => server.messages).toEqual(['begun']);
    socket.destroy();
    await expect
      .poll(() => server.messages.toSorted())
      .toEqual(['aborted', 'aborted', 'begun', 'request', 'response']);
  });
});

describe('a hostile body', () => {
  const addRoutes: (router: Router) => void = (router) => {
    router.post('/json', express.json(), echo);
    router.post('/form', express.urlencoded({ extended: true }), echo);
    router.get('/query', (incoming, response) => void response.json({ ...incoming.query }));
    router.post('/upload', multer().any(), (incoming, response) => {
      response.json({
        names: Object.keys(incoming.body).length,
        own: Object.keys(incoming.body).slice(0, 5),
      });
    });
  };

  test('that never ends is refused at the size limit', async () => {
    const server = await start(addRoutes);
    const { socket, received } = open(server);
    socket.write(
      'POST /x/json HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n',
    );
    const chunk = `4000\r\n${' '.repeat(0x4000)}\r\n`;
    const sending = setInterval(() => socket.write(chunk), 1);
    onTestFinished(() => clearInterval(sending));
    await expect.poll(received).toMatch(/^HTTP\/1\.1 413 .*"code":"BODY_TOO_LARGE"/s);
  });

  test('that is longer than its Content-Length is cut there', async () => {
    const server = await start(addRoutes);
    const { socket, received } = open(server);
    socket.write(`${request('POST /x/json', '{}')}"more"}`);
    // The connection may also be reset, since more was sent than read.
    await once(socket, 'end').catch(() => {});
    expect(received()).toMatch(/^HTTP\/1\.1 200 (?!.*HTTP).*\{"body":\{\}\}$/s);
  });

  test.each(['gzip', 'br', 'deflate', 'zstd', 'x', 'gzip, identity'])(
    'that is compressed (%s) is refused before it has arrived',
    async (encoding) => {
      const server = await start(addRoutes);
      const { socket, received } = open(server);
      const head = `Content-Type: application/json\r\nContent-Encoding: ${encoding}\r\n`;
      socket.write(request('POST /x/json', 'x'.repeat(1000), head).slice(0, -900));
      await expect.poll(received).toMatch(/^HTTP\/1\.1 415 .*"code":"UNSUPPORTED_MEDIA_TYPE"/s);
    },
  );

  test('of 10,000 parts is read if it is within the size limit', async () => {
    const part = (name: string) => `--b\r\nContent-Disposition: form-data; name="${name}"\r\n\r\n1\r\n`;
    const parts = Array.from({ length: 10_000 }, (_, number) => part(`n${number}`)).join('');
    const type = { headers: { 'content-type': 'multipart/form-data; boundary=b' } };
    const server = await start(addRoutes, { BODY_LIMIT_BYTES: '1048576' });
    const answer = await server.post('/x/upload', `${parts}--b--\r\n`, type);
    expect(await answer.json()).toMatchObject({ names: 10_000 });
    const small = await start(addRoutes);
    expect((await small.post('/x/upload', `${parts}--b--\r\n`, type)).status).toBe(413);
    const cutAnswer = await server.post('/x/upload', parts, type);
    expect([cutAnswer.status, await cutAnswer.json()]).toMatchObject([500, { code: 'INTERNAL' }]);
  });

  test('does not pollute a prototype', async () => {
    const server = await start(addRoutes);
    const form = { headers: { 'content-type': 'application/x-www-form-urlencoded' } };
    const multipart = { headers: { 'content-type': 'multipart/form-data; boundary=b' } };
    const field = (name: string) =>
      `--b\r\nContent-Disposition: form-data; name="${name}"\r\n\r\nhunter2\r\n--b--\r\n`;
    const paths = ['__proto__[hunter2]', 'constructor[prototype][hunter2]', '__proto__.hunter2'];
    await server.post('/x/json', '{"__proto__":{"hunter2":1},"constructor":{"prototype":{"hunter2":1}}}');
    for (const path of paths) {
      await server.post('/x/form', `${encodeURIComponent(path)}=1`, form);
      await server.get(`/x/query?${encodeURIComponent(path)}=1`);
      expect((await server.post('/x/upload', field(path), multipart)).status).toBe(200);
    }
    expect('hunter2' in {}).toBe(false);
    expect((await server.get('/x/query?a=1')).status).toBe(200);
  });

  test('that is slow takes no slot, whatever the method', async () => {
    const server = await start(addRoutes, { MAX_CONCURRENT_REQUESTS: '1' });
    for (const method of ['POST', 'GET', 'HEAD']) {
      const { socket } = open(server);
      socket.write(request(`${method} /x/json`, '{"a":1}').slice(0, -1));
      await once(socket, 'ready');
    }
    expect(await (await server.post('/x/json', { a: 1 })).json()).toEqual({ body: { a: 1 } });
    expect((await server.get('/x/query')).status).toBe(200);
  });
});
