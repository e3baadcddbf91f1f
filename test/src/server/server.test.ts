import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { constants, mkdtempSync, openSync } from 'node:fs';
import { request, Server } from 'node:http';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ReadableStream } from 'node:stream/web';
import { ed25519 } from '@noble/curves/ed25519.js';
import { decode, encode } from 'cborg';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { WeatherResponse } from '../../../src/apps/weather/types.ts';
import { decodeAttestation } from '../../../src/library/attestation/index.ts';
import { decodeUserData } from '../../../src/library/sealing/user_data.ts';
import { u64 } from '../../../src/library/wire/bcs.ts';
import { signedType } from '../../../src/library/wire/intent.ts';
import { struct } from '../../../src/library/wire/struct.ts';
import { endpoint } from '../../../src/server/application/app.ts';
import { EphemeralKey } from '../../../src/server/keys/key.ts';
import { Nsm } from '../../../src/server/nsm/nsm.ts';
import type { NsmTransport } from '../../../src/server/nsm/transport.ts';
import { SealingKey } from '../../../src/server/sealing/sealing_key.ts';
import { EmulatedNsm } from '../../../src/testing/emulated_nsm.ts';
import { FIXTURE_APPS, startServer, startWeather } from './support.ts';

const hex = (bytes: Uint8Array) => Buffer.from(bytes).toString('hex');

describe('POST /process_data', () => {
  const NO_PLACE = "payload.location must name a place: auto:ip would be the server's location";

  test('answers in the format of the reference implementation, signed by the key of /health_check', async () => {
    const { server, ask } = await startWeather();
    const answer = await ask('San Francisco');
    expect(answer.status).toBe(200);
    expect(answer.headers.get('content-type')).toBe('application/json; charset=utf-8');
    const { response, signature } = (await answer.json()) as {
      response: { intent: number; timestamp_ms: number; data: { location: string; temperature: number } };
      signature: string;
    };
    expect(response).toEqual({
      intent: 0,
      timestamp_ms: expect.any(Number),
      data: { location: 'San Francisco', temperature: expect.any(Number) },
    });
    const { pk } = (await (await server.get('/health_check')).json()) as { pk: string };
    expect(pk).toBe(hex(server.publicKey));
    const { intent, timestamp_ms, data } = response;
    const bytes = WeatherResponse.message.serialize({ intent, timestamp_ms, payload: data }).toBytes();
    expect(ed25519.verify(Buffer.from(signature, 'hex'), bytes, Buffer.from(pk, 'hex'))).toBe(true);
    bytes[0] = 1;
    expect(ed25519.verify(Buffer.from(signature, 'hex'), bytes, Buffer.from(pk, 'hex'))).toBe(false);
  });

  test.each([
    [{}, 'payload is missing'],
    [[], 'payload is missing'],
    [{ payload: null }, 'payload must be an object'],
    [{ payload: {} }, 'payload.location is missing'],
    [{ payload: { location: 5 } }, 'payload.location must be a string'],
    [{ payload: { location: '' } }, 'payload.location must name a place'],
    [{ payload: { location: ' \n' } }, 'payload.location must name a place'],
    [{ payload: { location: 'x'.repeat(257) } }, 'payload.location must be at most 256 bytes of UTF-8'],
    [{ payload: { location: '🌦'.repeat(65) } }, 'payload.location must be at most 256 bytes of UTF-8'],
    [{ payload: { location: 'auto:ip' } }, NO_PLACE],
    [{ payload: { location: 'AUTO:IP' } }, NO_PLACE],
    [{ payload: { location: ' Auto : Ip\t' } }, NO_PLACE],
    [
      { payload: { location: 'Paris', unit: 'F' } },
      'payload.unit is not a property that this endpoint accepts',
    ],
    [
      { payload: { location: 'Paris' }, payloads: 1 },
      'payloads is not a property that this endpoint accepts',
    ],
    [
      '{"payload":{"location":"a\\ud800"}}',
      'payload.location must be well-formed Unicode (no lone surrogate)',
    ],
    [
      '{"payload":{"location":"Paris"},"__proto__":{}}',
      '__proto__ is not a property that this endpoint accepts',
    ],
  ])('rejects %o with 400 and says what to change', async (body, error) => {
    const { server, weather } = await startWeather();
    const answer = await server.post('/process_data', body);
    expect(answer.status).toBe(400);
    expect(await answer.json()).toEqual({ error, code: 'INVALID_INPUT' });
    expect(weather.asked).toEqual([]);
  });

  test('accepts a location of exactly 256 bytes and returns it unchanged', async () => {
    const { ask } = await startWeather();
    const location = `e\u0301\0"\\&#%+\u2028${'🌦'.repeat(60)}é`;
    const answer = (await (await ask(location)).json()) as { response: { data: { location: string } } };
    expect(answer.response.data.location).toBe(location);
    expect((await ask('🌦'.repeat(64))).status).toBe(200);
  });
});

