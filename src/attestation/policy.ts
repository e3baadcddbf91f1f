/** What a caller asks of an enclave beyond a genuine document. The numbers are those of `README.md`. */
import { bytesToHex, equalBytes } from '@noble/curves/utils.js';
import type { AttestationDocument } from './decode.ts';
import {
  DebugEnclaveError,
  DocumentFromFutureError,
  DocumentTooOldError,
  InvalidPolicyError,
  NonceMismatchError,
  PcrMismatchError,
  PublicKeyMismatchError,
  UserDataMismatchError,
} from './errors.ts';
import { checkImage, type Image } from './image.ts';

export interface AttestationPolicy {
  /** The images that may answer: at least one. `parsePcrs` reads one from `out/nitro.pcrs`. */
  readonly images: readonly Image[];
  /** Also accept enclaves in debug mode, which prove nothing about what they run. */
  readonly allowDebug?: boolean;
  /** The `public_key` that the document must bind, byte for byte. */
  readonly publicKey?: Uint8Array;
  /** The nonce that the document must answer. */
  readonly nonce?: Uint8Array;
  /** The user data that the document must hold. */
  readonly userData?: Uint8Array;
  /**
   * How old the document may be at most, in milliseconds, and also how far ahead of the given time it may be
   * dated, for clocks that differ. Without it, only the certificates bound the document's age.
   */
  readonly maxAgeMs?: number;
}

/** What of the policy was asked of the document and held. */
export type PolicyCheck = 'image' | 'debug' | 'publicKey' | 'nonce' | 'userData' | 'maxAge';

export interface PolicyResult {
  /** The accepted image that the enclave runs; null for a debug enclave, of which nobody can tell. */
  readonly image: Image | null;
  readonly checked: readonly PolicyCheck[];
}

const KEYS = ['images', 'allowDebug', 'publicKey', 'nonce', 'userData', 'maxAgeMs'] as const;

/**
 * The policy, found usable (rule 21). Unknown members are refused: a misspelt one would be a check that
 * nobody makes.
 *
 * @throws InvalidPolicyError
 */
export function checkPolicy(policy: AttestationPolicy): AttestationPolicy {
  if (typeof policy !== 'object' || policy === null) {
    throw new InvalidPolicyError('a policy is needed: without expected registers there is nothing to trust');
  }
  const unknown = Object.keys(policy).find((key) => !(KEYS as readonly string[]).includes(key));
  if (unknown !== undefined) {
    throw new InvalidPolicyError(`the policy has no member "${unknown}"; it has: ${KEYS.join(', ')}`);
  }
  // Each read once and by its name: what is checked here, inherited and computed members too, is what counts.
  const given: Partial<Record<keyof AttestationPolicy, unknown>> = {};
  for (const key of KEYS) {
    if (key in policy) given[key] = policy[key];
  }
  const { images, allowDebug, maxAgeMs } = given;
  if (!Array.isArray(images) || images.length === 0) {
    throw new InvalidPolicyError('the policy must name at least one accepted image in "images"');
  }
  if (allowDebug !== undefined && typeof allowDebug !== 'boolean') {
    throw new InvalidPolicyError('"allowDebug" of the policy must be true or false');
  }
  for (const key of ['publicKey', 'nonce', 'userData'] as const) {
    const value = given[key];
    if (key in given && !(value instanceof Uint8Array && value.length > 0)) {
      throw new InvalidPolicyError(`"${key}" of the policy must be a Uint8Array, not empty`);
    }
  }
  if ('maxAgeMs' in given && !(typeof maxAgeMs === 'number' && maxAgeMs >= 0)) {
    throw new InvalidPolicyError('"maxAgeMs" of the policy must be a number of milliseconds, 0 or more');
  }
  return { ...given, images: Array.from(images, checkImage) } as AttestationPolicy;
}

/** Holds a verified document against a policy that `checkPolicy` found usable (rules 36 to 41). */
export function applyPolicy(
  document: AttestationDocument,
  policy: AttestationPolicy,
  now: number,
): PolicyResult {
  const checked: PolicyCheck[] = [];
  const found = [0, 1, 2].map((index) => {
    const value = document.pcrs.get(index);
    return value === undefined ? null : bytesToHex(value);
  });
  let image: Image | null = null;
  if (found.every((value) => value !== null && /^0+$/.test(value))) {
    if (policy.allowDebug !== true) throw new DebugEnclaveError(); // [36]
    checked.push('debug');
  } else {
    image =
      policy.images.find((accepted) => registers(accepted).every((value, i) => value === found[i])) ?? null;
    if (image === null) throw new PcrMismatchError(found, diff(policy.images, found)); // [37]
    checked.push('image');
  }
  if (policy.publicKey !== undefined) {
    if (!same(document.publicKey, policy.publicKey)) throw new PublicKeyMismatchError(); // [38]
    checked.push('publicKey');
  }
  if (policy.nonce !== undefined) {
    if (!same(document.nonce, policy.nonce)) throw new NonceMismatchError(); // [39]
    checked.push('nonce');
  }
  if (policy.userData !== undefined) {
    if (!same(document.userData, policy.userData)) throw new UserDataMismatchError(); // [40]
    checked.push('userData');
  }
  if (policy.maxAgeMs !== undefined) {
    const age = now - document.timestamp;
    if (age > policy.maxAgeMs) throw new DocumentTooOldError(age, policy.maxAgeMs); // [41]
    if (-age > policy.maxAgeMs) throw new DocumentFromFutureError(-age, policy.maxAgeMs);
    checked.push('maxAge');
  }
  return { image, checked };
}

function registers(image: Image): readonly string[] {
  return [image.pcr0, image.pcr1, image.pcr2];
}

function same(found: Uint8Array | null, expected: Uint8Array): boolean {
  return found !== null && equalBytes(found, expected);
}

/** Registers that match are told in one line, others with both values below each other. */
function diff(images: readonly Image[], found: readonly (string | null)[]): string {
  return images
    .flatMap((image, number) => [
      `image ${number + 1} of ${images.length}:`,
      ...registers(image).flatMap((expected, index) =>
        expected === found[index]
          ? [`  PCR${index} matches`]
          : [
              `  PCR${index} differs`,
              `    expected ${expected}`,
              `    found    ${found[index] ?? '(not in the document)'}`,
            ],
      ),
    ])
    .join('\n');
}
