import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { inspect } from 'node:util';
import { bcs } from '@mysten/bcs';
import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import { WeatherResponse } from '../../../../src/apps/weather/types.ts';
import {
  EnclaveClient,
  type EnclaveClientOptions,
  signedType,
  text,
  u8,
  u64,
} from '../../../../src/library/client/index.ts';
import { Signer } from '../../../../src/server/keys/signer.ts';
import { EmulatedNsm } from '../../../../src/testing/emulated_nsm.ts';
import { FIXTURE_APPS, startServer } from '../../server/support.ts';
import { FakeEnclave, type Reply } from './fake_enclave.ts';

const nsm = new EmulatedNsm();
let enclave: FakeEnclave;
beforeEach(async () => {
  enclave = await FakeEnclave.start(nsm);
});
afterEach(() => {
  enclave.close();
  vi.unstubAllGlobals();
});

function createClient(options: Partial<EnclaveClientOptions> = {}): EnclaveClient {
  return new EnclaveClient(enclave.url, {
    policy: { images: [enclave.image] },
    roots: enclave.roots,
    ...options,
  });
}

/** Properties that tests change in the answers of both endpoints. */
interface Answer {
  attestation: string;
  signature: string;
  response: { intent: unknown; timestamp_ms: number; data: Record<string, unknown> };
}

const QUESTION = { location: 'San Francisco' };

/** Lets `change` edit the JSON of an endpoint's answer. */
function lieAbout(path: string, change: (answer: Answer) => void): void {
  enclave.lie = (requestedPath: string, reply: Reply) => {
    if (requestedPath !== path) return reply;
    const answer = JSON.parse(reply.body);
    change(answer);
    return { ...reply, body: JSON.stringify(answer) };
  };
}

describe.each(['Web Crypto', '@noble/curves'])('the client with %s', (path) => {
  beforeEach(() => {
    const { crypto } = globalThis;
    if (path === '@noble/curves') {
      vi.stubGlobal('crypto', { getRandomValues: crypto.getRandomValues.bind(crypto) });
    }
  });

  test('returns the answer of an attested enclave, typed and with its signature', async () => {
    const answer = await createClient().processData(QUESTION, WeatherResponse);
    expect(answer).toMatchObject({
      data: { location: 'San Francisco', temperature: 13n },
      intent: 0,
      timestampMs: enclave.timestampMs,
    });
    const typed: { location: string; temperature: bigint } = answer.data;
    expect(typed.temperature).toBe(13n);
    expect(answer.signature).toHaveLength(64);
    expect(answer.publicKey).toEqual(enclave.key.publicKey);
  });

  test('returns the unsigned content of an answer in "unsigned", and leaves "unsigned" out if there is none', async () => {
    expect(await createClient().processData(QUESTION, WeatherResponse)).not.toHaveProperty('unsigned');
    lieAbout('/process_data', (answer) => Object.assign(answer, { unsigned: { note: 'by the host' } }));
    const { data, unsigned } = await createClient().processData(QUESTION, WeatherResponse);
    expect([data.temperature, unsigned]).toEqual([13n, { note: 'by the host' }]);
  });

  test('verifies the answer of a real enclave', async () => {
    const { verifyEd25519 } = await import('../../../../src/library/client/ed25519.ts');
    const message = { location: 'San Francisco', temperature: 13n };
    const bytes = WeatherResponse.message
      .serialize({ intent: 0, timestamp_ms: 1_744_683_300_000n, payload: message })
      .toBytes();
    const key = Buffer.from('e8e62201dbe293b703c759f653107acbc2c911fa1d2e66f2c747bec95971a2af', 'hex');
    const signature = Buffer.from(
      '77b6d8be225440d00f3d6eb52e91076a8927cebfb520e58c19daf31ecf06b3798ec3d3ce9630a9eceee46d24f057794a60dd781657cb06d952269cfc5ae19500',
      'hex',
    );
    expect(await verifyEd25519(key, signature, bytes)).toBe(true);
    signature[0] = 0x76;
    expect(await verifyEd25519(key, signature, bytes)).toBe(false);
    expect(await verifyEd25519(key.subarray(1), signature, bytes)).toBe(false);
  });

  test('refuses data that was modified in transit', async () => {
    lieAbout('/process_data', (answer) => {
      answer.response.data.temperature = 14;
    });
    await expect(createClient().processData(QUESTION, WeatherResponse)).rejects.toMatchObject({
      code: 'CLIENT_SIGNATURE',
    });
  });
});