describe('the server without its secrets', () => {
  /** Makes a pipe that has no writer. */
  const unready = () => {
    const fifo = join(mkdtempSync(join(tmpdir(), 'sui-enclave-')), 'secrets');
    execFileSync('mkfifo', [fifo]);
    const fd = openSync(fifo, constants.O_RDWR | constants.O_NONBLOCK);
    return startServer({ env: { API_KEY: '', SECRETS_FD: String(fd) }, nsm: new EmulatedNsm() });
  };

  test('serves key, attestation and health; its other endpoints answer 503 and name the secrets', async () => {
    const { get, post, publicKey } = await unready();
    expect((await get('/')).status).toBe(200);
    expect((await get('/livez')).status).toBe(200);
    expect((await get('/get_attestation')).status).toBe(200);
    expect(await (await get('/health_check')).json()).toMatchObject({ pk: hex(publicKey) });
    const expectedError = {
      error: expect.stringContaining('API_KEY'),
      code: 'SECRETS_MISSING',
      missing: ['API_KEY'],
    };
    for (const answer of [
      await get('/readyz'),
      await post('/process_data', { payload: { location: 'Paris' } }),
    ]) {
      expect(answer.status).toBe(503);
      expect(await answer.json()).toEqual(expectedError);
    }
  });

  test('does not start if SECRETS_FD is not an inherited pipe', async () => {
    const file = String(openSync('/dev/null', 'r'));
    for (const fd of ['999', file]) {
      await expect(startServer({ env: { SECRETS_FD: fd } })).rejects.toThrow(/^SECRETS_FD must be a pipe/);
    }
  });

  test('does not start if the secrets must come from the environment', async () => {
    await expect(startServer({ env: { API_KEY: '' } })).rejects.toThrow(/^API_KEY must be set/);
  });
});

describe('GET', () => {
  test('/ answers Pong!', async () => {
    const { get } = await startWeather().then(({ server }) => server);
    const answer = await get('/');
    expect(answer.headers.get('content-type')).toBe('text/plain; charset=utf-8');
    expect(await answer.text()).toBe('Pong!');
  });

  test('/livez and /readyz report that the server is live and ready, with its warnings', async () => {
    const { get } = await startWeather().then(({ server }) => server);
    expect(await (await get('/livez')).json()).toEqual({ live: true });
    expect(await (await get('/readyz')).json()).toEqual({
      ready: true,
      warnings: ['no document of the NSM from the last 10 minutes confirms the clock'],
    });
  });

  test('/livez also answers HEAD, without a body', async () => {
    const { get } = await startWeather().then(({ server }) => server);
    const answer = await get('/livez', { method: 'HEAD' });
    expect(answer.status).toBe(200);
    expect(answer.headers.get('content-length')).toBe('13');
    expect(await answer.text()).toBe('');
  });
});

