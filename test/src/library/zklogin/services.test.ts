/** Tests the clients of the salt service and of the proving service, against servers on loopback. */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { inspect } from 'node:util';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import {
  discoverProvider,
  getProof,
  getSalt,
  type ProofRequest,
} from '../../../../src/library/zklogin/index.ts';
import { createJwt, SUBJECT, vector } from './support.ts';

interface ReceivedRequest {
  readonly url: string;
  readonly headers: IncomingMessage['headers'];
  readonly body: Record<string, unknown>;
}

/** Starts a service that returns these answers in turn, and then repeats the last one. */
async function startService(...answers: (unknown | ((response: ServerResponse) => unknown))[]) {
  const seen: ReceivedRequest[] = [];
  const server = createServer(async (request, response) => {
    const body = await text(request);
    const answer = answers[Math.min(seen.length, answers.length - 1)];
    seen.push({
      url: request.url ?? '',
      headers: request.headers,
      body: body === '' ? {} : JSON.parse(body),
    });
    if (typeof answer === 'function') answer(response);
    else response.setHeader('content-type', 'application/json').end(JSON.stringify(answer));
  });
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, seen };
}

/**
 * Makes pauses of these lengths, in milliseconds, end immediately, until the test ends. @returns the lengths
 * of the pauses so far
 */
function skipPauses(...lengths: number[]): number[] {
  const pauses: number[] = [];
  const { setTimeout } = globalThis;
  const spy = vi.spyOn(globalThis, 'setTimeout');
  spy.mockImplementation(((run: () => void, ms: number, ...args: []) => {
    if (lengths.includes(ms)) pauses.push(ms);
    return setTimeout(run, lengths.includes(ms) ? 0 : ms, ...args);
  }) as typeof setTimeout);
  onTestFinished(() => spy.mockRestore());
  return pauses;
}

const respondWith =
  (code: number, body: unknown = {}) =>
  (response: ServerResponse) =>
    response.writeHead(code).end(JSON.stringify(body));
const reset = (response: ServerResponse) => response.destroy();
const hang = () => {};
const breakOff = (response: ServerResponse) => {
  response.writeHead(200, { 'content-length': '100' }).write('{"proofPoints":');
  setTimeout(() => response.destroy(), 100);
};

/** Returns a fake fetch that records the URLs, and answers without a network. */
function createFetch(answer: unknown = {}) {
  const requestedUrls: string[] = [];
  const fetch = async (url: string | URL | Request) => {
    requestedUrls.push(String(url));
    return Response.json(answer);
  };
  return { requestedUrls, fetch };
}

const TOKEN = createJwt({ sub: SUBJECT });
const SALT = '206703048842351542647799591018316385612';
const [{ partialInputs: PROOF }, DEVNET] = vector('proofs');
const REQUEST: ProofRequest = {
  jwt: TOKEN,
  extendedEphemeralPublicKey: 'AAuczFXFtG2hjf/RUGNO5JNUH+D/gHtE9sHe6ZEnxwZL',
  maxEpoch: 10,
  jwtRandomness: '100681567828351849884072155819400689117',
  salt: BigInt(SALT),
  keyClaimName: 'sub',
};

