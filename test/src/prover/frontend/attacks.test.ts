/**
 * Tests tokens and requests that must be refused, each with its status and code. None may reach the backend.
 */
import { exportSPKI, type JWK } from 'jose';
import { describe, expect, test } from 'vitest';
import { NONCE, RANDOMNESS, SALT } from '../support.ts';
import {
  CLIENT_ID,
  FakeBackend,
  GOOGLE,
  Issuer,
  requestFor,
  signPayload,
  startTestFrontend,
} from './support.ts';

const base64url = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url');
const now = () => Math.floor(Date.now() / 1000);

async function setUp() {
  const backend = await FakeBackend.start();
  backend.network = 'mainnet and testnet';
  // No request reaches a proof, so the tests can use a published key, which is read only once for all tests.
  const env = { VERIFYING_KEY: 'main', USER_REQUESTS_PER_MINUTE: '10000' };
  const frontend = await startTestFrontend({ backend, ...env });
  const refusal = async (request: unknown) => {
    const { status, body } = await frontend.post(request);
    expect(Object.keys(body)).toEqual(['error', 'code']);
    expect(frontend.backend.inputs).toEqual([]);
    return [status, body['code']];
  };
  return { ...frontend, refusal };
}

describe('a token with a changed claim is refused:', () => {
  test.each<[string, () => object, number, string]>([
    ['without iss', () => ({ iss: undefined }), 422, 'PROVER_CLAIM'],
    ['with a list as iss', () => ({ iss: [GOOGLE] }), 422, 'PROVER_CLAIM'],
    ['of an unknown issuer', () => ({ iss: 'https://evil.example' }), 403, 'PROVER_ISSUER_NOT_ALLOWED'],
    [
      'of an issuer whose name begins with an accepted issuer',
      () => ({ iss: `${GOOGLE}.evil.example` }),
      403,
      'PROVER_ISSUER_NOT_ALLOWED',
    ],
    ['without aud', () => ({ aud: undefined }), 422, 'PROVER_CLAIM'],
    ['with a list as aud', () => ({ aud: [CLIENT_ID] }), 422, 'PROVER_CLAIM'],
    ['of another client', () => ({ aud: 'another' }), 403, 'PROVER_CLIENT_NOT_ALLOWED'],
    ['of another presenter', () => ({ azp: '110463452167303598383' }), 403, 'PROVER_CLIENT_NOT_ALLOWED'],
    ['with a number as azp', () => ({ azp: 5 }), 422, 'PROVER_CLAIM'],
    ['without sub', () => ({ sub: undefined }), 422, 'PROVER_CLAIM'],
    ['with a number as sub', () => ({ sub: 5 }), 422, 'PROVER_CLAIM'],
    ['with a list as sub', () => ({ sub: ['1'] }), 422, 'PROVER_CLAIM'],
    ['with an empty sub', () => ({ sub: '' }), 422, 'PROVER_CLAIM'],
    ['with a quote in sub', () => ({ sub: 'a"b' }), 422, 'PROVER_CLAIM'],
    ['with a sub that is not ASCII', () => ({ sub: 'Zoë' }), 422, 'PROVER_CLAIM'],
    ['with a sub that is too long', () => ({ sub: 's'.repeat(114) }), 422, 'PROVER_CLAIM'],
    ['that has expired', () => ({ exp: now() - 61 }), 401, 'PROVER_TOKEN_REFUSED'],
    ['without exp', () => ({ exp: undefined }), 401, 'PROVER_TOKEN_REFUSED'],
    ['with a text as exp', () => ({ exp: String(now() + 60) }), 401, 'PROVER_TOKEN_REFUSED'],
    ['that is not valid yet', () => ({ nbf: now() + 70 }), 401, 'PROVER_TOKEN_REFUSED'],
    ['with null as nbf', () => ({ nbf: null }), 401, 'PROVER_TOKEN_REFUSED'],
    ['issued in the future', () => ({ iat: now() + 70 }), 401, 'PROVER_TOKEN_REFUSED'],
    ['without iat', () => ({ iat: undefined }), 401, 'PROVER_TOKEN_REFUSED'],
    ['without a nonce', () => ({ nonce: undefined }), 422, 'PROVER_CLAIM'],
    ['with another nonce', () => ({ nonce: `A${NONCE.slice(1)}` }), 422, 'PROVER_NONCE'],
    ['with a list as nonce', () => ({ nonce: [NONCE] }), 422, 'PROVER_NONCE'],
    ['that is too long', () => ({ more: 'm'.repeat(1100) }), 422, 'PROVER_PROFILE'],
  ])('%s', async (_, claims, status, code) => {
    const { refusal, token } = await setUp();
    expect(await refusal(requestFor(await token(claims())))).toEqual([status, code]);
  });

  test('with email as the key claim, which is missing, not verified or not a string', async () => {
    const { refusal, token } = await setUp();
    for (const claims of [
      {},
      { email: 'a@id.example' },
      { email: 'a@id.example', email_verified: false },
      { email: 'a@id.example', email_verified: 1 },
      { email: ['a@id.example'], email_verified: true },
    ]) {
      const request = requestFor(await token(claims), { keyClaimName: 'email' });
      expect(await refusal(request)).toEqual([422, 'PROVER_CLAIM']);
    }
  });

  test.each([
    ['sub twice', (claims: string) => claims.replace('"sub"', '"sub":"victim","sub"')],
    [
      'sub twice, once under an escaped name',
      (claims: string) => claims.replace('"sub"', '"\\u0073ub":"x","sub"'),
    ],
    ['aud twice', (claims: string) => claims.replace('"aud"', '"aud":"another","aud"')],
    ['nonce twice', (claims: string) => claims.replace('"nonce"', `"nonce":"${NONCE}","nonce"`)],
    ['iss twice', (claims: string) => claims.replace('"iss"', '"iss":"https://evil.example","iss"')],
    ['an escape in sub', (claims: string) => claims.replace('"sub":"1', '"sub":"\\u0031')],
    ['an escape in the name of sub', (claims: string) => claims.replace('"sub"', '"s\\u0075b"')],
  ])('with %s, although the issuer signed it', async (_, change) => {
    const { refusal, issuer } = await setUp();
    const times = { iat: now(), exp: now() + 600 };
    const claims = JSON.stringify({ iss: GOOGLE, aud: CLIENT_ID, sub: '1104', nonce: NONCE, ...times });
    expect(await refusal(requestFor(await signPayload(issuer, change(claims))))).toEqual([
      422,
      'PROVER_CLAIM',
    ]);
  });
});