describe('a call', () => {
  // These are the types that test/fixtures/apps/dice signs.
  const Roll = signedType(1, bcs.struct('Roll', { sides: u8, value: u8 }));
  const Draw = signedType(2, bcs.struct('Draw', { note: text, picked: u64, all: bcs.byteVector() }));

  async function startDice(): Promise<EnclaveClient> {
    const server = await startServer({ apps: FIXTURE_APPS, env: { APP: 'dice' }, nsm: enclave.nsm });
    const policy = { images: [enclave.image] };
    // The server signs its draws with the time 5.
    return new EnclaveClient(server.url, { policy, roots: enclave.roots, maxAnswerAgeMs: Infinity });
  }

  test('reaches an endpoint by its path, and verifies the answer', async () => {
    const client = await startDice();
    const big = 2n ** 64n - 1n;
    const { data, intent, timestampMs } = await client.call('/draw', { picked: String(big) }, Draw);
    expect(data).toEqual({ note: '🎲', picked: big, all: Uint8Array.of(1, 255) });
    expect([intent, timestampMs]).toEqual([2, 5n]);
    const roll = await client.call('process_data', { payload: { sides: 6 } }, Roll);
    expect(roll.data.sides).toBe(6);
  });

  test('names the endpoint in the error when the answer does not match the schema, or is not signed', async () => {
    const client = await startDice();
    await expect(client.call('/draw', { picked: '1' }, Roll)).rejects.toMatchObject({
      code: 'CLIENT_INTENT',
    });
    await expect(client.call('/rules', undefined, Roll)).rejects.toMatchObject({
      code: 'CLIENT_MALFORMED_ANSWER',
      message: expect.stringMatching(
        /^the answer to rules can't be used: it is not signed \("response" is missing\)\. .* call others by fetch/,
      ),
    });
    await expect(client.call('/draw', {}, Draw)).rejects.toMatchObject({
      code: 'CLIENT_REFUSED',
      status: 400,
      serverCode: 'INVALID_INPUT',
      serverMessage: expect.stringMatching(/picked/),
    });
  });

  test.each([
    ['is missing', { location: 'Oslo' }, '"temperature" is missing, and there are "location"'],
    [
      'is misnamed',
      { location: 'Oslo', degrees: 3 },
      '"temperature" is missing, and there are "location", "degrees"',
    ],
    [
      'has another type',
      { location: 'Oslo', temperature: '3.5' },
      '"temperature" has a value of another type',
    ],
    ['comes first, if the data is empty', {}, '"location" is missing, and there are no fields'],
  ])('names the field that %s, and says that the schema may have changed', async (_, data, problem) => {
    lieAbout('/process_data', (answer) => {
      answer.response.data = data;
    });
    const error = await createClient()
      .processData(QUESTION, WeatherResponse)
      .catch((error) => error);
    expect(error.code).toBe('CLIENT_MALFORMED_ANSWER');
    expect(error.message).toContain(
      `its data does not match WeatherResponse: ${problem}. If the application has changed, its schema has, too`,
    );
  });

  test('quotes only a few short names of a hostile answer', async () => {
    lieAbout('/process_data', (answer) => {
      const entries = Array.from({ length: 1000 }, (_, index) => [`${'x'.repeat(900)}\n${index}`, 'secret']);
      answer.response.data = Object.fromEntries(entries);
    });
    const { message } = await createClient()
      .processData(QUESTION, WeatherResponse)
      .catch((error) => error);
    expect(message.length).toBeLessThan(1000);
    expect(message).not.toMatch(/secret|\n/);
  });

  test('refuses an answer that was modified in transit', async () => {
    lieAbout('/draw', (answer) => {
      answer.response.data['temperature'] = 14;
    });
    const call = createClient().call('/draw?a=b', { payload: QUESTION }, WeatherResponse);
    await expect(call).rejects.toMatchObject({ code: 'CLIENT_SIGNATURE' });
    expect(enclave.requests.at(-1)).toMatch(/get_attestation/);
    expect(enclave.requests).toContain('/draw?a=b');
  });

  test('does not return data that the signature does not cover', async () => {
    lieAbout('/process_data', (answer) => {
      answer.response.data.advice = 'buy';
    });
    const { data } = await createClient().processData(QUESTION, WeatherResponse);
    expect(data).toEqual({ location: 'San Francisco', temperature: 13n });
  });

  test.each([
    '',
    '/',
    '..',
    '../draw',
    '/%2e%2e/draw',
    'https://other.example/draw',
    '/https://a',
    '/draw#x',
    1,
  ])('refuses the path %j, which is not below the URL of the enclave', async (path) => {
    const client = new EnclaveClient('https://host/enclave', { policy: { images: [enclave.image] } });
    const call = client.call(path as string, {}, WeatherResponse);
    await expect(call).rejects.toMatchObject({ code: 'CLIENT_OPTION' });
  });
});

