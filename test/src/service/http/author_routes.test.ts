/** An application's own routes: an Express router with npm middleware, within the server's limits. */
import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { constants, mkdtempSync, openSync, rmSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import express, { Router } from 'express';
import helmet from 'helmet';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { type ApplicationModule, endpoint } from '../../../../src/server/application/app.ts';
import type { Manifest } from '../../../../src/server/application/manifest.ts';
import { SignedAnswer } from '../../../../src/server/keys/signer.ts';
import { Connections } from '../../../../src/service/http/connections.ts';
import { JsonBodies } from '../../../../src/service/http/json_body.ts';
import { startServer } from '../../server/support.ts';

const manifest: Manifest = { endpoints: [], secrets: [] };

/** The URLs that a router received, and its Express application. */
interface RouterRecord {
  readonly urls: string[];
  app?: express.Express;
}

function createModule(record: RouterRecord = { urls: [] }): ApplicationModule {
  const router = Router();
  router.use((request, _response, next) => {
    record.urls.push(`${request.method} ${request.baseUrl}${request.url}`);
    record.app = request.app as express.Express;
    next();
  });
  router.use(helmet());
  router.get('/text', (_request, response) => void response.type('txt').send('hello'));
  router.put('/size', express.raw({ type: () => true }), ({ body, ip }, response) => {
    response.json({ isBuffer: Buffer.isBuffer(body), size: body?.length, ip });
  });
  router.get('/hang', () => {});
  router.get('/stream', (_request, response) => {
    response.write('a part');
  });
  router.get('/throw', () => {
    throw Object.assign(new Error('hunter2'), { status: 418 });
  });
  router.get('/throw-late', (_request, response) => {
    response.set('content-length', '100').write('a part');
    throw new Error('hunter2');
  });
  router.get('/pass', (_request, _response, next) => next());
  const quote = endpoint({ method: 'GET', path: '/quote', handle: async () => ({ quote: 1 }) });
  return { signs: [], create: () => ({ endpoints: [quote], routes: { prefix: '/x', router } }) };
}

async function read(response: Response) {
  return { status: response.status, headers: response.headers, body: await response.text() };
}

const start = (env: Record<string, string> = {}, startManifest = manifest, record?: RouterRecord) =>
  startServer({ module: createModule(record), manifest: startManifest, env });

describe("an application's routes", () => {
  test('answer below their prefix, with middleware of npm and the headers of the server', async () => {
    const { get } = await start({ CORS_ORIGINS: 'https://a.example' });
    const answer = await get('/x/text?a=1', { headers: { origin: 'https://a.example' } });
    expect([answer.status, await answer.text()]).toEqual([200, 'hello']);
    expect(answer.headers.get('content-security-policy')).toMatch(/default-src 'self'/);
    expect(answer.headers.get('x-request-id')).toMatch(/^[0-9a-f-]{36}$/);
    expect(answer.headers.get('access-control-allow-origin')).toBe('https://a.example');
    expect(answer.headers.get('x-powered-by')).toBeNull();
  });

  test('see nothing outside their prefix, and come after all endpoints', async () => {
    const record: RouterRecord = { urls: [] };
    const { get, post } = await start({}, manifest, record);
    for (const path of ['/', '/quote', '/livez', '/X/text', '/xy', '/y/x', '/%78/text']) await get(path);
    await post('/sealed', {});
    expect(record.urls).toEqual([]);
    await get('/x');
    await get('/x/text');
    expect(record.urls).toEqual(['GET /x/', 'GET /x/text']);
  });

  test("get an Express application of their own: they can't change the server's", async () => {
    const record: RouterRecord = { urls: [] };
    const { get } = await start({}, manifest, record);
    await get('/x/text');
    record.app?.use((_request, response) => void response.send('mine'));
    record.app?.set('query parser', () => ({ nonce: 'x' }));
    expect((record.app as unknown as { parent?: unknown }).parent).toBeUndefined();
    expect(await (await get('/quote')).json()).toEqual({ quote: 1 });
    expect((await get('/nowhere')).status).toBe(404);
  });

  test.each([['/nowhere'], ['/pass'], ['']])(
    'answer %j with 404, as the server does elsewhere',
    async (path) => {
      const { get } = await start();
      const answer = await get(`/x${path}`);
      expect([answer.status, await answer.json()]).toEqual([
        404,
        { error: 'no such endpoint', code: 'NOT_FOUND' },
      ]);
    },
  );

  test('get the body of a request, and the address of its caller', async () => {
    const { url } = await start({ TRUSTED_PROXIES: '1' });
    const headers = { 'content-type': 'image/png', 'x-forwarded-for': '192.0.2.1' };
    const answer = await fetch(`${url}/x/size`, { method: 'PUT', body: new Uint8Array(1000), headers });
    expect(await answer.json()).toEqual({ isBuffer: true, size: 1000, ip: '192.0.2.1' });
    const emptyAnswer = await fetch(`${url}/x/size`, { method: 'PUT' });
    expect(await emptyAnswer.json()).toMatchObject({ isBuffer: true, size: 0 });
  });

  test('get no body that is too large, too slow or compressed', async () => {
    const { url } = await start({ REQUEST_TIMEOUT_MS: '1000' });
    const put = async (init: RequestInit) => {
      const answer = await fetch(`${url}/x/size`, { method: 'PUT', ...init });
      return [answer.status, ((await answer.json()) as { code: string }).code];
    };
    expect(await put({ body: new Uint8Array(70_000) })).toEqual([413, 'BODY_TOO_LARGE']);
    expect(await put({ body: 'x', headers: { 'content-encoding': 'gzip' } })).toEqual([
      415,
      'UNSUPPORTED_MEDIA_TYPE',
    ]);
    const socket = connect(Number(new URL(url).port), '127.0.0.1');
    onTestFinished(() => void socket.destroy());
    socket.write('PUT /x/size HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nx');
    expect(String((await once(socket, 'data'))[0])).toMatch(/^HTTP\/1.1 408 .*"code":"REQUEST_TIMEOUT"/s);
  });

  test('have bodies that count towards the memory limit of incomplete bodies', async () => {
    const read = vi.spyOn(JsonBodies.prototype, 'readAny');
    onTestFinished(() => read.mockRestore());
    const { url } = await start();
    const socket = connect(Number(new URL(url).port), '127.0.0.1');
    socket.write(`PUT /x/size HTTP/1.1\r\nHost: x\r\nContent-Length: 60000\r\n\r\n${'x'.repeat(50_000)}`);
    await expect
      .poll(() => (read.mock.contexts[0] as JsonBodies | undefined)?.held)
      .toBeGreaterThanOrEqual(50_000);
    socket.destroy();
    await expect.poll(() => (read.mock.contexts[0] as JsonBodies).held).toBe(0);
  });

  test('hold a slot, and count as pending, until they are answered or their caller has left', async () => {
    const addConnection = vi.spyOn(Connections.prototype, 'addConnection');
    onTestFinished(() => addConnection.mockRestore());
    const { get, url } = await start({ MAX_CONCURRENT_REQUESTS: '1' });
    const socket = connect(Number(new URL(url).port), '127.0.0.1');
    socket.write('GET /x/stream HTTP/1.1\r\nHost: x\r\n\r\n');
    expect(String((await once(socket, 'data'))[0])).toMatch(/^HTTP\/1.1 200 /);
    expect((addConnection.mock.contexts[0] as Connections).pending).toBe(1);
    const refusal = await get('/quote');
    expect([refusal.status, await refusal.json()]).toMatchObject([503, { code: 'OVERLOADED' }]);
    socket.destroy();
    await expect.poll(async () => (await get('/quote')).status).toBe(200);
    expect((addConnection.mock.contexts[0] as Connections).pending).toBe(0);
  });

  test('have the deadline of all requests, which answers with 504, or closes the connection of a stream', async () => {
    const { get } = await start({ REQUEST_TIMEOUT_MS: '1000' });
    const lateAnswer = await get('/x/hang');
    expect([lateAnswer.status, await lateAnswer.json()]).toMatchObject([504, { code: 'ANSWER_TIMEOUT' }]);
    const started = performance.now();
    const stream = await get('/x/stream');
    expect(stream.status).toBe(200);
    await expect(stream.text()).rejects.toThrow('terminated');
    expect(performance.now() - started).toBeLessThan(1900);
  });

  test('that throw are answered without the thrown value; after the headers, the connection is closed', async () => {
    const { get, printed } = await start();
    const answer = await get('/x/throw');
    expect([answer.status, await answer.json()]).toMatchObject([500, { code: 'INTERNAL' }]);
    await expect((await get('/x/throw-late')).text()).rejects.toThrow('terminated');
    expect(printed()).toMatch(/request failed.*request failed/s);
    expect(printed()).not.toMatch(/hunter2/);
    expect((await get('/quote')).status).toBe(200);
  });

  test('send a signed answer as its JSON, and add its header unless it is within another value', async () => {
    const json = '{"response":{"intent":0,"timestamp_ms":1,"data":{"n":9007199254740991}},"signature":"ab"}';
    const startSigned = async (env: Record<string, string>) => {
      const router = Router();
      const signed = new SignedAnswer(json, 'cd');
      router.get('/json', (_request, response) => void response.status(201).json(signed));
      router.get('/send', (_request, response) => void response.send(signed));
      router.get('/within', (_request, response) => void response.json({ list: [signed] }));
      router.get('/plain', (_request, response) => void response.json({ a: 1 }));
      return await startServer({
        module: { signs: [], create: () => ({ routes: { prefix: '/x', router } }) },
        manifest,
        env,
      });
    };
    const { get } = await startSigned({});
    for (const [path, status, body, key] of [
      ['/x/json', 201, json, 'cd'],
      ['/x/send', 200, json, 'cd'],
      ['/x/within', 200, `{"list":[${json}]}`, null],
      ['/x/plain', 200, '{"a":1}', null],
    ] as const) {
      const { headers, ...answer } = await read(await get(path));
      expect([path, answer, headers.get('x-enclave-key')]).toEqual([path, { status, body }, key]);
      expect(headers.get('content-type')).toBe('application/json; charset=utf-8');
    }
    // The answer may have been signed while the clock was still confirmed.
    const unconfirmed = await startSigned({ CLOCK_REQUIRED: 'true', NSM_DEVICE: '/none' });
    expect((await unconfirmed.get('/x/json')).status).toBe(503);
    expect((await unconfirmed.get('/x/plain')).status).toBe(200);
  });

  test('are refused until the secrets arrive', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'routes-'));
    const path = join(folder, 'pipe');
    execFileSync('mkfifo', [path]);
    const fd = openSync(path, constants.O_RDWR);
    onTestFinished(() => rmSync(folder, { recursive: true }));
    const { get } = await start({ SECRETS_FD: String(fd) }, { endpoints: [], secrets: ['API_KEY'] });
    const answer = await get('/x/text');
    expect([answer.status, await answer.json()]).toMatchObject([503, { code: 'SECRETS_MISSING' }]);
  });

  test.each([
    ['x', 'must be a fixed path such as /x, not x'],
    ['/', 'must be a fixed path'],
    ['/x/', 'must be a fixed path'],
    ['/:x', 'must be a fixed path'],
    ['/x*', 'must be a fixed path'],
    ['/livez', "the prefix /livez of the application's routes contains the endpoint /livez"],
    ['/api', "the prefix /api of the application's routes contains the endpoint /api/quote"],
  ])('keep the server from starting if their prefix is %j', async (prefix, message) => {
    const quote = endpoint({ method: 'GET', path: '/api/quote', handle: async () => ({}) });
    const routes = { prefix, router: Router() };
    const module = { signs: [], create: () => ({ endpoints: [quote], routes }) };
    await expect(startServer({ module, manifest })).rejects.toThrow(message);
  });
});

describe('with REQUESTS=sealed, the routes', () => {
  test('keep the server from starting, since no request would reach them', async () => {
    await expect(start({ REQUESTS: 'sealed' })).rejects.toMatchObject({
      code: 'CONFIG',
      message: expect.stringContaining('set plain: true in app.yaml'),
    });
  });

  test('refuse all requests if app.yaml has plain: true', async () => {
    const record: RouterRecord = { urls: [] };
    const { get, url } = await start({ REQUESTS: 'sealed' }, { ...manifest, plain: true }, record);
    const answer = await get('/x/text');
    expect([answer.status, await answer.json()]).toMatchObject([403, { code: 'SEALED_REQUIRED' }]);
    expect((await fetch(`${url}/x/size`, { method: 'PUT', body: 'x' })).status).toBe(403);
    expect(record.urls).toEqual([]);
  });
});
