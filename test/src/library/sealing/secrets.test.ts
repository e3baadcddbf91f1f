/**
 * Checks sealed secrets and their receipts, byte by byte, as src/library/sealing/README.md specifies them.
 */
import { generateKeyPairSync, sign } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { openWith } from '../../../../src/library/sealing/hpke.ts';
import { deriveAnswerSecret, sealAnswer } from '../../../../src/library/sealing/response.ts';
import {
  createReceipt,
  decodeSealedSecrets,
  deriveSecretsAnswer,
  type EnclaveState,
  encodeSealedSecrets,
  isSealed,
  type ProvisionerKey,
  provisionedBytes,
  readSecrets,
  sealSecrets,
  secretsInfo,
} from '../../../../src/library/sealing/secrets.ts';
import { NODE_SUITE, SealingKey, sealAesGcm } from '../../../../src/server/sealing/sealing_key.ts';
import { findCode, hex, suiteWith, toHex, VECTORS } from './support.ts';

const KEY = SealingKey.create();
const fillRegister = (byte: number) => new Uint8Array(48).fill(byte);
const STATE: EnclaveState = {
  application: 'salt',
  version: '1.0.0',
  registers: [fillRegister(1), fillRegister(2), fillRegister(3)],
  signingKey: new Uint8Array(32).fill(4),
};
const VALUES = { API_KEY: 'hunter2', OTHER: 'ü' };

/** Number of runs, which is small, since each costs some key agreements. */
const RUNS = { numRuns: 30 };

const anyValues = fc.dictionary(fc.stringMatching(/^[A-Z][A-Z0-9_]{0,20}$/), fc.string({ unit: 'binary' }), {
  noNullPrototype: true,
});

function createProvisioner(): ProvisionerKey {
  const { publicKey, privateKey } = generateKeyPairSync('ed25519');
  const { x } = publicKey.export({ format: 'jwk' });
  return {
    publicKey: Uint8Array.from(Buffer.from(x as string, 'base64url')),
    sign: (message) => sign(null, message, privateKey),
  };
}

async function answerTo(json: string, body: unknown, status = 200): Promise<Uint8Array> {
  const { answer } = await KEY.openSecrets(decodeSealedSecrets(JSON.parse(json)), STATE);
  return sealAnswer(answer, { status, json: JSON.stringify(body) }, 0, sealAesGcm);
}

const open = async (json: string, state = STATE, key = KEY) =>
  (await key.openSecrets(decodeSealedSecrets(JSON.parse(json)), state)).content;