test.each(['.///other.example/draw', 'a/..///other.example/draw', './https://other.example/draw'])(
  'sends a call with the path %j to the enclave, and to no other host',
  async (path) => {
    const urls: string[] = [];
    const fetch: typeof globalThis.fetch = async (url, init) => {
      urls.push(String(url));
      if (!String(url).startsWith(`${enclave.url}/`)) throw new Error('another host');
      return await globalThis.fetch(url, init);
    };
    const client = createClient({ fetch });
    await client.call(path, { payload: QUESTION }, WeatherResponse).catch(() => {});
    expect(urls.length).toBeGreaterThan(1);
    expect(urls.filter((url) => !url.startsWith(`${enclave.url}/`))).toEqual([]);
  },
);

describe('the age of an answer', () => {
  const NOW = Date.now();
  const MINUTE = 60_000;
  const HOUR = 60 * MINUTE;

  async function ask(age: number, options: Partial<EnclaveClientOptions> = {}) {
    enclave.timestampMs = BigInt(NOW - age);
    return await createClient({ now: () => NOW, ...options }).processData(QUESTION, WeatherResponse);
  }

  test.each<[number, Partial<EnclaveClientOptions>]>([
    [HOUR, {}],
    [-MINUTE, {}],
    [5 * MINUTE, { maxAnswerAgeMs: 5 * MINUTE }],
    [100 * HOUR, { maxAnswerAgeMs: 100 * HOUR }],
    [NOW, { maxAnswerAgeMs: Infinity }],
  ])('may be %d ms with %o', async (age, options) => {
    expect((await ask(age, options)).timestampMs).toBe(BigInt(NOW - age));
  });

  test.each<[number, Partial<EnclaveClientOptions>, string]>([
    [HOUR + 1, {}, 'CLIENT_STALE'],
    [NOW, {}, 'CLIENT_STALE'],
    [5 * MINUTE + 1, { maxAnswerAgeMs: 5 * MINUTE }, 'CLIENT_STALE'],
    [-MINUTE - 1, {}, 'CLIENT_FUTURE'],
    [-MINUTE - 1, { maxAnswerAgeMs: Infinity }, 'CLIENT_FUTURE'],
  ])('may not be %d ms with %o: %s', async (age, options, code) => {
    await expect(ask(age, options)).rejects.toMatchObject({ code, timestampMs: BigInt(NOW - age) });
  });

  test('is computed from the signed timestamp, up to the largest u64', async () => {
    enclave.timestampMs = BigInt(NOW - 2 * HOUR);
    lieAbout('/process_data', (answer) => {
      answer.response.timestamp_ms = NOW;
    });
    await expect(createClient().processData(QUESTION, WeatherResponse)).rejects.toMatchObject({
      code: 'CLIENT_SIGNATURE',
    });
    enclave.lie = (_, reply) => reply;
    enclave.timestampMs = 2n ** 64n - 1n;
    await expect(createClient().processData(QUESTION, WeatherResponse)).rejects.toMatchObject({
      code: 'CLIENT_FUTURE',
    });
  });

  test('exposes a recorded answer that is replayed', async () => {
    let recorded: Reply | undefined;
    enclave.lie = (path, reply) => {
      if (path === '/process_data') recorded ??= reply;
      return path === '/process_data' ? (recorded ?? reply) : reply;
    };
    let now = NOW;
    const client = createClient({ now: () => now, pinMaxAgeMs: 24 * HOUR });
    await client.processData(QUESTION, WeatherResponse);
    now += HOUR - MINUTE;
    await client.processData(QUESTION, WeatherResponse);
    now += 2 * MINUTE;
    await expect(client.processData(QUESTION, WeatherResponse)).rejects.toMatchObject({
      code: 'CLIENT_STALE',
    });
  });

  test('is unknown, and the answer refused, when the clock returns NaN', async () => {
    let calls = 0;
    // The attestation and the age of its key come first, and read the same clock.
    const now = () => (++calls > 3 ? Number.NaN : Date.now());
    const client = createClient({ now });
    await client.attest();
    await expect(client.processData(QUESTION, WeatherResponse)).rejects.toMatchObject({
      code: 'CLIENT_STALE',
    });
  });
});

