import { bcs } from '@mysten/bcs';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { WeatherResponse } from '../../src/apps/weather/types.ts';
import {
  EnclaveClient,
  type EnclaveClientOptions,
  signedType,
  text,
  u8,
  u64,
} from '../../src/client/index.ts';
import { FIXTURE_APPS, startServer } from '../support.ts';
import { FakeEnclave, type Reply } from './fake_enclave.ts';

let enclave: FakeEnclave;
beforeEach(async () => {
  enclave = await FakeEnclave.start();
});
afterEach(() => {
  enclave.close();
  vi.unstubAllGlobals();
});

function clientOf(options: Partial<EnclaveClientOptions> = {}): EnclaveClient {
  return new EnclaveClient(enclave.url, {
    policy: { images: [enclave.image] },
    roots: enclave.roots,
    ...options,
  });
}

/** The members that tests change, on either endpoint's answer. */
interface Answer {
  attestation: string;
  signature: string;
  response: { intent: unknown; timestamp_ms: number; data: Record<string, unknown> };
}

const ASKED = { location: 'San Francisco' };

/** Lets `change` edit the JSON of an endpoint's answer. */
function lieAbout(path: string, change: (answer: Answer) => void): void {
  enclave.lie = (asked: string, reply: Reply) => {
    if (asked !== path) return reply;
    const answer = JSON.parse(reply.body);
    change(answer);
    return { ...reply, body: JSON.stringify(answer) };
  };
}