describe('GET /get_attestation', () => {
  const readPayload = async (answer: Response) => {
    const { attestation } = (await answer.json()) as { attestation: string };
    const [, , payload] = decode(Buffer.from(attestation, 'hex'), {
      tags: { 18: (inner: () => unknown) => inner() } as never,
    });
    return decode(payload, { useMaps: true, allowIndefinite: true }) as Map<string, Uint8Array | null>;
  };

  test('puts the raw public key into the document, and no nonce by default', async () => {
    const { get, publicKey } = await startServer({ nsm: new EmulatedNsm() });
    const payload = await readPayload(await get('/get_attestation'));
    expect(hex(payload.get('public_key') as Uint8Array)).toBe(hex(publicKey));
    expect(payload.get('nonce') ?? null).toBeNull();
    expect(decodeUserData(payload.get('user_data') as Uint8Array)).toMatchObject({
      application: 'weather',
      version: 'development',
    });
  });

  test.each(['00', 'DEADbeef', 'ab'.repeat(512)])('puts the nonce %s into the document', async (nonce) => {
    const { get } = await startServer({ nsm: new EmulatedNsm() });
    const payload = await readPayload(await get(`/get_attestation?nonce=${nonce}`));
    expect(hex(payload.get('nonce') as Uint8Array)).toBe(nonce.toLowerCase());
  });

  test.each([
    ['nonce=', 'nonce must be hex of 1 to 512 bytes'],
    ['nonce=abc', 'nonce must be hex of 1 to 512 bytes'],
    ['nonce=0x00', 'nonce must be hex of 1 to 512 bytes'],
    ['nonce=zz', 'nonce must be hex of 1 to 512 bytes'],
    [`nonce=${'ab'.repeat(513)}`, 'nonce must be hex of 1 to 512 bytes'],
    ['nonce=00&nonce=01', 'nonce must be given once'],
    ['nonse=00', 'nonse is not a property that this endpoint accepts'],
  ])('refuses ?%s', async (query, error) => {
    const { get } = await startServer({ nsm: new EmulatedNsm() });
    const answer = await get(`/get_attestation?${query}`);
    expect(answer.status).toBe(400);
    expect(await answer.json()).toEqual({ error, code: 'INVALID_INPUT' });
  });

  test('answers 503 outside an enclave, saying that this is expected locally', async () => {
    const { get } = await startServer({ env: { NSM_DEVICE: '/nonexistent/nsm' } });
    const answer = await get('/get_attestation');
    expect(answer.status).toBe(503);
    expect(await answer.json()).toEqual({
      error: expect.stringMatching(/NSM driver is missing.*expected outside a Nitro Enclave/),
      code: 'NSM_UNAVAILABLE',
    });
  });
});