describe('the option "expect"', () => {
  const data = { location: 'San Francisco', temperature: 13n };

  test.each([{}, { location: 'San Francisco' }, data, { temperature: 13 }, { temperature: '13' }])(
    'accepts an answer that repeats %o',
    async (expected) => {
      const answer = await createClient().processData(QUESTION, WeatherResponse, { expect: expected });
      expect(answer.data).toEqual(data);
    },
  );

  test.each([
    [{ location: 'Oslo' }, 'location'],
    [{ location: 'San Francisco ' }, 'location'],
    [{ location: 'san francisco' }, 'location'],
    [{ location: '' }, 'location'],
    [{ location: 'San Francisco', temperature: 14n }, 'temperature'],
  ])('refuses an answer that does not repeat %o', async (expected, member) => {
    const call = createClient().processData(QUESTION, WeatherResponse, { expect: expected });
    await expect(call).rejects.toMatchObject({ code: 'CLIENT_EXPECT', member });
  });

  test('refuses the genuine answer to another request', async () => {
    let osloAnswer: Reply | undefined;
    const client = createClient();
    enclave.lie = (path, reply) => {
      if (path === '/process_data') osloAnswer = reply;
      return reply;
    };
    await client.processData({ location: 'Oslo' }, WeatherResponse, { expect: { location: 'Oslo' } });
    enclave.lie = (_, reply) => osloAnswer ?? reply;
    const call = client.processData(QUESTION, WeatherResponse, { expect: QUESTION });
    await expect(call).rejects.toMatchObject({ code: 'CLIENT_EXPECT', member: 'location' });
  });

  test('is compared with the signed data only', async () => {
    lieAbout('/process_data', (answer) => {
      answer.response.data.location = 'Oslo';
    });
    const forged = createClient().processData(QUESTION, WeatherResponse, { expect: { location: 'Oslo' } });
    await expect(forged).rejects.toMatchObject({ code: 'CLIENT_SIGNATURE' });
    lieAbout('/process_data', (answer) => {
      answer.response.data['place'] = 'Oslo';
    });
    const unsigned = { expect: { place: 'Oslo' } } as never;
    await expect(createClient().processData(QUESTION, WeatherResponse, unsigned)).rejects.toMatchObject({
      code: 'CLIENT_OPTION',
      message: expect.stringContaining('WeatherResponse has no "place"'),
    });
  });

  test('may contain bytes and nested values', async () => {
    const Nested = signedType(
      0,
      bcs.struct('Nested', { at: bcs.struct('At', { x: u8, y: bcs.option(u8) }), raw: bcs.byteVector() }),
    );
    const signer = new Signer(enclave.key, [Nested]);
    const { json } = signer.sign(Nested, enclave.timestampMs, {
      at: { x: 1, y: null },
      raw: Uint8Array.of(1, 2),
    });
    enclave.lie = (path, reply) => (path === '/nested' ? { ...reply, body: json.toString() } : reply);
    const ask = (expected: object) =>
      createClient().call('/nested', { payload: QUESTION }, Nested, { expect: expected });
    await ask({ at: { x: 1, y: null }, raw: [1, 2] });
    await expect(ask({ at: { x: 1, y: 0 } })).rejects.toMatchObject({ code: 'CLIENT_EXPECT', member: 'at' });
    await expect(ask({ raw: [1] })).rejects.toMatchObject({ code: 'CLIENT_EXPECT', member: 'raw' });
    await expect(ask({ at: { x: 256, y: null } })).rejects.toMatchObject({ code: 'CLIENT_OPTION' });
  });

  test('matches a string only if it is the same string', async () => {
    const client = createClient();
    await fc.assert(
      fc.asyncProperty(
        fc.string({ unit: 'binary' }),
        fc.string({ unit: 'binary' }),
        async (location, otherLocation) => {
          const call = client.processData({ location }, WeatherResponse, {
            expect: { location: otherLocation },
          });
          const code = await call.then(
            () => null,
            (error) => error.code,
          );
          expect(code).toBe(otherLocation === location ? null : 'CLIENT_EXPECT');
          await client.processData({ location }, WeatherResponse, { expect: { location } });
        },
      ),
      { numRuns: 30 },
    );
  });

  test.each([
    ['a misspelt option', { expects: { location: 'Oslo' } }],
    ['a string', 'San Francisco'],
    ['null', null],
    ['a string as expect', { expect: 'San Francisco' }],
    ['an array as expect', { expect: ['San Francisco'] }],
    ['null as expect', { expect: null }],
  ])('is refused before any request: %s', async (_, options) => {
    const call = createClient().processData(QUESTION, WeatherResponse, options as never);
    await expect(call).rejects.toMatchObject({ code: 'CLIENT_OPTION' });
    expect(enclave.requests).toEqual([]);
  });

  test.each([{ location: undefined }, { location: 5 }, { temperature: 1.5 }, { temperature: -1 }])(
    'is refused when no answer can have %o',
    async (expected) => {
      const call = createClient().processData(QUESTION, WeatherResponse, { expect: expected as never });
      await expect(call).rejects.toMatchObject({ code: 'CLIENT_OPTION' });
    },
  );
});

