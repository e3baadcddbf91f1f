import { genAddressSeed } from '@mysten/sui/zklogin';
import { describe, expect, test } from 'vitest';
import { type BuiltInput, buildInput, readNumbers, type SigningKey } from '../../../src/prover/input.ts';
import { PROFILES } from '../../../src/prover/profile.ts';
import {
  CLAIMS,
  EPHEMERAL_KEY,
  NONCE,
  OUR_KEY,
  REAL_TOKENS,
  requestFor,
  requestWith,
  SALT,
  signToken,
} from './support.ts';

const build = (
  request: Parameters<typeof buildInput>[0],
  key: SigningKey = OUR_KEY,
  size: 'small' | 'full' = 'full',
) => buildInput(request, key, PROFILES[size]);
const code = (name: string) => expect.objectContaining({ code: name });

/** Returns a claim twice: its bytes in the token, at the signals' position, and its text in the signals. */
function locateClaim({ circuit }: BuiltInput, claim: string) {
  const number = (name: string) => Number(circuit[name]);
  const jwt = Buffer.from((circuit['padded_unsigned_jwt'] as string[]).map(Number)).toString('latin1');
  const index = number(`${claim}_index_b64`);
  const base64 = jwt.slice(index, index + number(`${claim}_length_b64`));
  const offset = (index - number('payload_start_index')) % 4;
  const bytes = Buffer.from('A'.repeat(offset) + base64, 'base64url').subarray(offset);
  const text = Buffer.from((circuit[`ext_${claim}`] as string[]).map(Number)).toString('latin1');
  return { bytes: bytes.toString('latin1'), text: text.slice(0, number(`ext_${claim}_length`)) };
}

describe('the input for a real token', () => {
  test.each(REAL_TOKENS)('of $provider gives the positions of its claims', ({ request, key }) => {
    const built = build(request, key);
    const [, payload = ''] = request.jwt.split('.');
    const claims = JSON.parse(Buffer.from(payload, 'base64url').toString());
    for (const [signal, name] of [
      ['kc', 'sub'],
      ['nonce', 'nonce'],
      ['ev', 'nonce'],
      ['aud', 'aud'],
    ] as const) {
      const { bytes, text } = locateClaim(built, signal);
      expect(text).toBe(bytes);
      expect(JSON.parse(`{${text.slice(0, -1)}}`)).toEqual({ [name]: claims[name] });
    }
    expect(built.addressSeed).toBe(genAddressSeed(BigInt(SALT), 'sub', claims.sub, claims.aud));
    expect(built.circuit['all_inputs_hash']).toBe(String(built.publicInput));
    expect(built.headerBase64).toBe(request.jwt.split('.')[0]);
  });

  test('has the signals of the production circuit: 2082 private numbers and one public', () => {
    const [{ request, key }] = REAL_TOKENS as [(typeof REAL_TOKENS)[0]];
    expect(Object.values(build(request, key).circuit).flat()).toHaveLength(2083);
    expect(
      Object.entries(build(request, key).circuit).map(([name, value]) => [name, [value].flat().length]),
    ).toEqual(
      expect.arrayContaining([
        ['padded_unsigned_jwt', 1600],
        ['signature', 32],
        ['modulus', 32],
        ['ext_kc', 126],
        ['ext_nonce', 44],
        ['ext_ev', 53],
        ['ext_aud', 160],
        ['eph_public_key', 2],
      ]),
    );
  });
});

