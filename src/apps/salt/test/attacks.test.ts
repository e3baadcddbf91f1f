/** Tokens that must not get a salt, each with its status and code. */
import { exportSPKI, generateKeyPair } from 'jose';
import { describe, expect, test } from 'vitest';
import { CLIENT_ID, GOOGLE, Issuer, startSalt } from './support.ts';

const MICROSOFT = 'https://login.microsoftonline.com/{tenantid}/v2.0';
const TENANT = '9188040d-6c67-4c5b-b112-36a304b66dad';
const base64url = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url');
const seconds = () => Math.floor(Date.now() / 1000);

async function setUp(env: Record<string, unknown> = {}) {
  const issuer = await Issuer.start();
  const server = await startSalt(issuer, env);
  const refusal = async (token: unknown) => {
    const { status, body } = await server.ask(token);
    expect(body).not.toHaveProperty('salt');
    return [status, body['code']];
  };
  return { issuer, server, refusal };
}

describe('the algorithm', () => {
  test('must not be none', async () => {
    const { issuer, refusal } = await setUp();
    const [, payload] = (await issuer.token()).split('.');
    for (const alg of ['none', 'None', 'NONE', '']) {
      const header = base64url({ alg, kid: issuer.kid });
      expect(await refusal(`${header}.${payload}.`)).toEqual([401, 'SALT_TOKEN_ALGORITHM']);
      expect(await refusal(`${header}.${payload}.AAAA`)).toEqual([401, 'SALT_TOKEN_ALGORITHM']);
    }
  });

  test('must not be HS256 with the public key as its secret', async () => {
    const { issuer, refusal } = await setUp();
    const secrets = [
      await exportSPKI(issuer.publicKey),
      JSON.stringify(issuer.keys[0]),
      issuer.keys[0]?.n ?? '',
    ];
    for (const secret of secrets) {
      const key = new TextEncoder().encode(secret);
      const token = await issuer.token({}, { header: { alg: 'HS256' }, key });
      expect(await refusal(token)).toEqual([401, 'SALT_TOKEN_ALGORITHM']);
    }
  });

  test('must not be another RSA algorithm', async () => {
    const { issuer, refusal } = await setUp();
    const { privateKey } = await generateKeyPair('PS256');
    const token = await issuer.token({}, { header: { alg: 'PS256' }, key: privateKey });
    expect(await refusal(token)).toEqual([401, 'SALT_TOKEN_ALGORITHM']);
  });

  test('must not use a key that the token contains', async () => {
    const { issuer, refusal } = await setUp();
    const attacker = await Issuer.start();
    const header = { jwk: attacker.keys[0], jku: `${attacker.origin}/jwks` };
    const token = await issuer.token({}, { header, key: attacker.privateKey });
    expect(await refusal(token)).toEqual([401, 'SALT_TOKEN_SIGNATURE']);
    expect(attacker.asked).toBe(0);
  });
});

describe('the type', () => {
  test.each(['JWT', 'jwt', 'Jwt', undefined])('of an ID token may be %o', async (typ) => {
    const { issuer, server } = await setUp();
    expect((await server.ask(await issuer.token({}, { header: { typ } }))).status).toBe(200);
  });

  test.each(['at+jwt', 'application/at+jwt', 'logout+jwt', 'JWS', 'JWT ', 'xJWT', '', null, 5, ['JWT']])(
    'must not be %o, no matter who signed it',
    async (typ) => {
      const { issuer, refusal } = await setUp();
      expect(await refusal(await issuer.token({}, { header: { typ } }))).toEqual([401, 'SALT_TOKEN_TYPE']);
      expect(issuer.asked).toBe(0);
    },
  );
});

