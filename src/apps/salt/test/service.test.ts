/** Tests `POST /get_salt` as wallets see it. Its issuer is a fake on loopback with real RSA keys. */
import { readFileSync } from 'node:fs';
import { decodeJwt } from 'jose';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { CLIENT_ID, GOOGLE, Issuer, OTHER_SEED, SEED, startSalt } from './support.ts';

const vectors = JSON.parse(
  readFileSync(new URL('../../../../test/vectors/salt.json', import.meta.url), 'utf8'),
);
const [GOOGLE_SALT] = vectors.derivations.map(({ salt }: { salt: string }) => salt);

describe('POST /get_salt', () => {
  test('returns the salt of the vectors for a genuine token, and nothing else', async () => {
    const issuer = await Issuer.start();
    const server = await startSalt(issuer);
    const response = await server.post('/get_salt', { token: await issuer.token() });
    expect(response.status).toBe(200);
    expect(response.headers.get('cache-control')).toBe('no-store');
    expect(await response.json()).toEqual({ salt: GOOGLE_SALT });
  });

  test('returns the same salt for later tokens and after a restart', async () => {
    const issuer = await Issuer.start();
    const first = await startSalt(issuer);
    const salts = [
      await first.ask(await issuer.token()),
      await first.ask(await issuer.token({ nonce: 'new' })),
    ];
    await first.close();
    const second = await startSalt(issuer);
    salts.push(await second.ask(await issuer.token({ iat: Math.floor(Date.now() / 1000) - 50 })));
    expect(salts).toEqual(Array(3).fill({ status: 200, body: { salt: GOOGLE_SALT } }));
  });

  test('returns the same salt for both spellings of Google’s issuer', async () => {
    const issuer = await Issuer.start();
    const server = await startSalt(issuer);
    const { body } = await server.ask(await issuer.token({ iss: 'accounts.google.com' }));
    expect(body).toEqual({ salt: GOOGLE_SALT });
  });

  test('returns different salts for two issuers with the same sub and aud', async () => {
    const issuer = await Issuer.start();
    const clients = [GOOGLE, 'https://id.example'].map((issuer, index) => ({
      issuer,
      client_id: CLIENT_ID,
      seed: 1,
      // The fake serves the keys of both, each at a path of its own.
      ...(index === 1 && { jwks_url: 'https://www.googleapis.com/other' }),
    }));
    const server = await startSalt(issuer, { clients });
    const firstAnswer = await server.ask(await issuer.token());
    const secondAnswer = await server.ask(await issuer.token({ iss: 'https://id.example' }));
    expect([firstAnswer.status, secondAnswer.status]).toEqual([200, 200]);
    expect(secondAnswer.body['salt']).not.toBe(firstAnswer.body['salt']);
  });

  test('uses the version of the seed that the client names', async () => {
    const issuer = await Issuer.start();
    const clients = [
      { issuer: GOOGLE, client_id: 'old', seed: 1 },
      { issuer: GOOGLE, client_id: CLIENT_ID, seed: 2 },
    ];
    const server = await startSalt(issuer, { seed: `${OTHER_SEED}\n${SEED}`, clients });
    expect((await server.ask(await issuer.token())).body).toEqual({ salt: GOOGLE_SALT });
    // Adding a seed changes nothing for the clients of the old one.
    const oldServer = await startSalt(issuer, { seed: OTHER_SEED, clients: clients.slice(0, 1) });
    const token = await issuer.token({ aud: 'old' });
    expect((await server.ask(token)).body).toEqual((await oldServer.ask(token)).body);
  });

  test('answers preflights from pages of configured origins only', async () => {
    const issuer = await Issuer.start();
    const server = await startSalt(issuer);
    const preflight = (origin: string) =>
      fetch(`${server.url}/get_salt`, {
        method: 'OPTIONS',
        headers: {
          origin,
          'access-control-request-method': 'POST',
          'access-control-request-headers': 'content-type',
        },
      });
    const allowed = await preflight('https://wallet.example');
    expect(allowed.status).toBe(204);
    expect(allowed.headers.get('access-control-allow-origin')).toBe('https://wallet.example');
    expect(allowed.headers.get('access-control-allow-methods')).toContain('POST');
    expect(allowed.headers.get('access-control-allow-headers')).toBe('content-type');
    for (const origin of ['https://evil.example', 'https://wallet.example.evil.example', 'null']) {
      expect((await preflight(origin)).headers.get('access-control-allow-origin')).toBeNull();
    }
  });

  test('logs issuer, client id and a keyed hash of the user, but nothing of the token, the salt or the seed', async () => {
    const issuer = await Issuer.start();
    const server = await startSalt(issuer);
    const token = await issuer.token({ email: 'user@mail.example' });
    const { body } = await server.ask(token);
    await server.ask(`${token}x`);
    await server.ask(await issuer.token({ sub: 'other-subject' }));
    const lines = server
      .printed()
      .split('\n')
      .filter((line) => line.includes('issued a salt'));
    const [first, second] = lines.map((line) => JSON.parse(line));
    expect(first).toMatchObject({
      issuer: GOOGLE,
      client_id: CLIENT_ID,
      user: expect.stringMatching(/^[0-9a-f]{32}$/),
    });
    expect(second.user).not.toBe(first.user);
    const { sub, email } = decodeJwt(token) as { sub: string; email: string };
    for (const secret of [...token.split('.'), body['salt'], sub, email, 'other-subject', SEED]) {
      expect(server.printed()).not.toContain(secret);
    }
  });

  test('hashes a user under a new key at each start', async () => {
    const issuer = await Issuer.start();
    const users = [];
    for (const server of [await startSalt(issuer), await startSalt(issuer)]) {
      await server.ask(await issuer.token());
      users.push(/"user":"([0-9a-f]+)"/.exec(server.printed())?.[1]);
    }
    expect(users[0]).toBeDefined();
    expect(users[0]).not.toBe(users[1]);
  });
});

