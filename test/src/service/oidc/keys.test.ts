/** Tests that an issuer's keys are fetched rarely, and stay cached during outages. */
import type { ServerResponse } from 'node:http';
import fc from 'fast-check';
import type { JWK } from 'jose';
import { describe, expect, test } from 'vitest';
import { readKey } from '../../../../src/service/oidc/jwk.ts';
import { createKeySources, IssuerKeys, KEYS_BOUNDS } from '../../../../src/service/oidc/keys.ts';
import { createUpstream, createUpstreams } from '../../../../src/service/upstream.ts';
import { Issuer } from '../../../../src/testing/oidc_issuer.ts';
import { changeDeadline } from '../../server/support.ts';

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;

async function setUp() {
  const issuer = await Issuer.start();
  const clock = { now: 0 };
  const keys = new IssuerKeys(createUpstream(issuer.origin)(KEYS_BOUNDS), '/jwks', () => clock.now);
  return { issuer, clock, keys };
}

const failures: [string, (response: ServerResponse) => unknown, string][] = [
  ['is down', (response) => response.destroy(), 'ISSUER_UNREACHABLE'],
  ['fails', (response) => response.writeHead(500).end(), 'ISSUER_REFUSED'],
  ['answers with no content', (response) => response.writeHead(204).end(), 'ISSUER_REFUSED'],
  ['redirects', (response) => response.writeHead(302, { location: '/x' }).end(), 'ISSUER_UNREACHABLE'],
  ['answers garbage', (response) => response.end('<html>'), 'ISSUER_MALFORMED'],
  ['answers other JSON', (response) => response.end('{"keys":{}}'), 'ISSUER_MALFORMED'],
  ['answers null keys', (response) => response.end('{"keys":[null]}'), 'ISSUER_MALFORMED'],
  ['answers no keys', (response) => response.end('{"keys":[]}'), 'ISSUER_MALFORMED'],
  ['answers without an end', (response) => response.end(' '.repeat(300_000)), 'ISSUER_MALFORMED'],
];

describe('keys', () => {
  test('are fetched once for any number of tokens', async () => {
    const { issuer, keys } = await setUp();
    await Promise.all(Array.from({ length: 100 }, () => keys.findKey('key-1')));
    await keys.findKey('key-1');
    expect(issuer.asked).toBe(1);
  });

  test('are renewed after ten minutes, which removes a revoked key', async () => {
    const { issuer, keys, clock } = await setUp();
    await keys.findKey('key-1');
    issuer.keys = issuer.keys.map((key) => ({ ...key, kid: 'key-2' }));
    clock.now += 10 * MINUTE - 1;
    await keys.findKey('key-1');
    expect(issuer.asked).toBe(1);
    clock.now += 1;
    await expect(keys.findKey('key-1')).rejects.toMatchObject({ code: 'TOKEN_KEY_UNKNOWN' });
    await keys.findKey('key-2');
    expect(issuer.asked).toBe(2);
  });

  test('that are new are found immediately, unless the keys were fetched just before', async () => {
    const { issuer, keys, clock } = await setUp();
    await keys.findKey('key-1');
    issuer.keys.push({ ...issuer.keys[0], kid: 'key-2' } as never);
    clock.now += 30_000;
    await keys.findKey('key-2');
    expect(issuer.asked).toBe(2);
  });

  test('that do not exist are requested at a bounded rate: 1,000 unknown kids', async () => {
    const { issuer, keys, clock } = await setUp();
    await keys.findKey('key-1');
    for (let i = 0; i < 1000; i++) {
      clock.now += 100;
      await expect(keys.findKey(`unknown-${i}`)).rejects.toMatchObject({ code: 'TOKEN_KEY_UNKNOWN' });
    }
    // The loop takes 100 simulated seconds, and the issuer gets at most one request in 30 seconds.
    expect(issuer.asked).toBe(1 + 3);
    await keys.findKey('key-1');
    expect(issuer.asked).toBe(1 + 3);
  });
});

test('padding after n and e is ignored, as validators of Sui ignore it', async () => {
  const { issuer, keys } = await setUp();
  const [validKey] = issuer.keys;
  issuer.keys = [{ ...validKey, n: `${validKey?.n}==`, e: `${validKey?.e}=` }] as JWK[];
  expect((await keys.findKey('key-1')).jwk).toMatchObject({ n: validKey?.n, e: validKey?.e });
});

