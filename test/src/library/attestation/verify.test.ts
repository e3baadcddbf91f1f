/**
 * Checks both verdicts on every case, with both implementations of the cryptography, in Node and (with the
 * cases as data) in a browser.
 */
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { type EcdsaSignature, verifyEcdsa } from '../../../../src/library/attestation/ecdsa.ts';
import {
  AttestationError,
  predictRegistration,
  verifyAttestation,
} from '../../../../src/library/attestation/index.ts';
import { type Case, createPolicy, fromHex, toHex } from './cases/case.ts';
import { cases } from './cases/index.ts';
import { realCases } from './cases/real.ts';

/** Crypto of a page on plain http, which has random numbers but no crypto.subtle. */
const PAGE_ON_HTTP = { getRandomValues: () => {} };

describe('verifyAttestation with Web Crypto', () => {
  const { crypto, signatures } = recordSignatures();
  const judged = new Set<Case>();
  const judge = async (documentCase: Case) => {
    await expectVerdicts(documentCase);
    judged.add(documentCase);
  };
  beforeAll(() => void vi.stubGlobal('crypto', crypto));
  afterAll(() => void vi.unstubAllGlobals());

  describe.each(Object.entries(cases))('%s', (_, group) => {
    test.each(group)('gives each case its verdict: $name: $code, Sui $abort', judge);
  });

  // The paths differ only in `verifyEcdsa`, and most cases have signatures of the same chain.
  test('gives each signature of any case the same verdict as @noble/curves', async () => {
    for (const documentCase of Object.values(cases).flat())
      if (!judged.has(documentCase)) await judge(documentCase);
    vi.stubGlobal('crypto', PAGE_ON_HTTP);
    const counts = { valid: 0, invalid: 0 };
    for (const { isValid, ...signed } of signatures.values()) {
      expect(await verifyEcdsa(signed), toHex(signed.signature)).toBe(isValid);
      counts[isValid ? 'valid' : 'invalid'] += 1;
    }
    expect(counts.valid).toBeGreaterThan(100);
    expect(counts.invalid).toBeGreaterThan(5);
  });
});

describe('verifyAttestation with @noble/curves', () => {
  beforeAll(() => {
    vi.stubGlobal('crypto', PAGE_ON_HTTP);
    expect(globalThis.crypto.subtle).toBeUndefined();
  });
  afterAll(() => void vi.unstubAllGlobals());

  test.each(realCases)('gives each case its verdict: $name: $code, Sui $abort', expectVerdicts);
});

async function expectVerdicts(documentCase: Case): Promise<void> {
  const roots = documentCase.roots?.map(fromHex) ?? [];
  const document = fromHex(documentCase.document);
  const options = {
    now: documentCase.at,
    policy: createPolicy(documentCase),
    ...(roots.length > 0 ? { roots } : {}),
  };
  expect(await findCode(verifyAttestation(document, options)), documentCase.name).toBe(documentCase.code);
  const prediction = await predictRegistration(document, documentCase.at, roots[0]);
  expect(prediction, documentCase.name).toMatchObject({
    abort: documentCase.abort,
    accepted: documentCase.abort === null,
  });
}

/** Returns the code with which the document was refused, or null if it was trusted. */
async function findCode(verdict: Promise<unknown>): Promise<string | null> {
  try {
    await verdict;
    return null;
  } catch (error) {
    if (error instanceof AttestationError) return error.code;
    throw error;
  }
}

/** Wraps Web Crypto so that it records each signature once, with its verdict. */
function recordSignatures() {
  const { subtle } = globalThis.crypto;
  const keys = new Map<CryptoKey, Pick<EcdsaSignature, 'curve' | 'publicKey'>>();
  const signatures = new Map<string, EcdsaSignature & { isValid: boolean }>();
  const importKey: SubtleCrypto['importKey'] = async (...args: unknown[]) => {
    const [, publicKey, { namedCurve }] = args as [string, Uint8Array, EcKeyImportParams];
    const key = await subtle.importKey(...(args as Parameters<SubtleCrypto['importKey']>));
    keys.set(key, { curve: namedCurve as EcdsaSignature['curve'], publicKey });
    return key;
  };
  const verify = async (
    algorithm: EcdsaParams,
    key: CryptoKey,
    signature: Uint8Array<ArrayBuffer>,
    message: Uint8Array<ArrayBuffer>,
  ) => {
    const isValid = await subtle.verify(algorithm, key, signature, message);
    const signed = {
      ...(keys.get(key) as Pick<EcdsaSignature, 'curve' | 'publicKey'>),
      hash: algorithm.hash as EcdsaSignature['hash'],
      signature,
      message,
    };
    const parts = [signed.publicKey, signature, message].map(toHex);
    signatures.set([signed.curve, signed.hash, ...parts].join(), { ...signed, isValid });
    return isValid;
  };
  return { crypto: { subtle: { importKey, verify } }, signatures };
}