describe('getSalt', () => {
  test.each(['', '/', '/v2', '/v2/'])('posts to /get_salt below the URL%s', async (path) => {
    const { url, seen } = await startService({ salt: SALT });
    expect(await getSalt(url + path, TOKEN)).toBe(SALT);
    expect(seen[0]).toMatchObject({ url: `${path.replace(/\/$/, '')}/get_salt`, body: { token: TOKEN } });
    expect(seen[0]?.headers['content-type']).toBe('application/json');
  });

  test.each(['/get_salt', '/get_salt/', '/v2/get_salt', '/get_salt?x=1'])(
    'refuses a URL that ends with %s, which is appended',
    async (path) => {
      const { url, seen } = await startService({ salt: SALT });
      await expect(getSalt(url + path, TOKEN)).rejects.toMatchObject({
        code: 'ZKLOGIN_OPTION',
        message: 'the URL of the salt service must not include /get_salt, which is appended to it',
      });
      expect(seen).toEqual([]);
    },
  );

  test('sends nothing if the policy is set to undefined', async () => {
    const { url, seen } = await startService({ salt: SALT });
    const refused = getSalt(url, TOKEN, { policy: undefined } as never);
    await expect(refused).rejects.toMatchObject({ code: 'ZKLOGIN_OPTION' });
    expect(seen).toEqual([]);
  });

  test('refuses a missing token', async () => {
    const { url, seen } = await startService({ salt: SALT });
    await expect(getSalt(url, undefined as never)).rejects.toMatchObject({ code: 'ZKLOGIN_OPTION' });
    expect(seen).toEqual([]);
  });

  test.each([
    ['0', '0'],
    [String(2n ** 128n - 1n), String(2n ** 128n - 1n)],
    ['007', '7'],
  ])('accepts the decimal salt %s', async (salt, read) => {
    expect(await getSalt((await startService({ salt })).url, TOKEN)).toBe(read);
  });

  test.each([
    {},
    null,
    [],
    { salt: 5 },
    { salt: '' },
    { salt: '-1' },
    { salt: '0x10' },
    { salt: '0x1234567890abcdef1234567890abcdef' },
    { salt: (2n ** 128n).toString() },
    { salt: Buffer.alloc(16, 1).toString('base64') },
    { salt: Buffer.alloc(17, 1).toString('base64') },
    { salt: '+1' },
    { salt: ' 1' },
    { salt: '1\n' },
    { salt: '1e3' },
    { salt: Array(16).fill(1) },
    { salt: '9'.repeat(60_000) },
  ])('refuses the answer %j', async (answer) => {
    const { url } = await startService(answer);
    await expect(getSalt(url, TOKEN)).rejects.toMatchObject({ code: 'ZKLOGIN_MALFORMED_ANSWER' });
  });

  test('sends an operator’s credentials', async () => {
    const { url, seen } = await startService({ salt: SALT });
    await getSalt(url, TOKEN, {
      headers: { authorization: 'Bearer operator', 'Content-Type': 'text/plain' },
    });
    expect(seen[0]?.headers.authorization).toBe('Bearer operator');
  });

  test.each(['ftp://x', 'x', '', 'https://user:hunter2@salt.example', 'http://user:hunter2@salt.example'])(
    'refuses the URL %j, and sends nothing',
    async (url) => {
      const { requestedUrls, fetch } = createFetch();
      for (const options of [{ fetch }, { fetch, allowHttp: true }]) {
        await expect(getSalt(url, TOKEN, options)).rejects.toMatchObject({ code: 'ZKLOGIN_OPTION' });
        await expect(getSalt(url, TOKEN, options)).rejects.not.toThrow(/hunter2/);
      }
      expect(requestedUrls).toEqual([]);
    },
  );

  test.each([
    'http://salt.example',
    'http://10.0.0.7',
    'http://localhost.example',
    'http://127.0.0.1.example',
  ])('sends a request to %s only if the caller allows http', async (url) => {
    const { requestedUrls, fetch } = createFetch({ salt: SALT });
    for (const allowHttp of [undefined, false, 'false', 1]) {
      const options = { fetch, allowHttp: allowHttp as false };
      await expect(getSalt(url, TOKEN, options)).rejects.toMatchObject({
        code: 'ZKLOGIN_OPTION',
        message: expect.stringMatching(/must be https: .* or set allowHttp/),
      });
    }
    expect(requestedUrls).toEqual([]);
    expect(await getSalt(url, TOKEN, { fetch, allowHttp: true })).toBe(SALT);
    expect(requestedUrls).toEqual([`${url}/get_salt`]);
  });

  test.each(['https://salt.example', 'http://localhost:3000', 'http://127.0.0.1', 'http://[::1]:3000'])(
    'accepts the URL %s',
    async (url) => {
      const { requestedUrls, fetch } = createFetch({ salt: SALT });
      await getSalt(url, TOKEN, { fetch });
      expect(requestedUrls).toEqual([`${new URL(url).href}get_salt`]);
    },
  );
});