describe('a malformed key', () => {
  const malformed: [string, (good: JWK) => object][] = [
    ['has an n that is not base64url', (good) => ({ ...good, n: `${good.n?.slice(0, -1)}!` })],
    ['has an n with padding in it', (good) => ({ ...good, n: `${good.n?.slice(0, 8)}=${good.n?.slice(8)}` })],
    ['has an n with three characters of padding', (good) => ({ ...good, n: `${good.n}===` })],
    ['has an n of a length that base64url can not have', (good) => ({ ...good, n: `${good.n}AAA` })],
    ['has an n that is a number', (good) => ({ ...good, n: 5 })],
    ['has an even n', (good) => ({ ...good, n: `${good.n?.slice(0, -2)}AA` })],
    ['has an n of zeros only', (good) => ({ ...good, n: 'A'.repeat(342) })],
    ['has an n of 16384 bits', (good) => ({ ...good, n: Buffer.alloc(2048, 0xff).toString('base64url') })],
    ['has no n', ({ n: _, ...otherMembers }) => otherMembers],
    ['has an empty e', (good) => ({ ...good, e: '' })],
    ['has an e of 0', (good) => ({ ...good, e: 'AA' })],
    ['has an e of 1', (good) => ({ ...good, e: 'AQ' })],
    ['has an even e', (good) => ({ ...good, e: 'AQAA' })],
    ['has a huge e', (good) => ({ ...good, e: good.n })],
    ['has an e that is a list', (good) => ({ ...good, e: ['AQAB'] })],
    ['has a text for key_ops', (good) => ({ ...good, key_ops: 'verify' })],
    ['has key_ops that name an operation twice', (good) => ({ ...good, key_ops: ['verify', 'verify'] })],
    ['has key_ops of numbers', (good) => ({ ...good, key_ops: ['verify', 1] })],
    ['has a use that is not a string', (good) => ({ ...good, use: ['sig'] })],
    ['has an alg that is not a string', (good) => ({ ...good, alg: 256 })],
    ['also has its private part', (good) => ({ ...good, d: 'AQAB' })],
  ];

  test('is an error of the issuer if a token names it, and does not affect other keys of the set', async () => {
    const { issuer, keys } = await setUp();
    const [validKey = {}] = issuer.keys;
    const malformedKeys = malformed.map(([keyId, change]) => ({ ...change(validKey), kid: keyId }));
    issuer.keys = [...malformedKeys, validKey, null, 'key', { kid: 'none' }] as JWK[];
    await keys.findKey('key-1');
    for (const [kid] of malformed) {
      await expect(keys.findKey(kid), kid).rejects.toMatchObject({ code: 'ISSUER_MALFORMED' });
    }
    expect(issuer.asked).toBe(1);
  });

  test('with the same id as a valid key is ignored', async () => {
    const { issuer, keys } = await setUp();
    const [validKey = {}] = issuer.keys;
    issuer.keys = [{ ...validKey, e: '' }, validKey];
    await keys.findKey('key-1');
  });

  test('is fetched again, since the issuer may repair it', async () => {
    const { issuer, keys, clock } = await setUp();
    const [validKey = {}] = issuer.keys;
    issuer.keys = [
      { ...validKey, e: '' },
      { ...validKey, kid: 'other' },
    ];
    await expect(keys.findKey('key-1')).rejects.toMatchObject({ code: 'ISSUER_MALFORMED' });
    issuer.keys = [validKey];
    clock.now += 30_000;
    await keys.findKey('key-1');
  });

  test('is distinguished from a valid key with leading zeros in n', async () => {
    const { issuer, keys } = await setUp();
    const [validKey = {}] = issuer.keys;
    const n = Buffer.concat([Buffer.alloc(2), Buffer.from(validKey.n ?? '', 'base64url')]).toString(
      'base64url',
    );
    issuer.keys = [{ ...validKey, n }];
    expect((await keys.findKey('key-1')).jwk).toEqual({ kty: 'RSA', n: validKey.n, e: 'AQAB' });
  });

  test('never causes an internal error', async () => {
    const issuer = await Issuer.start();
    const [validKey = {}] = issuer.keys;
    const number = fc.oneof(
      fc.string(),
      fc.base64String(),
      fc.constantFrom(validKey.n, validKey.e),
      fc.anything(),
    );
    const anything = fc.record(
      { n: number, e: number, use: fc.anything(), alg: fc.anything() },
      { requiredKeys: [] },
    );
    await fc.assert(
      fc.asyncProperty(anything, fc.boolean(), async (changed, whole) => {
        const key = await readKey({ ...(whole ? validKey : {}), ...changed, kty: 'RSA', kid: 'x' });
        if (typeof key?.key === 'object')
          expect(key.key.imported).toMatchObject({ type: 'public', usages: ['verify'] });
      }),
      { numRuns: 500 },
    );
  });
});

