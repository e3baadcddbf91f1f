/** Tests the front end as wallets and operators use it, without faults. */
import { request as httpRequest } from 'node:http';
import { toBase64 } from '@mysten/sui/utils';
import { describe, expect, test } from 'vitest';
import { writeNumber } from '../../../../src/library/zklogin/numbers.ts';
import { getProof, readProof } from '../../../../src/library/zklogin/services.ts';
import { readVerifyingKey, verifyProof } from '../../../../src/prover/verify.ts';
import { EPHEMERAL_KEY, RANDOMNESS, SALT } from '../support.ts';
import { CLIENT_ID, FakeBackend, GOOGLE, Issuer, OUR_KEY, requestFor, startTestFrontend } from './support.ts';

const verifyingKey = readVerifyingKey(OUR_KEY.vkey);

describe('POST /v1', () => {
  test('returns a proof that is valid for the public input of this request, and nothing else', async () => {
    const { ask, backend } = await startTestFrontend();
    const { status, body, headers } = await ask();
    expect(status).toBe(200);
    expect(headers.get('cache-control')).toBe('no-store');
    expect(Object.keys(body).sort()).toEqual(['headerBase64', 'issBase64Details', 'proofPoints']);
    expect(readProof(body)).toEqual(body);
    const [input] = backend.inputs;
    expect(
      verifyProof(verifyingKey, body['proofPoints'] as never, [BigInt(input?.['all_inputs_hash'] ?? '')]),
    ).toBe(true);
  });

  test('gives a wallet its proof, in both encodings of numbers', async () => {
    const { url, token, backend } = await startTestFrontend();
    const request = requestFor(await token()) as never;
    for (const encoding of ['decimal', 'base64'] as const) {
      const proof = await getProof(`${url}/v1`, request, { encoding });
      expect(proof.headerBase64).toBe((request as { jwt: string }).jwt.split('.')[0]);
    }
    const [decimal, base64] = backend.inputs;
    expect(base64).toEqual(decimal);
  });

  test('makes a proof with a verified email as the key claim', async () => {
    const { ask } = await startTestFrontend();
    const claims = { email: 'a@id.example', email_verified: true };
    expect((await ask(claims, { keyClaimName: 'email' })).status).toBe(200);
    const { status, body } = await ask({ ...claims, email_verified: false }, { keyClaimName: 'email' });
    expect([status, body['code']]).toEqual([422, 'PROVER_CLAIM']);
  });

  test('accepts an issuer that CLIENTS lists with the URL of its keys', async () => {
    const clients = [
      { issuer: 'https://id.example', client_id: 'mine', jwks_url: 'https://id.example/jwks' },
    ];
    const { ask } = await startTestFrontend({ CLIENTS: JSON.stringify(clients) });
    expect((await ask({ iss: 'https://id.example', aud: 'mine' })).status).toBe(200);
    expect((await ask()).body['code']).toBe('PROVER_ISSUER_NOT_ALLOWED');
  });

  test('without CLIENTS accepts every client of the known issuers, and logs that at the start', async () => {
    const { ask, printed } = await startTestFrontend({
      configure: (config) => ({
        ...config,
        acceptsAnyClient: true,
        clients: config.clients.map(({ issuer, jwksUrl }) => ({ issuer, jwksUrl, presenters: [] })),
      }),
    });
    expect((await ask({ aud: 'anyone', azp: 'another' })).status).toBe(200);
    expect((await ask({ iss: 'https://id.twitch.tv/oauth2' })).body['code']).toBe(
      'PROVER_ISSUER_NOT_ALLOWED',
    );
    expect(printed()).toMatch(/CLIENTS is not set/);
  });
});

