/**
 * Tests verification as its callers use it. The tests of the salt service and of the prover contain the
 * attacks on tokens.
 */
import { describe, expect, test } from 'vitest';
import { IssuerKeys, KEYS_BOUNDS } from '../../../../src/service/oidc/keys.ts';
import { readToken, TokenVerifier, type VerifierOptions } from '../../../../src/service/oidc/verify.ts';
import { createUpstream } from '../../../../src/service/upstream.ts';
import { CLIENT_ID, GOOGLE, Issuer } from '../../../../src/testing/oidc_issuer.ts';

async function setUp(
  client: { clientId?: string; presenters?: string[] } = { clientId: CLIENT_ID },
  options?: VerifierOptions,
) {
  const issuer = await Issuer.start();
  const keys = new IssuerKeys(createUpstream(issuer.origin)(KEYS_BOUNDS), '/jwks');
  const acceptedClient = { issuer: GOOGLE, presenters: [], ...client };
  return { issuer, acceptedClient, verifier: new TokenVerifier([acceptedClient], () => keys, options) };
}

test('verify returns the client, the claims and the canonical key', async () => {
  const { issuer, verifier, acceptedClient } = await setUp();
  const {
    client,
    issuer: iss,
    payload,
    key,
  } = await verifier.verify(await issuer.token({ email: 'a@id.example' }));
  expect(client).toBe(acceptedClient);
  expect([iss, payload['email']]).toEqual([GOOGLE, 'a@id.example']);
  expect(key).toEqual({ kty: 'RSA', n: issuer.keys[0]?.n, e: 'AQAB' });
});

test('verify always returns the same spelling of an issuer that has two spellings', async () => {
  const { issuer, verifier } = await setUp();
  const verified = await verifier.verify(await issuer.token({ iss: 'accounts.google.com' }));
  expect([verified.issuer, verified.payload.iss]).toEqual([GOOGLE, 'accounts.google.com']);
});

test('an accepted client without an id matches every client of its issuer, with any presenter', async () => {
  const { issuer, verifier } = await setUp({});
  await verifier.verify(await issuer.token({ aud: 'anyone', azp: 'anybody' }));
  await expect(verifier.verify(await issuer.token({ iss: 'https://id.example' }))).rejects.toMatchObject({
    code: 'ISSUER_NOT_ALLOWED',
  });
});

describe('a refused token', () => {
  const now = Math.floor(Date.now() / 1000);
  test.each<[string, object, Record<string, unknown>, object]>([
    ['algorithm', {}, { alg: 'PS256' }, { code: 'TOKEN_ALGORITHM' }],
    ['type', {}, { typ: 'at+jwt' }, { code: 'TOKEN_TYPE' }],
    ['key id', {}, { kid: 'unknown' }, { code: 'TOKEN_KEY_UNKNOWN' }],
    ['exp', { exp: now - 61 }, {}, { code: 'TOKEN_EXPIRED' }],
    ['nbf', { nbf: now + 70 }, {}, { code: 'TOKEN_NOT_YET_VALID' }],
    ['iat', { iat: now + 70 }, {}, { code: 'TOKEN_NOT_YET_VALID' }],
    ['sub', { sub: undefined }, {}, { code: 'TOKEN_CLAIM', claim: 'sub' }],
    ['aud', { aud: [CLIENT_ID] }, {}, { code: 'TOKEN_CLAIM', claim: 'aud' }],
    ['client', { aud: 'another' }, {}, { code: 'CLIENT_NOT_ALLOWED' }],
    ['presenter', { azp: 'another' }, {}, { code: 'PRESENTER_NOT_ALLOWED' }],
  ])('causes an error with the code of its fault: %s', async (_, claims, header, expected) => {
    const { issuer, verifier } = await setUp();
    const [, payload, signature] = (await issuer.token({ ...claims })).split('.');
    const changedHeader = Buffer.from(
      JSON.stringify({ alg: 'RS256', kid: issuer.kid, typ: 'JWT', ...header }),
    );
    const isSigned = Object.keys(header).length === 0;
    const jwt = isSigned
      ? await issuer.token({ ...claims })
      : `${changedHeader.toString('base64url')}.${payload}.${signature}`;
    await expect(verifier.verify(jwt)).rejects.toMatchObject(expected);
  });

  test('causes an error that repeats nothing of the token', async () => {
    const { issuer, verifier } = await setUp();
    for (const claims of [{ exp: 'hunter2' }, { aud: 'hunter2' }, { iss: 'hunter2' }, { azp: 'hunter2' }]) {
      const error = await verifier.verify(await issuer.token(claims)).catch((error: Error) => error);
      expect(String(error)).toMatch(/Error/);
      expect(`${error} ${(error as Error).cause}`).not.toContain('hunter2');
    }
  });
});

test('only the verification of a signature is subject to the limit', async () => {
  let limitedCount = 0;
  const limit: VerifierOptions['limit'] = (work) => {
    limitedCount++;
    return work();
  };
  const { issuer, verifier } = await setUp({ clientId: CLIENT_ID }, { limit });
  await expect(verifier.verify(await issuer.token({ aud: 'another' }))).rejects.toThrow();
  expect(limitedCount).toBe(0);
  await verifier.verify(await issuer.token());
  expect(limitedCount).toBe(1);
});

test('readToken throws only an OidcError, for any text', () => {
  for (const text of [
    '',
    '.',
    '..',
    'e30.e30.',
    'bnVsbA.bnVsbA.',
    'W10.W10.x',
    '\0.\0.\0',
    'a'.repeat(10_000),
  ]) {
    expect(() => readToken(text)).toThrow(
      expect.objectContaining({ name: expect.stringMatching(/OidcError|TokenClaimError/) }),
    );
  }
});
