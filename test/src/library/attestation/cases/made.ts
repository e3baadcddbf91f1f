/** Makes documents under a development authority, each with one chosen fault. */
import { encode } from 'cborg';
import type { Image } from '../../../../../src/library/attestation/index.ts';
import {
  type CertificateChain,
  caBundle,
  createRoot,
  type DocumentFields,
  encodePayload,
  issueChain,
  type MapLength,
  measure,
  signDocument,
} from '../../../../../src/testing/attestation_ca.ts';
import { type Case, toHex } from './case.ts';

/**
 * Time at which the documents are made and verified. All certificates of `CHAIN` are valid from a minute
 * before this time to three hours after it.
 */
export const AT = Date.parse('2026-01-15T12:00:00Z');
export const ROOT = createRoot(new Date(AT));
export const CHAIN = issueChain(ROOT, new Date(AT));
export const PUBLIC_KEY = new Uint8Array(32).fill(7);

export const IMAGE: Image = {
  pcr0: toHex(measure('pcr0')),
  pcr1: toHex(measure('pcr1')),
  pcr2: toHex(measure('pcr2')),
};

/** Registers 0 to 15, as older firmware lists them. */
export function registers(): Map<number, Uint8Array> {
  return new Map(
    Array.from({ length: 16 }, (_, index) => [
      index,
      index < 3 ? measure(`pcr${index}`) : new Uint8Array(48),
    ]),
  );
}

export function fields(chain: CertificateChain = CHAIN): DocumentFields {
  return {
    module_id: 'i-0development-enc0',
    digest: 'SHA384',
    timestamp: AT,
    pcrs: registers(),
    certificate: chain.leaf.certificate,
    cabundle: caBundle(chain),
    public_key: PUBLIC_KEY,
    user_data: null,
    nonce: null,
  };
}

/** Makes a valid document, except for the fields that `change` modifies. */
export function documentWith(
  change: Partial<Record<keyof DocumentFields, unknown>> & Record<string, unknown>,
  chain: CertificateChain = CHAIN,
  length: MapLength = 'definite',
): Uint8Array {
  return signDocument(encodePayload({ ...fields(chain), ...change } as DocumentFields, length), chain.leaf);
}

/** Returns the fields of a document as map entries, to duplicate, leave out or reorder them. */
export function entries(chain: CertificateChain = CHAIN): (readonly [string, Uint8Array])[] {
  return Object.entries(fields(chain)).map(([key, value]) => [key, encode(value)] as const);
}

/** Defines a case of a document that was made here. By default, both verifiers trust it. */
export function defineCase(
  name: string,
  document: Uint8Array,
  verdicts: Partial<Omit<Case, 'name' | 'document'>> = {},
): Case {
  return {
    name,
    document: toHex(document),
    roots: [toHex(ROOT.certificate)],
    at: AT,
    policy: { images: [IMAGE] },
    code: null,
    abort: null,
    ...verdicts,
  };
}

/**
 * Defines a case of a document that `verifyAttestation` must refuse with `code`. Sui's verifier must refuse
 * the document with `abort`, or accept it if `abort` is null.
 */
export function defineRefusal(name: string, document: Uint8Array, code: string, abort: number | null): Case {
  return defineCase(name, document, { code, abort });
}