describe('identical requests', () => {
  test('in flight share one proof, in any encoding, and finished proofs are not kept', async () => {
    const { post, token, backend } = await startTestFrontend();
    const { prove } = backend;
    backend.prove = (...proveArguments) => setTimeout(() => prove(...proveArguments), 200);
    const jwt = await token();
    const base64 = {
      salt: writeNumber(BigInt(SALT), 'base64', 16),
      jwtRandomness: writeNumber(BigInt(RANDOMNESS), 'base64', 16),
      extendedEphemeralPublicKey: toBase64(Buffer.from(EPHEMERAL_KEY.toString(16).padStart(66, '0'), 'hex')),
    };
    const requests = [
      requestFor(jwt),
      requestFor(jwt, base64),
      requestFor(jwt),
      requestFor(jwt, { salt: '1' }),
    ];
    const answers = await Promise.all(requests.map((request) => post(request)));
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 200]);
    expect(backend.inputs).toHaveLength(2);
    expect(answers[1]?.body).toEqual(answers[0]?.body);
    expect(answers[3]?.body).not.toEqual(answers[0]?.body);
    await post(requestFor(jwt));
    expect(backend.inputs).toHaveLength(3);
  });

  test('do not depend on the first caller, who may leave', async () => {
    const { post, token, backend } = await startTestFrontend();
    const { prove } = backend;
    backend.prove = (...proveArguments) => setTimeout(() => prove(...proveArguments), 300);
    const request = requestFor(await token());
    const leaving = new AbortController();
    const first = post(request, { signal: leaving.signal }).catch(() => 'left');
    await expect.poll(() => backend.inputs.length).toBe(1);
    const second = post(request);
    setTimeout(() => leaving.abort(), 50);
    expect(await first).toBe('left');
    expect((await second).status).toBe(200);
    expect(backend.inputs).toHaveLength(1);
  });
});

describe('a caller who leaves', () => {
  /** Starts callers of one proof. The backend does not answer requests until `resume` is called. */
  async function startCallers(count: number) {
    const frontend = await startTestFrontend({ USER_REQUESTS_PER_MINUTE: '1000' });
    const { backend } = frontend;
    const { prove } = backend;
    let closed = 0;
    backend.prove = (_, response) => response.once('close', () => closed++);
    const request = requestFor(await frontend.token());
    const leavers = Array.from({ length: count }, () => new AbortController());
    const answers = leavers.map(({ signal }) => frontend.post(request, { signal }).catch(() => 'left'));
    await expect.poll(() => backend.inputs.length).toBe(1);
    const resume = () => {
      backend.prove = prove;
    };
    return { ...frontend, request, leavers, answers, resume, closed: () => closed };
  }

  test('last closes the call to the backend, and is not logged as an error', async () => {
    const { leavers, answers, closed, printed } = await startCallers(2);
    leavers[0]?.abort();
    expect(await answers[0]).toBe('left');
    expect(closed()).toBe(0);
    leavers[1]?.abort();
    await expect.poll(closed).toBe(1);
    await expect.poll(printed).toContain('the callers have left');
    expect(printed()).not.toMatch(/INTERNAL|"level":"error"/);
  });

  test('does not affect a caller who asks for the same proof at that moment: the front end makes a new call', async () => {
    const { leavers, closed, post, request, resume, backend } = await startCallers(1);
    resume();
    leavers[0]?.abort();
    expect((await post(request)).status).toBe(200);
    await expect.poll(closed).toBe(1);
    expect(backend.inputs).toHaveLength(2);
  });

  test('before the backend was asked causes no request to it', async () => {
    const { post, token, backend, issuer, printed } = await startTestFrontend();
    const { answer } = issuer;
    const { promise: keyRequest, resolve: hang } = Promise.withResolvers<() => void>();
    issuer.answer = (response) => hang(() => answer(response));
    const leaver = new AbortController();
    const abandoned = post(requestFor(await token()), { signal: leaver.signal }).catch(() => 'left');
    const release = await keyRequest;
    leaver.abort();
    expect(await abandoned).toBe('left');
    release();
    await expect.poll(printed).toContain('the callers have left');
    expect(backend.inputs).toEqual([]);
  });
});