describe('the attestation', () => {
  test('answers a fresh nonce of 32 bytes each time', async () => {
    const client = createClient();
    await client.attest();
    await client.attest();
    const nonces = enclave.requests.map((url) => /^\/get_attestation\?nonce=([0-9a-f]{64})$/.exec(url)?.[1]);
    expect(new Set(nonces).size).toBe(2);
    expect(nonces).not.toContain(undefined);
  });

  test('is requested once for concurrent calls', async () => {
    const client = createClient();
    await Promise.all([1, 2, 3].map(() => client.processData(QUESTION, WeatherResponse)));
    expect(enclave.requests.filter((url) => url.startsWith('/get_attestation'))).toHaveLength(1);
  });

  test('is requested again when the pin is too old, or the clock was set back', async () => {
    let now = Date.now();
    const client = createClient({ now: () => now, pinMaxAgeMs: 60_000 });
    const attestations = () => enclave.requests.filter((url) => url.startsWith('/get_attestation')).length;
    await client.processData(QUESTION, WeatherResponse);
    now += 60_000;
    await client.processData(QUESTION, WeatherResponse);
    expect(attestations()).toBe(1);
    now += 1;
    await client.processData(QUESTION, WeatherResponse);
    expect(attestations()).toBe(2);
    now -= 1;
    await client.processData(QUESTION, WeatherResponse);
    expect(attestations()).toBe(3);
  });

  test('is requested again when the enclave has another key', async () => {
    const client = createClient();
    const before = await client.processData(QUESTION, WeatherResponse);
    enclave.restart();
    const after = await client.processData(QUESTION, WeatherResponse);
    expect(after.publicKey).not.toEqual(before.publicKey);
    expect(after.publicKey).toEqual(enclave.key.publicKey);
  });

  test('of a concurrent call is not discarded', async () => {
    const client = createClient();
    await client.attest();
    enclave.restart();
    const { promise: released, resolve: release } = Promise.withResolvers<void>();
    let calls = 0;
    enclave.lie = async (path, reply) => {
      if (path === '/process_data' && ++calls === 1) await released;
      return reply;
    };
    const late = client.processData(QUESTION, WeatherResponse);
    await expect.poll(() => calls).toBe(1);
    const { publicKey } = await client.processData(QUESTION, WeatherResponse);
    release();
    expect((await late).publicKey).toEqual(publicKey);
    expect(enclave.requests.filter((url) => url.startsWith('/get_attestation'))).toHaveLength(2);
  });

  test('is refused if it binds a key other than the one in the policy', async () => {
    const policy = { images: [enclave.image], publicKey: enclave.key.publicKey };
    const client = createClient({ policy });
    await client.processData(QUESTION, WeatherResponse);
    enclave.restart();
    await expect(client.processData(QUESTION, WeatherResponse)).rejects.toMatchObject({
      code: 'POLICY_PUBLIC_KEY',
    });
    // The earlier pin is dropped too.
    await expect(client.processData(QUESTION, WeatherResponse)).rejects.toMatchObject({
      code: 'POLICY_PUBLIC_KEY',
    });
  });

  test('that was recorded earlier is refused: it answers another nonce', async () => {
    const recorded = await enclave.document(Buffer.alloc(32));
    lieAbout('/get_attestation', (answer) => {
      answer.attestation = recorded;
    });
    await expect(createClient().attest()).rejects.toMatchObject({ code: 'POLICY_NONCE' });
  });

  test('of another image is refused, and no request is sent to such an enclave', async () => {
    const client = createClient({ policy: { images: [{ ...enclave.image, pcr1: 'ab'.repeat(48) }] } });
    await expect(client.processData(QUESTION, WeatherResponse)).rejects.toMatchObject({
      code: 'POLICY_PCRS',
    });
    expect(enclave.requests.some((url) => url.startsWith('/process_data'))).toBe(false);
  });

  test('under a root other than AWS’s is refused unless the options name the root', async () => {
    const client = new EnclaveClient(enclave.url, { policy: { images: [enclave.image] } });
    await expect(client.attest()).rejects.toMatchObject({
      code: 'CHAIN_ROOT',
      message: expect.stringMatching(/in development only, pass that root as "roots"/),
    });
  });

  test('of a key that is not ed25519 is refused', async () => {
    enclave.lie = async (path, reply) => {
      const nonce = /nonce=(.*)/.exec(enclave.requests.at(-1) ?? '')?.[1] ?? '';
      const attestation = await enclave.document(Buffer.from(nonce, 'hex'), new Uint8Array(33));
      return path === '/get_attestation' ? { ...reply, body: JSON.stringify({ attestation }) } : reply;
    };
    await expect(createClient().attest()).rejects.toMatchObject({ code: 'CLIENT_ATTESTED_KEY' });
  });
});

