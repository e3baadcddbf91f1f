import * as v from 'valibot';
import { describe, expect, test } from 'vitest';
import {
  type AppContext,
  type Application,
  ApplicationMistake,
  ConfigError,
  defineApp,
  type Endpoint,
  type ErrorTable,
  endpoint,
  errorClass,
  processData,
  signedType,
  struct,
  text,
} from '../../../../src/server/index.ts';
import { FIXTURE_APPS, startServer } from '../support.ts';

describe('a second application', () => {
  const dice = () => startServer({ apps: FIXTURE_APPS, env: { APP: 'dice' } });

  test('answers /process_data with its own schema and its own signed type', async () => {
    const { post } = await dice();
    const answer = await post('/process_data', { payload: { sides: 6 } });
    expect(await answer.json()).toMatchObject({ response: { intent: 1, data: { sides: 6 } } });
    expect((await post('/process_data', { payload: { location: 'Paris' } })).status).toBe(400);
  });

  test('has further endpoints, which sign with another intent', async () => {
    const { get, post } = await dice();
    expect(await (await get('/rules')).json()).toEqual({ sides: { from: 2, to: 255 } });
    expect(await (await post('/draw', { picked: '9007199254740993' })).json()).toMatchObject({
      response: {
        intent: 2,
        timestamp_ms: 5,
        data: { note: '🎲', picked: '9007199254740993', all: [1, 255] },
      },
    });
    expect((await get('/draw')).status).toBe(405);
    expect((await post('/draw', { picked: '1', more: 1 })).status).toBe(400);
  });

  test('does not need the secrets and endpoints of weather', async () => {
    const { get } = await startServer({ apps: FIXTURE_APPS, env: { APP: 'dice', API_KEY: '' } });
    expect(await (await get('/health_check')).json()).toMatchObject({ endpoints_status: {} });
    expect((await get('/readyz')).status).toBe(200);
  });
});

describe('an application', () => {
  const start = (create: (context: AppContext) => Application) =>
    startServer({ module: { signs: [], create }, manifest: { endpoints: [], secrets: [] } });
  const handle = async () => ({});
  const schema = v.strictObject({});
  const post = { method: 'POST', path: '/x', handle } as const;

  test.each([
    ['/health_check', /defined twice/],
    ['/with/:parameter', /not a fixed path/],
    ['relative', /not a fixed path/],
    ['/', /defined twice/],
  ])('does not start with an endpoint at %s', async (path, message) => {
    const endpoints = () => [endpoint({ method: 'GET', path, handle })];
    await expect(start(() => ({ endpoints: endpoints() }))).rejects.toThrow(message);
  });

  test('does not start with two endpoints of one path', async () => {
    const data = { payload: schema, handle: async () => expect.fail() };
    const endpoints = [
      processData(data),
      endpoint({ method: 'POST', path: '/process_data', body: schema, handle }),
    ];
    await expect(start(() => ({ endpoints }))).rejects.toThrow(/process_data is defined twice/);
  });

  // The compiler refuses these endpoints, but Node strips types without checking.
  test.each<[string, RegExp, () => Endpoint]>([
    // @ts-expect-error
    ['a GET with a body', /have a body/, () => endpoint({ method: 'GET', path: '/', body: schema, handle })],
    // @ts-expect-error
    ['a POST with a query', /have a query/, () => endpoint({ ...post, query: schema, body: schema })],
    // @ts-expect-error
    ['a POST without a schema', /needs a schema/, () => endpoint(post)],
    // @ts-expect-error
    ['a PUT', /method GET or POST/, () => endpoint({ ...post, method: 'PUT', body: schema })],
    // @ts-expect-error
    ['a GET without a path', /undefined is not a fixed path/, () => endpoint({ method: 'GET', handle })],
    // @ts-expect-error
    ['a plain object', /made by endpoint\(\)/, () => ({ ...post, body: schema })],
  ])('does not start with an endpoint that is %s', async (_name, message, make) => {
    const started = start(() => ({ endpoints: [make()] }));
    await expect(started).rejects.toThrow(ConfigError);
    await expect(started).rejects.toThrow(message);
  });

  test('does not start if it uses an endpoint or a secret that app.yaml lacks', async () => {
    await expect(start(({ upstream }) => Object(upstream('evil.example')))).rejects.toThrow(
      new ApplicationMistake('evil.example is not among the endpoints of app.yaml'),
    );
    await expect(start(({ secret }) => Object(secret('API_KEY')))).rejects.toThrow(
      new ApplicationMistake('API_KEY is not among the secrets of app.yaml'),
    );
  });

  test('has no /process_data without a handler for it', async () => {
    const { post } = await start(() => ({ endpoints: [endpoint({ method: 'GET', path: '/only', handle })] }));
    expect((await post('/process_data', { payload: {} })).status).toBe(404);
  });
});

