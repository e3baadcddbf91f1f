/** `defineApp({ before })`: handlers of Express that run before the endpoints of an application. */
import { execFileSync } from 'node:child_process';
import { constants, mkdtempSync, openSync, rmSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { inspect } from 'node:util';
import express, { type RequestHandler, Router } from 'express';
import createError from 'http-errors';
import * as v from 'valibot';
import { describe, expect, onTestFinished, test } from 'vitest';
import { decodeAttestation } from '../../../src/library/attestation/index.ts';
import { SEALED_TYPE, sealRequest } from '../../../src/library/sealing/request.ts';
import { decodeUserData } from '../../../src/library/sealing/user_data.ts';
import { endpoint } from '../../../src/server/application/app.ts';
import type { Manifest } from '../../../src/server/application/manifest.ts';
import { createGuard, type HandlerParts } from '../../../src/service/http/author_routes.ts';
import { EmulatedNsm } from '../../../src/testing/emulated_nsm.ts';
import { startServer, type TestServer } from './support.ts';

const nsm = new EmulatedNsm();
const EMPTY: Manifest = { endpoints: [], secrets: [] };

function start(
  before: readonly RequestHandler[],
  env: Record<string, string> = {},
  manifest: Manifest = EMPTY,
): Promise<TestServer> {
  const router = Router();
  router.use((request, response) => void response.json({ url: request.url, baseUrl: request.baseUrl }));
  const module = {
    signs: [],
    before,
    create: () => ({
      endpoints: [
        endpoint({
          method: 'POST',
          path: '/echo',
          body: v.strictObject({ text: v.string() }),
          handle: async ({ text }) => ({ text }),
        }),
        endpoint({ method: 'GET', path: '/quote', handle: async () => ({ quote: 1 }) }),
        endpoint({ method: 'GET', path: '/hang', handle: () => new Promise<object>(() => {}) }),
        endpoint({
          method: 'GET',
          path: '/throw',
          handle: async () => {
            throw createError(404, 'an upstream has no such thing');
          },
        }),
      ],
      routes: { prefix: '/x', router },
    }),
  };
  return startServer({ module, manifest, env, nsm });
}

async function seal(server: TestServer, text: string) {
  const { attestation } = (await (await server.get('/get_attestation')).json()) as { attestation: string };
  const { userData } = decodeAttestation(Uint8Array.from(Buffer.from(attestation, 'hex')));
  const { sealingKey } = decodeUserData(userData as Uint8Array);
  const call = { method: 'POST', path: '/echo', body: { text } } as const;
  const { message, openAnswer } = await sealRequest(sealingKey, call);
  const send = () => server.post('/sealed', message, { headers: { 'content-type': SEALED_TYPE } });
  return { send, openAnswer: async (answer: Response) => openAnswer(await answer.bytes()) };
}

test('handlers run in order, before the endpoints, /sealed, GET / and the router, and see the path of each', async () => {
  const seenPaths: string[] = [];
  const server = await start([
    (request, response, next) => {
      seenPaths.push(
        `${request.method} ${request.url} ${request.originalUrl} ${request.baseUrl} ${request.path}`,
      );
      response.set('x-first', '1');
      next();
    },
    (_request, response, next) => {
      response.set('x-second', `${response.get('x-first')}2`);
      next();
    },
  ]);
  const { send } = await seal(server, 'a');
  seenPaths.length = 0;
  const answers = [
    await server.get('/'),
    await server.get('/quote?a=1'),
    await server.post('/echo', { text: 'a' }),
    await send(),
    await server.get('/x/y?b=2'),
  ];
  expect(answers.map(({ status, headers }) => [status, headers.get('x-second')])).toEqual(
    answers.map(() => [200, '12']),
  );
  expect(await answers[4]?.json()).toEqual({ url: '/y?b=2', baseUrl: '/x' });
  expect(seenPaths).toEqual([
    'GET / /  /',
    'GET /quote?a=1 /quote?a=1  /quote',
    'POST /echo /echo  /echo',
    'POST /sealed /sealed  /sealed',
    'GET /x/y?b=2 /x/y?b=2  /x/y',
  ]);
});

test("handlers do not run before the server's own endpoints, nor for a preflight or an unknown path", async () => {
  const server = await start([
    () => {
      throw new Error('hunter2');
    },
  ]);
  for (const path of ['/livez', '/readyz', '/boot', '/health_check', '/get_attestation']) {
    expect([path, (await server.get(path)).status]).toEqual([path, 200]);
  }
  expect((await server.post('/secrets', {})).status).not.toBe(500);
  expect((await server.get('/nothing')).status).toBe(404);
  const headers = { origin: 'https://a.example', 'access-control-request-method': 'POST' };
  expect((await fetch(`${server.url}/echo`, { method: 'OPTIONS', headers })).status).toBe(204);
  expect((await server.get('/quote')).status).toBe(500);
});

test('handlers run without the secrets that endpoints wait for', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'before-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const path = join(folder, 'pipe');
  execFileSync('mkfifo', [path]);
  const fd = openSync(path, constants.O_RDWR);
  const server = await start(
    [(_request, response, next) => next(void response.set('x-first', '1'))],
    { SECRETS_FD: String(fd) },
    { endpoints: [], secrets: ['KEY'] },
  );
  for (const [path, status] of Object.entries({ '/': 200, '/quote': 503, '/x': 503 })) {
    const answer = await server.get(path);
    expect([path, answer.status, answer.headers.get('x-first')]).toEqual([path, status, '1']);
  }
});