describe('the NSM at boot', () => {
  const broken: NsmTransport = {
    transact: async () => Uint8Array.of(0xff),
    close() {},
  };

  test('stops the start if it is required and missing', async () => {
    const start = startServer({ env: { NSM_REQUIRED: 'true', NSM_DEVICE: '/nonexistent/nsm' } });
    await expect(start).rejects.toMatchObject({ code: 'NSM_UNAVAILABLE' });
  });

  test('stops the start if it answers nonsense, required or not', async () => {
    await expect(startServer({ nsm: broken })).rejects.toMatchObject({ code: 'NSM_PROTOCOL' });
    await expect(startServer({ nsm: broken, env: { NSM_REQUIRED: 'true' } })).rejects.toMatchObject({
      code: 'NSM_PROTOCOL',
    });
  });

  test('stops the start if it is required and gives entropy but no document', async () => {
    const real = new EmulatedNsm();
    const mute: NsmTransport = {
      transact: (request) =>
        request[0] === 0xa1 ? Promise.resolve(Uint8Array.of(0xff)) : real.transact(request),
      close() {},
    };
    await expect(startServer({ nsm: mute, env: { NSM_REQUIRED: 'true' } })).rejects.toMatchObject({
      code: 'NSM_PROTOCOL',
    });
    const { printed } = await startServer({ nsm: mute });
    expect(printed()).toMatch(/"entropy":\["kernel","nsm"\]/);
  });

  test('contributes entropy to the key if present', async () => {
    const { printed } = await startServer({ nsm: new EmulatedNsm(), env: { NSM_REQUIRED: 'true' } });
    expect(printed()).toMatch(/"entropy":\["kernel","nsm"\]/);
  });

  test('contributes the same bytes to both keys, and they are wiped', async () => {
    const random = new Uint8Array(256).fill(7);
    vi.spyOn(Nsm.prototype, 'getRandom').mockResolvedValueOnce(random);
    const keyArguments: (number | undefined)[] = [];
    for (const Key of [EphemeralKey, SealingKey]) {
      const { create } = Key as { create(bytes?: Uint8Array): unknown };
      vi.spyOn(Key as { create: typeof create }, 'create').mockImplementation((bytes) => {
        keyArguments.push(bytes?.[0], bytes?.at(-1));
        return create.call(Key, bytes);
      });
    }
    onTestFinished(() => void vi.restoreAllMocks());
    await startServer({ nsm: new EmulatedNsm() });
    expect(keyArguments).toEqual([7, 7, 7, 7]);
    expect(random.every((byte) => byte === 0)).toBe(true);
  });
});

test('boot() takes the seed of the signing key as an option; the sealing key is new nevertheless', async () => {
  const signingSeed = Uint8Array.from({ length: 32 }, (_, at) => at);
  const start = async () => {
    const { publicKey, get } = await startServer({ nsm: new EmulatedNsm(), signingSeed });
    const { attestation } = (await (await get('/get_attestation')).json()) as { attestation: string };
    const document = decodeAttestation(Uint8Array.from(Buffer.from(attestation, 'hex')));
    expect(document.publicKey).toEqual(publicKey);
    return { publicKey, sealingKey: decodeUserData(document.userData as Uint8Array).sealingKey };
  };
  const [first, second] = [await start(), await start()];
  expect(first.publicKey).toEqual(ed25519.getPublicKey(signingSeed));
  expect(second.publicKey).toEqual(first.publicKey);
  expect(second.sealingKey).not.toEqual(first.sealingKey);
});

test('the NSM is closed with the server, and not before', async () => {
  const real = new EmulatedNsm();
  let closed = 0;
  const nsm: NsmTransport = {
    transact: (request) => real.transact(request),
    close() {
      closed++;
    },
  };
  const { get, close } = await startServer({ nsm });
  expect((await get('/get_attestation')).status).toBe(200);
  expect(closed).toBe(0);
  await close();
  expect(closed).toBe(1);
});

describe('GET /boot', () => {
  test('returns the PCR from the NSM and the current state of the clock', async () => {
    const nsm = new EmulatedNsm();
    const { url } = await startServer({ nsm, version: '1.2.3' });
    expect(await (await fetch(`${url}/boot`)).json()).toEqual({
      event: 'boot',
      version: '1.2.3',
      app: 'weather',
      pcr0: nsm.pcrsFile().split(' ')[0],
      debug: false,
      entropy: ['kernel', 'nsm'],
      memory_mib: expect.any(Number),
      clock: { source: 'kernel' },
      last_end: null,
    });
  });

  test('recognises a debug enclave by its zero PCR', async () => {
    const real = new EmulatedNsm();
    const debug: NsmTransport = {
      transact: (request) =>
        Buffer.from(request).includes('DescribePCR')
          ? Promise.resolve(encode({ DescribePCR: { lock: true, data: new Uint8Array(48) } }))
          : real.transact(request),
      close() {},
    };
    const { url } = await startServer({ nsm: debug });
    expect(await (await fetch(`${url}/boot`)).json()).toMatchObject({ debug: true, pcr0: '0'.repeat(96) });
  });
});