describe('the query of a GET', () => {
  const start = () =>
    startServer({
      module: {
        signs: [],
        create: () => ({
          endpoints: [
            endpoint({
              method: 'GET',
              path: '/squares',
              query: v.strictObject({
                of: v.pipe(v.string(), v.regex(/^[0-9]{1,3}$/, 'must be an integer'), v.toNumber()),
                unit: v.optional(v.string(), 'm'),
              }),
              handle: async ({ of, unit }) => ({ square: of ** 2, unit }),
            }),
            endpoint({ method: 'GET', path: '/plain', handle: async (input) => ({ input: input ?? null }) }),
          ],
        }),
      },
      manifest: { endpoints: [], secrets: [] },
    });

  test('reaches the handler as its schema describes it', async () => {
    const { get } = await start();
    expect(await (await get('/squares?of=12')).json()).toEqual({ square: 144, unit: 'm' });
    expect(await (await get('/squares?unit=km%20&of=3')).json()).toEqual({ square: 9, unit: 'km ' });
  });

  test.each([
    ['', 'of is missing'],
    ['?of=x', 'of must be an integer'],
    ['?of=1&of=2', 'of must be a'],
    ['?of=1&more=2', 'more is not a'],
    ['?of=1&__proto__=2', '__proto__ is not a'],
  ])('that the schema does not accept is refused, naming the parameter: %s', async (query, message) => {
    const answer = await (await start()).get(`/squares${query}`);
    expect(answer.status).toBe(400);
    const { code, error } = await answer.json();
    expect(code).toBe('INVALID_INPUT');
    expect(error).toContain(message);
  });

  test('is checked up to its last parameter', async () => {
    const { get } = await startServer({ apps: FIXTURE_APPS, env: { APP: 'dice' } });
    const notes = 'note=&'.repeat(2000);
    const { note } = await (await get(`/search?${notes}`)).json();
    expect(note).toHaveLength(2000);
    expect((await get(`/search?${notes}more=1`)).status).toBe(400);
  });

  test('is ignored if there is no schema', async () => {
    const { get } = await start();
    expect(await (await get('/plain?of=12')).json()).toEqual({ input: null });
  });
});

describe('the address of a caller', () => {
  test('is passed to /process_data as to any endpoint', async () => {
    const Caller = signedType(3, struct('Seen', { address: text }));
    const module = defineApp({
      signs: [Caller],
      create: ({ sign }) => ({
        endpoints: [
          processData({
            payload: v.strictObject({}),
            handle: async (_, { address = 'unknown' }) => sign(Caller, 1n, { address }),
          }),
        ],
      }),
    });
    const { post } = await startServer({
      env: { TRUSTED_PROXIES: '1' },
      module,
      manifest: { endpoints: [], secrets: [] },
    });
    const headers = { 'content-type': 'application/json', 'x-forwarded-for': '198.51.100.7' };
    const answer = await post('/process_data', { payload: {} }, { headers });
    expect(await answer.json()).toMatchObject({ response: { data: { address: '198.51.100.7' } } });
  });

  async function readAddress(trustedProxies: number, forwarded?: string) {
    const create = () => ({
      endpoints: [
        endpoint({ method: 'GET', path: '/seen', handle: async (_, { address }) => ({ address }) }),
      ],
    });
    const server = await startServer({
      env: { TRUSTED_PROXIES: String(trustedProxies) },
      module: { signs: [], create },
      manifest: { endpoints: [], secrets: [] },
    });
    const headers = forwarded === undefined ? {} : { 'x-forwarded-for': forwarded };
    return (await (await server.get('/seen', { headers })).json()).address;
  }

  test('is unknown without trusted proxies, with any headers', async () => {
    expect(await readAddress(0)).toBeUndefined();
    expect(await readAddress(0, '192.0.2.1')).toBeUndefined();
  });

  test('is the one that the outermost trusted proxy saw, not the one that the caller sent', async () => {
    expect(await readAddress(1, '192.0.2.66, 198.51.100.7')).toBe('198.51.100.7');
    expect(await readAddress(2, '192.0.2.66, 198.51.100.7, 10.0.0.1')).toBe('198.51.100.7');
  });
});

describe("an application's errors", () => {
  const ERRORS = {
    UNKNOWN: { status: 401, meaning: 'the caller is unknown' },
    BARRED: { status: 403, meaning: 'the caller may not have this' },
    OFTEN: { status: 429, meaning: 'the caller has asked too often' },
    BROKEN: { status: 502, meaning: 'an upstream failed' },
  } as const satisfies ErrorTable;
  class DiceError extends errorClass(ERRORS) {}

  async function fail(error: Error) {
    const handle = async () => {
      throw error;
    };
    const { get, printed } = await startServer({
      module: {
        signs: [],
        create: () => ({ endpoints: [endpoint({ method: 'GET', path: '/fails', handle })] }),
      },
      manifest: { endpoints: [], secrets: [] },
    });
    return { response: await get('/fails'), printed };
  }

  test.each([
    [new DiceError('UNKNOWN', 'who?'), 401, 'www-authenticate', 'Bearer error="invalid_token"'],
    [new DiceError('BARRED', 'not you'), 403, 'retry-after', null],
    [new DiceError('OFTEN', 'slower', { retryAfterSeconds: 7 }), 429, 'retry-after', '7'],
  ])('are answered with the status of their table: %o', async (error, status, header, value) => {
    const { response } = await fail(error);
    expect(response.status).toBe(status);
    expect(response.headers.get(header)).toBe(value);
    expect(await response.json()).toEqual({ error: error.message, code: error.code });
  });

  test('have a class and codes that the compiler checks', () => {
    const error = new DiceError('BARRED', 'not you');
    expect(error).toMatchObject({ name: 'DiceError', code: 'BARRED', status: 403 });
    // @ts-expect-error no such code
    expect(() => new DiceError('BARED', 'not you')).toThrow(TypeError);
    // @ts-expect-error no such code
    expect(error.code === 'BARED').toBe(false);
  });

  test('keep their cause: its code reaches the log, its message neither the log nor the caller', async () => {
    const cause = Object.assign(new Error('GET https://h/?key=hunter2'), { code: 'ECONNREFUSED' });
    const { response, printed } = await fail(new DiceError('BROKEN', 'no answer', { cause }));
    expect(await response.text()).not.toMatch(/hunter2|ECONNREFUSED/);
    expect(printed()).toMatch(/"code":"BROKEN".*"cause":\{"type":"Error","code":"ECONNREFUSED"\}/);
    expect(printed()).not.toMatch(/hunter2/);
  });
});
