import { describe, expect, test } from 'vitest';
import { readProofRequest } from '../../../src/prover/request.ts';
import { verifyToken } from '../../../src/prover/token.ts';
import { CLAIMS, EPHEMERAL_KEY, OUR_KEY, REAL_TOKENS, requestFor, signToken } from './support.ts';

const KEYS = { keys: [OUR_KEY] };
const PUBLIC = { kty: 'RSA', n: OUR_KEY.n, e: 'AQAB' };
const NOW = new Date(CLAIMS.iat * 1000);
const addSeconds = (by: number) => new Date(NOW.getTime() + by * 1000);
const HEADER = { alg: 'RS256', kid: 'ours', typ: 'JWT' };
const token = (claims = {}, header = {}) =>
  signToken(JSON.stringify({ ...CLAIMS, ...claims }), { ...HEADER, ...header });
const REFUSED = expect.objectContaining({ code: 'PROVER_TOKEN_REFUSED' });

describe('a token is verified', () => {
  test.each(REAL_TOKENS)('that $provider issued', async ({ request, key }) => {
    const { iat } = JSON.parse(Buffer.from(request.jwt.split('.')[1] ?? '', 'base64url').toString());
    expect(await verifyToken(request.jwt, { keys: [key] }, new Date(iat * 1000))).toEqual({
      kty: 'RSA',
      n: key.n,
      e: key.e,
    });
  });

  test('from a minute before its iat until a minute after its exp, and without typ', async () => {
    expect(await verifyToken(token(), KEYS, addSeconds(-60))).toEqual(PUBLIC);
    expect(await verifyToken(token({ exp: CLAIMS.iat }, { typ: undefined }), KEYS, addSeconds(59))).toEqual(
      PUBLIC,
    );
  });
});

describe('a token is refused', () => {
  test.each<[string, string, unknown, Date?]>([
    ['after exp', token(), KEYS, new Date((CLAIMS.exp + 60) * 1000)],
    ['before iat', token(), KEYS, addSeconds(-61)],
    ['before nbf', token({ nbf: CLAIMS.iat + 100 }), KEYS],
    ['without exp', token({ exp: undefined }), KEYS],
    ['without iat', token({ iat: undefined }), KEYS],
    ['of another algorithm', token({}, { alg: 'RS512' }), KEYS],
    ['of no algorithm', token({}, { alg: 'none' }), KEYS],
    ['of another type', token({}, { typ: 'at+jwt' }), KEYS],
    ['without a key id', token({}, { kid: undefined }), KEYS],
    ['signed by an unknown key', token({}, { kid: 'other' }), KEYS],
    ['signed by a key that occurs twice', token(), { keys: [OUR_KEY, OUR_KEY] }],
    ['signed by a key for encryption', token(), { keys: [{ ...OUR_KEY, use: 'enc' }] }],
    ['signed by a key of another algorithm', token(), { keys: [{ ...OUR_KEY, alg: 'RS512' }] }],
    ['with a list of keys in place of a key set', token(), [OUR_KEY]],
    [
      'with the payload of another token',
      token().replace(/\.[^.]+\./, `.${token({ sub: 'other' }).split('.')[1]}.`),
      KEYS,
    ],
    ['signed by another key with the same id', token(), { keys: [{ ...REAL_TOKENS[0]?.key, kid: 'ours' }] }],
  ])('%s', async (_, jwt, keys, at = NOW) => {
    await expect(verifyToken(jwt, keys, at)).rejects.toThrow(REFUSED);
  });

  test('that is not a JWT', async () => {
    await expect(verifyToken('x', KEYS, NOW)).rejects.toThrow(
      expect.objectContaining({ code: 'PROVER_TOKEN' }),
    );
  });
});

describe('a request', () => {
  const request = { ...requestFor('a.b.c'), extendedEphemeralPublicKey: String(EPHEMERAL_KEY) };

  test('is returned unchanged', () => {
    expect(readProofRequest(request)).toEqual(request);
    expect(readProofRequest({ ...request, maxEpoch: '10' })).toEqual({ ...request, maxEpoch: '10' });
  });

  test.each<[string, unknown, RegExp]>([
    ['null', null, /must be a JSON object/],
    ['a list', [request], /must be a JSON object|is missing/],
    ['a missing property', { ...request, salt: undefined }, /^salt /],
    ['an unknown property', { ...request, legacy: true }, /^unknown property: legacy$/],
    [
      'a key as a number, which has lost its low digits',
      { ...request, extendedEphemeralPublicKey: 1e77 },
      /^extendedEphemeralPublicKey must/,
    ],
    ['an epoch that is not an integer', { ...request, maxEpoch: 1.5 }, /^maxEpoch must/],
  ])('is refused: %s', (_, value, message) => {
    expect(() => readProofRequest(value)).toThrow(
      expect.objectContaining({ code: 'PROVER_REQUEST', message: expect.stringMatching(message) }),
    );
  });
});