describe('sealed secrets', () => {
  test('carry any values to the enclave, and their receipt back', async () => {
    await fc.assert(
      fc.asyncProperty(anyValues, fc.boolean(), async (values, isSigned) => {
        const provisioner = isSigned ? createProvisioner() : undefined;
        const { json, openAnswer, isReceipt } = await sealSecrets(values, KEY.publicKey, STATE, {
          provisioner,
        });
        expect(isSealed(JSON.parse(json))).toBe(true);
        const sealed = decodeSealedSecrets(JSON.parse(json));
        expect(encodeSealedSecrets(sealed)).toBe(json);
        expect(sealed.signed?.provisioner).toEqual(provisioner?.publicKey);
        const { content, receiptKey } = await KEY.openSecrets(sealed, STATE);
        expect(content.length % 256).toBe(0);
        const opened = readSecrets(content);
        expect(Object.entries(opened)).toEqual(Object.entries(JSON.parse(JSON.stringify(values))));
        const answer = await openAnswer(await answerTo(json, createReceipt(opened, receiptKey)));
        expect(answer.status).toBe(200);
        expect(isReceipt(answer.body)).toBe(true);
      }),
      RUNS,
    );
  });

  test('do not open if the application, version, registers or signing key differ', async () => {
    const { json } = await sealSecrets(VALUES, KEY.publicKey, STATE);
    const [a, b, c] = STATE.registers;
    const otherStates: EnclaveState[] = [
      { ...STATE, application: 'weather' },
      { ...STATE, version: '1.0.1' },
      // The boundary between name and version can't be moved.
      { ...STATE, application: 'salt1', version: '.0.0' },
      { ...STATE, registers: [fillRegister(0), b, c] },
      { ...STATE, registers: [a, fillRegister(0), c] },
      { ...STATE, registers: [a, b, fillRegister(0)] },
      { ...STATE, registers: [b, a, c] },
      { ...STATE, signingKey: new Uint8Array(32) },
    ];
    expect(JSON.parse(Buffer.from(await open(json)).toString())).toEqual(VALUES);
    for (const otherState of otherStates)
      expect(await findCode(open(json, otherState))).toBe('SEALED_ALTERED');
    expect(await findCode(open(json, STATE, SealingKey.create()))).toBe('SEALED_KEY_UNKNOWN');
    expect(new Set([STATE, ...otherStates].map((state) => toHex(secretsInfo(state)))).size).toBe(9);
  });

  test('are refused with any bit changed', async () => {
    const { json } = await sealSecrets(VALUES, KEY.publicKey, STATE);
    const sealed = decodeSealedSecrets(JSON.parse(json));
    await fc.assert(
      fc.asyncProperty(fc.constantFrom('enc', 'ciphertext'), fc.nat(), fc.nat(7), async (part, at, bit) => {
        const bytes = sealed[part as 'enc' | 'ciphertext'].slice();
        bytes[at % bytes.length] = (bytes[at % bytes.length] as number) ^ (1 << bit);
        const changed = encodeSealedSecrets({ ...sealed, [part]: bytes });
        expect(await findCode(open(changed))).toBe('SEALED_ALTERED');
      }),
      RUNS,
    );
  });

  test('are refused when they are truncated, extended, reordered or combined from two messages', async () => {
    const [a, b] = await Promise.all(
      [1, 2].map(async () => {
        const { json } = await sealSecrets(VALUES, KEY.publicKey, STATE);
        return decodeSealedSecrets(JSON.parse(json));
      }),
    );
    if (!a || !b) throw new Error();
    const ciphertexts = [
      a.ciphertext.subarray(0, -1),
      a.ciphertext.subarray(16),
      Buffer.concat([a.ciphertext, a.ciphertext]),
      Buffer.concat([a.ciphertext.subarray(16, 32), a.ciphertext.subarray(0, 16), a.ciphertext.subarray(32)]),
      Buffer.concat([a.ciphertext.subarray(0, 16), b.ciphertext.subarray(16)]),
      b.ciphertext,
    ];
    for (const ciphertext of ciphertexts) {
      expect(await findCode(open(encodeSealedSecrets({ ...a, ciphertext })))).toBe('SEALED_ALTERED');
    }
  });

  test('that are too large are not sealed', async () => {
    const sealValue = (size: number) => sealSecrets({ A: 'x'.repeat(size) }, KEY.publicKey, STATE);
    expect(await findCode(sealValue(48_000))).toBe('SEALED_TOO_LARGE');
    const { json } = await sealValue(47_800);
    // With a signature, the message still fits into a hand-off, which has a line break at its end.
    expect(json.length + 250).toBeLessThan(64 * 1024);
    expect((await open(json)).length).toBeGreaterThan(47_800);
  });

  test('have a receipt only for these values', async () => {
    const { json, openAnswer, isReceipt } = await sealSecrets(VALUES, KEY.publicKey, STATE);
    const { receiptKey } = await KEY.openSecrets(decodeSealedSecrets(JSON.parse(json)), STATE);
    const receipt = createReceipt(VALUES, receiptKey);
    expect(isReceipt(receipt)).toBe(true);
    const otherBodies = [
      createReceipt({ ...VALUES, API_KEY: 'hunter3' }, receiptKey),
      createReceipt({ API_KEY: VALUES.API_KEY }, receiptKey),
      createReceipt({ OTHER: VALUES.OTHER, API_KEY: VALUES.API_KEY }, receiptKey),
      createReceipt(VALUES, new Uint8Array(32)),
      { ...receipt, more: 1 },
      { names: receipt.names },
      {},
      null,
    ];
    for (const body of otherBodies) expect(isReceipt(body)).toBe(false);
    // The other message is of another run, with the same values.
    const otherMessage = await sealSecrets(VALUES, KEY.publicKey, STATE);
    expect(otherMessage.isReceipt(receipt)).toBe(false);
    expect(await findCode(otherMessage.openAnswer(await answerTo(json, receipt)))).toBe('SEALED_ALTERED');
    expect((await openAnswer(await answerTo(json, receipt))).body).toEqual(receipt);
  });

  test('accept only answers of their own kind, not answers to requests', async () => {
    const { json, openAnswer } = await sealSecrets(VALUES, KEY.publicKey, STATE);
    const sealed = decodeSealedSecrets(JSON.parse(json));
    const bound = { info: secretsInfo(STATE), aad: new Uint8Array(), ...sealed };
    const { exportSecret } = await openWith(KEY.key, bound, NODE_SUITE);
    const requestAnswer = sealAnswer(
      await deriveAnswerSecret(exportSecret),
      { status: 200, json: '1' },
      0,
      sealAesGcm,
    );
    expect(await findCode(openAnswer(requestAnswer))).toBe('SEALED_ALTERED');
    const secretsAnswer = sealAnswer(
      await deriveSecretsAnswer(exportSecret),
      { status: 200, json: '1' },
      0,
      sealAesGcm,
    );
    expect((await openAnswer(secretsAnswer)).body).toBe(1);
  });
});

