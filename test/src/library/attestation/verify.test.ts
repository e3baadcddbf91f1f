/** Both verdicts on every case, on both paths of the cryptography; in Node and, as data, in a browser. */
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import {
  AttestationError,
  predictRegistration,
  verifyAttestation,
} from '../../../../src/library/attestation/index.ts';
import { fromHex, policyOf } from './cases/case.ts';
import { cases } from './cases/index.ts';

describe.each(['Web Crypto', '@noble/curves'])('with %s', (path) => {
  beforeAll(() => {
    // A page on plain http has random numbers, but no crypto.subtle.
    if (path === '@noble/curves') vi.stubGlobal('crypto', { getRandomValues: () => {} });
    expect(globalThis.crypto.subtle === undefined).toBe(path === '@noble/curves');
  });
  afterAll(() => {
    vi.unstubAllGlobals();
  });

  describe.each(Object.entries(cases))('%s', (_, group) => {
    test.each(group)('$name: $code, Sui $abort', async (one) => {
      const roots = one.roots?.map(fromHex) ?? [];
      const document = fromHex(one.document);
      const options = { now: one.at, policy: policyOf(one), ...(roots.length > 0 ? { roots } : {}) };
      expect(await codeOf(verifyAttestation(document, options))).toBe(one.code);
      const prediction = await predictRegistration(document, one.at, roots[0]);
      expect(prediction).toMatchObject({ abort: one.abort, accepted: one.abort === null });
    });
  });
});

/** The code with which the document was refused, or null when it was trusted. */
async function codeOf(verdict: Promise<unknown>): Promise<string | null> {
  try {
    await verdict;
    return null;
  } catch (error) {
    if (error instanceof AttestationError) return error.code;
    throw error;
  }
}