describe('a token is accepted', () => {
  test('with an issuer that has escapes, which validators decode', () => {
    const { iss, ...claims } = CLAIMS;
    const payload = `{"iss":"${iss.replaceAll('/', '\\/')}",${JSON.stringify(claims).slice(1)}`;
    const { issBase64Details } = build(requestFor(signToken(payload)));
    const { value, indexMod4 } = issBase64Details;
    expect(indexMod4).toBe(1);
    const text = Buffer.from('A'.repeat(indexMod4) + value, 'base64url')
      .subarray(indexMod4)
      .toString();
    expect(text).toBe('"iss":"https:\\/\\/id.example",');
  });

  test.each([true, 'true'])('with a verified email as the key claim (email_verified: %j)', (verified) => {
    const request = requestWith(
      { email: 'a@id.example', email_verified: verified },
      { keyClaimName: 'email' },
    );
    expect(locateClaim(build(request), 'ev').text).toContain('"email_verified":');
    expect(locateClaim(build(request), 'kc').text).toBe('"email":"a@id.example",');
  });

  test("with a property of the key claim's name inside another claim", () => {
    const built = build(requestFor(signToken(JSON.stringify({ x: { sub: 'other' }, ...CLAIMS }))));
    expect(locateClaim(built, 'kc').text).toBe(`"sub":"${CLAIMS.sub}",`);
  });

  const time = `"iat":${CLAIMS.iat},"exp":${CLAIMS.exp}`;
  test.each<[string, string, string]>([
    [
      'Cognito, with a list of identities',
      'sub',
      `{"at_hash":"x","sub":"0428b408","cognito:groups":["x"],"iss":"https:\\/\\/cognito-idp.us-east-1.amazonaws.com\\/x",` +
        `"nonce":"${NONCE}","identities":[{"userId":"1","sub":"2","aud":"x"}],"aud":"client-id",${time}}`,
    ],
    [
      'Slack, with escapes in other names and values',
      'email',
      `{"iss":"https:\\/\\/slack.com","sub":"U03","aud":"24.57","nonce":"${NONCE}",${time},"email":"a@id.example",` +
        `"email_verified":true,"https:\\/\\/slack.com\\/team_id":"T0","name":"\\"sub\\":\\"x\\",\\\\"}`,
    ],
    [
      'Apple, whose email_verified is a string',
      'email',
      `{"iss":"https://appleid.apple.com","aud":"com.example",${time},"sub":"001.a.2","nonce":"${NONCE}",` +
        `"email_verified":"true","email":"a@id.example"}`,
    ],
    [
      'Kakao, with names that are not ASCII, and white space',
      'sub',
      `{\r\n\t"aud" : "0a69c634" ,\n"nickname":"홍길동", "iss":"https://kauth.kakao.com",${time},"nonce":"${NONCE}","sub" : "29"\n}`,
    ],
  ])('of %s', (_, keyClaimName, payload) => {
    const built = build(requestFor(signToken(payload), { keyClaimName }));
    const claims = JSON.parse(payload);
    for (const [signal, name] of [
      ['kc', keyClaimName],
      ['nonce', 'nonce'],
      ['aud', 'aud'],
    ] as const) {
      const { bytes, text } = locateClaim(built, signal);
      expect(text).toBe(bytes);
      expect(JSON.parse(`{${text.slice(0, -1)}}`)).toEqual({ [name]: claims[name] });
    }
    expect(locateClaim(built, 'ev').text).toContain(
      keyClaimName === 'email' ? '"email_verified":' : '"nonce":',
    );
  });

  test('at every limit of the profile', () => {
    const name = 'n'.repeat(30);
    expect(() => build(requestWith({ [name]: 'v'.repeat(90) }, { keyClaimName: name }))).not.toThrow();
    expect(() => build(requestWith({ iss: `https://${'i'.repeat(148)}` }))).not.toThrow();
    expect(() => build(requestWith({ sub: 's'.repeat(113) }))).not.toThrow();
    expect(() => build(requestWith({ aud: 'a'.repeat(143) }))).not.toThrow();
    const spaces = JSON.stringify(CLAIMS).replace('"sub":', '"sub"   :   ');
    expect(() => build(requestFor(signToken(spaces)))).not.toThrow();
  });

  test('only while message and padding fit into 25 blocks', () => {
    const lengths = Array.from({ length: 8 }, (_, extra) => {
      const request = requestWith({ more: 'm'.repeat(992 + extra) });
      const length = request.jwt.lastIndexOf('.');
      const buildRequest = () => build(request);
      if (length > 1600 - 9) expect(buildRequest).toThrow(code('PROVER_PROFILE'));
      else expect(buildRequest().circuit['num_sha2_blocks']).toBe('25');
      return length;
    });
    expect(Math.min(...lengths)).toBeLessThanOrEqual(1591);
    expect(Math.max(...lengths)).toBeGreaterThan(1591);
  });
});