describe('getProof', () => {
  test('posts to the exact URL, with numbers in decimal by default', async () => {
    const { url, seen } = await startService(PROOF);
    expect(await getProof(`${url}/v1?key=1`, REQUEST)).toEqual(PROOF);
    expect(seen[0]?.url).toBe('/v1?key=1');
    expect(seen[0]?.body).toEqual({
      ...REQUEST,
      extendedEphemeralPublicKey: BigInt(
        `0x${Buffer.from(String(REQUEST.extendedEphemeralPublicKey), 'base64').toString('hex')}`,
      ).toString(),
      salt: SALT,
      maxEpoch: '10',
    });
  });

  test('sends a request over http to another machine only if the caller allows it', async () => {
    const url = 'http://prover.internal:8080/v1';
    const { requestedUrls, fetch } = createFetch(PROOF);
    for (const options of [{ fetch }, { fetch, allowHttp: false }]) {
      await expect(getProof(url, REQUEST, options)).rejects.toThrow(/must be https: .* or set allowHttp/);
    }
    expect(requestedUrls).toEqual([]);
    expect(await getProof(url, REQUEST, { fetch, allowHttp: true })).toEqual(PROOF);
    expect(requestedUrls).toEqual([url]);
    await expect(getProof('ftp://x', REQUEST, { fetch, allowHttp: true })).rejects.toThrow(/must be https/);
  });

  test('sends the three numbers in base64 if the caller asks for it, padded to their size', async () => {
    const { url, seen } = await startService(PROOF);
    await getProof(url, { ...REQUEST, salt: 5n }, { encoding: 'base64' });
    const { extendedEphemeralPublicKey, jwtRandomness, salt, maxEpoch } = seen[0]?.body ?? {};
    expect(extendedEphemeralPublicKey).toBe(REQUEST.extendedEphemeralPublicKey);
    expect(Buffer.from(String(jwtRandomness), 'base64')).toHaveLength(16);
    expect(salt).toBe('AAAAAAAAAAAAAAAAAAAABQ==');
    expect(maxEpoch).toBe('10');
  });

  test('accepts the longer keys of other schemes', async () => {
    const { url, seen } = await startService(PROOF);
    const key = DEVNET.extendedEphemeralPublicKey;
    await getProof(url, { ...REQUEST, extendedEphemeralPublicKey: key }, { encoding: 'base64' });
    await getProof(url, { ...REQUEST, ...(seen[0]?.body as unknown as ProofRequest) });
    expect(Buffer.from(String(seen[0]?.body['extendedEphemeralPublicKey']), 'base64')).toHaveLength(34);
    expect(seen[1]?.body['extendedEphemeralPublicKey']).toBe(key);
  });

  test('accepts each number in either encoding, or in bytes', async () => {
    const { url, seen } = await startService(PROOF);
    await getProof(url, REQUEST, { encoding: 'base64' });
    await getProof(url, { ...REQUEST, ...(seen[0]?.body as unknown as ProofRequest) });
    await getProof(url, REQUEST);
    const bytes = (name: string) => Uint8Array.from(Buffer.from(String(seen[0]?.body[name]), 'base64'));
    await getProof(url, {
      ...REQUEST,
      extendedEphemeralPublicKey: bytes('extendedEphemeralPublicKey'),
      jwtRandomness: bytes('jwtRandomness'),
      salt: bytes('salt'),
    });
    expect(seen[1]?.body).toEqual(seen[2]?.body);
    expect(seen[3]?.body).toEqual(seen[2]?.body);
  });

  test("sends the key of Sui's example, which lacks its flag, as the number that it contains", async () => {
    const { url, seen } = await startService(PROOF);
    const example = {
      ...REQUEST,
      extendedEphemeralPublicKey: 'ucbuFjDvPnERRKZI2wa7sihPcnTPvuU//O5QPMGkkgA=',
      jwtRandomness: 'S76Qi8c/SZlmmotnFMr13Q==',
      salt: 'urgFnwIxJ++Ooswtf0Nn1w==',
    };
    await getProof(url, example);
    const number = (base64: string) => String(BigInt(`0x${Buffer.from(base64, 'base64').toString('hex')}`));
    expect(seen[0]?.body).toMatchObject({
      extendedEphemeralPublicKey: number(example.extendedEphemeralPublicKey),
      jwtRandomness: number(example.jwtRandomness),
      salt: number(example.salt),
    });
    // A complete key begins with the flag.
    await getProof(url, example, { encoding: 'base64' });
    expect(Buffer.from(String(seen[1]?.body['extendedEphemeralPublicKey']), 'base64')).toEqual(
      Buffer.concat([Buffer.alloc(1), Buffer.from(example.extendedEphemeralPublicKey, 'base64')]),
    );
  });

  test.each([
    ['salt', 2n ** 128n],
    ['salt', ''],
    ['salt', undefined],
    ['jwtRandomness', '1.5'],
    ['jwtRandomness', -1n],
    ['extendedEphemeralPublicKey', 'AA_-'],
    ['extendedEphemeralPublicKey', 2n ** 272n],
    ['salt', '0x10'],
    ['salt', 'AAAAAAAAAAAAAAAAAAAF'],
    ['salt', new Uint8Array(17)],
    ['extendedEphemeralPublicKey', Buffer.alloc(31, 1).toString('base64')],
    ['keyClaimName', undefined],
    ['keyClaimName', null],
    ['keyClaimName', 5],
    ['keyClaimName', ['sub']],
    ['keyClaimName', ''],
    ['keyClaimName', 'sub"'],
    ['keyClaimName', 'a'.repeat(31)],
    ['jwt', undefined],
    ['maxEpoch', 1.5],
    ['maxEpoch', 'x'],
  ])('refuses %s %o', async (name, value) => {
    const { url, seen } = await startService(PROOF);
    const proofRequest = getProof(url, { ...REQUEST, [name]: value });
    await expect(proofRequest).rejects.toMatchObject({
      code: 'ZKLOGIN_OPTION',
      message: name === 'jwt' ? expect.stringContaining('proofRequest') : expect.stringContaining(name),
    });
    expect(seen).toEqual([]);
  });

  test.each([
    ['is missing', { sub: SUBJECT }, 'email'],
    ['is an inherited property', { sub: SUBJECT }, 'constructor'],
    ['is a number', { sub: 5 }, 'sub'],
    ['is an array', { sub: [SUBJECT] }, 'sub'],
    ['is empty', { sub: '' }, 'sub'],
    ['is too long', { sub: 'a'.repeat(114) }, 'sub'],
    ['has a letter beyond ASCII', { sub: 'Zoë' }, 'sub'],
    ['has escapes', String.raw`{"sub":"a\/b"}`, 'sub'],
    ['occurs twice', '{"sub":"a","in":{"sub":"a"}}', 'sub'],
  ])('refuses a token whose key claim %s', async (_label, payload, keyClaimName) => {
    const { url, seen } = await startService(PROOF);
    await expect(getProof(url, { ...REQUEST, jwt: createJwt(payload), keyClaimName })).rejects.toMatchObject({
      code: 'ZKLOGIN_CLAIM',
      claim: keyClaimName,
    });
    expect(seen).toEqual([]);
  });

  test('accepts any claim that the circuit can process', async () => {
    const { url, seen } = await startService(PROOF);
    const claims = [
      ['sub', 'a'.repeat(113)],
      ['email', 'me@wallet.example'],
      ['a.b*c', 'x'],
    ] as const;
    for (const [keyClaimName, value] of claims) {
      await getProof(url, { ...REQUEST, jwt: createJwt({ aud: 'c', [keyClaimName]: value }), keyClaimName });
      expect(seen.at(-1)?.body['keyClaimName']).toBe(keyClaimName);
    }
  });

  test('refuses an invalid token', async () => {
    const { url, seen } = await startService(PROOF);
    for (const jwt of ['', 'x', 'a.b.c', `${TOKEN}.`]) {
      await expect(getProof(url, { ...REQUEST, jwt })).rejects.toMatchObject({ code: 'ZKLOGIN_TOKEN' });
    }
    expect(seen).toEqual([]);
  });

  const { proofPoints, issBase64Details } = PROOF;
  test.each([
    ['no properties', {}],
    ['two coordinates', { ...PROOF, proofPoints: { ...proofPoints, a: proofPoints.a.slice(1) } }],
    ['numbers for strings', { ...PROOF, proofPoints: { ...proofPoints, a: [1, 2, 3] } }],
    ['hex', { ...PROOF, proofPoints: { ...proofPoints, c: ['0x1', '2', '3'] } }],
    [
      'a coordinate beyond the field',
      { ...PROOF, proofPoints: { ...proofPoints, c: ['9'.repeat(77), '2', '1'] } },
    ],
    ['a flat b', { ...PROOF, proofPoints: { ...proofPoints, b: ['1', '2', '3'] } }],
    ['an index of 3', { ...PROOF, issBase64Details: { ...issBase64Details, indexMod4: 3 } }],
    ['an index as a string', { ...PROOF, issBase64Details: { ...issBase64Details, indexMod4: '1' } }],
    ['an issuer that is not base64', { ...PROOF, issBase64Details: { ...issBase64Details, value: '"' } }],
    [
      'an issuer that is too long',
      { ...PROOF, issBase64Details: { ...issBase64Details, value: 'A'.repeat(225) } },
    ],
    ['no header', { ...PROOF, headerBase64: undefined }],
    ['a header that is too long', { ...PROOF, headerBase64: 'A'.repeat(249) }],
  ])('refuses an answer with %s', async (_label, answer) => {
    const { url } = await startService(answer);
    await expect(getProof(url, REQUEST)).rejects.toMatchObject({ code: 'ZKLOGIN_MALFORMED_ANSWER' });
  });
});