describe('the service', () => {
  test('rejects a kid that the issuer does not have', async () => {
    const { issuer, refusal } = await setUp();
    const token = await issuer.token({}, { header: { kid: 'key-2' } });
    expect(await refusal(token)).toEqual([401, 'SALT_TOKEN_KEY_UNKNOWN']);
  });

  test.each([undefined, 5, null, ['key-1']])('rejects a kid that is not a string: %o', async (kid) => {
    const { issuer, refusal } = await setUp();
    const [, payload, signature] = (await issuer.token()).split('.');
    const token = `${base64url({ alg: 'RS256', kid })}.${payload}.${signature}`;
    expect(await refusal(token)).toEqual([401, 'SALT_TOKEN_KEY_UNKNOWN']);
  });

  test('rejects the signature of an attacker’s key with the same kid', async () => {
    const { issuer, refusal } = await setUp();
    const attacker = await Issuer.start();
    const token = await issuer.token({}, { key: attacker.privateKey });
    expect(await refusal(token)).toEqual([401, 'SALT_TOKEN_SIGNATURE']);
  });

  test('rejects a changed payload, header or signature', async () => {
    const { issuer, refusal } = await setUp();
    const [header = '', payload, signature = ''] = (await issuer.token()).split('.');
    const [, otherPayload] = (await issuer.token({ sub: 'victim' })).split('.');
    const [otherHeader] = (await issuer.token({}, { header: { typ: 'jwt' } })).split('.');
    for (const token of [
      `${header}.${otherPayload}.${signature}`,
      `${otherHeader}.${payload}.${signature}`,
      `${header}.${payload}.${signature.slice(0, -4)}AAAA`,
      `${header}.${payload}.`,
    ]) {
      expect(await refusal(token)).toEqual([401, 'SALT_TOKEN_SIGNATURE']);
    }
  });

  test('ignores a key that is too small, of another type or ambiguous', async () => {
    const { issuer, refusal } = await setUp();
    const [key] = issuer.keys;
    issuer.keys = [
      { ...key, kid: 'twice' },
      { ...key, kid: 'twice' },
      { kty: 'oct', kid: 'secret', k: 'AAAA' },
      { ...key, kid: 'encryption', use: 'enc' },
      { ...key, kid: 'small', n: (key?.n ?? '').slice(0, 171) },
    ];
    for (const kid of ['twice', 'secret', 'encryption', 'small']) {
      const token = await issuer.token({}, { header: { kid } });
      expect(await refusal(token)).toEqual([401, 'SALT_TOKEN_KEY_UNKNOWN']);
    }
  });

  test('rejects an unknown critical extension', async () => {
    const { issuer, refusal } = await setUp();
    const [, payload, signature] = (await issuer.token()).split('.');
    const header = base64url({ alg: 'RS256', kid: issuer.kid, crit: ['exp'], exp: 1 });
    expect(await refusal(`${header}.${payload}.${signature}`)).toEqual([400, 'SALT_TOKEN_MALFORMED']);
  });
});