describe('an answer is refused', () => {
  test.each<[string, string, (answer: Answer) => void]>([
    [
      'without a signature',
      'CLIENT_MALFORMED_ANSWER',
      (answer) => Reflect.deleteProperty(answer, 'signature'),
    ],
    [
      'with a signature of 63 bytes',
      'CLIENT_MALFORMED_ANSWER',
      (answer) => (answer.signature = answer.signature.slice(2)),
    ],
    [
      'with a signature that is not hexadecimal',
      'CLIENT_MALFORMED_ANSWER',
      (answer) => (answer.signature = 'zz'.repeat(64)),
    ],
    ['with a zero signature', 'CLIENT_SIGNATURE', (answer) => (answer.signature = '00'.repeat(64))],
    ['of another intent', 'CLIENT_INTENT', (answer) => (answer.response.intent = 1)],
    [
      'with an intent that is a string',
      'CLIENT_MALFORMED_ANSWER',
      (answer) => (answer.response.intent = '0'),
    ],
    ['of another time', 'CLIENT_SIGNATURE', (answer) => (answer.response.timestamp_ms += 1)],
    [
      'with a time that is not an integer',
      'CLIENT_MALFORMED_ANSWER',
      (answer) => (answer.response.timestamp_ms = 1.5),
    ],
    ['without data', 'CLIENT_MALFORMED_ANSWER', (answer) => Reflect.deleteProperty(answer.response, 'data')],
    [
      'with data of another shape',
      'CLIENT_MALFORMED_ANSWER',
      (answer) => (answer.response.data = { location: 1 }),
    ],
    ['that is null', 'CLIENT_MALFORMED_ANSWER', (answer) => Object.assign(answer, { response: null })],
  ])('%s: %s', async (_, code, change) => {
    lieAbout('/process_data', change);
    await expect(createClient().processData(QUESTION, WeatherResponse)).rejects.toMatchObject({ code });
  });

  test('when the schema differs from the application’s', async () => {
    const otherType = signedType(0, bcs.struct('Other', { temperature: u64, location: text }));
    await expect(createClient().processData(QUESTION, otherType)).rejects.toMatchObject({
      code: 'CLIENT_SIGNATURE',
    });
  });

  test('with the status and code that the enclave gave', async () => {
    enclave.lie = () => ({ status: 503, body: JSON.stringify({ error: 'secret text', code: 'NSM' }) });
    const error = await createClient()
      .attest()
      .catch((e) => e);
    expect(error).toMatchObject({
      code: 'CLIENT_REFUSED',
      status: 503,
      serverCode: 'NSM',
      serverMessage: 'secret text',
    });
    expect(error.message).not.toContain('secret');
  });

  test.each<[string, string, string | null]>([
    ['in a line', '{"error":"no such\\nplace\\t!"}', 'no such place !'],
    ['without control characters', '{"error":"a\\u001b[2Jb\\u009bc\\u0000\\u007f"}', 'a [2Jb c'],
    ['without invisible characters', '{"error":"a\\u202eb\\u200bc\\u2028d\\ufeff\\ud800"}', 'a b c d'],
    ['with other scripts unchanged', '{"error":"Köln: 城市 🏙"}', 'Köln: 城市 🏙'],
    ['of 500 characters', `{"error":"${'a'.repeat(500)}"}`, 'a'.repeat(500)],
    ['that is longer, cut', `{"error":"${'a'.repeat(501)}"}`, `${'a'.repeat(499)}…`],
    ['that is longer, cut between characters', `{"error":"${'a'.repeat(498)}🏙🏙"}`, `${'a'.repeat(498)}…`],
    ['that is empty', '{"error":" "}', null],
    ['that is not a string', '{"error":{"toString":"x"}}', null],
    ['not in JSON', '<html>error</html>', null],
    ['in JSON that is not an object', 'null', null],
    ['under another name', '{"message":"x"}', null],
  ])('with the message of the enclave: %s', async (_, body, serverMessage) => {
    enclave.lie = () => ({ status: 500, body });
    await expect(createClient().attest()).rejects.toMatchObject({ code: 'CLIENT_REFUSED', serverMessage });
  });

  test('with advice when a development server has no NSM', async () => {
    const server = await startServer();
    const client = new EnclaveClient(server.url, { policy: { images: [enclave.image] } });
    await expect(client.attest()).rejects.toMatchObject({
      code: 'CLIENT_REFUSED',
      serverCode: 'NSM_UNAVAILABLE',
      message: expect.stringContaining('ATTEST=emulated sui-enclave dev'),
    });
  });

  test.each([
    ['that is not JSON', 'CLIENT_MALFORMED_ANSWER', { status: 200, body: '<html>' }],
    ['that is null', 'CLIENT_MALFORMED_ANSWER', { status: 200, body: 'null' }],
    [
      'with an attestation that is not a string',
      'CLIENT_MALFORMED_ANSWER',
      { status: 200, body: '{"attestation":1}' },
    ],
    ['with an empty attestation', 'DOCUMENT_SIZE', { status: 200, body: '{"attestation":""}' }],
    ['of more than 1 MiB', 'CLIENT_ANSWER_TOO_LARGE', { status: 200, body: `"${'a'.repeat(1_048_576)}"` }],
    ['with an error that is not JSON', 'CLIENT_REFUSED', { status: 500, body: 'oops' }],
  ])('%s: %s', async (_, code, reply) => {
    enclave.lie = () => reply;
    await expect(createClient().attest()).rejects.toMatchObject({ code });
  });
});