describe('an issuer that', () => {
  test.each(failures)(
    '%s has no keys, and gets another request after five seconds',
    async (_caseName, answer, code) => {
      const { issuer, keys, clock } = await setUp();
      const { answer: healthy } = issuer;
      issuer.answer = answer;
      for (let i = 0; i < 100; i++) await expect(keys.findKey('key-1')).rejects.toMatchObject({ code });
      expect(issuer.asked).toBe(1);
      issuer.answer = healthy;
      clock.now += 5000;
      await keys.findKey('key-1');
      expect(issuer.asked).toBe(2);
      // The issuer works again. A key that it does not have is now reported as unknown, not as an outage.
      await expect(keys.findKey('key-2')).rejects.toMatchObject({ code: 'TOKEN_KEY_UNKNOWN' });
    },
  );

  test.each(failures)('%s does not affect known keys for a day', async (_caseName, answer, code) => {
    const { issuer, keys, clock } = await setUp();
    await keys.findKey('key-1');
    issuer.answer = answer;
    clock.now += 24 * HOUR - 1;
    await keys.findKey('key-1');
    await expect(keys.findKey('key-2')).rejects.toMatchObject({ code });
    clock.now += 1;
    await expect(keys.findKey('key-1')).rejects.toMatchObject({ code });
  });

  test('failed once, and answers again, has its revoked keys refused after ten minutes', async () => {
    const { issuer, keys, clock } = await setUp();
    const { answer: healthy } = issuer;
    await keys.findKey('key-1');
    clock.now += 10 * MINUTE;
    issuer.answer = (response) => response.writeHead(503).end();
    await keys.findKey('key-1');
    issuer.answer = healthy;
    issuer.keys = issuer.keys.map((key) => ({ ...key, kid: 'key-2' }));
    clock.now += 10 * MINUTE;
    const callers = Array.from({ length: 50 }, () => keys.findKey('key-1'));
    const outcomes = await Promise.allSettled(callers);
    const code = 'TOKEN_KEY_UNKNOWN';
    expect(outcomes).toMatchObject(Array(50).fill({ status: 'rejected', reason: { code } }));
    expect(issuer.asked).toBe(3);
  });

  test('is slow times out after five seconds; then known keys are used immediately', async () => {
    changeDeadline(5000, 2000);
    const { issuer, keys, clock } = await setUp();
    await keys.findKey('key-1');
    issuer.answer = (response) => response.write('{"keys":');
    const measureMs = async (work: Promise<unknown>) => {
      const started = performance.now();
      await work;
      return performance.now() - started;
    };
    clock.now += 10 * MINUTE;
    const first = await measureMs(keys.findKey('key-1'));
    expect(first).toBeGreaterThan(1990);
    clock.now += 5000;
    expect(await measureMs(keys.findKey('key-1'))).toBeLessThan(1990);
    // The issuer gets a request nevertheless.
    await expect.poll(() => issuer.asked).toBe(3);
    await expect(keys.findKey('key-2')).rejects.toMatchObject({ code: 'ISSUER_TIMEOUT' });
  });
});

test('clients share keys exactly if the URL of the keys is the same', () => {
  const clients = ['https://a.example/jwks?v=1', 'https://b.example/jwks', 'https://a.example/jwks?v=1'].map(
    (url) => ({ jwksUrl: new URL(url) }),
  );
  const upstreamCalls: unknown[] = [];
  const upstream = createUpstreams({ endpoints: ['a.example', 'b.example'] });
  const keysOf = createKeySources(clients, (...upstreamArguments) => {
    upstreamCalls.push(upstreamArguments);
    return upstream(...upstreamArguments);
  });
  const [first, otherKeys, again] = clients.map(keysOf);
  expect(again).toBe(first);
  expect(otherKeys).not.toBe(first);
  expect(upstreamCalls).toEqual([
    ['a.example', KEYS_BOUNDS],
    ['b.example', KEYS_BOUNDS],
  ]);
});
