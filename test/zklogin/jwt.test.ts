import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { type ClaimError, decodeJwtPayload } from '../../src/zklogin/index.ts';
import { checkToken } from '../../src/zklogin/jwt.ts';
import { base64url, jwtOf, NOW } from './support.ts';

describe('the payload of a JWT', () => {
  test('has every field optional, and aud a text or a list', () => {
    expect(decodeJwtPayload(jwtOf({}))).toEqual({});
    const all = { iss: 'i', sub: 's', aud: 'a', exp: 1, nbf: 2, iat: 3.5, jti: 'j', more: { any: true } };
    expect(decodeJwtPayload(jwtOf(all))).toEqual(all);
    expect(decodeJwtPayload(jwtOf({ aud: ['a', 'b'] })).aud).toEqual(['a', 'b']);
    expect(decodeJwtPayload(jwtOf({ sub: 'Zoë 🎲' })).sub).toBe('Zoë 🎲');
  });

  test.each([
    ['iss', 5],
    ['sub', null],
    ['sub', ['s']],
    ['jti', {}],
    ['aud', 5],
    ['aud', ['a', 5]],
    ['exp', '1'],
    ['nbf', null],
    ['iat', true],
  ])('is refused with %s as %j', (claim, value) => {
    expect(() => decodeJwtPayload(jwtOf({ [claim]: value }))).toThrow(
      expect.objectContaining({ code: 'ZKLOGIN_CLAIM', claim }),
    );
  });

  test.each([
    '',
    'x',
    'a.b',
    'a.b.c',
    `${base64url({})}.${base64url('[]')}.x`,
    `${base64url({})}.${base64url('null')}.x`,
    `${base64url({})}.${base64url('{')}.x`,
    `${base64url({})}.${Buffer.from([0x7b, 0xff, 0x7d]).toString('base64url')}.x`,
    ` ${jwtOf({})}`,
    `${jwtOf({})}.`,
    jwtOf({}).replaceAll('.', '..'),
  ])('is not in %j', (jwt) => {
    expect(() => decodeJwtPayload(jwt)).toThrow(expect.objectContaining({ code: 'ZKLOGIN_TOKEN' }));
  });
});

describe('a claim stands in the payload once', () => {
  const issuer = 'https://id.example';
  const expected = { issuer, clientId: 'c', nonce: 'n' };
  const good = { iss: issuer, aud: 'c', nonce: 'n', sub: 's', exp: NOW / 1000 + 60 };
  const text = JSON.stringify(good);
  const check = (payload: string) => () => checkToken(jwtOf(payload), expected, NOW);
  const refusal = (claim: string) => expect.objectContaining({ code: 'ZKLOGIN_CLAIM', claim });

  test('and is taken then, whatever has its name as a value', () => {
    expect(check(text)).not.toThrow();
    expect(check(text.replace('{', '{"x":["sub","iss"],"y":"sub","z":"\\"sub\\"",'))).not.toThrow();
  });

  test.each(['iss', 'aud', 'nonce', 'sub'])('%s is refused twice, in any order', (name) => {
    for (const other of [
      `"${name}":"other"`,
      `"${name}" \t: "other"`,
      `"${name}":5`,
      `"in":{"${name}":"other"}`,
    ]) {
      expect(check(text.replace('{', `{${other},`))).toThrow(refusal(name));
      expect(check(text.replace('}', `,${other}}`))).toThrow();
    }
  });

  test('and is not taken from within another where it is written with an escape itself', () => {
    const nested = `${text.replace('"sub":"s"', '"sub":"\\u0073"').slice(0, -1)},"in":{"sub":"s"}}`;
    expect(JSON.parse(nested).sub).toBe('s');
    expect(check(nested)).toThrow(refusal('sub'));
  });
});

test('a subject is taken if and only if it is 1 to 113 characters of printable ASCII without " and \\', () => {
  const character = fc.oneof(
    { weight: 60, arbitrary: fc.integer({ min: 0x20, max: 0x7e }).map((code) => String.fromCharCode(code)) },
    { weight: 1, arbitrary: fc.string({ unit: 'binary', minLength: 1, maxLength: 1 }) },
  );
  const expected = { issuer: 'https://id.example', clientId: 'c', nonce: 'n' };
  const seen = new Set<boolean>();
  fc.assert(
    fc.property(fc.array(character, { maxLength: 120 }), (characters) => {
      const sub = characters.join('');
      const good = /^[ !#-[\]-~]{1,113}$/.test(sub);
      seen.add(good);
      const jwt = jwtOf({ iss: expected.issuer, aud: 'c', nonce: 'n', exp: NOW / 1000 + 60, sub });
      let refused: ClaimError | undefined;
      try {
        expect(checkToken(jwt, expected, NOW).subject).toBe(sub);
      } catch (error) {
        refused = error as ClaimError;
      }
      expect(refused?.claim).toBe(good ? undefined : 'sub');
    }),
    { numRuns: 500 },
  );
  expect(seen.size).toBe(2);
});