describe('a token with a changed header, key or signature is refused:', () => {
  test.each<[string, object, number, string]>([
    ['of the algorithm none', { alg: 'none' }, 401, 'PROVER_TOKEN_REFUSED'],
    ['of another algorithm', { alg: 'RS512' }, 401, 'PROVER_TOKEN_REFUSED'],
    ['of another type', { typ: 'at+jwt' }, 401, 'PROVER_TOKEN_REFUSED'],
    ['without kid', { kid: undefined }, 401, 'PROVER_TOKEN_REFUSED'],
    ['with a list as kid', { kid: ['key-1'] }, 401, 'PROVER_TOKEN_REFUSED'],
    ['with an unknown kid', { kid: 'key-2' }, 401, 'PROVER_TOKEN_REFUSED'],
    ['with a critical extension', { crit: ['x'], x: 1 }, 400, 'PROVER_TOKEN'],
  ])('%s', async (_, header, status, code) => {
    const { refusal, issuer, token } = await setUp();
    const [, payload, signature] = (await token()).split('.');
    const changedHeader = base64url({ alg: 'RS256', kid: issuer.kid, typ: 'JWT', ...header });
    expect(await refusal(requestFor(`${changedHeader}.${payload}.${signature}`))).toEqual([status, code]);
  });

  test('signed with HS256 and the public key as its secret', async () => {
    const { refusal, issuer } = await setUp();
    const key = new TextEncoder().encode(await exportSPKI(issuer.publicKey));
    const jwt = await issuer.token({ nonce: NONCE }, { header: { alg: 'HS256' }, key });
    expect(await refusal(requestFor(jwt))).toEqual([401, 'PROVER_TOKEN_REFUSED']);
  });

  test('signed by another key, with the same kid or its own key in the header', async () => {
    const { refusal, issuer } = await setUp();
    const attacker = await Issuer.start();
    const header = { jwk: attacker.keys[0], jku: `${attacker.origin}/jwks` };
    for (const tokenHeader of [{}, header]) {
      const jwt = await issuer.token({ nonce: NONCE }, { header: tokenHeader, key: attacker.privateKey });
      expect(await refusal(requestFor(jwt))).toEqual([401, 'PROVER_TOKEN_REFUSED']);
    }
    expect(attacker.asked).toBe(0);
  });

  test('with the payload of another token', async () => {
    const { refusal, token } = await setUp();
    const [header, , signature] = (await token()).split('.');
    const [, payload] = (await token({ sub: 'victim' })).split('.');
    expect(await refusal(requestFor(`${header}.${payload}.${signature}`))).toEqual([
      401,
      'PROVER_TOKEN_REFUSED',
    ]);
  });

  test('signed by a key of 3072 bits, which the circuit does not accept', async () => {
    const { refusal, issuer } = await setUp();
    const { privateKey, publicKey } = await crypto.subtle.generateKey(
      {
        name: 'RSASSA-PKCS1-v1_5',
        hash: 'SHA-256',
        modulusLength: 3072,
        publicExponent: Uint8Array.of(1, 0, 1),
      },
      true,
      ['sign', 'verify'],
    );
    issuer.keys = [
      { ...((await crypto.subtle.exportKey('jwk', publicKey)) as JWK), kid: 'large', use: 'sig' },
    ];
    const jwt = await issuer.token({ nonce: NONCE }, { header: { kid: 'large' }, key: privateKey });
    const [, code] = await refusal(requestFor(jwt));
    expect(code).toBeOneOf(['PROVER_KEY', 'PROVER_TOKEN']);
  });

  test.each(['', 'x', 'a.b', 'a.b.c', '..', 'e30.e30.e30', 'a.b.c.d.e'])('that is %j', async (jwt) => {
    const { refusal, issuer } = await setUp();
    expect((await refusal(requestFor(jwt)))[0]).toBeOneOf([400, 401]);
    expect(issuer.asked).toBe(0);
  });
});

