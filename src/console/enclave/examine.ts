/** Fetches an enclave's document, and has the library verify it. */
import {
  type AttestationExplanation,
  decodeAttestation,
  explainAttestation,
  type Image,
} from 'sui-enclave/attestation';
import { fromHex, toHex } from '../lib/bytes.ts';
import { RequestError, requestJson } from '../lib/request.ts';

/** A document, and where it comes from. */
export interface Subject {
  readonly bytes: Uint8Array;
  /** Nonce of the request; undefined for a file, which may be of any age. */
  readonly nonce: Uint8Array | undefined;
  /** Host or name of the file. */
  readonly from: string;
}

/** The requirements that the enclave must meet. */
export interface Expectation {
  /** The images to compare with; none: nothing is known of the image then, but that it is an enclave's. */
  readonly images: readonly Image[];
  /** DER of the roots to trust instead of AWS's; none: AWS's. */
  readonly roots: readonly Uint8Array[];
}

export interface Examination {
  readonly subject: Subject;
  readonly expectation: Expectation;
  readonly explanation: AttestationExplanation;
  /** Milliseconds since 1970: the time at which it was verified. */
  readonly now: number;
}

const NONCE_SIZE = 32;

/** @throws RequestError; the signal's reason */
export async function fetchDocument(base: URL, signal: AbortSignal): Promise<Subject> {
  const nonce = crypto.getRandomValues(new Uint8Array(NONCE_SIZE));
  const url = new URL(`get_attestation?nonce=${toHex(nonce)}`, base);
  const json = await requestJson(url, { signal });
  const hex =
    typeof json === 'object' && json !== null && 'attestation' in json ? json.attestation : undefined;
  const bytes = typeof hex === 'string' ? fromHex(hex) : undefined;
  if (!bytes)
    throw new RequestError('malformed', `What ${base.host} answered holds no attestation document.`);
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
    policy: { images: images.length > 0 ? images : [itself(bytes)], ...(nonce && { nonce }) },
    ...(roots.length > 0 && { roots }),
  });
  return { subject, expectation, explanation, now };
}

/**
 * A value that no register of an image has. The registers of a debug enclave are zero, and must not be
 * accepted.
 */
const NO_REGISTER = 'f'.repeat(96);

/**
 * Returns the image that the document names, to verify the rest of it where there is nothing to compare it
 * with.
 */
export function itself(bytes: Uint8Array): Image {
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
    // The explanation says why.
    return undefined;
  }
}