describe('the issuer', () => {
  test.each([
    `${GOOGLE}/`,
    `${GOOGLE}.evil.example`,
    `${GOOGLE}/evil`,
    `${GOOGLE}?`,
    'http://accounts.google.com',
    'https://ACCOUNTS.google.com',
    'accounts.google.com/',
    ' accounts.google.com',
    'https://id.twitch.tv/oauth2',
    '',
  ])('must not be %j, which is not Google', async (iss) => {
    const { issuer, refusal } = await setUp();
    expect(await refusal(await issuer.token({ iss }))).toEqual([403, 'SALT_ISSUER_NOT_ALLOWED']);
    expect(issuer.asked).toBe(0);
  });

  test.each([undefined, 5, [GOOGLE], { iss: GOOGLE }])('must be a string, not %o', async (iss) => {
    const { issuer, refusal } = await setUp();
    expect(await refusal(await issuer.token({ iss }))).toEqual([401, 'SALT_TOKEN_CLAIM']);
  });

  describe('Microsoft', () => {
    async function startMicrosoft(listedIssuer = MICROSOFT, keyProperties: Record<string, unknown> = {}) {
      const issuer = await Issuer.start(`https://login.microsoftonline.com/${TENANT}/v2.0`);
      const clients = [{ issuer: listedIssuer, client_id: CLIENT_ID, seed: 1 }];
      issuer.keys = issuer.keys.map((key) => ({ ...key, ...keyProperties }));
      const server = await startSalt(issuer, { clients });
      return async (claims: Record<string, unknown>) => {
        const { status, body } = await server.ask(await issuer.token(claims));
        return [status, body['code'] ?? null];
      };
    }
    const refused = [403, 'SALT_ISSUER_NOT_ALLOWED'];
    const otherTenant = '11111111-2222-3333-4444-555555555555';

    test('matches the tenant that tid names', async () => {
      const ask = await startMicrosoft();
      expect(await ask({ tid: TENANT })).toEqual([200, null]);
      expect(
        await ask({ iss: `https://login.microsoftonline.com/${otherTenant}/v2.0`, tid: otherTenant }),
      ).toEqual([200, null]);
    });

    test.each([
      [{ tid: undefined }],
      [{ tid: otherTenant }],
      [{ tid: TENANT.toUpperCase() }],
      [{ iss: `https://login.microsoftonline.com/${TENANT}/v2.0/`, tid: TENANT }],
      [{ iss: `https://login.microsoftonline.com/${TENANT}/v1.0`, tid: TENANT }],
      [{ iss: 'https://login.microsoftonline.com/common/v2.0', tid: 'common' }],
      [{ iss: 'https://login.microsoftonline.com/{tenantid}/v2.0', tid: '{tenantid}' }],
      [{ iss: `https://login.microsoftonline.com.evil.example/${TENANT}/v2.0`, tid: TENANT }],
      [{ iss: `https://loginXmicrosoftonline.com/${TENANT}/v2.0`, tid: TENANT }],
    ])('does not match a token with the claims %o', async (claims) => {
      expect(await (await startMicrosoft())(claims)).toEqual(refused);
    });

    const tenant = (id: string) => `https://login.microsoftonline.com/${id}/v2.0`;
    const unknown = [401, 'SALT_TOKEN_KEY_UNKNOWN'];

    test('signs for every tenant with keys for all tenants', async () => {
      const ask = await startMicrosoft(MICROSOFT, { issuer: MICROSOFT });
      expect(await ask({ tid: TENANT })).toEqual([200, null]);
      expect(await ask({ iss: tenant(otherTenant), tid: otherTenant })).toEqual([200, null]);
    });

    test('does not sign for another tenant with a key of one tenant', async () => {
      const ask = await startMicrosoft(MICROSOFT, { issuer: tenant(TENANT) });
      expect(await ask({ tid: TENANT })).toEqual([200, null]);
      expect(await ask({ iss: tenant(otherTenant), tid: otherTenant })).toEqual(unknown);
    });

    test.each([
      'https://login.microsoftonline.com/{tenantid}/v1.0',
      'https://login.microsoftonline.com/{tenantid}{tenantid}/v2.0',
      'https://login.microsoftonline.us/{tenantid}/v2.0',
      '{tenantid}',
      '$&',
      '',
    ])('rejects a key of the issuer %j', async (issuer) => {
      expect(await (await startMicrosoft(MICROSOFT, { issuer }))({ tid: TENANT })).toEqual(unknown);
    });

    test('ignores the issuer property of a key if it is not a string', async () => {
      for (const issuer of [null, 5, [tenant(otherTenant)]]) {
        expect(await (await startMicrosoft(MICROSOFT, { issuer }))({ tid: TENANT })).toEqual([200, null]);
      }
    });

    test('matches only the tenant that the list names', async () => {
      const ask = await startMicrosoft(`https://login.microsoftonline.com/${TENANT}/v2.0`);
      expect(await ask({ tid: TENANT })).toEqual([200, null]);
      expect(await ask({ tid: otherTenant })).toEqual(refused);
      expect(
        await ask({ iss: `https://login.microsoftonline.com/${otherTenant}/v2.0`, tid: otherTenant }),
      ).toEqual(refused);
    });
  });
});

test('rejects a key of another issuer, and accepts a key of the token’s issuer', async () => {
  const { issuer, server, refusal } = await setUp();
  const [key] = issuer.keys;
  const keys = [
    { ...key, kid: 'ours', issuer: GOOGLE },
    { ...key, kid: 'theirs', issuer: 'https://id.twitch.tv/oauth2' },
    { ...key, kid: 'template', issuer: 'https://accounts.google.com/{tenantid}' },
    { ...key, kid: 'both', issuer: GOOGLE },
    { ...key, kid: 'both', issuer: 'https://id.twitch.tv/oauth2', use: 'enc' },
  ];
  issuer.keys = keys as typeof issuer.keys;
  for (const iss of [GOOGLE, 'accounts.google.com']) {
    const token = await issuer.token({ iss }, { header: { kid: 'ours' } });
    expect((await server.ask(token)).status).toBe(200);
  }
  for (const kid of ['theirs', 'template', 'both']) {
    const token = await issuer.token({}, { header: { kid } });
    expect(await refusal(token)).toEqual([401, 'SALT_TOKEN_KEY_UNKNOWN']);
  }
});