describe('a handler', () => {
  test('may answer, or refuse with the text of its error', async () => {
    const server = await start([
      (request, response, next) => {
        if (request.path === '/') response.status(429).json({ error: 'too many', code: 'LIMIT' });
        else if (request.path === '/quote') next(createError(403, 'not you'));
        else throw new Error('hunter2');
      },
    ]);
    const answers = ['/', '/quote', '/x'].map(async (path) => {
      const answer = await server.get(path);
      expect(answer.headers.get('x-request-id')).not.toBeNull();
      return [answer.status, await answer.json()];
    });
    expect(await Promise.all(answers)).toEqual([
      [429, { error: 'too many', code: 'LIMIT' }],
      [403, { error: 'not you', code: 'REQUEST_REFUSED' }],
      [500, { error: 'an internal error; see the log', code: 'INTERNAL' }],
    ]);
    expect(server.printed()).not.toContain('hunter2');
  });

  test('makes no difference to the errors of endpoints', async () => {
    const server = await start([(_request, _response, next) => next()]);
    expect((await server.get('/throw')).status).toBe(500);
  });

  test('that reads the body makes an endpoint answer with an error immediately; the router gets the parsed body', async () => {
    const server = await start([express.json()]);
    const { send } = await seal(server, 'a');
    const read = await server.post('/echo', { text: 'a' });
    expect([read.status, await read.json()]).toEqual([
      500,
      { error: expect.any(String), code: 'BODY_TAKEN' },
    ]);
    expect((await server.post('/x/y', { text: 'a' })).status).toBe(200);
    // A parser of another media type does not read the body.
    expect((await send()).status).toBe(200);
    expect((await server.get('/quote')).status).toBe(200);
  });

  test.each<[string, RequestHandler]>([
    ['listens to the body', (request, _response, next) => next(void request.on('data', () => {}))],
    ['drops the body', (request, _response, next) => request.resume().on('end', () => next())],
    [
      'reads a piece of the body',
      (request, _response, next) => void request.once('readable', () => next(void request.read(1))),
    ],
    [
      'waits for the body',
      async (request, _response, next) => {
        for await (const _chunk of request) break;
        next();
      },
    ],
  ])('that %s makes the endpoint answer BODY_TAKEN', async (_name, handler) => {
    const server = await start([handler]);
    const answer = await server.post('/echo', { text: 'a' });
    expect([answer.status, await answer.json()]).toMatchObject([500, { code: 'BODY_TAKEN' }]);
  });

  test("can't change the server's application", async () => {
    const server = await start([
      (request, _response, next) => {
        request.app.set('query parser', () => ({ nonce: 'x' }));
        request.app.get('/livez', (_request, response) => void response.send('mine'));
        next();
      },
    ]);
    expect(await (await server.get('/quote')).json()).toEqual({ quote: 1 });
    expect(await (await server.get('/livez')).json()).toEqual({ live: true });
    expect((await server.get('/get_attestation')).status).toBe(200);
  });

  test('has the deadline of the request, and counts with the endpoint as one request in progress', async () => {
    let isHanging = false;
    const server = await start(
      [
        (request, _response, next) => {
          if (request.get('x-hang') === undefined) return next();
          isHanging = true;
        },
      ],
      { REQUEST_TIMEOUT_MS: '1000', MAX_CONCURRENT_REQUESTS: '1' },
    );
    expect((await server.get('/quote')).status).toBe(200);
    expect((await server.post('/echo', { text: 'a' })).status).toBe(200);
    expect((await server.get('/x')).status).toBe(200);
    const pending = server.get('/quote', { headers: { 'x-hang': '1' } });
    await expect.poll(() => isHanging).toBe(true);
    expect((await server.get('/quote')).status).toBe(503);
    expect((await pending).status).toBe(504);
    await expect.poll(async () => (await server.get('/quote')).status).toBe(200);
  });

  test('releases its place when the caller leaves', async () => {
    let isHanging = false;
    const server = await start(
      [
        (request, _response, next) => {
          isHanging = request.path === '/x';
          if (!isHanging) next();
        },
      ],
      { MAX_CONCURRENT_REQUESTS: '1' },
    );
    const socket = connect(Number(new URL(server.url).port), '127.0.0.1');
    socket.write('GET /x HTTP/1.1\r\nHost: x\r\n\r\n');
    await expect.poll(() => isHanging).toBe(true);
    socket.destroy();
    await expect.poll(async () => (await server.get('/quote')).status).toBe(200);
  });

  test('does not run for a body that is slow, too large or compressed', async () => {
    const calls: number[] = [];
    const server = await start([(_request, _response, next) => next(void calls.push(1))], {
      MAX_CONCURRENT_REQUESTS: '1',
    });
    const socket = connect(Number(new URL(server.url).port), '127.0.0.1');
    onTestFinished(() => void socket.destroy());
    socket.write(
      'POST /echo HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n{',
    );
    const large = await server.post('/echo', { text: 'x'.repeat(70_000) });
    expect([large.status, await large.json()]).toMatchObject([413, { code: 'BODY_TOO_LARGE' }]);
    const compressed = await server.post('/echo', '{}', { headers: { 'content-encoding': 'gzip' } });
    expect(compressed.status).toBe(415);
    expect(calls).toEqual([]);
    expect((await server.get('/quote')).status).toBe(200);
  });

  test('sees only the sealed form of a sealed request', async () => {
    const seen: unknown[] = [];
    const record =
      (owner: object, name: string, method: (...values: unknown[]) => unknown) =>
      (...values: unknown[]) => {
        seen.push(
          name,
          ...values.map((value) =>
            value instanceof Uint8Array ? Buffer.from(value).toString('latin1') : value,
          ),
        );
        return Reflect.apply(method, owner, values);
      };
    const server = await start([
      (request, response, next) => {
        for (const name of [
          'write',
          'end',
          'json',
          'send',
          'setHeader',
          'writeHead',
          'set',
          'type',
        ] as const) {
          Object.assign(response, { [name]: record(response, name, response[name] as () => unknown) });
        }
        const look = () => void seen.push(inspect(request), inspect(response, { depth: 4 }));
        for (const event of ['prefinish', 'finish', 'close']) response.on(event, look);
        next();
      },
    ]);
    const { send, openAnswer } = await seal(server, 'hunter2');
    const response = await send();
    const id = response.headers.get('x-request-id');
    expect(id).toMatch(/^[0-9a-f-]{36}$/);
    const answer = await openAnswer(response);
    expect(answer).toMatchObject({ status: 200, body: { text: 'hunter2' }, requestId: id });
    expect(seen).toContain('end');
    expect(JSON.stringify(seen)).not.toContain('hunter2');
    // The handler does see a plain request.
    await server.post('/echo', { text: 'hunter2' });
    expect(JSON.stringify(seen)).toContain('hunter2');
  });

  test('runs before REQUESTS=sealed refuses a request', async () => {
    const server = await start(
      [(_request, response, next) => next(void response.set('x-first', '1'))],
      { REQUESTS: 'sealed' },
      { ...EMPTY, plain: true },
    );
    for (const path of ['/quote', '/x']) {
      const answer = await server.get(path);
      expect([answer.status, answer.headers.get('x-first')]).toEqual([403, '1']);
    }
  });
});

test.each([[[{}]], [() => {}], [['helmet']]])(
  'a value that is not a list of handlers stops the start: %j',
  async (before) => {
    await expect(start(before as unknown as RequestHandler[])).rejects.toMatchObject({
      code: 'CONFIG',
      message: expect.stringContaining('before must be a list of handlers'),
    });
  },
);

test('without handlers, the guard returns the handler of an endpoint unchanged', () => {
  const handler: RequestHandler = () => {};
  expect(createGuard(express(), [], {} as HandlerParts)(handler)).toBe(handler);
});