describe('limits', () => {
  test('on a user apply to requests with any salt; another user is not affected', async () => {
    const { ask, backend } = await startTestFrontend({ USER_REQUESTS_PER_MINUTE: '2' });
    const answers = [await ask(), await ask({}, { salt: '1' }), await ask({}, { salt: '2' })];
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 429]);
    expect(answers[2]?.body['code']).toBe('PROVER_RATE_LIMITED');
    expect(Number(answers[2]?.headers.get('retry-after'))).toBeGreaterThan(20);
    expect((await ask({ sub: 'another' })).status).toBe(200);
    expect(backend.inputs).toHaveLength(3);
  });

  test('on the wait: a caller who would get no answer in time is refused before the token is read', async () => {
    const { ask, post, token, backend } = await startTestFrontend({
      ANSWER_SECONDS: '5',
      PROOF_SECONDS: '2',
    });
    const { prove } = backend;
    const { promise: released, resolve: release } = Promise.withResolvers<void>();
    backend.prove = (...proveArguments) => released.then(() => prove(...proveArguments));
    const jwt = await token();
    const waiting = ['1', '2'].map((salt) => post(requestFor(jwt, { salt })));
    await expect.poll(() => backend.inputs.length).toBe(2);
    const { status, body, headers } = await post(requestFor('no token'));
    expect([status, body['code'], headers.get('retry-after')]).toEqual([503, 'PROVER_BUSY', '2']);
    // A caller who only waits for the proof of another needs no place.
    const sharingCall = post(requestFor(jwt, { salt: '1' }));
    release();
    for (const answer of await Promise.all([...waiting, sharingCall])) expect(answer.status).toBe(200);
    expect((await post(requestFor('no token'))).status).toBe(400);
    expect((await ask()).status).toBe(200);
  });

  test('on the wait: refused requests, and requests that wait for keys, do not take places', async () => {
    const issuer = await Issuer.start();
    const ownIssuer = 'https://id.example';
    const clients = [
      { issuer: GOOGLE, client_id: CLIENT_ID },
      { issuer: ownIssuer, client_id: CLIENT_ID, jwks_url: `${ownIssuer}/keys` },
    ];
    const { ask, post, token, backend } = await startTestFrontend({
      issuer,
      CLIENTS: JSON.stringify(clients),
      ANSWER_SECONDS: '2',
      PROOF_SECONDS: '2',
    });
    expect((await ask()).status).toBe(200);
    const { answer } = issuer;
    const { promise: keyRequest, resolve: hang } = Promise.withResolvers<() => void>();
    issuer.answer = (response) => hang(() => answer(response));
    const jwt = await token({ iss: ownIssuer });
    const waits = ['1', '2', '3'].map((salt) => post(requestFor(jwt, { salt })));
    const release = await keyRequest;
    const forged = (await token()).replace(/[^.]+$/, (signature) => `AAAA${signature.slice(4)}`);
    for (const refused of [{ jwt: forged }, { maxEpoch: '7' }, { salt: '-1' }]) {
      expect((await post(requestFor(await token(), refused))).status).toBeOneOf([400, 401, 422]);
    }
    expect((await ask({ sub: 'another' })).status).toBe(200);
    // Of the three callers that have waited for the keys, one gets the only place.
    backend.prove = (_, response) => setTimeout(() => response.writeHead(500).end(), 300);
    release();
    const codes = (await Promise.all(waits)).map(({ body }) => body['code']).sort();
    expect(codes).toEqual(['PROVER_BACKEND_ANSWER', 'PROVER_BUSY', 'PROVER_BUSY']);
  });

  test('on requests in flight: 50 at once are answered or refused with Retry-After, and the service recovers', async () => {
    const { post, token, backend } = await startTestFrontend({
      MAX_CONCURRENT_REQUESTS: '4',
      USER_REQUESTS_PER_MINUTE: '10000',
    });
    const jwt = await token();
    // This request fetches the issuer's keys. Callers who wait for keys hold no slot.
    expect((await post(requestFor(jwt))).status).toBe(200);
    const { prove } = backend;
    const { promise: released, resolve: release } = Promise.withResolvers<void>();
    backend.prove = (...proveArguments) => released.then(() => prove(...proveArguments));
    let refused = 0;
    const answers = Array.from({ length: 50 }, async (_, index) => {
      const { status, body, headers } = await post(requestFor(jwt, { salt: String(index) }));
      if (status === 200) return;
      expect([status, body['code'], headers.get('retry-after')]).toEqual([503, 'OVERLOADED', '1']);
      refused++;
    });
    await expect.poll(() => refused).toBe(46);
    release();
    await Promise.all(answers);
    expect(refused).toBe(46);
    expect((await post(requestFor(jwt))).status).toBe(200);
  });
});

