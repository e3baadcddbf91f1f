/** Habits of users of Express, as rows of src/apps/README.md, tried on a server of `fixtures/apps/habits`. */
import { once } from 'node:events';
import { connect } from 'node:net';
import { expect } from 'vitest';

export interface Habit {
  /** Name of the row in the table. */
  readonly name: string;
  attempt(ask: Ask, url: string): Promise<void>;
}

type Ask = (path: string, init?: RequestInit) => Promise<Response>;

const ORIGIN = 'https://a.example';

const post = (body: BodyInit, type?: string): RequestInit => ({
  method: 'POST',
  body,
  ...(type !== undefined && { headers: { 'content-type': type } }),
});
const json = (value: unknown) => post(JSON.stringify(value), 'application/json');
const call = (word: string, headers: Record<string, string> = {}): RequestInit => ({
  ...json({ payload: { word } }),
  headers: { 'content-type': 'application/json', ...headers },
});

/** Returns the answer's status and JSON. */
async function statusAndJson(answer: Promise<Response>): Promise<[status: number, json: unknown]> {
  const { status, ...received } = await readJson(answer);
  return [status, received.json];
}

async function readJson(answer: Promise<Response>): Promise<{ status: number; json: unknown }> {
  const response = await answer;
  return { status: response.status, json: await response.json() };
}

const works = (name: string, path: string, init: RequestInit, expected: unknown, status = 200): Habit => ({
  name,
  attempt: async (ask) => expect(await statusAndJson(ask(path, init))).toEqual([status, expected]),
});
const refused = (name: string, path: string, init: RequestInit, status: number, code: string): Habit => ({
  name,
  attempt: async (ask) => {
    const [received, error] = await statusAndJson(ask(path, init));
    expect([received, error]).toEqual([status, { error: expect.any(String), code }]);
    expect(JSON.stringify(error)).not.toContain('hunter2');
  },
});

function form(): FormData {
  const data = new FormData();
  data.set('name', 'a');
  data.set('file', new Blob(['hello']), 'hello.txt');
  return data;
}

const BODIES: readonly Habit[] = [
  works('`express.json()`', '/x/json', json({ a: 1 }), { type: 'object', body: { a: 1 } }),
  works(
    '`express.urlencoded({ extended: true })`',
    '/x/urlencoded',
    post('a[b]=1&c=2', 'application/x-www-form-urlencoded'),
    { type: 'object', body: { a: { b: '1' }, c: '2' } },
  ),
  works('`express.text()`', '/x/plain', post('hello', 'text/plain'), { type: 'string', body: 'hello' }),
  works('`express.raw()`', '/x/raw', post('hello', 'image/png'), { isBuffer: true, bytes: 5 }),
  works('no parser', '/x/unparsed', json({ a: 1 }), { type: 'undefined' }),
  works("`request.on('data')` and `'end'`", '/x/data', post('hello'), { bytes: 5, complete: true }),
  works('`for await (const chunk of request)`', '/x/await', post('x'.repeat(60_000)), { bytes: 60_000 }),
  works('`request.pipe(…)`, `pipeline(request, …)`', '/x/pipe', post('hello'), { bytes: 5 }),
  works(
    '`multer`',
    '/x/multer',
    { method: 'POST', body: form() },
    {
      name: 'a',
      file: 'hello.txt',
      bytes: 5,
    },
  ),
  works('`busboy`', '/x/busboy', { method: 'POST', body: form() }, { name: 'a' }),
  refused(
    'a body over `BODY_LIMIT_BYTES`, uploads too',
    '/x/data',
    post('x'.repeat(70_000)),
    413,
    'BODY_TOO_LARGE',
  ),
  refused(
    'a compressed body',
    '/x/json',
    { ...json({}), headers: { 'content-type': 'application/json', 'content-encoding': 'gzip' } },
    415,
    'UNSUPPORTED_MEDIA_TYPE',
  ),
];