describe('the client reports', () => {
  const unreachable = (reason: string, message: RegExp) => ({
    code: 'CLIENT_UNREACHABLE',
    reason,
    message: expect.stringMatching(message),
  });

  /** Starts a server on loopback whose answers are not HTTP, are incomplete or redirect. */
  async function listen(answer: (socket: Socket) => void): Promise<string> {
    const server = createServer((socket) => answer(socket.on('error', () => {})));
    await once(server.listen(0, '127.0.0.1'), 'listening');
    onTestFinished(() => {
      server.close();
    });
    return `127.0.0.1:${(server.address() as AddressInfo).port}`;
  }

  function attest(url: string): Promise<unknown> {
    return new EnclaveClient(url, { policy: { images: [enclave.image] } }).attest();
  }

  test('an enclave that does not answer in time', async () => {
    enclave.lie = () => new Promise<Reply>(() => {});
    await expect(createClient({ timeoutMs: 50 }).attest()).rejects.toMatchObject(
      unreachable('timeout', /it took too long$/),
    );
  });

  test('an enclave that is not running: the URL without its query, and the cause', async () => {
    const client = createClient();
    const { url } = enclave;
    enclave.close();
    const message = `the enclave at ${url}/get_attestation did not answer: the connection failed (ECONNREFUSED)`;
    await expect(client.attest()).rejects.toMatchObject({ reason: 'connection', message });
  });

  test('a port that the platform blocks', async () => {
    await expect(attest('http://127.0.0.1:1')).rejects.toMatchObject(
      unreachable('connection', /\(BAD_PORT\)$/),
    );
  });

  test('an enclave that closes the connection, or does not speak HTTP', async () => {
    for (const answer of [
      (socket: Socket) => socket.destroy(),
      (socket: Socket) => socket.end('hello\r\n\r\n'),
    ]) {
      const host = await listen(answer);
      await expect(attest(`http://${host}`)).rejects.toMatchObject(unreachable('connection', /./));
    }
  });

  test('an enclave that closes the connection in the middle of its answer', async () => {
    const host = await listen((socket) => socket.end('HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{'));
    await expect(attest(`http://${host}`)).rejects.toMatchObject(unreachable('broken', /in the middle/));
  });

  test('an enclave that does not speak TLS', async () => {
    const host = await listen((socket) => socket.end('HTTP/1.1 400 Bad Request\r\n\r\n'));
    await expect(attest(`https://${host}`)).rejects.toMatchObject(unreachable('tls', /TLS/));
  });

  test('an enclave that redirects', async () => {
    const host = await listen((socket) =>
      socket.end('HTTP/1.1 301 Moved\r\nLocation: https://a.example/\r\nContent-Length: 0\r\n\r\n'),
    );
    await expect(attest(`http://${host}`)).rejects.toMatchObject(unreachable('redirect', /it redirects/));
  });

  test.each([
    ['ENOTFOUND', 'dns'],
    ['EAI_AGAIN', 'dns'],
    ['ECONNRESET', 'connection'],
    ['EHOSTUNREACH', 'connection'],
    ['UND_ERR_SOCKET', 'connection'],
    ['ETIMEDOUT', 'timeout'],
    ['UND_ERR_CONNECT_TIMEOUT', 'timeout'],
    ['CERT_HAS_EXPIRED', 'tls'],
    ['DEPTH_ZERO_SELF_SIGNED_CERT', 'tls'],
    ['ERR_TLS_CERT_ALTNAME_INVALID', 'tls'],
    ['UNABLE_TO_VERIFY_LEAF_SIGNATURE', 'tls'],
  ])('Node’s %s as a failure of %s', async (code, reason) => {
    const cause = Object.assign(new Error(), { code });
    const fetch = () => Promise.reject(new TypeError('fetch failed', { cause }));
    await expect(createClient({ fetch }).attest()).rejects.toMatchObject(unreachable(reason, /./));
  });

  test.each([new TypeError('Failed to fetch'), new TypeError('x', { cause: 'y' }), null, undefined])(
    'the reason "unknown" and mentions CORS when the platform gives none: %o',
    async (thrown) => {
      const fetch = () => Promise.reject(thrown);
      await expect(createClient({ fetch }).attest()).rejects.toMatchObject(
        unreachable('unknown', /\(CORS\)/),
      );
    },
  );

  test('a redirect, which it does not follow', async () => {
    const fetch = vi.fn(() => Promise.reject(new TypeError('redirect')));
    await expect(createClient({ fetch }).attest()).rejects.toMatchObject({ code: 'CLIENT_UNREACHABLE' });
    expect(fetch).toHaveBeenCalledExactlyOnceWith(
      expect.any(URL),
      expect.objectContaining({ redirect: 'error', credentials: 'omit', cache: 'no-store' }),
    );
  });

  test('a failure at the path of its URL, without the query', async () => {
    const requestedPaths: string[] = [];
    const fetch: typeof globalThis.fetch = (url) => {
      requestedPaths.push(String(url));
      return Promise.reject(new TypeError());
    };
    const client = new EnclaveClient('https://host/enclave?a=b#c', {
      policy: { images: [enclave.image] },
      fetch,
    });
    await expect(client.attest()).rejects.toMatchObject({ code: 'CLIENT_UNREACHABLE' });
    expect(requestedPaths[0]).toMatch(/^https:\/\/host\/enclave\/get_attestation\?nonce=[0-9a-f]{64}$/);
  });
});