describe('the bytes that a provisioner signs', () => {
  test('depend on every part of the message and of the state', async () => {
    const { json } = await sealSecrets(VALUES, KEY.publicKey, STATE);
    const sealed = decodeSealedSecrets(JSON.parse(json));
    const otherKey = new Uint8Array(32).fill(9);
    const variants = [
      provisionedBytes(sealed, STATE),
      provisionedBytes({ ...sealed, key: otherKey }, STATE),
      provisionedBytes({ ...sealed, enc: otherKey }, STATE),
      provisionedBytes({ ...sealed, ciphertext: sealed.ciphertext.subarray(1) }, STATE),
      provisionedBytes(sealed, { ...STATE, version: '2' }),
      provisionedBytes(sealed, { ...STATE, signingKey: otherKey }),
    ].map(toHex);
    expect(new Set(variants).size).toBe(variants.length);
  });
});

describe('the form of a message', () => {
  const bytes = (size: number) => '00'.repeat(size);
  const VALID = { version: 1, key: bytes(32), enc: bytes(32), ciphertext: 'A'.repeat(24) };
  const SIGNED = { ...VALID, provisioner: bytes(32), signature: bytes(64) };
  const outcome = async (json: unknown) => await findCode((async () => decodeSealedSecrets(json))());

  test('is accepted signed and unsigned, in any order', async () => {
    expect(await outcome({ sealed: VALID })).toBe('accepted');
    expect(await outcome({ sealed: SIGNED })).toBe('accepted');
    expect(await outcome({ sealed: Object.fromEntries(Object.entries(SIGNED).reverse()) })).toBe('accepted');
  });

  test.each<[string, unknown]>([
    ['null', null],
    ['a string', 'sealed'],
    ['a list', [{ sealed: VALID }]],
    ['empty', {}],
    ['a list inside', { sealed: [VALID] }],
    ['with a secret next to the message', { sealed: VALID, API_KEY: 'x' }],
    ['with another property', { sealed: { ...VALID, more: 1 } }],
    ['of another version', { sealed: { ...VALID, version: 2 } }],
    ['of version "1"', { sealed: { ...VALID, version: '1' } }],
    ['without a key', { sealed: { ...VALID, key: undefined } }],
    ['with a key of 31 bytes', { sealed: { ...VALID, key: bytes(31) } }],
    ['with an enc of 33 bytes', { sealed: { ...VALID, enc: bytes(33) } }],
    ['in upper case', { sealed: { ...VALID, enc: 'AA'.repeat(32) } }],
    ['with an empty ciphertext', { sealed: { ...VALID, ciphertext: '' } }],
    ['with a ciphertext shorter than a tag', { sealed: { ...VALID, ciphertext: 'A'.repeat(20) } }],
    ['with white space', { sealed: { ...VALID, ciphertext: `${'A'.repeat(23)}\n` } }],
    ['in base64url', { sealed: { ...VALID, ciphertext: '-'.repeat(24) } }],
    ['without padding', { sealed: { ...VALID, ciphertext: 'A'.repeat(23) } }],
    ['with bits after the end', { sealed: { ...VALID, ciphertext: `${'A'.repeat(22)}B=` } }],
    ['with a signature but no provisioner', { sealed: { ...SIGNED, provisioner: undefined } }],
    ['with a provisioner but no signature', { sealed: { ...SIGNED, signature: undefined } }],
    ['with a signature of 63 bytes', { sealed: { ...SIGNED, signature: bytes(63) } }],
  ])('is refused when it is %s', async (_caseName, json) => {
    expect(await outcome(json)).toBe('SEALED_MALFORMED');
  });

  test('is refused when it is too long', async () => {
    const ciphertext = 'A'.repeat(4 * 16_008);
    expect(await outcome({ sealed: { ...VALID, ciphertext: ciphertext.slice(4 * 2) } })).toBe('accepted');
    expect(await outcome({ sealed: { ...VALID, ciphertext: `${ciphertext}AAAA` } })).toBe('SEALED_TOO_LARGE');
  });

  test('is refused for any other JSON', async () => {
    await fc.assert(
      fc.asyncProperty(fc.oneof(fc.jsonValue(), fc.record({ sealed: fc.jsonValue() })), async (json) => {
        expect(await outcome(json)).toBe('SEALED_MALFORMED');
      }),
    );
  });
});