const REQUESTS: readonly Habit[] = [
  works('`request.params`, `router.param(…)`', '/x/items/7', {}, { item: 'item 7', id: '7' }),
  works('`request.query`', '/x/query?a=1&a=2&b[c]=3', {}, { a: ['1', '2'], 'b[c]': '3' }),
  {
    name: '`request.get(…)`, `accepts(…)`, `ip`',
    attempt: async (ask, url) => {
      const headers = { accept: 'text/html', 'x-forwarded-for': '192.0.2.1' };
      expect(await (await ask('/x/headers', { headers })).json()).toEqual({
        host: new URL(url).host,
        accepts: 'html',
        ip: '192.0.2.1',
      });
    },
  },
  works(
    '`request.originalUrl`, `baseUrl`, `url`, `path`',
    '/x/url?a=1',
    {},
    {
      url: '/url?a=1',
      originalUrl: '/x/url?a=1',
      baseUrl: '/x',
      path: '/url',
    },
  ),
  works('a router in the router, `mergeParams`', '/x/users/a/name', {}, { user: 'a' }),
  works('`router.route(…).get(…).put(…)`', '/x/thing', { method: 'PUT' }, { thing: 'put' }),
  {
    name: '`router.all(…)`, HEAD by `router.get(…)`',
    attempt: async (ask) => {
      expect(await (await ask('/x/every', { method: 'PATCH' })).json()).toEqual({ method: 'PATCH' });
      const head = await ask('/x/created', { method: 'HEAD' });
      expect([head.status, await head.text()]).toEqual([201, '']);
    },
  },
  works("`next('route')`", '/x/skip', {}, { skipped: true }),
  works('an Express application in the router', '/x/sub/app', {}, { baseUrl: '/x/sub' }),
];

const ANSWERS: readonly Habit[] = [
  works('`response.status(201).json(…)`', '/x/created', {}, { created: true }, 201),
  {
    name: '`response.json(sign(…))`',
    attempt: async (ask) => {
      const answer = await ask('/x/signed');
      expect(answer.headers.get('x-enclave-key')).toMatch(/^[0-9a-f]{64}$/);
      expect(answer.headers.get('content-type')).toBe('application/json; charset=utf-8');
      const signed = await (await ask('/process_data', call('a'))).json();
      expect(await answer.json()).toEqual(signed);
      expect(await (await ask('/x/signed-within')).json()).toEqual({ answer: signed });
    },
  },
  {
    name: '`response.send(buffer)`, `type(…)`, `cookie(…)`',
    attempt: async (ask) => {
      const answer = await ask('/x/bytes');
      expect([answer.headers.get('content-type'), (await answer.bytes()).length]).toEqual(['image/png', 3]);
      expect((await ask('/x/cookie')).headers.getSetCookie()).toEqual(['a=b; Path=/; HttpOnly']);
    },
  },
  {
    name: '`response.redirect(…)`',
    attempt: async (ask) => {
      const answer = await ask('/x/redirect', { redirect: 'manual' });
      expect([answer.status, answer.headers.get('location')]).toEqual([302, '/x/created']);
    },
  },
  {
    name: '`response.write(…)`, `pipe(response)`',
    attempt: async (ask) => expect(await (await ask('/x/stream')).text()).toBe('one,two'),
  },
  {
    name: 'server-sent events, long polling',
    attempt: async (ask) => {
      const answer = await ask('/x/events');
      expect(answer.headers.get('content-type')).toBe('text/event-stream; charset=utf-8');
      await expect(answer.text()).rejects.toThrow('terminated');
    },
  },
  refused(
    '`response.format(…)` without an accepted type',
    '/x/format',
    { headers: { accept: 'image/png' } },
    406,
    'REQUEST_REFUSED',
  ),
  {
    name: '`response.sendFile(…)`, `download(…)`',
    attempt: async (ask) => {
      expect(await (await ask('/x/file')).text()).toBe('a file');
      const { headers } = await ask('/x/download');
      expect(headers.get('content-disposition')).toBe('attachment; filename=b.txt');
    },
  },
  refused('`response.sendFile(…)` of a missing file', '/x/no-file', {}, 404, 'NOT_FOUND'),
  {
    name: '`express.static(…)`, with ranges',
    attempt: async (ask) => {
      expect(await (await ask('/x/static/a.txt')).text()).toBe('a file');
      const part = await ask('/x/static/a.txt', { headers: { range: 'bytes=2-3' } });
      expect([part.status, await part.text()]).toEqual([206, 'fi']);
      const beyond = await ask('/x/static/a.txt', { headers: { range: 'bytes=100-' } });
      expect(await statusAndJson(Promise.resolve(beyond))).toMatchObject([416, { code: 'REQUEST_REFUSED' }]);
      expect(beyond.headers.get('content-range')).toBe('bytes */6');
      expect(beyond.headers.get('etag')).toBeNull();
    },
  },
  refused(
    '`If-Match` that fails',
    '/x/static/a.txt',
    { headers: { 'if-match': '"b"' } },
    412,
    'REQUEST_REFUSED',
  ),
  refused('`response.render(…)`', '/x/view', {}, 500, 'INTERNAL'),
];

