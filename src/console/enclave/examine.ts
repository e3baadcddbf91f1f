/** Fetches an enclave's attestation document. The library verifies it. */
import {
  type AttestationExplanation,
  decodeAttestation,
  explainAttestation,
  type Image,
} from 'sui-enclave/attestation';
import { fromHex, toHex } from '../lib/bytes.ts';
import { RequestError, requestJson } from '../lib/request.ts';

/** An attestation document and its origin. */
export interface Subject {
  readonly bytes: Uint8Array;
  /** Nonce of the request; undefined for a file, which may have any age. */
  readonly nonce: Uint8Array | undefined;
  /** Name of the host or of the file. */
  readonly from: string;
}

/** Requirements that the enclave must meet. */
export interface Expectation {
  /**
   * Images to compare with. Without images, the page can only tell that the document comes from an
   * enclave.
   */
  readonly images: readonly Image[];
  /** DER of the root certificates to trust instead of AWS's. Without certificates, AWS's root is trusted. */
  readonly roots: readonly Uint8Array[];
}

export interface Examination {
  readonly subject: Subject;
  readonly expectation: Expectation;
  readonly explanation: AttestationExplanation;
  /** Time of the verification, in milliseconds since 1970. */
  readonly now: number;
}

const NONCE_SIZE = 32;

/** Requests a document for a fresh nonce. @throws RequestError; the signal's reason */
export async function fetchDocument(base: URL, signal: AbortSignal): Promise<Subject> {
  const nonce = crypto.getRandomValues(new Uint8Array(NONCE_SIZE));
  const url = new URL(`get_attestation?nonce=${toHex(nonce)}`, base);
  const json = await requestJson(url, { signal });
  const hex =
    typeof json === 'object' && json !== null && 'attestation' in json ? json.attestation : undefined;
  const bytes = typeof hex === 'string' ? fromHex(hex) : undefined;
  if (!bytes) throw new RequestError('malformed', `The answer of ${base.host} has no attestation document.`);
  return { bytes, nonce, from: base.host };
}

export async function examine(
  subject: Subject,
  expectation: Expectation,
  now = Date.now(),
): Promise<Examination> {
  const { images, roots } = expectation;
  const { nonce, bytes } = subject;
  const explanation = await explainAttestation(bytes, {
    now,
    policy: { images: images.length > 0 ? images : [readClaimedImage(bytes)], ...(nonce && { nonce }) },
    ...(roots.length > 0 && { roots }),
  });
  return { subject, expectation, explanation, now };
}

/**
 * Value that no register of an image has. Zero can't be used: the registers of a debug enclave are zero,
 * and must not be accepted.
 */
const NO_REGISTER = 'f'.repeat(96);

/**
 * Returns the image that the document itself names. If there is no image to compare with, this image allows a
 * verification of everything else.
 */
export function readClaimedImage(bytes: Uint8Array): Image {
  const pcrs = readPcrs(bytes);
  const register = (index: number) => {
    const hex = toHex(pcrs?.get(index) ?? new Uint8Array());
    return hex.length === 96 && !/^0+$/.test(hex) ? hex : NO_REGISTER;
  };
  return { pcr0: register(0), pcr1: register(1), pcr2: register(2) };
}

function readPcrs(bytes: Uint8Array): ReadonlyMap<number, Uint8Array> | undefined {
  try {
    return decodeAttestation(bytes).pcrs;
  } catch {
    // The explanation contains the cause.
    return undefined;
  }
}