describe.each(['Web Crypto', '@noble/curves'])('with %s', (path) => {
  beforeEach(() => {
    const { crypto } = globalThis;
    if (path === '@noble/curves') {
      vi.stubGlobal('crypto', { getRandomValues: crypto.getRandomValues.bind(crypto) });
    }
  });

  test('an answer of an attested enclave comes through with its signature and types', async () => {
    const answer = await clientOf().processData(ASKED, WeatherResponse);
    expect(answer).toMatchObject({
      data: { location: 'San Francisco', temperature: 13n },
      intent: 0,
      timestampMs: 1_744_683_300_000n,
    });
    const typed: { location: string; temperature: bigint } = answer.data;
    expect(typed.temperature).toBe(13n);
    expect(answer.signature).toHaveLength(64);
    expect(answer.publicKey).toEqual(enclave.key.publicKey);
  });

  test('the answer of a real enclave verifies', async () => {
    const { verifyEd25519 } = await import('../../src/client/ed25519.ts');
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

  test('data that was changed on its way is refused', async () => {
    lieAbout('/process_data', (answer) => {
      answer.response.data.temperature = 14;
    });
    await expect(clientOf().processData(ASKED, WeatherResponse)).rejects.toMatchObject({
      code: 'CLIENT_SIGNATURE',
    });
  });
});

describe("an application's own endpoint", () => {
  // As test/fixtures/apps/dice signs them.
  const Roll = signedType(1, bcs.struct('Roll', { sides: u8, value: u8 }));
  const Draw = signedType(2, bcs.struct('Draw', { note: text, picked: u64, all: bcs.byteVector() }));

  async function diceClient(): Promise<EnclaveClient> {
    const server = await startServer({ apps: FIXTURE_APPS, env: { APP: 'dice' }, nsm: enclave.nsm });
    return new EnclaveClient(server.url, { policy: { images: [enclave.image] }, roots: enclave.roots });
  }

  test('is called by its path, and its answer verified as any other', async () => {
    const client = await diceClient();
    const big = 2n ** 64n - 1n;
    const { data, intent, timestampMs } = await client.call('/draw', { picked: String(big) }, Draw);
    expect(data).toEqual({ note: '🎲', picked: big, all: Uint8Array.of(1, 255) });
    expect([intent, timestampMs]).toEqual([2, 5n]);
    const roll = await client.call('process_data', { payload: { sides: 6 } }, Roll);
    expect(roll.data.sides).toBe(6);
  });

  test('whose answer is not of the schema, or not signed, is refused by its name', async () => {
    const client = await diceClient();
    await expect(client.call('/draw', { picked: '1' }, Roll)).rejects.toMatchObject({
      code: 'CLIENT_INTENT',
    });
    await expect(client.call('/rules', undefined, Roll)).rejects.toMatchObject({
      code: 'CLIENT_MALFORMED_ANSWER',
      message: expect.stringContaining('the answer to rules '),
    });
    await expect(client.call('/draw', {}, Draw)).rejects.toMatchObject({
      code: 'CLIENT_REFUSED',
      status: 400,
      serverCode: 'INVALID_INPUT',
    });
  });

  test('whose answer was changed on its way is refused', async () => {
    lieAbout('/draw', (answer) => {
      answer.response.data['temperature'] = 14;
    });
    const asked = clientOf().call('/draw?a=b', { payload: ASKED }, WeatherResponse);
    await expect(asked).rejects.toMatchObject({ code: 'CLIENT_SIGNATURE' });
    expect(enclave.requests.at(-1)).toMatch(/get_attestation/);
    expect(enclave.requests).toContain('/draw?a=b');
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
  ])('is nowhere else: %j', async (path) => {
    const client = new EnclaveClient('https://host/enclave', { policy: { images: [enclave.image] } });
    const asked = client.call(path as string, {}, WeatherResponse);
    await expect(asked).rejects.toMatchObject({ code: 'CLIENT_OPTION' });
  });
});

describe('the attestation', () => {
  test('answers a fresh nonce of 32 bytes each time', async () => {
    const client = clientOf();
    await client.attest();
    await client.attest();
    const nonces = enclave.requests.map((url) => /^\/get_attestation\?nonce=([0-9a-f]{64})$/.exec(url)?.[1]);
    expect(new Set(nonces).size).toBe(2);
    expect(nonces).not.toContain(undefined);
  });

  test('is asked for once, however many calls wait for it', async () => {
    const client = clientOf();
    await Promise.all([1, 2, 3].map(() => client.processData(ASKED, WeatherResponse)));
    expect(enclave.requests.filter((url) => url.startsWith('/get_attestation'))).toHaveLength(1);
  });

  test('is asked for again when the pin’s age passes its limit, or the clock went back', async () => {
    let now = Date.now();
    const client = clientOf({ now: () => now, pinMaxAgeMs: 60_000 });
    const attestations = () => enclave.requests.filter((url) => url.startsWith('/get_attestation')).length;
    await client.processData(ASKED, WeatherResponse);
    now += 60_000;
    await client.processData(ASKED, WeatherResponse);
    expect(attestations()).toBe(1);
    now += 1;
    await client.processData(ASKED, WeatherResponse);
    expect(attestations()).toBe(2);
    now -= 1;
    await client.processData(ASKED, WeatherResponse);
    expect(attestations()).toBe(3);
  });

  test('is asked for again when the enclave has another key', async () => {
    const client = clientOf();
    const before = await client.processData(ASKED, WeatherResponse);
    enclave.restart();
    const after = await client.processData(ASKED, WeatherResponse);
    expect(after.publicKey).not.toEqual(before.publicKey);
    expect(after.publicKey).toEqual(enclave.key.publicKey);
  });

  test('that another call has made meanwhile is not thrown away', async () => {
    const client = clientOf();
    await client.attest();
    enclave.restart();
    const { promise: released, resolve: release } = Promise.withResolvers<void>();
    let calls = 0;
    enclave.lie = async (path, reply) => {
      if (path === '/process_data' && ++calls === 1) await released;
      return reply;
    };
    const late = client.processData(ASKED, WeatherResponse);
    await expect.poll(() => calls).toBe(1);
    const { publicKey } = await client.processData(ASKED, WeatherResponse);
    release();
    expect((await late).publicKey).toEqual(publicKey);
    expect(enclave.requests.filter((url) => url.startsWith('/get_attestation'))).toHaveLength(2);
  });

  test('of another key is refused where the policy names one', async () => {
    const policy = { images: [enclave.image], publicKey: enclave.key.publicKey };
    const client = clientOf({ policy });
    await client.processData(ASKED, WeatherResponse);
    enclave.restart();
    await expect(client.processData(ASKED, WeatherResponse)).rejects.toMatchObject({
      code: 'POLICY_PUBLIC_KEY',
    });
    // And nothing is pinned from before.
    await expect(client.processData(ASKED, WeatherResponse)).rejects.toMatchObject({
      code: 'POLICY_PUBLIC_KEY',
    });
  });

  test('that was recorded earlier is refused: it answers another nonce', async () => {
    const recorded = await enclave.document(Buffer.alloc(32));
    lieAbout('/get_attestation', (answer) => {
      answer.attestation = recorded;
    });
    await expect(clientOf().attest()).rejects.toMatchObject({ code: 'POLICY_NONCE' });
  });

  test('of another image is refused, and nothing is asked of such an enclave', async () => {
    const client = clientOf({ policy: { images: [{ ...enclave.image, pcr1: 'ab'.repeat(48) }] } });
    await expect(client.processData(ASKED, WeatherResponse)).rejects.toMatchObject({ code: 'POLICY_PCRS' });
    expect(enclave.requests.some((url) => url.startsWith('/process_data'))).toBe(false);
  });

  test('under a root that is not AWS’s is refused unless the root is named', async () => {
    const client = new EnclaveClient(enclave.url, { policy: { images: [enclave.image] } });
    await expect(client.attest()).rejects.toMatchObject({
      code: 'CHAIN_ROOT',
      message: expect.stringMatching(/only in development, name it by "roots"/),
    });
  });

  test('of a key that is not ed25519 is refused', async () => {
    enclave.lie = async (path, reply) => {
      const nonce = /nonce=(.*)/.exec(enclave.requests.at(-1) ?? '')?.[1] ?? '';
      const attestation = await enclave.document(Buffer.from(nonce, 'hex'), new Uint8Array(33));
      return path === '/get_attestation' ? { ...reply, body: JSON.stringify({ attestation }) } : reply;
    };
    await expect(clientOf().attest()).rejects.toMatchObject({ code: 'CLIENT_ATTESTED_KEY' });
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
    ['with an intent that is text', 'CLIENT_MALFORMED_ANSWER', (answer) => (answer.response.intent = '0')],
    ['of another time', 'CLIENT_SIGNATURE', (answer) => (answer.response.timestamp_ms += 1)],
    [
      'with a time that is no whole number',
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
    await expect(clientOf().processData(ASKED, WeatherResponse)).rejects.toMatchObject({ code });
  });

  test('when its schema is another than the application’s', async () => {
    const other = signedType(0, bcs.struct('Other', { temperature: u64, location: text }));
    await expect(clientOf().processData(ASKED, other)).rejects.toMatchObject({ code: 'CLIENT_SIGNATURE' });
  });

  test('and what is not signed does not come through', async () => {
    lieAbout('/process_data', (answer) => {
      answer.response.data.advice = 'buy';
    });
    const { data } = await clientOf().processData(ASKED, WeatherResponse);
    expect(data).toEqual({ location: 'San Francisco', temperature: 13n });
  });

  test('with the status and code that the enclave gave', async () => {
    enclave.lie = () => ({ status: 503, body: JSON.stringify({ error: 'secret text', code: 'NSM' }) });
    const error = await clientOf()
      .attest()
      .catch((e) => e);
    expect(error).toMatchObject({ code: 'CLIENT_REFUSED', status: 503, serverCode: 'NSM' });
    expect(error.message).not.toContain('secret');
  });

  test('with what to do where a development server has no NSM', async () => {
    const server = await startServer();
    const client = new EnclaveClient(server.url, { policy: { images: [enclave.image] } });
    await expect(client.attest()).rejects.toMatchObject({
      code: 'CLIENT_REFUSED',
      serverCode: 'NSM_UNAVAILABLE',
      message: expect.stringContaining('make dev ATTEST=emulated'),
    });
  });

  test.each([
    ['that is not JSON', 'CLIENT_MALFORMED_ANSWER', { status: 200, body: '<html>' }],
    ['that is null', 'CLIENT_MALFORMED_ANSWER', { status: 200, body: 'null' }],
    [
      'with an attestation that is not text',
      'CLIENT_MALFORMED_ANSWER',
      { status: 200, body: '{"attestation":1}' },
    ],
    ['with an empty attestation', 'DOCUMENT_SIZE', { status: 200, body: '{"attestation":""}' }],
    ['of over a megabyte', 'CLIENT_ANSWER_TOO_LARGE', { status: 200, body: `"${'a'.repeat(1_048_576)}"` }],
    ['with an error that is not JSON', 'CLIENT_REFUSED', { status: 500, body: 'oops' }],
  ])('%s: %s', async (_, code, reply) => {
    enclave.lie = () => reply;
    await expect(clientOf().attest()).rejects.toMatchObject({ code });
  });
});

describe('the network', () => {
  test('an enclave that does not answer in time', async () => {
    enclave.lie = () => new Promise<Reply>(() => {});
    await expect(clientOf({ timeoutMs: 50 }).attest()).rejects.toMatchObject({ code: 'CLIENT_UNREACHABLE' });
  });

  test('an enclave that is not there', async () => {
    const client = clientOf();
    enclave.close();
    await expect(client.attest()).rejects.toMatchObject({ code: 'CLIENT_UNREACHABLE' });
  });

  test('a redirect is not followed', async () => {
    const fetch = vi.fn(() => Promise.reject(new TypeError('redirect')));
    await expect(clientOf({ fetch }).attest()).rejects.toMatchObject({ code: 'CLIENT_UNREACHABLE' });
    expect(fetch).toHaveBeenCalledExactlyOnceWith(
      expect.any(URL),
      expect.objectContaining({ redirect: 'error', credentials: 'omit', cache: 'no-store' }),
    );
  });

  test('a path of the URL is kept, its query is not', async () => {
    const asked: string[] = [];
    const fetch: typeof globalThis.fetch = (input) => {
      asked.push(String(input));
      return Promise.reject(new TypeError());
    };
    const client = new EnclaveClient('https://host/enclave?a=b#c', {
      policy: { images: [enclave.image] },
      fetch,
    });
    await expect(client.attest()).rejects.toMatchObject({ code: 'CLIENT_UNREACHABLE' });
    expect(asked[0]).toMatch(/^https:\/\/host\/enclave\/get_attestation\?nonce=[0-9a-f]{64}$/);
  });
});

describe('options that can not be used', () => {
  const image = { pcr0: 'a1'.repeat(48), pcr1: 'a1'.repeat(48), pcr2: 'a1'.repeat(48) };
  test.each<[string, unknown, unknown, string]>([
    ['no policy', 'http://a', {}, 'POLICY_INVALID'],
    ['no options', 'http://a', undefined, 'POLICY_INVALID'],
    ['a nonce', 'http://a', { policy: { images: [image], nonce: Uint8Array.of(1) } }, 'POLICY_INVALID'],
    ['a misspelt option', 'http://a', { policy: { images: [image] }, root: [] }, 'CLIENT_OPTION'],
    ['a URL that is none', 'enclave', { policy: { images: [image] } }, 'CLIENT_OPTION'],
    ['a URL of a file', 'file:///etc', { policy: { images: [image] } }, 'CLIENT_OPTION'],
    ['a URL with a password', 'http://a:b@c', { policy: { images: [image] } }, 'CLIENT_OPTION'],
    [
      'a pin without end',
      'http://a',
      { policy: { images: [image] }, pinMaxAgeMs: Number.POSITIVE_INFINITY },
      'CLIENT_OPTION',
    ],
    ['a time-out of 0', 'http://a', { policy: { images: [image] }, timeoutMs: 0 }, 'CLIENT_OPTION'],
    ['an endless time-out', 'http://a', { policy: { images: [image] }, timeoutMs: 1e12 }, 'CLIENT_OPTION'],
  ])('%s', (_, url, options, code) => {
    expect(() => new EnclaveClient(url as string, options as never)).toThrow(
      expect.objectContaining({ code }),
    );
  });
});
