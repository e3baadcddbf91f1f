/**
 * A document and its expected verdicts. Cases are plain JSON, so they run in Node and in a browser. A browser
 * gets them as data, since it has no certificate authority that makes documents.
 */
import type { AttestationPolicy, Image } from '../../../../../src/library/attestation/index.ts';

export interface Case {
  name: string;
  /** The document in hexadecimal, like all bytes here. */
  document: string;
  /** Pinned roots. Default: AWS's. */
  roots?: string[];
  /** Time of the case, in milliseconds since 1970. */
  at: number;
  policy: {
    images: Image[];
    allowDebug?: boolean;
    publicKey?: string;
    nonce?: string;
    userData?: string;
    maxAgeMs?: number;
  };
  /** The code with which verifyAttestation refuses the document, or null. */
  code: string | null;
  /** The code with which Sui's verifier aborts, or null. */
  abort: number | null;
}

export function createPolicy({ policy }: Case): AttestationPolicy {
  const { images, allowDebug, maxAgeMs, ...bytes } = policy;
  return {
    images,
    ...(allowDebug === undefined ? {} : { allowDebug }),
    ...(maxAgeMs === undefined ? {} : { maxAgeMs }),
    ...Object.fromEntries(Object.entries(bytes).map(([key, hex]) => [key, fromHex(hex)])),
  };
}

export function fromHex(hex: string): Uint8Array {
  return Uint8Array.from(hex.match(/../g) ?? [], (byte) => Number.parseInt(byte, 16));
}

export function toHex(bytes: Uint8Array): string {
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');
}