test.each([{ 'x y': 'hunter2' }, { authorization: 'hunter2\n2' }, { authorization: 'hunter2 \u{1f511}' }, 5])(
  'invalid headers cause an error that does not quote them: %j',
  async (headers) => {
    const { requestedUrls, fetch } = createFetch();
    const options = { headers: headers as Record<string, string>, fetch };
    const error = await getSalt('https://salt.example', TOKEN, options).catch((error) => error);
    expect(error).toMatchObject({ code: 'ZKLOGIN_OPTION', message: expect.stringContaining('headers') });
    expect(inspect(error, { depth: 9, showHidden: true })).not.toContain('hunter2');
    expect(requestedUrls).toEqual([]);
  },
);

test('the headers of the caller are sent, except the content type', async () => {
  const { url, seen } = await startService({ salt: SALT });
  await getSalt(url, TOKEN, { headers: { Authorization: 'Bearer operator', 'Content-Type': 'text/plain' } });
  expect(seen[0]?.headers).toMatchObject({
    authorization: 'Bearer operator',
    'content-type': 'application/json',
  });
});

describe('a service that', () => {
  test('is busy or breaks the connection is called three times in total', async () => {
    const pauses = skipPauses(500, 1000);
    const { url, seen } = await startService(respondWith(503), reset, PROOF);
    expect(await getProof(url, REQUEST)).toEqual(PROOF);
    expect(seen).toHaveLength(3);
    expect(pauses).toEqual([500, 1000]);
    const busy = await startService(respondWith(503, { error: 'Server at capacity', code: 'PROVER_BUSY' }));
    await expect(getProof(busy.url, REQUEST)).rejects.toMatchObject({
      code: 'ZKLOGIN_REFUSED',
      status: 503,
      serverCode: 'PROVER_BUSY',
    });
    expect(busy.seen).toHaveLength(3);
  });

  test('breaks off in the middle of its answer is not called again', async () => {
    const { url, seen } = await startService(breakOff);
    await expect(getProof(url, REQUEST)).rejects.toMatchObject({
      code: 'ZKLOGIN_UNREACHABLE',
      reason: 'broken',
      message: 'the proving service did not answer: the connection broke in the middle of the answer',
    });
    expect(seen).toHaveLength(1);
  });

  test.each([400, 401, 403, 422, 429, 500, 504])('answers %i is not called again', async (code) => {
    const { url, seen } = await startService(respondWith(code, { error: 'no', code: 'SALT_TOKEN_EXPIRED' }));
    const refused = { code: 'ZKLOGIN_REFUSED', status: code, serverCode: 'SALT_TOKEN_EXPIRED' };
    await expect(getSalt(url, TOKEN)).rejects.toMatchObject(refused);
    expect(seen).toHaveLength(1);
  });

  test('is too slow is not called again, since it may still be working', async () => {
    const { url, seen } = await startService(hang);
    await expect(getProof(url, REQUEST, { timeoutMs: 200 })).rejects.toMatchObject({
      code: 'ZKLOGIN_TIMEOUT',
      message: 'the proving service did not answer within 200 ms',
    });
    expect(seen).toHaveLength(1);
  });

  test('still works when the signal is aborted is neither waited for nor called again', async () => {
    const reason = new Error('the user left');
    for (const answer of [hang, respondWith(503)]) {
      const { url, seen } = await startService(answer);
      for (const ask of [getSalt, getProof]) {
        const before = seen.length;
        const controller = new AbortController();
        const serviceCall = ask(url, (ask === getSalt ? TOKEN : REQUEST) as never, {
          signal: controller.signal,
        });
        serviceCall.catch(() => {});
        await expect.poll(() => seen.length).toBe(before + 1);
        controller.abort(reason);
        await expect(serviceCall).rejects.toBe(reason);
        expect(seen).toHaveLength(before + 1);
      }
    }
    const { url, seen } = await startService(PROOF);
    await expect(getProof(url, REQUEST, { signal: AbortSignal.abort(reason) })).rejects.toBe(reason);
    expect(seen).toEqual([]);
  });

  const slow = 'Call to the proving component took longer than 15 seconds';
  test.each([
    [500, slow],
    [504, JSON.stringify({ error: slow })],
    [503, slow],
    [400, JSON.stringify({ error: 'Call to rapidsnark service took longer than 15s', jwt: TOKEN })],
  ])('answers %i with %j counts as timed out, and is not called again', async (code, body) => {
    const { url, seen } = await startService((response: ServerResponse) =>
      response.writeHead(code).end(body),
    );
    await expect(getProof(url, REQUEST)).rejects.toMatchObject({
      code: 'ZKLOGIN_TIMEOUT',
      message:
        'the proving service gave up: its prover took longer than 15 seconds: raise its PROVER_TIMEOUT, or give the prover more cores',
    });
    expect(seen).toHaveLength(1);
  });

  test('reports a time-out only by its code causes an error without a number of seconds', async () => {
    const body = JSON.stringify({ error: 'too slow', code: 'PROVER_BACKEND_TIMEOUT' });
    const { url } = await startService((response: ServerResponse) => response.writeHead(504).end(body));
    await expect(getProof(url, REQUEST)).rejects.toMatchObject({
      code: 'ZKLOGIN_TIMEOUT',
      message: expect.stringMatching(/ took longer than its time limit: /),
    });
  });

  test('refuses with another code does not count as timed out, even if its message mentions seconds', async () => {
    const body = JSON.stringify({ error: 'it took longer than 3 seconds', code: 'PROVER_TOKEN' });
    const { url } = await startService((response: ServerResponse) => response.writeHead(400).end(body));
    const refusal = { code: 'ZKLOGIN_REFUSED', serverCode: 'PROVER_TOKEN' };
    await expect(getProof(url, REQUEST)).rejects.toMatchObject(refusal);
  });

  test('reports a time limit of 1 second causes an error with the singular', async () => {
    const error = 'the call to the proving component took longer than 1 second: raise PROVER_TIMEOUT';
    const slow = JSON.stringify({ error, code: 'PROVER_BACKEND_TIMEOUT' });
    const { url } = await startService((response: ServerResponse) => response.writeHead(504).end(slow));
    await expect(getProof(url, REQUEST)).rejects.toMatchObject({
      code: 'ZKLOGIN_TIMEOUT',
      message: expect.stringMatching(/ took longer than 1 second: /),
    });
  });

  test('has the key of another network causes an error that says what its operator must change', async () => {
    skipPauses(500, 1000);
    const body = JSON.stringify({ error: `another key: ${TOKEN}`, code: 'PROVER_WRONG_NETWORK' });
    const { url } = await startService((response: ServerResponse) => response.writeHead(503).end(body));
    await expect(getProof(url, REQUEST)).rejects.toMatchObject({
      code: 'ZKLOGIN_REFUSED',
      serverCode: 'PROVER_WRONG_NETWORK',
      message: `the proving service answered with status 503 (PROVER_WRONG_NETWORK): its backend has another network's proving key: its operator must change ZKEY or VERIFYING_KEY`,
    });
  });

  test.each(['it took longer than usual', 'it took longer than 99999999 seconds', `no: ${TOKEN}`, ''])(
    'refuses with the message %j is not quoted',
    async (body) => {
      const { url } = await startService((response: ServerResponse) => response.writeHead(500).end(body));
      await expect(getProof(url, REQUEST)).rejects.toMatchObject({
        code: 'ZKLOGIN_REFUSED',
        message: 'the proving service answered with status 500',
      });
    },
  );

  test('would be called with an invalid time limit is not called', async () => {
    const { url, seen } = await startService({ salt: SALT });
    for (const timeoutMs of [0, -1, Number.NaN, 1e12, '1000', 5n]) {
      const option = { timeoutMs: timeoutMs as number };
      const refused = { code: 'ZKLOGIN_OPTION', message: expect.stringMatching(/^timeoutMs must be/) };
      await expect(getSalt(url, TOKEN, option)).rejects.toMatchObject(refused);
      await expect(getProof(url, REQUEST, option)).rejects.toMatchObject(refused);
    }
    expect(seen).toEqual([]);
  });

  test('is called without a time limit gets the default, and a fraction of a millisecond is accepted', async () => {
    const { url } = await startService({ salt: SALT });
    const saltOptions = { timeoutMs: undefined } as never;
    expect(await getSalt(url, TOKEN, saltOptions)).toBe(SALT);
    expect(await getSalt(url, TOKEN, { timeoutMs: 2000.5 })).toBe(SALT);
    expect(await getProof((await startService(PROOF)).url, REQUEST, saltOptions)).toEqual(PROOF);
  });

  test('never completes its answer times out', async () => {
    const { url } = await startService((response: ServerResponse) => response.write('{"salt":'));
    await expect(getSalt(url, TOKEN, { timeoutMs: 200 })).rejects.toMatchObject({ code: 'ZKLOGIN_TIMEOUT' });
  });

  test('answers with too many bytes is refused', async () => {
    const { url } = await startService((response: ServerResponse) => response.end(' '.repeat(70_000)));
    await expect(getSalt(url, TOKEN)).rejects.toMatchObject({ code: 'ZKLOGIN_MALFORMED_ANSWER' });
  });

  test('redirects is not followed, so that the token goes nowhere else', async () => {
    skipPauses(500, 1000);
    const otherService = await startService({ salt: SALT });
    const { url } = await startService((response: ServerResponse) =>
      response.writeHead(307, { location: `${otherService.url}/get_salt` }).end(),
    );
    await expect(getSalt(url, TOKEN)).rejects.toMatchObject({ code: 'ZKLOGIN_UNREACHABLE' });
    expect(otherService.seen).toEqual([]);
  });

  test.each([
    ['ENOTFOUND', 'dns', 'its host name was not found'],
    ['ECONNREFUSED', 'connection', 'the connection failed'],
    ['CERT_HAS_EXPIRED', 'tls', 'no secure connection could be made (TLS)'],
  ])(
    'can not be reached (%s) is reported with the reason, without a cause',
    async (code, reason, explanation) => {
      skipPauses(500, 1000);
      const cause = Object.assign(new Error(TOKEN), { code });
      const fetch = () => Promise.reject(new TypeError('fetch failed', { cause }));
      const error = await getSalt('https://salt.example', TOKEN, { fetch }).catch((error) => error);
      const message = `the salt service did not answer: ${explanation}`;
      expect(error).toMatchObject({ code: 'ZKLOGIN_UNREACHABLE', reason, message });
      expect(inspect(error, { depth: 9, showHidden: true })).not.toContain(TOKEN);
    },
  );

  test('fails causes an error without token, salt or credentials', async () => {
    skipPauses(500, 1000);
    const failures = [
      [respondWith(500, { error: TOKEN }), 'ZKLOGIN_REFUSED'],
      [reset, 'ZKLOGIN_UNREACHABLE'],
      [hang, 'ZKLOGIN_TIMEOUT'],
    ] as const;
    for (const [answer, code] of failures) {
      const { url, seen } = await startService(answer);
      const timeoutMs = code === 'ZKLOGIN_TIMEOUT' ? 200 : 10_000;
      const options = { headers: { authorization: 'Bearer operator' }, timeoutMs };
      const error = await getProof(url, REQUEST, options).catch((error) => error);
      expect(error).toMatchObject({ code });
      expect(seen[0]).toMatchObject({
        headers: { authorization: 'Bearer operator' },
        body: { jwt: TOKEN, salt: SALT },
      });
      const shown = inspect(error, { depth: 9, showHidden: true });
      for (const secret of [TOKEN, SALT, 'operator']) expect(shown).not.toContain(secret);
    }
  });
});

