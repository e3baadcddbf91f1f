/**
 * Checks sealed requests and their answers, byte by byte, as src/library/sealing/README.md specifies them.
 */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { openWith } from '../../../../src/library/sealing/hpke.ts';
import {
  readCall,
  type SealedCall,
  type SealedRequest,
  sealRequest,
} from '../../../../src/library/sealing/request.ts';
import { deriveAnswerSecret, sealAnswer } from '../../../../src/library/sealing/response.ts';
import { NODE_SUITE, SealingKey, sealAesGcm } from '../../../../src/server/sealing/sealing_key.ts';
import { randomJson } from '../random_json.ts';
import { findCode, hex, suiteWith, toHex, VECTORS } from './support.ts';

const KEY = SealingKey.create();
const CALL: SealedCall = { method: 'POST', path: '/get_salt', body: { token: 'a.b.c' } };

/** Number of runs, which is small, since each costs some key agreements. */
const RUNS = { numRuns: 40 };

const anyCall: fc.Arbitrary<SealedCall> = fc
  .record({
    path: fc.stringMatching(/^\/[!"$-~]{0,50}$/),
    body: fc.option(randomJson, { nil: undefined }),
  })
  .map(({ path, body }) => ({ method: body === undefined ? 'GET' : 'POST', path, body }));

/** Opens a sealed request, and returns the enclave's sealed answer. */
async function answerTo(message: Uint8Array, json: string, status = 200, padding = 0): Promise<Uint8Array> {
  const { answer } = await KEY.open(message);
  return sealAnswer(answer, { status, json }, padding, sealAesGcm);
}

function flipBit(bytes: Uint8Array, at: number): Uint8Array {
  const changed = bytes.slice();
  changed[at % bytes.length] = (changed[at % bytes.length] as number) ^ (1 << (at % 8));
  return changed;
}

describe.each(VECTORS.requests)('the vector $method $path', (vector) => {
  const { method, path, body, padding, content, answer } = vector;
  const key = SealingKey.of(hex(vector.enclave_private_key));
  const message = hex(vector.message);
  const { status, retry_after: retryAfterSeconds } = answer;

  test('is exactly what a client sends, and its answer is read', async () => {
    const suite = suiteWith(hex(vector.ephemeral_private_key), hex(vector.ephemeral_public_key));
    const sealed = await sealRequest(key.publicKey, { method, path, body }, { padding, suite });
    expect(toHex(sealed.message)).toBe(vector.message);
    const opened = await sealed.openAnswer(hex(answer.message));
    expect(opened).toEqual({ status, body: answer.body, retryAfterSeconds });
  });

  test('is opened by the enclave, which answers with the bytes of the vector', async () => {
    const opened = await key.open(message);
    expect(Buffer.from(opened.content).toString()).toBe(content);
    expect(readCall(opened.content)).toEqual({ method, path, body });
    const sealed = {
      info: Buffer.from('sui-enclave sealed request 1'),
      aad: message.subarray(0, 33),
      enc: message.subarray(33, 65),
      ciphertext: message.subarray(65),
    };
    const { exportSecret } = await openWith(key.key, sealed, NODE_SUITE);
    const secret = await deriveAnswerSecret(exportSecret, hex(answer.nonce));
    expect(toHex(secret.key)).toBe(answer.key);
    const json = JSON.stringify(answer.body);
    const sealedAnswer = sealAnswer(secret, { status, json, retryAfterSeconds }, answer.padding, sealAesGcm);
    expect(toHex(sealedAnswer)).toBe(answer.message);
  });
});

describe('a sealed request', () => {
  test('carries any call to the enclave, and any answer back', async () => {
    await fc.assert(
      fc.asyncProperty(
        anyCall,
        randomJson,
        fc.integer({ min: 200, max: 599 }),
        fc.nat(300),
        async (call, body, status, padding) => {
          const { message, openAnswer } = await sealRequest(KEY.publicKey, call, { padding });
          const { content } = await KEY.open(message);
          expect(readCall(content)).toEqual(JSON.parse(JSON.stringify(call)));
          if (padding > 1) expect(content.length % padding).toBe(0);
          const json = JSON.stringify(body);
          const opened = await openAnswer(await answerTo(message, json, status, padding));
          expect(opened).toEqual({ status, body: JSON.parse(json), retryAfterSeconds: undefined });
        },
      ),
      RUNS,
    );
  });

  test('is refused with any bit changed', async () => {
    const { message } = await sealRequest(KEY.publicKey, CALL);
    await fc.assert(
      fc.asyncProperty(fc.nat(), async (at) => {
        const offset = at % message.length;
        const expected =
          offset === 0 ? 'SEALED_MALFORMED' : offset < 33 ? 'SEALED_KEY_UNKNOWN' : 'SEALED_ALTERED';
        // X25519 ignores the highest bit of a public key (RFC 7748, section 5), but HPKE does not.
        expect(await findCode(KEY.open(flipBit(message, at)))).toBe(expected);
      }),
      RUNS,
    );
  });

  test('is refused when it is truncated, extended, or combined from two requests', async () => {
    const [firstRequest, secondRequest] = await Promise.all(
      [1, 2].map(() => sealRequest(KEY.publicKey, CALL)),
    );
    const [a, b] = [firstRequest?.message, secondRequest?.message] as [Uint8Array, Uint8Array];
    const outcome = (bytes: Uint8Array) => findCode(KEY.open(bytes));
    for (const length of [0, 1, 33, 65, 80])
      expect(await outcome(a.subarray(0, length))).toBe('SEALED_MALFORMED');
    for (const length of [81, a.length - 16, a.length - 1]) {
      expect(await outcome(a.subarray(0, length))).toBe('SEALED_ALTERED');
    }
    expect(await outcome(Buffer.concat([a, Uint8Array.of(0)]))).toBe('SEALED_ALTERED');
    expect(await outcome(Buffer.concat([a, b]))).toBe('SEALED_ALTERED');
    for (const at of [65, 81, a.length - 16]) {
      expect(await outcome(Buffer.concat([a.subarray(0, at), b.subarray(at)]))).toBe('SEALED_ALTERED');
    }
    // The blocks of the ciphertext are in another order.
    const [head, first, second, tail] = [
      a.subarray(0, 65),
      a.subarray(65, 81),
      a.subarray(81, 97),
      a.subarray(97),
    ];
    expect(await outcome(Buffer.concat([head, second, first, tail]))).toBe('SEALED_ALTERED');
  });

  test('can not be opened with another key', async () => {
    const { message } = await sealRequest(SealingKey.create().publicKey, CALL);
    expect(await findCode(KEY.open(message))).toBe('SEALED_KEY_UNKNOWN');
    // It is refused even if it claims to be for this key.
    message.set(KEY.publicKey, 1);
    expect(await findCode(KEY.open(message))).toBe('SEALED_ALTERED');
  });
});

describe('the answer to a sealed request', () => {
  test('is refused with any bit changed', async () => {
    const { message, openAnswer } = await sealRequest(KEY.publicKey, CALL);
    const answer = await answerTo(message, '{"salt":"1"}');
    await fc.assert(
      fc.asyncProperty(fc.nat(), async (at) => {
        const expected = at % answer.length === 0 ? 'SEALED_MALFORMED' : 'SEALED_ALTERED';
        expect(await findCode(openAnswer(flipBit(answer, at)))).toBe(expected);
      }),
      RUNS,
    );
    for (const length of [0, 33, 48]) {
      expect(await findCode(openAnswer(answer.subarray(0, length)))).toBe('SEALED_MALFORMED');
    }
    expect(await findCode(openAnswer(answer.subarray(0, -1)))).toBe('SEALED_ALTERED');
    expect(await findCode(openAnswer(Buffer.concat([answer, answer])))).toBe('SEALED_ALTERED');
  });

  test('does not answer another request, even of the same call', async () => {
    const [mine, yours] = await Promise.all([1, 2].map(() => sealRequest(KEY.publicKey, CALL)));
    const answer = await answerTo((yours as SealedRequest).message, '{"salt":"1"}');
    expect(await findCode((mine as SealedRequest).openAnswer(answer))).toBe('SEALED_ALTERED');
  });

  test('has a new key each time the host repeats the request', async () => {
    const { message, openAnswer } = await sealRequest(KEY.publicKey, CALL);
    const secrets = await Promise.all([1, 2, 3].map(async () => (await KEY.open(message)).answer));
    expect(new Set(secrets.map(({ key }) => toHex(key))).size).toBe(3);
    for (const secret of secrets) {
      const answer = sealAnswer(secret, { status: 200, json: '1' }, 0, sealAesGcm);
      expect((await openAnswer(answer)).body).toBe(1);
    }
  });

  test.each([
    '1',
    'null',
    '[]',
    '{"status":200}',
    '{"body":1}',
    '{"status":"200","body":1}',
    '{"status":199,"body":1}',
    '{"status":200,"body":1,"x":1}',
    '{"status":200,"body":1,"retry_after":-1}',
    '{"status":200,"body":1} 2',
    '\ufeff{"status":200,"body":1}',
    '\xff',
  ])('is refused with the content %j', async (content) => {
    const { message, openAnswer } = await sealRequest(KEY.publicKey, CALL);
    const { answer } = await KEY.open(message);
    const bytes = content === '\xff' ? Uint8Array.of(0xff) : Buffer.from(content);
    const sealed = sealAesGcm(answer.key, new Uint8Array(12), answer.header, bytes);
    expect(await findCode(openAnswer(Buffer.concat([answer.header, sealed])))).toBe('SEALED_CONTENT');
  });
});

describe('the content of a request', () => {
  test.each([
    '1',
    '{}',
    '{"method":"POST","path":"/a"}',
    '{"method":"GET","path":"/a","body":1}',
    '{"method":"PUT","path":"/a","body":1}',
    '{"method":"GET","path":"a"}',
    '{"method":"GET","path":"/a b"}',
    '{"method":"GET","path":"/a#b"}',
    '{"method":"GET","path":"/ä"}',
    `{"method":"GET","path":"/${'a'.repeat(2048)}"}`,
    '{"method":"POST","path":"/a","body":{"\\n":1}}',
    '{"method":"GET","path":["/a"]}',
    '{"method":"GET","path":"/a","headers":{}}',
    '{"method":"GET","path":"/a"}\0',
  ])('is refused: %s', (content) => {
    expect(() => readCall(Buffer.from(content))).toThrow(expect.objectContaining({ code: 'SEALED_CONTENT' }));
  });
});
