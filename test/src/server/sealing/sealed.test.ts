/** `POST /sealed` gives the answers that plain requests get, and only the caller can read them. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { decodeAttestation } from '../../../../src/library/attestation/index.ts';
import { SEALED_TYPE, type SealedCall, sealRequest } from '../../../../src/library/sealing/request.ts';
import type { Answer } from '../../../../src/library/sealing/response.ts';
import { decodeUserData } from '../../../../src/library/sealing/user_data.ts';
import { EmulatedNsm } from '../../../../src/testing/emulated_nsm.ts';
import { randomJson } from '../../library/random_json.ts';
import { FIXTURE_APPS, startServer, type TestServer } from '../support.ts';

const nsm = new EmulatedNsm();

async function startDice(env: Record<string, string> = {}): Promise<TestServer> {
  return await startServer({ apps: FIXTURE_APPS, env: { APP: 'dice', ...env }, nsm });
}

/** Returns the sealing key that a server attests. */
async function fetchSealingKey(server: TestServer): Promise<Uint8Array> {
  const { attestation } = (await (await server.get('/get_attestation')).json()) as { attestation: string };
  const { userData } = decodeAttestation(Uint8Array.from(Buffer.from(attestation, 'hex')));
  return decodeUserData(userData as Uint8Array).sealingKey;
}

function post(server: TestServer, message: Uint8Array, type = SEALED_TYPE): Promise<Response> {
  return server.post('/sealed', message, { headers: { 'content-type': type } });
}

async function ask(server: TestServer, call: SealedCall): Promise<Answer & { response: Response }> {
  const { message, openAnswer } = await sealRequest(await fetchSealingKey(server), call);
  const response = await post(server, message);
  expect([response.status, response.headers.get('content-type')]).toEqual([200, SEALED_TYPE]);
  return { ...(await openAnswer(new Uint8Array(await response.arrayBuffer()))), response };
}

const refusal = async (response: Response) => ({
  status: response.status,
  code: ((await response.json()) as { code: string }).code,
});

describe('a sealed request is answered like a plain one:', () => {
  test.each<SealedCall>([
    { method: 'POST', path: '/draw', body: { picked: '7' } },
    { method: 'POST', path: '/draw', body: { picked: 7 } },
    { method: 'POST', path: '/draw', body: {} },
    { method: 'POST', path: '/draw', body: null },
    { method: 'POST', path: '/draw', body: { picked: '7', more: 1 } },
    { method: 'POST', path: '/draw', body: { picked: 'x' } },
    { method: 'POST', path: '/process_data', body: { payload: { sides: 1 } } },
    { method: 'GET', path: '/rules' },
    { method: 'GET', path: '/rules?unknown=1' },
    { method: 'GET', path: '/search?note=a%20b+c' },
    { method: 'GET', path: '/search?note=a&note=b' },
    { method: 'GET', path: '/search?other=a' },
    { method: 'GET', path: '/search' },
    { method: 'POST', path: '/rules', body: {} },
    { method: 'GET', path: '/draw' },
    { method: 'GET', path: '/Rules' },
    { method: 'GET', path: '/rules/' },
    { method: 'GET', path: '/nowhere' },
    { method: 'GET', path: '/crash' },
    { method: 'GET', path: '/void' },
    { method: 'GET', path: '/search?__proto__=a&note=b' },
  ])('$method $path $body', async (call) => {
    const server = await startDice();
    const plain = await (call.method === 'GET' ? server.get(call.path) : server.post(call.path, call.body));
    const { code, ...answerBody } = (await plain.json()) as { code?: string };
    const sealed = await ask(server, call);
    expect(sealed.status).toBe(plain.status);
    const { code: sealedCode, ...sealedBody } = sealed.body as { code?: string };
    expect(sealedCode).toBe(code);
    // The messages about unsupported methods and paths differ.
    if (plain.status === 200 || code === 'INVALID_INPUT') expect(sealedBody).toEqual(answerBody);
  });

  test('for any body', async () => {
    const server = await startDice();
    await fc.assert(
      fc.asyncProperty(fc.oneof(randomJson, fc.record({ picked: fc.string() })), async (body) => {
        const plain = await server.post('/draw', JSON.stringify(body));
        const sealed = await ask(server, { method: 'POST', path: '/draw', body });
        expect([sealed.status, sealed.body]).toEqual([plain.status, await plain.json()]);
      }),
      { numRuns: 25 },
    );
  });

  test('under the same limit of concurrent requests', async () => {
    const server = await startDice({ MAX_CONCURRENT_REQUESTS: '1' });
    const key = await fetchSealingKey(server);
    const slow = server.get('/slow');
    await expect
      .poll(async () => {
        const { message, openAnswer } = await sealRequest(key, { method: 'GET', path: '/rules' });
        return await openAnswer(new Uint8Array(await (await post(server, message)).arrayBuffer()));
      })
      .toMatchObject({ status: 503, body: { code: 'OVERLOADED' }, retryAfterSeconds: 1 });
    expect((await slow).status).toBe(200);
  });

  test('within the same time limit, and the error after this limit is sealed', async () => {
    const server = await startDice({ REQUEST_TIMEOUT_MS: '1000' });
    const { status, body } = await ask(server, { method: 'GET', path: '/hang' });
    expect([status, body]).toMatchObject([504, { code: 'ANSWER_TIMEOUT' }]);
  });
});