describe('a request is refused:', () => {
  test.each<[string, object, string]>([
    ['without a salt', { salt: undefined }, 'salt is missing'],
    ['with an unknown property', { legacy: true }, 'unknown property: legacy'],
    ['with a salt as a number', { salt: 5 }, 'salt must'],
    ['with a salt of 17 bytes', { salt: String(2n ** 128n) }, 'salt must'],
    ['with a negative salt', { salt: '-1' }, 'salt must'],
    ['with a salt in hex', { salt: '0x10' }, 'salt must'],
    ['with a salt in base64url', { salt: 'AAAAAAAAAAAAAAAAAAAA-w==' }, 'salt must'],
    [
      'with randomness of 15 bytes',
      { jwtRandomness: Buffer.alloc(15, 1).toString('base64') },
      'jwtRandomness must',
    ],
    [
      'with a key of another scheme',
      { extendedEphemeralPublicKey: String(3n << 264n) },
      'extendedEphemeralPublicKey must',
    ],
    ['with an epoch that is not an integer', { maxEpoch: '1.5' }, 'maxEpoch must'],
    ['with an epoch beyond 64 bits', { maxEpoch: String(2n ** 64n) }, 'maxEpoch must'],
    ['with a token that is a list', { jwt: ['x'] }, 'jwt must'],
    ['with a key claim that users choose', { keyClaimName: 'name' }, 'keyClaimName must be "sub" or "email"'],
    ['with a key claim that is a list', { keyClaimName: ['sub'] }, 'keyClaimName must'],
  ])('%s, with an error that names the property', async (_, changes, message) => {
    const { post, token, backend } = await setUp();
    const { status, body } = await post(requestFor(await token(), changes));
    expect([status, body['code']]).toEqual([400, 'PROVER_REQUEST']);
    expect(body['error']).toContain(message);
    expect(backend.inputs).toEqual([]);
  });

  test.each<[string, object]>([
    ['epoch', { maxEpoch: '7' }],
    ['randomness', { jwtRandomness: '7' }],
    ['key', { extendedEphemeralPublicKey: '7' }],
  ])('with a different %s than the nonce has', async (_, changes) => {
    const { refusal, token } = await setUp();
    expect(await refusal(requestFor(await token(), changes))).toEqual([422, 'PROVER_NONCE']);
  });

  test.each([[null], [[]], ['x'], [5]])('that is %j', async (body) => {
    const { refusal } = await setUp();
    expect(await refusal(JSON.stringify(body))).toEqual([400, 'PROVER_REQUEST']);
  });
});

test('neither an answer nor the log repeats a part of a token, a salt or randomness, even with DEBUG=*', async () => {
  const frontend = await startTestFrontend({ USER_REQUESTS_PER_MINUTE: '10000' });
  const secret = { sub: 'hunter2-subject', email: 'hunter2@id.example', name: 'hunter2' };
  const jwts = [
    await frontend.token(secret),
    await frontend.token({ ...secret, iss: 'https://hunter2.example' }),
    await frontend.token({ ...secret, aud: 'hunter2-client' }),
    await frontend.token({ ...secret, azp: 'hunter2-presenter' }),
    await frontend.token({ ...secret, nonce: 'hunter2-nonce' }),
    await frontend.token({ ...secret, sub: 'hunter"2' }),
    await frontend.token({ ...secret, exp: 'hunter2' }),
    await frontend.token(secret, { kid: 'hunter2' }),
    await frontend.token(secret, { typ: 'hunter2' }),
    'hunter2.hunter2.hunter2',
  ];
  let answers = '';
  const requests = jwts.flatMap((jwt) => [
    requestFor(jwt),
    requestFor(jwt, { salt: 'hunter2' }),
    requestFor(jwt, { keyClaimName: 'name' }),
    requestFor(jwt, { keyClaimName: 'hunter2', jwtRandomness: 'hunter2' }),
  ]);
  const proofs: string[] = [];
  for (const request of requests) {
    const { status, body } = await frontend.post(request);
    if (status === 200) proofs.push((body as { proofPoints: { a: string[] } }).proofPoints.a[0] as string);
    else answers += JSON.stringify(body);
  }
  expect(proofs).toHaveLength(1);
  frontend.backend.prove = ({ input }, response) => response.writeHead(500).end(JSON.stringify(input));
  answers += JSON.stringify((await frontend.post(requestFor(jwts[0] as string))).body);
  const payload = (jwts[0] as string).split('.')[1] as string;
  const secrets = ['hunter', SALT, RANDOMNESS, NONCE, payload.slice(20, 60), ...proofs];
  expect(frontend.printed()).toContain('made a proof');
  expect(frontend.printed()).toContain('PROVER_TOKEN_REFUSED');
  for (const secret of secrets) {
    expect(answers).not.toContain(secret);
    expect(frontend.printed()).not.toContain(secret);
  }
});