describe('GET /health_check', () => {
  test('reports whether each endpoint answers, with any status', async () => {
    const { server, weather } = await startWeather();
    const status = async () =>
      ((await (await server.get('/health_check')).json()) as { endpoints_status: object }).endpoints_status;
    expect(await status()).toEqual({ 'api.weatherapi.com': true });
    await weather.close();
    expect(await status()).toEqual({ 'api.weatherapi.com': true });
  });

  test('reports an unreachable endpoint', async () => {
    const { get } = await startServer({ origins: { 'api.weatherapi.com': 'http://127.0.0.1:1' } });
    expect(await (await get('/health_check')).json()).toMatchObject({
      endpoints_status: { 'api.weatherapi.com': false },
    });
  });

  test('is not an amplifier: 50 callers share one probe', async () => {
    const { server, weather } = await startWeather();
    await Promise.all(Array.from({ length: 50 }, () => server.get('/health_check')));
    await server.get('/health_check');
    expect(weather.connections()).toBe(1);
  });
});

describe('an error is JSON with a stable code:', () => {
  const dice = () => startServer({ apps: FIXTURE_APPS, env: { APP: 'dice' } });

  test('an unknown path is 404', async () => {
    const { get, post } = await dice();
    for (const answer of [
      await get('/nothing'),
      await get('/livez/'),
      await get('/LIVEZ'),
      await post('/x', {}),
    ]) {
      expect(answer.status).toBe(404);
      expect(await answer.json()).toEqual({ error: 'no such endpoint', code: 'NOT_FOUND' });
    }
  });

  test.each([
    ['DELETE', '/process_data', 'POST'],
    ['GET', '/process_data', 'POST'],
    ['POST', '/health_check', 'GET, HEAD'],
    ['PUT', '/', 'GET, HEAD'],
    ['POST', '/rules', 'GET, HEAD'],
  ])('the request %s %s is 405, and names the supported methods', async (method, path, allow) => {
    const { get } = await dice();
    const answer = await get(path, { method });
    expect(answer.status).toBe(405);
    expect(answer.headers.get('allow')).toBe(allow);
    expect(await answer.json()).toEqual({
      error: `this endpoint supports ${allow}`,
      code: 'METHOD_NOT_ALLOWED',
    });
  });

  test.each([
    ['{"payload":', 'MALFORMED_JSON'],
    ['hello', 'MALFORMED_JSON'],
    ['{"payload":{"sides":6,"\\"":1}}', 'MALFORMED_JSON'],
    ['"text"', 'INVALID_INPUT'],
    ['null', 'INVALID_INPUT'],
    ['', 'MALFORMED_JSON'],
    ['{"payload":{"sides":6}}{}', 'MALFORMED_JSON'],
    ['['.repeat(50_000), 'MALFORMED_JSON'],
    [Buffer.from([0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d]), 'MALFORMED_JSON'],
  ])('the body %o is 400', async (body, code) => {
    const { post } = await dice();
    const answer = await post('/process_data', body);
    expect(answer.status).toBe(400);
    expect(await answer.json()).toMatchObject({ code });
  });

  test('a missing body is 400', async () => {
    const { get } = await dice();
    const headers = { 'content-type': 'application/json' };
    const answer = await get('/process_data', { method: 'POST', headers });
    expect(answer.status).toBe(400);
  });

  test('a path that is not percent-encoded UTF-8 is 404', async () => {
    const { get } = await dice();
    expect((await get('/%ff')).status).toBe(404);
  });

  test.each([
    [{ 'content-type': 'text/plain' }],
    [{ 'content-type': 'application/x-www-form-urlencoded' }],
    [{ 'content-type': 'application/json; charset=utf-16' }],
    [{ 'content-type': 'application/json; charset=latin1' }],
    [{ 'content-type': 'application/json', 'content-encoding': 'gzip' }],
  ])('a request with %o is 415', async (headers) => {
    const { post } = await dice();
    const answer = await post('/process_data', '{"payload":{"sides":6}}', { headers });
    expect(answer.status).toBe(415);
    expect(await answer.json()).toMatchObject({ code: 'UNSUPPORTED_MEDIA_TYPE' });
  });

  test.each([
    [{ 'content-type': 'application/json;' }],
    [{ 'content-type': 'application/json; charset=UTF-8' }],
    [{ 'content-type': 'application/json', 'content-encoding': 'identity' }],
  ])('a request with %o is 200', async (headers) => {
    const { post } = await dice();
    expect((await post('/process_data', '{"payload":{"sides":6}}', { headers })).status).toBe(200);
  });

  test('a body is 413 one byte over the limit, but not at the limit', async () => {
    const { post } = await startServer({
      apps: FIXTURE_APPS,
      env: { APP: 'dice', BODY_LIMIT_BYTES: '1024' },
    });
    const body = (bytes: number) => '{"payload":{"sides":6}}'.padEnd(bytes);
    expect((await post('/process_data', body(1024))).status).toBe(200);
    const answer = await post('/process_data', body(1025));
    expect(answer.status).toBe(413);
    expect(await answer.json()).toEqual({
      error: 'the body is larger than 1024 bytes',
      code: 'BODY_TOO_LARGE',
    });
  });

  test('a body without Content-Length is 413 at the same limit', async () => {
    const { post } = await startServer({
      apps: FIXTURE_APPS,
      env: { APP: 'dice', BODY_LIMIT_BYTES: '1024' },
    });
    const send = (bytes: number) => {
      const text = '{"payload":{"sides":6}}'.padEnd(bytes);
      const body = ReadableStream.from([Buffer.from(text.slice(0, 1000)), Buffer.from(text.slice(1000))]);
      return post('/process_data', '', { body, duplex: 'half' } as unknown as RequestInit);
    };
    expect((await send(1024)).status).toBe(200);
    const answer = await send(1025);
    expect(answer.status).toBe(413);
    expect(await answer.json()).toMatchObject({ code: 'BODY_TOO_LARGE' });
  });

  test('an unexpected error is 500, and its message reaches neither the caller nor the log', async () => {
    const { get, printed } = await dice();
    const answer = await get('/crash');
    expect(answer.status).toBe(500);
    expect(await answer.json()).toEqual({
      error: 'an internal error; see the log',
      code: 'INTERNAL',
    });
    expect(printed()).toMatch(/dice\/app\.ts/);
    expect(printed()).not.toMatch(/hunter2/);
  });
});