describe('the client refuses', () => {
  const image = { pcr0: 'a1'.repeat(48), pcr1: 'a1'.repeat(48), pcr2: 'a1'.repeat(48) };
  test.each<[string, unknown, unknown, string]>([
    ['no policy', 'http://a', {}, 'POLICY_INVALID'],
    ['no options', 'http://a', undefined, 'POLICY_INVALID'],
    ['a nonce', 'http://a', { policy: { images: [image], nonce: Uint8Array.of(1) } }, 'POLICY_INVALID'],
    [
      'images and a release',
      'http://a',
      { policy: { images: [image], release: { image } } },
      'POLICY_INVALID',
    ],
    ['a release that was not read', 'http://a', { policy: { release: undefined } }, 'POLICY_INVALID'],
    ['a release without an image', 'http://a', { policy: { release: {} } }, 'POLICY_INVALID'],
    ['a misspelt option', 'http://a', { policy: { images: [image] }, root: [] }, 'CLIENT_OPTION'],
    ['an invalid URL', 'enclave', { policy: { images: [image] } }, 'CLIENT_OPTION'],
    ['a URL of a file', 'file:///etc', { policy: { images: [image] } }, 'CLIENT_OPTION'],
    ['a URL with a password', 'http://a:b@c', { policy: { images: [image] } }, 'CLIENT_OPTION'],
    [
      'a pin that never expires',
      'http://a',
      { policy: { images: [image] }, pinMaxAgeMs: Number.POSITIVE_INFINITY },
      'CLIENT_OPTION',
    ],
    ['an age of 0', 'http://a', { policy: { images: [image] }, maxAnswerAgeMs: 0 }, 'CLIENT_OPTION'],
    [
      'an age of NaN',
      'http://a',
      { policy: { images: [image] }, maxAnswerAgeMs: Number.NaN },
      'CLIENT_OPTION',
    ],
    [
      'an age that is a string',
      'http://a',
      { policy: { images: [image] }, maxAnswerAgeMs: '1' },
      'CLIENT_OPTION',
    ],
    ['a time-out of 0', 'http://a', { policy: { images: [image] }, timeoutMs: 0 }, 'CLIENT_OPTION'],
    ['an endless time-out', 'http://a', { policy: { images: [image] }, timeoutMs: 1e12 }, 'CLIENT_OPTION'],
  ])('%s', (_, url, options, code) => {
    expect(() => new EnclaveClient(url as string, options as never)).toThrow(
      expect.objectContaining({ code }),
    );
  });

  test('an invalid URL, without repeating its password in the error', () => {
    const policy = { images: [image] };
    const error = (() => {
      try {
        return new EnclaveClient('https://admin:hunter2@host:port', { policy });
      } catch (error) {
        return error;
      }
    })();
    expect(error).toMatchObject({ code: 'CLIENT_OPTION' });
    expect(inspect(error, { depth: 9 })).not.toContain('hunter2');
  });
});
