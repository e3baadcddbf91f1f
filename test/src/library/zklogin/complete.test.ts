/** Tests valid and invalid answers of the provider. */
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { inspect } from 'node:util';
import { describe, expect, onTestFinished, test } from 'vitest';
import {
  cancelLogin,
  completeLogin,
  PROVIDERS,
  resumeLogin,
  type SessionStore,
  type ZkLoginError,
} from '../../../../src/library/zklogin/index.ts';
import {
  type Begun,
  begin,
  CLIENT_ID,
  createJwt,
  NOW,
  REDIRECT_URI,
  readStored,
  SUBJECT,
} from './support.ts';

const README = readFileSync(new URL('../../../../src/library/zklogin/README.md', import.meta.url), 'utf8');
const AsyncFunction = (async () => {}).constructor as new (
  ...namesAndCode: string[]
) => (...values: unknown[]) => Promise<unknown>;

const now = () => NOW;
const LOGIN = 'sui-enclave/zklogin/login';

/** Completes a login with these claims instead of valid ones. `undefined` removes a claim. */
async function complete(begun: Begun, claims: Record<string, unknown> = {}, header?: unknown) {
  const token = createJwt({ ...begun.claims, ...claims }, header);
  return await completeLogin(begun.back({ id_token: token }), { storage: begun.storage, now });
}

const failure = (code: string) => expect.objectContaining({ code });