describe('a token is refused, with the reason but without its claims,', () => {
  test.each<[string, string, object]>([
    ['without the key claim', 'PROVER_CLAIM', { sub: undefined }],
    ['without an audience', 'PROVER_CLAIM', { aud: undefined }],
    ['with a list of audiences', 'PROVER_CLAIM', { aud: ['client-id'] }],
    ['with a number as the key claim', 'PROVER_CLAIM', { sub: 5 }],
    ['with an empty key claim', 'PROVER_CLAIM', { sub: '' }],
    ['with a key claim that JSON escapes', 'PROVER_CLAIM', { sub: 'a"b' }],
    ['with a key claim that is not ASCII', 'PROVER_CLAIM', { sub: 'Zoë' }],
    ['with a key claim that is too long', 'PROVER_CLAIM', { sub: 's'.repeat(114) }],
    ['with an audience that is too long', 'PROVER_CLAIM', { aud: 'a'.repeat(144) }],
    ['without an issuer', 'PROVER_CLAIM', { iss: undefined }],
    ['with an issuer that is too long', 'PROVER_PROFILE', { iss: `https://${'i'.repeat(149)}` }],
    ['without a nonce', 'PROVER_CLAIM', { nonce: undefined }],
    ['with another nonce', 'PROVER_NONCE', { nonce: `A${NONCE.slice(1)}` }],
  ])('%s', (_, expected, claims) => {
    const refused = () => build(requestWith(claims));
    expect(refused).toThrow(code(expected));
    expect(refused).toThrow(expect.objectContaining({ message: expect.not.stringContaining(NONCE) }));
  });

  test.each<[string, string, string]>([
    ['with a key claim that has an escape', 'PROVER_CLAIM', '"sub":"\\u0031"'],
    ['with a claim name that has an escape', 'PROVER_CLAIM', '"\\u0073ub":"1"'],
    ['with a claim that occurs twice', 'PROVER_CLAIM', '"sub":"1","sub":"2"'],
    ['with too much white space', 'PROVER_PROFILE', '"sub"  :  "1"   '],
  ])('%s', (_, expected, claim) => {
    const { sub, ...otherClaims } = CLAIMS;
    const payload = `{${claim},${JSON.stringify(otherClaims).slice(1)}`;
    expect(() => build(requestFor(signToken(payload)))).toThrow(code(expected));
  });

  test.each([false, 'false', 'TRUE', 1, null, undefined])(
    'with an email as the key claim whose email_verified is %j',
    (verified) => {
      const request = requestWith(
        { email: 'a@id.example', email_verified: verified },
        { keyClaimName: 'email' },
      );
      expect(() => build(request)).toThrow(code('PROVER_CLAIM'));
    },
  );

  test('with a key claim whose name and value are together too long', () => {
    const name = 'n'.repeat(30);
    const request = requestWith({ [name]: 'v'.repeat(91) }, { keyClaimName: name });
    expect(() => build(request)).toThrow(code('PROVER_PROFILE'));
  });

  test('with a header or message over its size limit', () => {
    const header = { alg: 'RS256', kid: 'k'.repeat(152), typ: 'JWT' };
    expect(() => build(requestFor(signToken(JSON.stringify(CLAIMS), header)))).toThrow(
      code('PROVER_PROFILE'),
    );
    const [{ request, key }] = REAL_TOKENS as [(typeof REAL_TOKENS)[0]];
    expect(() => build(request, key, 'small')).toThrow(code('PROVER_PROFILE'));
    // The full size accepts it, as the message says.
    expect(() => build(request, key, 'small')).toThrow(/sui-v1 \(small\) accepts 512: .*SIZE=full/);
  });

  test('that is not a JWT, or not in canonical base64url', () => {
    const { jwt } = requestWith({});
    const [header, payload, signature] = jwt.split('.') as [string, string, string];
    for (const bad of [
      '',
      'x.y',
      `${jwt}.`,
      ` ${jwt}`,
      `${header}.${payload}=.${signature}`,
      `${header}.${payload}.${signature.slice(4)}`,
      `${header}.${payload}.${signature.slice(0, -1)}_`,
    ]) {
      expect(() => build(requestFor(bad)), bad.length.toString()).toThrow(code('PROVER_TOKEN'));
    }
  });
});