describe('the client id', () => {
  test.each(['another', `${CLIENT_ID}x`, CLIENT_ID.toUpperCase(), '', `${CLIENT_ID} `])(
    'must not be %j, which is not on the list',
    async (aud) => {
      const { issuer, refusal } = await setUp();
      expect(await refusal(await issuer.token({ aud }))).toEqual([403, 'SALT_CLIENT_NOT_ALLOWED']);
      expect(issuer.asked).toBe(0);
    },
  );

  test.each([[[CLIENT_ID]], [[CLIENT_ID, 'another']], [undefined], [5], [{}]])(
    'must be a single string, not %o',
    async (aud) => {
      const { issuer, refusal } = await setUp();
      expect(await refusal(await issuer.token({ aud }))).toEqual([401, 'SALT_TOKEN_CLAIM']);
    },
  );

  test('of one issuer is not valid for another', async () => {
    const clients = [
      { issuer: GOOGLE, client_id: 'google-client', seed: 1 },
      { issuer: 'https://id.twitch.tv/oauth2', client_id: CLIENT_ID, seed: 1 },
    ];
    const { issuer, refusal } = await setUp({ clients });
    expect(await refusal(await issuer.token())).toEqual([403, 'SALT_CLIENT_NOT_ALLOWED']);
  });
});

describe('the presenter (azp)', () => {
  const refused = [403, 'SALT_PRESENTER_NOT_ALLOWED'];
  const PHONE = '575519204237-android.apps.googleusercontent.com';

  test('may be the client itself, or absent', async () => {
    const { issuer, server } = await setUp();
    for (const azp of [CLIENT_ID, undefined]) {
      expect((await server.ask(await issuer.token({ azp }))).status).toBe(200);
    }
  });

  test('may be a presenter of the entry, without changing the salt', async () => {
    const clients = [{ issuer: GOOGLE, client_id: CLIENT_ID, seed: 1, presenters: ['other', PHONE] }];
    const { issuer, server } = await setUp({ clients });
    const salts = [];
    for (const azp of [PHONE, 'other', CLIENT_ID, undefined]) {
      salts.push((await server.ask(await issuer.token({ azp }))).body['salt']);
    }
    expect(salts[0]).toMatch(/^[0-9]+$/);
    expect(new Set(salts).size).toBe(1);
  });

  test('must not be a service account that obtained a token for the client id', async () => {
    const { issuer, refusal } = await setUp();
    for (const azp of ['110463452167303598383', PHONE, '', CLIENT_ID.toUpperCase(), `${CLIENT_ID} `]) {
      expect(await refusal(await issuer.token({ azp }))).toEqual(refused);
    }
    expect(issuer.asked).toBe(0);
  });

  test('of one entry is not valid for another', async () => {
    const clients = [
      { issuer: GOOGLE, client_id: CLIENT_ID, seed: 1 },
      { issuer: GOOGLE, client_id: 'other', seed: 1, presenters: [PHONE] },
    ];
    const { issuer, refusal } = await setUp({ clients });
    expect(await refusal(await issuer.token({ azp: PHONE }))).toEqual(refused);
    expect(await refusal(await issuer.token({ azp: 'other' }))).toEqual(refused);
  });

  test.each([null, 5, [CLIENT_ID], {}, true])('must be a string, not %o', async (azp) => {
    const { issuer, refusal } = await setUp();
    expect(await refusal(await issuer.token({ azp }))).toEqual([401, 'SALT_TOKEN_CLAIM']);
  });
});