describe('discoverProvider', () => {
  const document = (issuer: string) => ({
    issuer,
    authorization_endpoint: 'https://op.example/auth',
    token_endpoint: 'https://op.example/token',
    jwks_uri: 'https://op.example/jwks',
    response_types_supported: ['code', 'id_token', 'code id_token'],
    id_token_signing_alg_values_supported: ['RS256'],
  });

  async function discover(change: Record<string, unknown> = {}, options = {}) {
    let issuer = '';
    const { url, seen } = await startService((response: ServerResponse) =>
      response.end(JSON.stringify({ ...document(issuer), ...change })),
    );
    issuer = `${url}/tenant`;
    return { provider: await discoverProvider(issuer, { name: 'Own', ...options }), issuer, seen };
  }

  test('creates a provider from the document', async () => {
    const { provider, issuer, seen } = await discover();
    expect(seen[0]?.url).toBe('/tenant/.well-known/openid-configuration');
    expect(provider).toEqual({
      name: 'Own',
      authorizationUrl: 'https://op.example/auth',
      responseType: 'id_token',
      scope: 'openid',
      extraParameters: {},
      authFlowOnly: true,
      token: null,
      jwksUrl: 'https://op.example/jwks',
      issuer,
      networks: [],
    });
  });

  test('exchanges a code if the provider returns no token', async () => {
    const { provider } = await discover(
      { response_types_supported: ['code'] },
      { tokenVariant: 'client_secret' },
    );
    expect(provider).toMatchObject({
      responseType: 'code',
      authFlowOnly: false,
      token: { url: 'https://op.example/token', variant: 'client_secret' },
    });
  });

  test.each([
    [{ issuer: 'https://evil.example' }, {}, /another issuer/],
    [{ issuer: undefined }, {}, /another issuer/],
    [
      { authorization_endpoint: 'http://op.example/auth' },
      {},
      /authorization_endpoint in the discovery document must be an https URL/,
    ],
    [{ jwks_uri: undefined }, {}, /jwks_uri in the discovery document must be/],
    [{ authorization_endpoint: 'javascript:alert(1)' }, {}, /must be an https URL/],
    [{ id_token_signing_alg_values_supported: ['ES256'] }, {}, /RS256/],
    [{ response_types_supported: ['code'] }, { responseType: 'id_token' }, /does not support/],
  ])('refuses a document with %o, with the options %o', async (change, options, message) => {
    await expect(discover(change, options)).rejects.toThrow(message);
  });

  test('refuses missing options', async () => {
    await expect(discoverProvider('https://op.example', undefined as never)).rejects.toThrow(/name must be/);
  });

  test('refuses http to another machine', async () => {
    await expect(discoverProvider('http://op.example', { name: 'Own' })).rejects.toThrow(/https/);
  });
});