test('a mistake in signed data is 500, and reaches the log but not the caller', async () => {
  const Count = signedType(7, struct('Count', { value: u64 }));
  const { get, printed } = await startServer({
    manifest: { endpoints: [], secrets: [] },
    module: {
      signs: [Count],
      create: ({ sign }) => ({
        endpoints: [
          endpoint({
            method: 'GET',
            path: '/count',
            handle: async () => sign(Count, 1n, { value: 1 as never }),
          }),
        ],
      }),
    },
  });
  const answer = await get('/count');
  expect(answer.status).toBe(500);
  expect(await answer.json()).toEqual({
    error: 'an internal error; see the log',
    code: 'INTERNAL',
  });
  expect(printed()).toMatch(
    /"code":"APPLICATION","message":"Count can't hold .* u64 as a bigint.*server\.test\.ts/,
  );
});

describe('a request', () => {
  test('has a generated id; the log contains this id and the route, and no other part of the request', async () => {
    const { server, ask } = await startWeather();
    const answer = await ask('Secretville');
    const id = answer.headers.get('x-request-id');
    expect(id).toMatch(/^[0-9a-f-]{36}$/);
    const otherAnswer = await server.get('/get_attestation?nonce=abcdef0123', {
      headers: { 'x-request-id': 'forged' },
    });
    expect(otherAnswer.headers.get('x-request-id')).not.toBe('forged');
    await server.get('/hunter2');
    expect(server.printed()).toMatch(
      new RegExp(`"request_id":"${id}".*"route":"/process_data","status":200`),
    );
    expect(server.printed()).not.toMatch(/Secretville|abcdef0123|hunter2/);
  });

  test('is allowed from pages of any origin, without credentials', async () => {
    const { server } = await startWeather();
    const preflight = await server.get('/process_data', {
      method: 'OPTIONS',
      headers: {
        origin: 'https://dapp.example',
        'access-control-request-method': 'POST',
        'access-control-request-headers': 'content-type,traceparent',
      },
    });
    expect(preflight.status).toBe(204);
    expect(preflight.headers.get('access-control-allow-origin')).toBe('*');
    expect(preflight.headers.get('access-control-allow-headers')).toBe('content-type,traceparent');
    expect(preflight.headers.get('access-control-allow-credentials')).toBeNull();
    const failed = await server.get('/nothing', { headers: { origin: 'https://dapp.example' } });
    expect(failed.headers.get('access-control-allow-origin')).toBe('*');
  });

  test('is allowed only from the origins of CORS_ORIGINS if set', async () => {
    const { server } = await startWeather({ env: { CORS_ORIGINS: 'https://a.example,https://b.example' } });
    const allowed = async (origin: string) =>
      (await server.get('/', { headers: { origin } })).headers.get('access-control-allow-origin');
    expect(await allowed('https://b.example')).toBe('https://b.example');
    expect(await allowed('https://c.example')).toBeNull();
    expect((await server.get('/')).headers.get('vary')).toBe('Origin');
    const preflight = async (origin: string) =>
      (
        await server.get('/process_data', {
          method: 'OPTIONS',
          headers: { origin, 'access-control-request-method': 'POST' },
        })
      ).headers;
    expect((await preflight('https://a.example')).get('access-control-allow-methods')).toBe(
      'GET, HEAD, POST',
    );
    for (const name of ['access-control-allow-origin', 'access-control-allow-methods']) {
      expect((await preflight('https://c.example')).get(name)).toBeNull();
    }
  });

  test('by OPTIONS is not allowed unless it is a preflight', async () => {
    const { server } = await startWeather();
    expect((await server.get('/process_data', { method: 'OPTIONS' })).status).toBe(405);
  });

  test('is not allowed from any page with CORS_ORIGINS=none', async () => {
    const { server } = await startWeather({ env: { CORS_ORIGINS: 'none' } });
    const { headers } = await server.get('/', { headers: { origin: 'https://a.example' } });
    expect(headers.get('access-control-allow-origin')).toBeNull();
  });
});

test('a request with an unknown Expect header is answered as without it', async () => {
  const { url } = await startServer();
  const asking = request(`${url}/livez`, { headers: { expect: 'more' } }).end();
  const [answer] = await once(asking, 'response');
  expect(answer.resume().statusCode).toBe(200);
});

test('a silent connection is closed after the sum of two request time-outs and the keep-alive time-out', async () => {
  // The time-out is a hundredth of the real one, so the connection closes before the server answers that no
  // request arrived.
  const spy = vi.spyOn(Server.prototype, 'setTimeout').mockImplementation(function (
    this: Server,
    ms?: unknown,
  ) {
    this.timeout = Number(ms) / 100;
    return this;
  });
  onTestFinished(() => spy.mockRestore());
  const { url } = await startServer({ env: { REQUEST_TIMEOUT_MS: '1000' } });
  expect(spy).toHaveBeenCalledExactlyOnceWith(32_000);
  const socket = connect(Number(new URL(url).port), '127.0.0.1');
  const onData = vi.fn();
  await once(socket.on('data', onData), 'close');
  expect(onData).not.toHaveBeenCalled();
});