describe('the service, which tolerates a minute of skew, checks the times of a token that', () => {
  test.each([
    ['has expired', () => ({ exp: seconds() - 61 }), [401, 'SALT_TOKEN_EXPIRED']],
    ['has expired within the skew', () => ({ exp: seconds() - 50 }), [200, undefined]],
    ['is not valid yet', () => ({ nbf: seconds() + 70 }), [401, 'SALT_TOKEN_NOT_YET_VALID']],
    ['becomes valid within the skew', () => ({ nbf: seconds() + 50 }), [200, undefined]],
    ['was issued in the future', () => ({ iat: seconds() + 70 }), [401, 'SALT_TOKEN_NOT_YET_VALID']],
    ['was issued in the future, within the skew', () => ({ iat: seconds() + 50 }), [200, undefined]],
    ['has no end (exp)', () => ({ exp: undefined }), [401, 'SALT_TOKEN_CLAIM']],
    ['has no time of issue (iat)', () => ({ iat: undefined }), [401, 'SALT_TOKEN_CLAIM']],
    ['has an end that is a string', () => ({ exp: String(seconds() + 600) }), [401, 'SALT_TOKEN_CLAIM']],
    ['has a null nbf', () => ({ nbf: null }), [401, 'SALT_TOKEN_CLAIM']],
  ])('%s', async (_title, claims, expected) => {
    const { issuer, server } = await setUp();
    const { status, body } = await server.ask(await issuer.token(claims()));
    expect([status, body['code']]).toEqual(expected);
  });
});

describe('the subject', () => {
  test.each([
    ['with a quote', 'a"b'],
    ['with a backslash', 'a\\b'],
    ['with a control character', 'a\nb'],
    ['that is not ASCII', 'Zoë'],
    ['with half of a surrogate pair', 'a\ud800'],
    ['longer than 113 characters', 'a'.repeat(114)],
    ['that is empty', ''],
  ])('%s cannot be proved, so it gets no salt', async (_title, sub) => {
    const { issuer, refusal } = await setUp();
    expect(await refusal(await issuer.token({ sub }))).toEqual([422, 'SALT_SUBJECT_UNUSABLE']);
  });

  test('of 113 characters can be proved', async () => {
    const { issuer, server } = await setUp();
    expect((await server.ask(await issuer.token({ sub: 'a'.repeat(113) }))).status).toBe(200);
  });

  test.each([undefined, 5, null, ['110463452167303598383']])('must be a string, not %o', async (sub) => {
    const { issuer, refusal } = await setUp();
    expect(await refusal(await issuer.token({ sub }))).toEqual([401, 'SALT_TOKEN_CLAIM']);
  });
});

describe('POST /get_salt', () => {
  test.each(['', 'x', 'a.b', 'a.b.c', '..', '{}', 'e30.e30.e30', 'a.b.c.d.e'])(
    'refuses %j, which is not a token',
    async (token) => {
      const { refusal } = await setUp();
      expect((await refusal(token))[0]).toBeOneOf([400, 401]);
    },
  );

  test.each([undefined, null, 5, ['x'], {}])('refuses a token that is not a string: %o', async (token) => {
    const { refusal } = await setUp();
    expect(await refusal(token)).toEqual([400, 'INVALID_INPUT']);
  });

  test('refuses a token of more than 8192 characters, genuine or not', async () => {
    const { issuer, refusal } = await setUp();
    expect(await refusal(await issuer.token({ padding: 'x'.repeat(7000) }))).toEqual([400, 'INVALID_INPUT']);
    expect(await refusal('x'.repeat(70_000))).toEqual([413, 'BODY_TOO_LARGE']);
    expect(issuer.asked).toBe(0);
  });

  test('refuses a body with another property', async () => {
    const { issuer, server } = await setUp();
    const response = await server.post('/get_salt', { token: await issuer.token(), salt: '1' });
    expect(response.status).toBe(400);
  });

  test('repeats no part of the token in an error', async () => {
    const { issuer, server } = await setUp();
    const refusals = [
      [await issuer.token({ iss: 'https://evil.example' }), 'SALT_ISSUER_NOT_ALLOWED'],
      [await issuer.token({ aud: 'hunter2' }), 'SALT_CLIENT_NOT_ALLOWED'],
      [await issuer.token({ sub: 'hunter"2' }), 'SALT_SUBJECT_UNUSABLE'],
      [await issuer.token({ exp: 'hunter2' }), 'SALT_TOKEN_CLAIM'],
      [await issuer.token({}, { header: { typ: 'hunter2' } }), 'SALT_TOKEN_TYPE'],
      ['hunter2', 'SALT_TOKEN_MALFORMED'],
    ];
    for (const [token, code] of refusals) {
      const { body } = await server.ask(token);
      expect(body).toEqual({ error: expect.any(String), code });
      expect(JSON.stringify(body)).not.toMatch(/hunter|evil/);
    }
  });
});