describe('requests are limited', () => {
  test('by verified user, and the answer has the time to wait', async () => {
    const issuer = await Issuer.start();
    const server = await startSalt(issuer, { SALT_USER_REQUESTS_PER_MINUTE: '2' });
    const token = await issuer.token();
    expect((await server.ask(token)).status).toBe(200);
    expect((await server.ask(token)).status).toBe(200);
    const response = await server.post('/get_salt', { token });
    expect(response.status).toBe(429);
    expect(Number(response.headers.get('retry-after'))).toBeGreaterThan(25);
    expect((await response.json()).code).toBe('SALT_RATE_LIMITED');
    expect((await server.ask(await issuer.token({ sub: 'another' }))).status).toBe(200);
  });

  test('by user, however the token spells its issuer', async () => {
    const issuer = await Issuer.start();
    const server = await startSalt(issuer, { SALT_USER_REQUESTS_PER_MINUTE: '2' });
    const spellings = [GOOGLE, 'accounts.google.com', GOOGLE, 'accounts.google.com'];
    const statuses = [];
    for (const iss of spellings) statuses.push((await server.ask(await issuer.token({ iss }))).status);
    expect(statuses).toEqual([200, 200, 429, 429]);
  });

  test('by user, but forged tokens do not count', async () => {
    const issuer = await Issuer.start();
    const server = await startSalt(issuer, { SALT_USER_REQUESTS_PER_MINUTE: '1' });
    const forged = `${(await issuer.token()).slice(0, -8)}AAAAAAAA`;
    for (let i = 0; i < 5; i++) expect((await server.ask(forged)).status).toBe(401);
    expect((await server.ask(await issuer.token())).status).toBe(200);
  });

  test('by address behind a trusted proxy, before a token is verified', async () => {
    const issuer = await Issuer.start();
    const server = await startSalt(issuer, { TRUSTED_PROXIES: '1', SALT_ADDRESS_REQUESTS_PER_MINUTE: '2' });
    const from = (address: string) => server.ask('x.y.z', { 'x-forwarded-for': `1.2.3.4, ${address}` });
    expect((await from('198.51.100.7')).status).toBe(400);
    expect((await from('198.51.100.7')).status).toBe(400);
    expect((await from('198.51.100.7')).body['code']).toBe('SALT_RATE_LIMITED');
    expect((await from('198.51.100.8')).status).toBe(400);
  });

  test('but not by address without a trusted proxy, since callers control headers', async () => {
    const issuer = await Issuer.start();
    const server = await startSalt(issuer);
    for (let i = 0; i < 400; i++) {
      expect((await server.ask('x.y.z', { 'x-forwarded-for': '198.51.100.7' })).status).toBe(400);
    }
  });

  test('by concurrent verifications: refuses excess requests immediately', async () => {
    const issuer = await Issuer.start();
    const server = await startSalt(issuer, { SALT_MAX_VERIFICATIONS: '1' });
    const token = await issuer.token();
    // The first verification lasts until the other requests have been refused.
    const [began, refused] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const { subtle } = crypto;
    const verify = subtle.verify.bind(subtle);
    const verifying = vi.spyOn(subtle, 'verify').mockImplementationOnce(async (...verifyArguments) => {
      began.resolve();
      await refused.promise;
      return await verify(...verifyArguments);
    });
    onTestFinished(() => {
      refused.resolve();
      verifying.mockRestore();
    });
    const first = server.ask(token);
    await began.promise;
    for (const { status, body } of await Promise.all(Array.from({ length: 20 }, () => server.ask(token)))) {
      expect([status, body['code']]).toEqual([503, 'SALT_BUSY']);
    }
    refused.resolve();
    expect((await first).status).toBe(200);
    expect((await server.ask(token)).status).toBe(200);
    expect(verifying).toHaveBeenCalledTimes(2);
  });
});
