/** Tests the service with an issuer that publishes malformed keys or is down. */
import type { JWK } from 'jose';
import { describe, expect, test } from 'vitest';
import { Issuer, startSalt } from './support.ts';

describe('a malformed key', () => {
  // test/src/service/oidc/keys.test.ts tests more kinds of malformed keys.
  const malformed: [string, (validKey: JWK) => object][] = [
    ['has an n that is not base64url', (validKey) => ({ ...validKey, n: `${validKey.n?.slice(0, -1)}!` })],
    ['has key_ops of numbers', (validKey) => ({ ...validKey, key_ops: ['verify', 1] })],
  ];

  test('is an error of the issuer if a token names it, and does not affect other keys of the set', async () => {
    const issuer = await Issuer.start();
    const [validKey = {}] = issuer.keys;
    const malformedKeys = malformed.map(([keyId, change]) => ({ ...change(validKey), kid: keyId }));
    issuer.keys = [...malformedKeys, validKey, null, 'key', { kid: 'none' }] as JWK[];
    const server = await startSalt(issuer);
    for (const [kid] of malformed) {
      const { status, body } = await server.ask(await issuer.token({}, { header: { kid } }));
      expect([kid, status, body['code']]).toEqual([kid, 502, 'SALT_ISSUER_MALFORMED']);
    }
    expect((await server.ask(await issuer.token())).status).toBe(200);
    expect(issuer.asked).toBe(1);
  });

  test('with the same id as a valid key is ignored', async () => {
    const issuer = await Issuer.start();
    const [validKey = {}] = issuer.keys;
    issuer.keys = [{ ...validKey, e: '' }, validKey];
    expect((await (await startSalt(issuer)).ask(await issuer.token())).status).toBe(200);
  });

  test('is distinguished from a valid key with leading zeros in n', async () => {
    const issuer = await Issuer.start();
    const [validKey = {}] = issuer.keys;
    const n = Buffer.concat([Buffer.alloc(2), Buffer.from(validKey.n ?? '', 'base64url')]).toString(
      'base64url',
    );
    issuer.keys = [{ ...validKey, n }];
    expect((await (await startSalt(issuer)).ask(await issuer.token())).status).toBe(200);
  });
});

describe('the service', () => {
  test('fails while its issuer is down at first, and continues if the issuer goes down later', async () => {
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

  test('sends its issuer at most one request in 30 seconds, after the first, for 1,000 tokens with unknown keys', async () => {
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
    // One request at first, and then one in each 30 seconds.
    expect(issuer.asked).toBeLessThanOrEqual(1 + Math.ceil((performance.now() - started) / 30_000));
    expect((await server.ask(await issuer.token())).status).toBe(200);
  });
});
