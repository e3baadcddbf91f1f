import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { type ClaimError, decodeJwtPayload } from '../../../../src/library/zklogin/index.ts';
import { checkToken } from '../../../../src/library/zklogin/jwt.ts';
import { base64url, createJwt, issuerDetails, NOW, validatorsIssuer } from './support.ts';

describe('the payload of a JWT', () => {
  test('has only optional fields, and its aud is a string or an array', () => {
    expect(decodeJwtPayload(createJwt({}))).toEqual({});
    const all = { iss: 'i', sub: 's', aud: 'a', exp: 1, nbf: 2, iat: 3.5, jti: 'j', more: { any: true } };
    expect(decodeJwtPayload(createJwt(all))).toEqual(all);
    expect(decodeJwtPayload(createJwt({ aud: ['a', 'b'] })).aud).toEqual(['a', 'b']);
    expect(decodeJwtPayload(createJwt({ sub: 'Zoë 🎲' })).sub).toBe('Zoë 🎲');
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
  ])('is refused if %s is %j', (claim, value) => {
    expect(() => decodeJwtPayload(createJwt({ [claim]: value }))).toThrow(
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
    ` ${createJwt({})}`,
    `${createJwt({})}.`,
    createJwt({}).replaceAll('.', '..'),
  ])('is not read from %j', (jwt) => {
    expect(() => decodeJwtPayload(jwt)).toThrow(expect.objectContaining({ code: 'ZKLOGIN_TOKEN' }));
  });
});

describe('the payload of a token', () => {
  const issuer = 'https://id.example';
  const expected = { issuer, clientId: 'c', nonce: 'n' };
  const good = { iss: issuer, aud: 'c', nonce: 'n', sub: 's', exp: NOW / 1000 + 60 };
  const text = JSON.stringify(good);
  const check = (payload: string) => () => checkToken(createJwt(payload), expected, NOW);
  const refusal = (claim: string) => expect.objectContaining({ code: 'ZKLOGIN_CLAIM', claim });

  test('is accepted if a claim occurs once, even if the values of other claims equal its name', () => {
    expect(check(text)).not.toThrow();
    expect(check(text.replace('{', '{"x":["sub","iss"],"y":"sub","z":"\\"sub\\"",'))).not.toThrow();
  });

  test.each(['iss', 'aud', 'nonce', 'sub'])('is refused if %s occurs twice, in any order', (name) => {
    for (const forgery of [
      `"${name}":"other"`,
      `"${name}" \t: "other"`,
      `"${name}":5`,
      `"in":{"${name}":"other"}`,
    ]) {
      expect(check(text.replace('{', `{${forgery},`))).toThrow(refusal(name));
      expect(check(text.replace('}', `,${forgery}}`))).toThrow();
    }
  });

  test('is refused if a claim has an escape, even if another claim contains the text of the claim without it', () => {
    const nested = `${text.replace('"sub":"s"', '"sub":"\\u0073"').slice(0, -1)},"in":{"sub":"s"}}`;
    expect(JSON.parse(nested).sub).toBe('s');
    expect(check(nested)).toThrow(refusal('sub'));
  });
});

describe('the issuer', () => {
  const issuer = 'https://id.example/pool_1';
  const expected = { issuer, clientId: 'c', nonce: 'n' };
  const otherClaims = `"aud":"c","sub":"s","nonce":"n","exp":${NOW / 1000 + 60}`;
  const written = String.raw`"iss":"https:\/\/id.example\/pool_1"`;
  const check = (payload: string, issuer = expected.issuer) =>
    checkToken(createJwt(payload), { ...expected, issuer }, NOW);

  test.each([
    ['with / as PHP and AWS Cognito write it', written],
    ['with / as a Unicode escape', String.raw`"iss":"https:\u002f\u002Fid.example/pool_1"`],
    [
      'with any other character as a Unicode escape',
      String.raw`"iss":"\u0068ttps://id.example/p\u006Fol\u005f1"`,
    ],
    ['with a Unicode escape in its name', String.raw`"i\u0073s":"https://id.example/pool_1"`],
    [
      'with Unicode escapes for its whole name',
      String.raw`"\u0069\u0073\u0073":"https:\/\/id.example/pool_1"`,
    ],
    ['with white space', `"iss"  :\t"${issuer}" `],
    [
      'with more white space than the claims that the circuit parses may have',
      `"iss" \n :\r\n\t\t "${issuer}"  `,
    ],
  ])('is accepted %s, at any position, and validators can parse it', (_label, claim) => {
    for (const payload of [
      `{${claim},${otherClaims}}`,
      `{${otherClaims},${claim}}`,
      `{ "a":1 ,${claim},${otherClaims}}`,
    ]) {
      expect(check(payload).issuer).toBe(issuer);
      const extended = claim + payload[payload.indexOf(claim) + claim.length];
      expect(validatorsIssuer(issuerDetails(createJwt(payload), extended))).toBe(issuer);
    }
  });

  test.each([
    ['a string that quotes another issuer', String.raw`"x":"\"iss\":\"https:\/\/evil.example\","`],
    [
      'a string that quotes another issuer with Unicode escapes',
      String.raw`"x":"{\"i\\u0073s\":\"https:\/\/evil.example\"}"`,
    ],
    ['a list that contains iss', String.raw`"iss":"https:\/\/id.example\/pool_1","x":["iss","i\u0073s"]`],
    ['names that contain iss', String.raw`"issuer":"x","miss":"x","iss\u0020":"x","x:iss":"x","iss\\":"x"`],
  ])('is not mistaken for %s', (_label, forgery) => {
    const issClaim = forgery.startsWith('"iss":') ? '' : `${written},`;
    expect(check(`{${forgery},${issClaim}${otherClaims}}`).issuer).toBe(issuer);
  });

  const refused = expect.objectContaining({ code: 'ZKLOGIN_CLAIM', claim: 'iss' });

  test.each([
    ['twice', `${written},"iss":"https://id.example/pool_1"`],
    [
      'twice, once with a Unicode escape in its name',
      String.raw`${written},"i\u0073s":"https://id.example/pool_1"`,
    ],
    ['if another claim contains it, too', String.raw`"x":{"iss":"https:\/\/evil.example"},${written}`],
    [
      'if another claim contains it, too, with a Unicode escape in its name',
      String.raw`"x":[{"\u0069ss":"https://evil"}],${written}`,
    ],
    ['if only another claim contains it', `"x":{${written}}`],
    ['after a name that ends with iss', String.raw`"\"iss":"https://evil.example",${written}`],
    ['with backslashes that are not escapes', String.raw`"iss":"https:\\/\\/id.example\\/pool_1"`],
    ['if it is another issuer', String.raw`"iss":"https:\/\/id.example\/pool_2"`],
  ])('is refused %s', (_label, claims) => {
    expect(() => check(`{${claims},${otherClaims}}`)).toThrow(refused);
    expect(() => check(`{${otherClaims},${claims}}`)).toThrow(refused);
  });

  test.each([
    'https://id.example/\u0000',
    'https://id.example/"',
    'https://id.example/\\',
    'https://id.exämple',
  ])('is refused if it decodes to %j', (otherIssuer) => {
    expect(() => check(`{"iss":${JSON.stringify(otherIssuer)},${otherClaims}}`, otherIssuer)).toThrow(
      refused,
    );
  });

  test('may have 165 characters as written: each character of an escape counts', () => {
    const long = (characters: number) => `https://id.example/${'p'.repeat(characters - 19)}`;
    const claim = (value: string) => `"iss":"${value}"`;
    const slashes = (value: string) => value.replaceAll('/', String.raw`\/`);
    // Name, colon and quotes take eight characters, and the claim's end takes one.
    for (const [characters, write] of [
      [156, (value: string) => value],
      [153, slashes],
    ] as const) {
      const [good, tooLong] = [long(characters), long(characters + 1)];
      expect(check(`{${otherClaims},${claim(write(good))}}`, good).issuer).toBe(good);
      expect(() => check(`{${otherClaims},${claim(write(tooLong))}}`, tooLong)).toThrow(refused);
      expect(() => check(`{${otherClaims},${claim(write(good))} }`, good)).toThrow(/has 166 characters/);
    }
  });

  test('is accepted in every spelling of JSON, up to 165 characters, as validators parse it', () => {
    const code = (character: string, upper: boolean) => {
      const hex = character.charCodeAt(0).toString(16).padStart(4, '0');
      return `\\u${upper ? hex.toUpperCase() : hex}`;
    };
    const spell = (text: string, choices: number[]) =>
      [...text]
        .map((character, i) => {
          const choice = choices[i % choices.length] ?? 0;
          if (choice > 17) return code(character, choice === 18);
          return choice > 9 && character === '/' ? '\\/' : character;
        })
        .join('');
    const space = fc.string({ unit: fc.constantFrom(' ', '\t', '\n', '\r'), maxLength: 9 });
    const choices = fc.array(fc.nat(19), { minLength: 25, maxLength: 25 });
    const seen = new Set<boolean>();
    fc.assert(
      fc.property(choices, choices, space, space, space, fc.nat(3), (name, value, a, b, c, place) => {
        const claim = `"${spell('iss', name)}"${a}:${b}"${spell(issuer, value)}"${c}`;
        const claims = otherClaims.split(',');
        claims.splice(place, 0, claim);
        const payload = `{${claims.join(',')}}`;
        const isAccepted = claim.length + 1 <= 165;
        seen.add(isAccepted);
        if (!isAccepted) return expect(() => check(payload)).toThrow(refused);
        expect(check(payload).issuer).toBe(issuer);
        expect(validatorsIssuer(issuerDetails(createJwt(payload), `${claim},`))).toBe(issuer);
      }),
      { numRuns: 300 },
    );
    expect(seen).toContain(true);
  });

  test.each([
    ['aud', String.raw`"aud":"https:\/\/api"`, 'https://api'],
    ['sub', String.raw`"sub":"a\/b"`, 'c'],
    ['sub', String.raw`"s\u0075b":"s"`, 'c'],
    ['nonce', String.raw`"nonce":"\u006e"`, 'c'],
  ])('is the only claim that may have escapes: %s is refused, as %s', (claim, text, clientId) => {
    const payload = `{${written},${otherClaims.replace(new RegExp(`"${claim}":"[^"]*"`), () => text)}}`;
    expect(() => checkToken(createJwt(payload), { ...expected, clientId }, NOW)).toThrow(
      expect.objectContaining({
        code: 'ZKLOGIN_CLAIM',
        claim,
        message: expect.stringContaining('is written with escapes'),
      }),
    );
  });
});

test('a subject is accepted if and only if it is 1 to 113 characters of printable ASCII without " and \\', () => {
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
      const jwt = createJwt({ iss: expected.issuer, aud: 'c', nonce: 'n', exp: NOW / 1000 + 60, sub });
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