describe('the content', () => {
  test.each(['1', 'null', '[]', '{"A":1}', '{"A":null}', '{"A":"b"} x', '\ufeff{"A":"b"}'])(
    'is refused: %j',
    (content) => {
      expect(() => readSecrets(Buffer.from(content))).toThrow(
        expect.objectContaining({ code: 'SEALED_CONTENT' }),
      );
    },
  );
});

describe.each(VECTORS.secrets)('the vector of $application', (vector) => {
  const key = SealingKey.of(hex(vector.enclave_private_key));
  const state: EnclaveState = {
    application: vector.application,
    version: vector.version,
    registers: [hex(vector.pcr0), hex(vector.pcr1), hex(vector.pcr2)],
    signingKey: hex(vector.signing_key),
  };
  const sealed = decodeSealedSecrets(JSON.parse(vector.message));

  test('is exactly what a provisioner sends', async () => {
    const suite = suiteWith(hex(vector.ephemeral_private_key), hex(vector.ephemeral_public_key));
    const provisioner = vector.provisioner_public_key && {
      publicKey: hex(vector.provisioner_public_key),
      sign: (message: Uint8Array) => {
        expect(toHex(message)).toBe(vector.signed);
        return hex(vector.signature as string);
      },
    };
    const request = await sealSecrets(vector.values, key.publicKey, state, {
      suite,
      provisioner: provisioner || undefined,
    });
    expect(request.json).toBe(vector.message);
    const answer = await request.openAnswer(hex(vector.answer.message));
    expect(answer).toMatchObject({ status: vector.answer.status, body: vector.answer.body });
    expect(request.isReceipt(answer.body)).toBe(true);
  });

  test('is opened by the enclave, which answers with the bytes of the vector', async () => {
    expect(toHex(secretsInfo(state))).toBe(vector.info);
    expect(toHex(provisionedBytes(sealed, state))).toBe(vector.signed);
    const opened = await key.openSecrets(sealed, state);
    expect(Buffer.from(opened.content).toString()).toBe(vector.content);
    expect(toHex(opened.receiptKey)).toBe(vector.receipt_key);
    expect(createReceipt(readSecrets(opened.content), opened.receiptKey)).toEqual(vector.answer.body);
    const bound = { info: hex(vector.info), aad: new Uint8Array(), ...sealed };
    const { exportSecret } = await openWith(key.key, bound, NODE_SUITE);
    const secret = await deriveSecretsAnswer(exportSecret, hex(vector.answer.nonce));
    const json = JSON.stringify(vector.answer.body);
    const sealedAnswer = sealAnswer(secret, { status: vector.answer.status, json }, 0, sealAesGcm);
    expect(toHex(sealedAnswer)).toBe(vector.answer.message);
  });
});