describe('HTTP', () => {
  test('GET /ping answers pong as text, and HEAD /ping succeeds too', async () => {
    const { url } = await startTestFrontend();
    const response = await fetch(`${url}/ping`);
    expect([response.status, await response.text()]).toEqual([200, 'pong']);
    expect(response.headers.get('content-type')).toMatch(/^text\/plain/);
    expect((await fetch(`${url}/ping`, { method: 'HEAD' })).status).toBe(200);
  });

  test.each([
    ['GET', '/v1', 405, 'METHOD_NOT_ALLOWED'],
    ['POST', '/ping', 405, 'METHOD_NOT_ALLOWED'],
    ['POST', '/v1/', 404, 'NOT_FOUND'],
    ['POST', '/input', 404, 'NOT_FOUND'],
  ])('%s %s: %i', async (method, path, status, code) => {
    const { url } = await startTestFrontend();
    const response = await fetch(url + path, { method });
    expect([response.status, ((await response.json()) as { code: string }).code]).toEqual([status, code]);
  });

  test('CORS allows only the configured origins, and none by default', async () => {
    const preflight = (url: string, origin: string) =>
      fetch(`${url}/v1`, {
        method: 'OPTIONS',
        headers: {
          origin,
          'access-control-request-method': 'POST',
          'access-control-request-headers': 'content-type',
        },
      }).then(({ headers }) => headers.get('access-control-allow-origin'));
    const { url, printed } = await startTestFrontend();
    expect(await preflight(url, 'https://wallet.example')).toBeNull();
    expect(printed()).toMatch(/CORS_ORIGINS is not set/);
    const open = await startTestFrontend({ CORS_ORIGINS: 'https://wallet.example' });
    expect(await preflight(open.url, 'https://wallet.example')).toBe('https://wallet.example');
    expect(await preflight(open.url, 'https://evil.example')).toBeNull();
    const { headers } = await fetch(`${open.url}/ping`, { headers: { origin: 'https://wallet.example' } });
    expect(headers.get('access-control-expose-headers')).toBe('x-request-id, retry-after');
  });

  test('a body is refused if it is too large, incomplete, not JSON or compressed', async () => {
    const { post, ask, url } = await startTestFrontend();
    const refusal = async (body: string, headers = {}) => {
      const init = { headers: { 'content-type': 'application/json', ...headers } };
      const answer = await post(body, init);
      return [answer.status, answer.body['code']];
    };
    expect(await refusal(JSON.stringify({ jwt: 'x'.repeat(20_000) }))).toEqual([413, 'BODY_TOO_LARGE']);
    expect(await refusal('{"jwt":')).toEqual([400, 'MALFORMED_JSON']);
    expect(await refusal('{}', { 'content-type': 'text/plain' })).toEqual([415, 'UNSUPPORTED_MEDIA_TYPE']);
    expect(await refusal('{}', { 'content-encoding': 'gzip' })).toEqual([415, 'UNSUPPORTED_MEDIA_TYPE']);
    const incomplete = httpRequest(`${url}/v1`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'content-length': 100 },
    });
    incomplete.on('error', () => {});
    incomplete.write('{"jwt":"');
    await new Promise((resolve) => setTimeout(resolve, 50));
    incomplete.destroy();
    expect((await ask()).status).toBe(200);
  });
});

test('the log has the duration of each part of a request, and DEBUG selects its lines', async () => {
  const { ask, printed } = await startTestFrontend();
  await ask();
  const lines = printed()
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));
  const proofLine = lines.find(({ msg }) => msg === 'made a proof');
  expect(proofLine).toMatchObject({ name: 'zkLogin:info', issuer: GOOGLE, client_id: CLIENT_ID });
  expect(Object.keys(proofLine.ms)).toEqual(['verify', 'input', 'backend', 'check']);
  expect(Object.values(proofLine.ms).every((ms) => typeof ms === 'number')).toBe(true);
  expect(lines.find(({ name }) => name === 'jwks')).toMatchObject({
    host: 'www.googleapis.com',
    status: 200,
  });
  const backend = await FakeBackend.start();
  const quiet = await startTestFrontend({ backend, DEBUG: '' });
  await quiet.ask();
  expect(quiet.printed()).not.toMatch(/zkLogin:info|jwks/);
});