describe('the answer', () => {
  test.each(['#', '?'] as const)('is read from the part of the URL after %s', async (separator) => {
    const begun = begin();
    const id_token = createJwt(begun.claims);
    const back = begun.back({ id_token, authuser: '0', prompt: 'none' }, separator);
    const login = await completeLogin(back, { storage: begun.storage, now });
    expect(login.claims).toEqual({
      issuer: 'https://accounts.google.com',
      subject: SUBJECT,
      audience: CLIENT_ID,
    });
    expect(login.token).toBe(id_token);
  });

  test.each(['#', '?'] as const)(
    'is read from location.hash and location.search, in the part after %s',
    async (separator) => {
      const begun = begin();
      const id_token = createJwt(begun.claims);
      const { hash, search } = new URL(begun.back({ id_token }, separator));
      const login = await completeLogin(hash + search, { storage: begun.storage, now });
      expect(login.token).toBe(id_token);
    },
  );

  test.each([
    ['string', (fields: URLSearchParams) => fields.toString()],
    ['parameters', (fields: URLSearchParams) => fields],
    [
      'form data',
      (fields: URLSearchParams) => {
        const data = new FormData();
        for (const [name, value] of fields) data.set(name, value);
        return data;
      },
    ],
  ])('is read from the body of a form_post as %s', async (_label, form) => {
    const begun = begin({ provider: PROVIDERS.apple });
    const id_token = createJwt({ ...begun.claims, iss: 'https://appleid.apple.com' });
    const fields = new URLSearchParams({ state: begun.state, code: 'c', id_token });
    expect((await completeLogin(form(fields), { storage: begun.storage, now })).token).toBe(id_token);
  });

  test('is refused with another state, and the login continues', async () => {
    const begun = begin();
    const id_token = createJwt(begun.claims);
    for (const state of ['', 'x', begun.state.slice(1), `${begun.state}0`]) {
      const back = `${REDIRECT_URI}#${new URLSearchParams({ id_token, state })}`;
      await expect(completeLogin(back, { storage: begun.storage, now })).rejects.toThrow(
        failure('ZKLOGIN_STATE'),
      );
    }
    await expect(
      completeLogin(`${REDIRECT_URI}#id_token=${id_token}`, { storage: begun.storage, now }),
    ).rejects.toThrow(failure('ZKLOGIN_STATE'));
    await complete(begun);
  });

  test('works once: a replay finds no login', async () => {
    const begun = begin();
    await complete(begun);
    await expect(complete(begun)).rejects.toThrow(failure('ZKLOGIN_NO_LOGIN'));
    expect(JSON.stringify(readStored(begun.storage))).not.toContain(begun.state);
  });

  test('is refused if it belongs to another login', async () => {
    const begun = begin();
    const otherLogin = begin();
    await expect(
      completeLogin(begun.back({ id_token: createJwt(begun.claims) }), { storage: otherLogin.storage, now }),
    ).rejects.toThrow(failure('ZKLOGIN_STATE'));
  });

  test.each([
    ['a URL without parameters', REDIRECT_URI],
    ['a URL with other parameters', `${REDIRECT_URI}?tab=2#top`],
    ['the URL of another page', 'https://wallet.example/'],
    ['an empty string', ''],
    ['fields of another form', new URLSearchParams({ q: 'x' })],
  ])('is missing in %s, and the login continues', async (_label, back) => {
    const begun = begin();
    await expect(completeLogin(back, { storage: begun.storage, now })).rejects.toMatchObject({
      code: 'ZKLOGIN_REDIRECT',
      message: expect.stringMatching(/does not contain a provider's answer/),
    });
    await complete(begun);
  });

  test('causes an error with the provider’s reason if it is a refusal', async () => {
    const begun = begin();
    const refused = completeLogin(begun.back({ error: 'access_denied' }), { storage: begun.storage, now });
    await expect(refused).rejects.toMatchObject({
      code: 'ZKLOGIN_PROVIDER_REFUSED',
      reason: 'access_denied',
    });
    const odd = completeLogin(begun.back({ error: '<script>' }), { storage: begun.storage, now });
    await expect(odd).rejects.toMatchObject({ reason: null });
  });

  test.each([
    [
      'at another host',
      (b: Begun) => b.back({ id_token: 'x' }).replace('wallet.', 'evil.'),
      'ZKLOGIN_REDIRECT',
    ],
    [
      'at another path',
      (b: Begun) => b.back({ id_token: 'x' }).replace('/back', '/back/x'),
      'ZKLOGIN_REDIRECT',
    ],
    ['without a token', (b: Begun) => b.back({ code: 'x' }), 'ZKLOGIN_REDIRECT'],
    ['with two states', (b: Begun) => `${b.back({ id_token: 'x' })}&state=${b.state}`, 'ZKLOGIN_REDIRECT'],
    [
      'with different states in query and fragment',
      (b: Begun) => b.back({ id_token: 'x' }).replace('#', '?state=x#'),
      'ZKLOGIN_REDIRECT',
    ],
    [
      'of another issuer (RFC 9207)',
      (b: Begun) => b.back({ id_token: 'x', iss: 'https://evil.example' }),
      'ZKLOGIN_REDIRECT',
    ],
    ['with a token that is not a JWT', (b: Begun) => b.back({ id_token: 'x' }), 'ZKLOGIN_TOKEN'],
  ])('%s is refused', async (_label, back, code) => {
    const begun = begin();
    await expect(completeLogin(back(begun), { storage: begun.storage, now })).rejects.toThrow(failure(code));
  });

  test('is accepted if it names its issuer (RFC 9207)', async () => {
    const begun = begin();
    const back = begun.back({ id_token: createJwt(begun.claims), iss: 'https://accounts.google.com' });
    await completeLogin(back, { storage: begun.storage, now });
  });
});

describe('the token', () => {
  test.each([
    ['without iss', { iss: undefined }, 'ZKLOGIN_CLAIM'],
    ['of another issuer', { iss: 'https://accounts.google.com/' }, 'ZKLOGIN_CLAIM'],
    ['without sub', { sub: undefined }, 'ZKLOGIN_CLAIM'],
    ['with a number as sub', { sub: 5 }, 'ZKLOGIN_CLAIM'],
    ['with an empty sub', { sub: '' }, 'ZKLOGIN_CLAIM'],
    ['with a quote in sub', { sub: 'a"b' }, 'ZKLOGIN_CLAIM'],
    ['with a backslash in sub', { sub: 'a\\b' }, 'ZKLOGIN_CLAIM'],
    ['with a control character in sub', { sub: 'a\tb' }, 'ZKLOGIN_CLAIM'],
    ['with a non-ASCII character in sub', { sub: 'Zoë' }, 'ZKLOGIN_CLAIM'],
    ['with a sub of 114 characters', { sub: 'a'.repeat(114) }, 'ZKLOGIN_CLAIM'],
    ['without aud', { aud: undefined }, 'ZKLOGIN_CLAIM'],
    ['of another client', { aud: 'another' }, 'ZKLOGIN_CLAIM'],
    ['with an array as aud', { aud: [CLIENT_ID] }, 'ZKLOGIN_CLAIM'],
    ['without a nonce', { nonce: undefined }, 'ZKLOGIN_NONCE'],
    ['with another nonce', { nonce: 'hTPpgF7XAKbW37rEUS6pEVZqmoI' }, 'ZKLOGIN_NONCE'],
    ['without exp', { exp: undefined }, 'ZKLOGIN_CLAIM'],
    ['with exp as a string', { exp: '1700003600' }, 'ZKLOGIN_CLAIM'],
    ['that has expired', { exp: NOW / 1000 - 60 }, 'ZKLOGIN_TOKEN_TIME'],
    ['that is not valid yet', { nbf: NOW / 1000 + 61 }, 'ZKLOGIN_TOKEN_TIME'],
    ['from the future', { iat: NOW / 1000 + 61 }, 'ZKLOGIN_TOKEN_TIME'],
    ['that is too long to hash', { more: 'x'.repeat(1100) }, 'ZKLOGIN_PROFILE'],
  ])('%s is refused', async (_label, claims, code) => {
    const begun = begin();
    await expect(complete(begun, claims)).rejects.toThrow(failure(code));
    expect(readStored(begun.storage).stage).toBe('begun');
  });

  test.each([
    ['with an algorithm other than RS256', { alg: 'ES256' }, 'ZKLOGIN_TOKEN'],
    ['with the algorithm none', { alg: 'none' }, 'ZKLOGIN_TOKEN'],
    ['that is not an object', '[]', 'ZKLOGIN_TOKEN'],
    ['that is not JSON', '{', 'ZKLOGIN_TOKEN'],
    ['over 248 characters', { alg: 'RS256', kid: 'k'.repeat(163) }, 'ZKLOGIN_PROFILE'],
  ])('with a header %s is refused', async (_label, header, code) => {
    await expect(complete(begin(), {}, header)).rejects.toThrow(failure(code));
  });

  test('is accepted with 113 characters of sub, 248 of header, and a minute of clock skew', async () => {
    const seconds = NOW / 1000;
    await complete(begin(), {}, { alg: 'RS256', kid: 'k'.repeat(162) });
    await complete(begin(), {
      sub: 'a'.repeat(113),
      exp: seconds - 59,
      nbf: seconds + 60,
      iat: seconds + 60,
    });
  });

  test('is refused when its claims have escapes or too much white space', async () => {
    const write = (begun: Begun, change: (payload: string) => string) => {
      const token = createJwt(change(JSON.stringify(begun.claims)));
      return completeLogin(begun.back({ id_token: token }), { storage: begun.storage, now });
    };
    const escaped = `"sub":"\\u0031${SUBJECT.slice(1)}"`;
    await expect(write(begin(), (p) => p.replace(`"sub":"${SUBJECT}"`, escaped))).rejects.toMatchObject({
      code: 'ZKLOGIN_CLAIM',
      claim: 'sub',
    });
    await expect(write(begin(), (p) => p.replace('"aud":', '"aud":       '))).rejects.toMatchObject({
      claim: 'aud',
    });
    await write(begin(), (p) => p.replace('"aud":', '"aud" :  '));
  });

  test.each([
    ['Facebook', PROVIDERS.facebook, String.raw`"iss":"https:\/\/www.facebook.com"`],
    ['Slack', PROVIDERS.slack, String.raw`"iss":"https:\/\/slack.com"`],
    [
      'Microsoft',
      PROVIDERS.microsoft,
      String.raw`"iss":"https:\/\/login.microsoftonline.com\/9188040d-6c67-4c5b-b112-36a304b66dad\/v2.0","tid":"9188040d-6c67-4c5b-b112-36a304b66dad"`,
    ],
    [
      'a tenant of AWS',
      { ...PROVIDERS.google, issuer: 'https://cognito-idp.eu-west-3.amazonaws.com/eu-west-3_aBcDeFgHi' },
      String.raw`"iss":"https:\/\/cognito-idp.eu-west-3.amazonaws.com\/eu-west-3_aBcDeFgHi"`,
    ],
  ])('of %s is accepted with escapes in its issuer', async (_label, provider, written) => {
    const begun = begin({ provider: { ...provider, token: null } });
    const { iss: _iss, ...otherClaims } = begun.claims;
    const id_token = createJwt(JSON.stringify(otherClaims).replace('{', () => `{${written},`));
    const login = await completeLogin(begun.back({ id_token }), { storage: begun.storage, now });
    expect(login.claims.issuer).toBe(JSON.parse(`{${written}}`).iss);
  });

  test('is never quoted by an error', async () => {
    const claims = { iss: 'hunter2', sub: 'hunter2"', aud: 'hunter2' };
    for (const [name, value] of Object.entries(claims)) {
      const error: ZkLoginError = await complete(begin(), { [name]: value }).catch((error) => error);
      expect(error).toMatchObject({ code: 'ZKLOGIN_CLAIM', claim: name });
      expect(inspect(error, { depth: 9, showHidden: true })).not.toContain('hunter2');
    }
  });
});

describe('a code', () => {
  type Answer = [status: number, body: unknown];
  /** Starts a server on loopback that answers like a token URL. */
  async function tokenUrl(answer: (form: URLSearchParams) => Answer | Promise<Answer>) {
    const forms: URLSearchParams[] = [];
    const server = createServer(async (request, response) => {
      expect(request.headers['content-type']).toMatch(/^application\/x-www-form-urlencoded\b/);
      const form = new URLSearchParams(await text(request));
      forms.push(form);
      const [status, body] = await answer(form);
      response.writeHead(status).end(typeof body === 'string' ? body : JSON.stringify(body));
    });
    await new Promise<void>((resolve) => {
      server.listen(0, '127.0.0.1', resolve);
    });
    onTestFinished(() => {
      server.close();
    });
    return { forms, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/token` };
  }

  /** Sets the globals that only a page has. */
  function becomePage(): void {
    Object.assign(globalThis, { document: {} });
    onTestFinished(() => {
      Reflect.deleteProperty(globalThis, 'document');
    });
  }

  async function exchange(variant: 'grant_type' | 'client_secret', answer?: [number, unknown], options = {}) {
    let begun: Begun | undefined;
    const good = () => createJwt({ ...begun?.claims, iss: 'https://kauth.kakao.com' });
    const { url, forms } = await tokenUrl(() => answer ?? [200, { id_token: good(), access_token: 'a' }]);
    begun = begin({ provider: { ...PROVIDERS.kakao, token: { url, variant } } });
    const login = completeLogin(begun.back({ code: 'one time' }, '?'), {
      storage: begun.storage,
      now,
      ...options,
    });
    return { login, forms };
  }

  test('is exchanged with grant_type', async () => {
    const { login, forms } = await exchange('grant_type');
    expect((await login).claims.issuer).toBe('https://kauth.kakao.com');
    expect(Object.fromEntries(forms[0] ?? [])).toEqual({
      grant_type: 'authorization_code',
      client_id: CLIENT_ID,
      redirect_uri: REDIRECT_URI,
      code: 'one time',
    });
  });

  test('is exchanged with client_secret and the redirect_uri of the login', async () => {
    const { login, forms } = await exchange('client_secret', undefined, { clientSecret: 'hunter2' });
    await login;
    expect(Object.fromEntries(forms[0] ?? [])).toEqual({
      code: 'one time',
      client_id: CLIENT_ID,
      redirect_uri: REDIRECT_URI,
      client_secret: 'hunter2',
    });
  });

  test('requires the client secret if the provider does, and refuses the secret in a page', async () => {
    await expect((await exchange('client_secret')).login).rejects.toThrow(/pass clientSecret/);
    becomePage();
    const { login, forms } = await exchange('client_secret', undefined, { clientSecret: 'hunter2' });
    await expect(login).rejects.toThrow(/a token URL of your own backend, with the variant grant_type/);
    expect(forms).toEqual([]);
  });

  test('is exchanged from a page by the backend of the README, which adds the secret', async () => {
    becomePage();
    let begun: Begun | undefined;
    const provider = await tokenUrl((form) =>
      form.get('client_secret') === 'hunter2' && form.get('redirect_uri') === REDIRECT_URI
        ? [200, { ok: true, id_token: createJwt({ ...begun?.claims, iss: 'https://slack.com' }) }]
        : [200, { ok: false, error: 'bad_client_secret' }],
    );
    const [, code = ''] = /^```ts\n(const answer = .*?)^```$/ms.exec(README) ?? [];
    const names = ['fetch', 'code', 'clientId', 'clientSecret', 'redirectUri', 'respond'];
    const documented = new AsyncFunction(...names, code);
    const backend = await tokenUrl(
      (form) =>
        new Promise((resolve, reject) => {
          const ask = (url: string, init: RequestInit) => {
            expect(url).toBe(PROVIDERS.slack.token.url);
            return fetch(provider.url, init);
          };
          const respond = (body: unknown) => resolve([200, body]);
          documented(ask, form.get('code'), CLIENT_ID, 'hunter2', REDIRECT_URI, respond).catch(reject);
        }),
    );
    const token = { url: backend.url, variant: 'grant_type' } as const;
    begun = begin({ provider: { ...PROVIDERS.slack, token } });
    const back = begun.back({ code: 'one time' }, '?');
    const login = await completeLogin(back, { storage: begun.storage, now });
    expect(login.claims.issuer).toBe('https://slack.com');
    expect(provider.forms).toHaveLength(1);
    expect(String(backend.forms[0])).not.toContain('hunter2');
  });

  test.each([
    [400, { error: 'invalid_grant', error_description: 'hunter2' }, 'invalid_grant'],
    [401, { error: 'invalid_client' }, 'invalid_client'],
    [200, { ok: false, error: 'bad_redirect_uri' }, 'bad_redirect_uri'],
  ])(
    'that the provider refuses with status %i and %j causes an error with the reason',
    async (status, body, reason) => {
      const { login, forms } = await exchange('grant_type', [status, body]);
      await expect(login).rejects.toMatchObject({ code: 'ZKLOGIN_PROVIDER_REFUSED', reason });
      await expect(login).rejects.not.toThrow(/hunter2/);
      expect(forms).toHaveLength(1);
    },
  );

  test('is not sent to a token URL over http', async () => {
    const token = { url: 'http://wallet.example/token', variant: 'grant_type' } as const;
    const begun = begin({ provider: { ...PROVIDERS.slack, token } });
    const requests: unknown[] = [];
    const fetch = async (...request: unknown[]) => {
      requests.push(request);
      return Response.json({});
    };
    const options = { storage: begun.storage, now, fetch, allowHttp: true };
    await expect(completeLogin(begun.back({ code: 'x' }, '?'), options)).rejects.toThrow(
      /token URL must be https/,
    );
    expect(requests).toEqual([]);
  });

  test.each([
    [[400, { error: '<script>' }], 'ZKLOGIN_REFUSED'],
    [[400, { error: { code: 5 } }], 'ZKLOGIN_REFUSED'],
    [[503, 'busy'], 'ZKLOGIN_REFUSED'],
    [[200, { ok: false }], 'ZKLOGIN_MALFORMED_ANSWER'],
    [[200, { error: 'a'.repeat(65) }], 'ZKLOGIN_MALFORMED_ANSWER'],
    [[200, 'null'], 'ZKLOGIN_MALFORMED_ANSWER'],
    [[200, '<html>'], 'ZKLOGIN_MALFORMED_ANSWER'],
    [[200, { id_token: createJwt({ iss: 'https://kauth.kakao.com' }) }], 'ZKLOGIN_CLAIM'],
  ] as [[number, unknown], string][])(
    'that the token URL answers with %j is never sent again',
    async (answer, code) => {
      const { login, forms } = await exchange('grant_type', answer);
      await expect(login).rejects.toThrow(failure(code));
      expect(forms).toHaveLength(1);
    },
  );

  test.each<[string, (storage: SessionStore) => unknown]>([
    ['cancelled', (storage) => cancelLogin({ storage })],
    ['replaced by a new login', (storage) => begin({ storage })],
    ['completed with a copy of the answer', (storage) => storage.set(LOGIN, '{"stage":"complete"}')],
  ])('has no effect if the login is %s during the exchange', async (_label, change) => {
    let begun: Begun | undefined;
    let stored: unknown;
    const { url } = await tokenUrl(() => {
      if (begun) change(begun.storage);
      stored = begun?.storage.get(LOGIN);
      return [200, { id_token: createJwt({ ...begun?.claims, iss: 'https://kauth.kakao.com' }) }];
    });
    begun = begin({ provider: { ...PROVIDERS.kakao, token: { url, variant: 'grant_type' } } });
    const { storage } = begun;
    const login = completeLogin(begun.back({ code: 'one time' }, '?'), { storage, now });
    await expect(login).rejects.toThrow(failure('ZKLOGIN_NO_LOGIN'));
    expect(storage.get(LOGIN)).toBe(stored);
  });

  test('is required if the provider returns codes', async () => {
    const begun = begin({ provider: PROVIDERS.slack });
    const back = begun.back({ id_token: createJwt(begun.claims) });
    await expect(completeLogin(back, { storage: begun.storage, now })).rejects.toThrow(/no code/);
  });
});

describe('a login that is complete', () => {
  test('reveals neither token nor key, and survives a reload', async () => {
    const begun = begin();
    const login = await complete(begun);
    const { secretKey, jwt, randomness } = readStored(begun.storage);
    for (const shown of [
      JSON.stringify(login),
      inspect(login, { depth: 9, showHidden: true }),
      String(login),
    ]) {
      for (const secret of [secretKey, jwt, randomness]) expect(shown).not.toContain(secret);
    }
    expect(resumeLogin({ storage: begun.storage }).token).toBe(jwt);
  });

  test('ends when it is cancelled, as does a login without an answer', async () => {
    const first = begin();
    const login = await complete(first);
    cancelLogin({ storage: first.storage });
    expect(readStored(first.storage)).toBeNull();
    expect(() => login.token).toThrow(failure('ZKLOGIN_NO_LOGIN'));
    expect(() => resumeLogin({ storage: first.storage })).toThrow(failure('ZKLOGIN_NO_LOGIN'));
    const begun = begin();
    cancelLogin({ storage: begun.storage });
    expect(readStored(begun.storage)).toBeNull();
    await expect(complete(begun)).rejects.toThrow(failure('ZKLOGIN_NO_LOGIN'));
    expect(() => cancelLogin({ storage: begun.storage })).not.toThrow();
  });

  test('ends when another login begins', async () => {
    const begun = begin();
    const login = await complete(begun);
    const again = begin({ storage: begun.storage });
    expect(() => login.token).toThrow(failure('ZKLOGIN_NO_LOGIN'));
    await complete({ ...again, storage: begun.storage });
    expect(() => login.token).toThrow(/another login began in the meantime/);
  });

  test('requires a session storage', async () => {
    const message = expect.stringMatching(
      /^no login is in progress: .*pass a storage such as createMemoryStore\(\) to beginLogin/,
    );
    const none = { code: 'ZKLOGIN_NO_LOGIN', message };
    for (const back of [`${REDIRECT_URI}?code=c&state=s`, REDIRECT_URI, '']) {
      await expect(completeLogin(back)).rejects.toMatchObject(none);
      await expect(completeLogin(back, { now })).rejects.toMatchObject(none);
    }
    expect(() => resumeLogin()).toThrow(expect.objectContaining(none));
  });

  test('does not exist before the answer, or if the storage contains another text', () => {
    const { storage } = begin();
    expect(() => resumeLogin({ storage })).toThrow(failure('ZKLOGIN_NO_LOGIN'));
    storage.set('sui-enclave/zklogin/login', '{hunter2');
    expect(() => resumeLogin({ storage })).toThrow(/is not what this library wrote/);
    expect(() => resumeLogin({ storage })).not.toThrow(/hunter2/);
  });

  test('at Microsoft has the tenant of its token as issuer', async () => {
    const tid = '9188040d-6c67-4c5b-b112-36a304b66dad';
    const iss = `https://login.microsoftonline.com/${tid}/v2.0`;
    const begun = begin({ provider: PROVIDERS.microsoft });
    await expect(complete(begun, { iss })).rejects.toMatchObject({ claim: 'iss' });
    expect((await complete(begun, { iss, tid })).claims.issuer).toBe(iss);
  });
});