describe('the visible part of a sealed request', () => {
  test('has the same path, media type and status 200 for any answer', async () => {
    const server = await startDice({ MAX_CONCURRENT_REQUESTS: '1' });
    const calls: SealedCall[] = [
      { method: 'GET', path: '/rules' },
      { method: 'GET', path: '/nowhere' },
      { method: 'POST', path: '/rules', body: 1 },
      { method: 'GET', path: '/crash' },
    ];
    const seen = new Set<string>();
    for (const call of calls) {
      const { response } = await ask(server, call);
      seen.add([...response.headers.keys()].sort().join());
    }
    expect(seen.size).toBe(1);
    expect([...seen][0]).not.toMatch(/allow,|retry-after|www-authenticate/);
  });

  test('has the same route in the log', async () => {
    const server = await startDice();
    await ask(server, { method: 'GET', path: '/rules' });
    await ask(server, { method: 'GET', path: '/nowhere' });
    const lines = server
      .printed()
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line));
    const requests = lines.filter(({ msg, route }) => msg === 'request' && route !== '/get_attestation');
    expect(requests.map(({ method, route, status }) => [method, route, status])).toEqual([
      ['POST', '/sealed', 200],
      ['POST', '/sealed', 200],
    ]);
    expect(server.printed()).not.toContain('rules');
    // Nor does the log show how a sealed request ended.
    expect(server.printed()).not.toContain('NOT_FOUND');
  });

  test('has a size that is a multiple of SEALED_PADDING_BYTES plus its frame', async () => {
    const server = await startDice({ SEALED_PADDING_BYTES: '512' });
    const sizes = new Set<number>();
    for (const path of ['/rules', '/nowhere', '/search?note=aaaaaaaaaaaaaaaaaaaaaaaaaaaa']) {
      const { response } = await ask(server, { method: 'GET', path });
      sizes.add(Number(response.headers.get('content-length')));
    }
    // Version and nonce come before the ciphertext, and the tag after it.
    expect([...sizes]).toEqual([33 + 512 + 16]);
  });

  test('and its answer belong together: no answer can be opened for another request', async () => {
    const server = await startDice();
    const key = await fetchSealingKey(server);
    const calls = await Promise.all(
      Array.from({ length: 20 }, async (_, number) => {
        const call: SealedCall = { method: 'GET', path: `/search?note=${number}` };
        const sealed = await sealRequest(key, call);
        const response = await post(server, sealed.message);
        return { sealed, bytes: new Uint8Array(await response.arrayBuffer()) };
      }),
    );
    for (const [number, { sealed }] of calls.entries()) {
      for (const [otherNumber, { bytes }] of calls.entries()) {
        const outcome = await sealed.openAnswer(bytes).then(
          ({ body }) => body,
          ({ code }) => code,
        );
        expect(outcome).toEqual(number === otherNumber ? { note: String(number) } : 'SEALED_ALTERED');
      }
    }
  });
});

