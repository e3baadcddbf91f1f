/** The service, when its issuer publishes malformed keys or is down. */
import type { JWK } from 'jose';
import { describe, expect, test } from 'vitest';
import { Issuer, startSalt } from './support.ts';

describe('a malformed key', () => {
  // test/src/service/oidc/keys.test.ts has all the ways.
  const malformed: [string, (good: JWK) => object][] = [
    ['has an n that is not base64url', (good) => ({ ...good, n: `${good.n?.slice(0, -1)}!` })],
    ['has key_ops of numbers', (good) => ({ ...good, key_ops: ['verify', 1] })],
  ];

  test('is an error of the issuer if needed, and does not affect other keys of the set', async () => {
    const issuer = await Issuer.start();
    const [good = {}] = issuer.keys;
    const bad = malformed.map(([keyId, change]) => ({ ...change(good), kid: keyId }));
    issuer.keys = [...bad, good, null, 'key', { kid: 'none' }] as JWK[];
    const server = await startSalt(issuer);
    for (const [kid] of malformed) {
      const { status, body } = await server.ask(await issuer.token({}, { header: { kid } }));
      expect([kid, status, body['code']]).toEqual([kid, 502, 'SALT_ISSUER_MALFORMED']);
    }
    expect((await server.ask(await issuer.token())).status).toBe(200);
    expect(issuer.asked).toBe(1);
  });

  test('with the same id as a valid one is ignored', async () => {
    const issuer = await Issuer.start();
    const [good = {}] = issuer.keys;
    issuer.keys = [{ ...good, e: '' }, good];
    expect((await (await startSalt(issuer)).ask(await issuer.token())).status).toBe(200);
  });

  test('may have leading zeros in n, which do not make it malformed', async () => {
    const issuer = await Issuer.start();
    const [good = {}] = issuer.keys;
    const n = Buffer.concat([Buffer.alloc(2), Buffer.from(good.n ?? '', 'base64url')]).toString('base64url');
    issuer.keys = [{ ...good, n }];
    expect((await (await startSalt(issuer)).ask(await issuer.token())).status).toBe(200);
  });
});

describe('the service, when its issuer', () => {
  test('is down from the start, fails; if it goes down later, continues', async () => {
    const issuer = await Issuer.start();
    const server = await startSalt(issuer);
    const { answer: healthy } = issuer;
    issuer.answer = (response) => response.destroy();
    const { status, body } = await server.ask(await issuer.token());
    expect([status, body['code']]).toEqual([502, 'SALT_ISSUER_UNREACHABLE']);

    issuer.answer = healthy;
    const otherServer = await startSalt(issuer);
    expect((await otherServer.ask(await issuer.token())).status).toBe(200);
    issuer.stop();
    expect((await otherServer.ask(await issuer.token())).status).toBe(200);
    expect((await otherServer.ask(await issuer.token({}, { header: { kid: 'new' } }))).status).toBe(401);
  });

  test('gets at most two requests for 1,000 tokens with unknown keys', async () => {
    const issuer = await Issuer.start();
    const server = await startSalt(issuer);
    const [, payload, signature] = (await issuer.token()).split('.');
    const codes = new Set<string | undefined>();
    let next = 0;
    const started = performance.now();
    const caller = async () => {
      for (let i = next++; i < 1000; i = next++) {
        const header = Buffer.from(JSON.stringify({ alg: 'RS256', kid: `unknown-${i}` })).toString(
          'base64url',
        );
        const { body } = await server.ask(`${header}.${payload}.${signature}`);
        codes.add(body['code']);
      }
    };
    await Promise.all(Array.from({ length: 64 }, caller));
    expect(codes).toEqual(new Set(['SALT_TOKEN_KEY_UNKNOWN']));
    // Once at first, and then once in 30 seconds.
    expect(issuer.asked).toBeLessThanOrEqual(1 + Math.ceil((performance.now() - started) / 30_000));
    expect((await server.ask(await issuer.token())).status).toBe(200);
  });
});