const ERRORS: readonly Habit[] = [
  works(
    '`throw createError(403, …)`',
    '/x/forbidden',
    {},
    {
      error: 'only members may read this',
      code: 'REQUEST_REFUSED',
    },
    403,
  ),
  refused('an error with `expose: false`', '/x/conflict', {}, 409, 'REQUEST_REFUSED'),
  refused('`next(createError(503))`', '/x/unavailable', {}, 500, 'INTERNAL'),
  refused('`throw new Error(…)`', '/x/bug', {}, 500, 'INTERNAL'),
  works('an error handler of the router', '/x/handled', {}, { handled: true }, 422),
  refused('a path with `%zz`', '/x/items/%zz', {}, 400, 'INVALID_INPUT'),
];

const BEFORE_AND_PROTOCOLS: readonly Habit[] = [
  {
    name: '`before: [helmet(), morgan(…)]`',
    attempt: async (ask) => {
      const answer = await ask('/process_data', call('a'));
      expect([answer.status, answer.headers.get('x-frame-options')]).toEqual([200, 'SAMEORIGIN']);
      await expect
        .poll(async () => await (await ask('/x/morgan')).json())
        .toContain('POST /process_data 200\n');
    },
  },
  {
    name: '`before: [rateLimit(…)]`',
    attempt: async (ask) => {
      const limited = () => ask('/process_data', call('a', { 'x-before': 'limit' }));
      expect((await limited()).status).toBe(200);
      expect(await statusAndJson(limited())).toEqual([429, { error: 'too many', code: 'LIMIT' }]);
    },
  },
  {
    name: '`before` with an `AsyncLocalStorage`, `response.locals` or properties of the request',
    attempt: async (ask) => {
      const headers = { 'x-tenant': 'a' };
      expect(await (await ask('/tenant', { headers })).json()).toEqual({ tenant: 'a' });
      expect(await (await ask('/x/context', { headers })).json()).toEqual({
        store: 'a',
        tenant: 'a',
        local: 'a',
      });
    },
  },
  refused(
    '`before: [express.json()]`',
    '/process_data',
    call('a', { 'x-before': 'json' }),
    500,
    'BODY_TAKEN',
  ),
  {
    name: 'a preflight for PUT or DELETE',
    attempt: async (ask) => {
      const headers = { origin: ORIGIN, 'access-control-request-method': 'PUT' };
      const answer = await ask('/x/thing', { method: 'OPTIONS', headers });
      expect([answer.status, answer.headers.get('access-control-allow-methods')]).toEqual([
        204,
        'GET, PUT, HEAD',
      ]);
    },
  },
  {
    name: 'a WebSocket',
    attempt: async (_ask, url) => {
      const socket = connect(Number(new URL(url).port), '127.0.0.1');
      socket.write('GET /x/created HTTP/1.1\r\nHost: x\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n');
      expect(String((await once(socket, 'data'))[0])).toMatch(/^HTTP\/1\.1 201 /);
      socket.destroy();
    },
  },
];

export const HABITS: readonly Habit[] = [
  ...BODIES,
  ...REQUESTS,
  ...ANSWERS,
  ...ERRORS,
  ...BEFORE_AND_PROTOCOLS,
];