describe('a request is refused in the clear', () => {
  test('when it is sealed to the key of an earlier start', async () => {
    const [before, after] = [await startDice(), await startDice()];
    const { message } = await sealRequest(await fetchSealingKey(before), { method: 'GET', path: '/rules' });
    expect(await refusal(await post(after, message))).toEqual({ status: 422, code: 'SEALED_KEY_UNKNOWN' });
  });

  test('when it is truncated, changed, too long, or not sealed', async () => {
    const server = await startDice({ BODY_LIMIT_BYTES: '1024' });
    const key = await fetchSealingKey(server);
    const { message } = await sealRequest(key, { method: 'GET', path: '/rules' });
    const outcome = async (bytes: Uint8Array, type?: string) =>
      await refusal(await post(server, bytes, type));
    expect(await outcome(message.subarray(0, 60))).toEqual({ status: 400, code: 'SEALED_MALFORMED' });
    expect(await outcome(new Uint8Array())).toEqual({ status: 400, code: 'SEALED_MALFORMED' });
    expect(await outcome(message.subarray(0, -1))).toEqual({ status: 400, code: 'SEALED_ALTERED' });
    expect(await outcome(message, 'application/json')).toEqual({
      status: 415,
      code: 'UNSUPPORTED_MEDIA_TYPE',
    });
    const call: SealedCall = { method: 'POST', path: '/draw', body: { picked: '1'.repeat(1000) } };
    const { message: long } = await sealRequest(key, call);
    expect(await outcome(long)).toEqual({ status: 413, code: 'BODY_TOO_LARGE' });
    const plain = await server.get('/sealed');
    expect([plain.status, plain.headers.get('allow')]).toEqual([405, 'POST']);
  });

  test('never with a status or a body that depends on the content', async () => {
    const server = await startDice();
    const key = await fetchSealingKey(server);
    for (const path of ['/rules', '/nowhere']) {
      const { message } = await sealRequest(key, { method: 'GET', path });
      const changed = message.slice();
      changed[70] = (changed[70] as number) ^ 1;
      expect(await refusal(await post(server, changed))).toEqual({ status: 400, code: 'SEALED_ALTERED' });
    }
  });
});

describe('an endpoint that is not idempotent', () => {
  test('refuses sealed requests, and answers plain ones', async () => {
    const server = await startDice();
    const bet = { stake: 5 };
    const { status, body } = await ask(server, { method: 'POST', path: '/bet', body: bet });
    expect([status, body]).toMatchObject([403, { code: 'SEALED_NOT_IDEMPOTENT' }]);
    expect(await (await server.post('/bet', bet)).json()).toEqual({ lost: 5 });
  });

  test('prevents the start with REQUESTS=sealed, which would disable it', async () => {
    await expect(startDice({ REQUESTS: 'sealed' })).rejects.toMatchObject({
      code: 'CONFIG',
      message: expect.stringContaining('/bet'),
    });
  });
});

describe('REQUESTS=sealed', () => {
  test("refuses plain requests to the application's endpoints, before reading them", async () => {
    const server = await startServer({ env: { REQUESTS: 'sealed' }, nsm });
    const plain = await server.post('/process_data', '{"payload":');
    expect(await refusal(plain)).toEqual({ status: 403, code: 'SEALED_REQUIRED' });
    const otherMethod = await refusal(await server.get('/process_data'));
    expect(otherMethod).toEqual({ status: 405, code: 'METHOD_NOT_ALLOWED' });
    const sealed = await ask(server, { method: 'POST', path: '/process_data', body: { payload: {} } });
    expect([sealed.status, sealed.body]).toMatchObject([400, { code: 'INVALID_INPUT' }]);
  });

  test("leaves the server's own endpoints open to plain requests: these endpoints take no sealed ones", async () => {
    const server = await startServer({ env: { REQUESTS: 'sealed' }, nsm });
    for (const path of ['/', '/livez', '/readyz', '/boot', '/get_attestation']) {
      expect([path, (await server.get(path)).status]).toEqual([path, 200]);
      const { status, body } = await ask(server, { method: 'GET', path });
      expect([path, status, body]).toMatchObject([path, 404, { code: 'NOT_FOUND' }]);
    }
  });
});