test.each([
  [{ ...OUR_KEY, kty: 'EC' }],
  [{ ...OUR_KEY, e: 'Aw' }],
  [{ ...OUR_KEY, n: OUR_KEY.n?.slice(0, 171) }],
  [{ ...OUR_KEY, n: `AQ${OUR_KEY.n}` }],
  [{}],
])('a key of another kind or size is refused (%#)', (key) => {
  expect(() => build(requestWith({}), key as SigningKey)).toThrow(code('PROVER_KEY'));
});

describe('a request', () => {
  test.each([
    ['a salt over 16 bytes', { salt: String(1n << 128n) }],
    ['a negative salt', { salt: '-1' }],
    ['randomness over 16 bytes', { jwtRandomness: String(1n << 128n) }],
    ['an epoch of 2^64', { maxEpoch: String(1n << 64n) }],
    ['an epoch that is not an integer', { maxEpoch: 1.5 }],
    ['an epoch with a leading zero', { maxEpoch: '010' }],
    ['a key of another scheme', { extendedEphemeralPublicKey: (3n << 264n) + 5n }],
    ['a key of ed25519 with another flag', { extendedEphemeralPublicKey: EPHEMERAL_KEY + (1n << 256n) }],
    ['a key of 35 bytes', { extendedEphemeralPublicKey: 1n << 272n }],
    ['a claim name that is too long', { keyClaimName: 'n'.repeat(31) }],
    ['a claim name with a quote', { keyClaimName: 'a"b' }],
    ['an empty claim name', { keyClaimName: '' }],
  ])('is refused with %s', (_, changes) => {
    expect(() => build(requestWith({}, changes))).toThrow(code('PROVER_REQUEST'));
  });

  test("may have a key without its flag, as in Sui's example", () => {
    const key = 'ucbuFjDvPnERRKZI2wa7sihPcnTPvuU//O5QPMGkkgA=';
    const [randomness, salt] = ['S76Qi8c/SZlmmotnFMr13Q==', 'urgFnwIxJ++Ooswtf0Nn1w=='];
    const numbers = readNumbers(
      requestWith({}, { extendedEphemeralPublicKey: key, jwtRandomness: randomness, salt }),
    );
    const number = (base64: string) => BigInt(`0x${Buffer.from(base64, 'base64').toString('hex')}`);
    expect(numbers).toMatchObject({ key: number(key), randomness: number(randomness), salt: number(salt) });
    const withFlag = Buffer.concat([Buffer.alloc(1), Buffer.from(key, 'base64')]).toString('base64');
    expect(readNumbers(requestWith({}, { extendedEphemeralPublicKey: withFlag })).key).toBe(numbers.key);
  });

  test.each([
    ['33 bytes with flag 1', Buffer.concat([Buffer.of(1), Buffer.alloc(32, 7)])],
    ['34 bytes with flag 0', Buffer.concat([Buffer.of(0), Buffer.alloc(33, 7)])],
    ['34 bytes with flag 3', Buffer.concat([Buffer.of(3), Buffer.alloc(33, 7)])],
    ['31 bytes', Buffer.alloc(31, 7)],
  ])('is refused with a key of %s', (_, bytes) => {
    const request = requestWith({}, { extendedEphemeralPublicKey: bytes.toString('base64') });
    expect(() => readNumbers(request)).toThrow(
      /33 bytes with flag 0 .*32 bytes without it.* 34 bytes with flag 1 or 2/,
    );
  });

  test("is refused with Google's issuer without its scheme, which validators do not know", () => {
    expect(() => build(requestWith({ iss: 'accounts.google.com' }))).toThrow(
      /"iss" has no scheme, and validators accept only https:\/\/accounts\.google\.com:/,
    );
  });

  test('may have numbers in base64', () => {
    const base64 = (value: bigint, size: number) =>
      Buffer.from(value.toString(16).padStart(2 * size, '0'), 'hex').toString('base64');
    const { jwt } = requestWith({});
    const decimal = build(requestFor(jwt));
    const changes = {
      extendedEphemeralPublicKey: base64(EPHEMERAL_KEY, 33),
      salt: base64(BigInt(SALT), 16),
    };
    expect(build(requestFor(jwt, changes)).circuit).toEqual(decimal.circuit);
  });
});
