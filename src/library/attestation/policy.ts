/** Checks a caller's policy, and compares verified documents with it. */
import { bytesToHex, equalBytes } from '@noble/curves/utils.js';
import type { AttestationDocument } from './decode.ts';
import { AttestationError, PcrMismatchError } from './errors.ts';
import { checkImage, type Image } from './image.ts';
import type { Passed } from './rules.ts';

/** The requirements that an enclave must meet in addition to a genuine document. */
export interface AttestationPolicy {
  /** The images that may answer: at least one. `parsePcrs` reads one from `out/nitro.pcrs`. */
  readonly images: readonly Image[];
  /** Accepts enclaves in debug mode too, which prove nothing about the code that they run. Default: false. */
  readonly allowDebug?: boolean;
  /** The `public_key` that the document must bind, byte for byte. */
  readonly publicKey?: Uint8Array;
  /** The nonce that the document must answer. */
  readonly nonce?: Uint8Array;
  /** The user data that the document must hold. */
  readonly userData?: Uint8Array;
  /**
   * The maximum age of the document in milliseconds. The document may also be dated ahead of `now` by as
   * much, since clocks differ. Without this limit, only the certificates limit the age of the document.
   */
  readonly maxAgeMs?: number;
}

/** A requirement of the policy that the document meets. */
export type PolicyCheck = 'image' | 'debug' | 'publicKey' | 'nonce' | 'userData' | 'maxAge';

export interface PolicyResult {
  /**
   * The accepted image that the enclave runs; null for a debug enclave, which proves nothing about its image.
   */
  readonly image: Image | null;
  readonly checked: readonly PolicyCheck[];
}

const NOT_ASKED = 'not asked';
const KEYS = ['images', 'allowDebug', 'publicKey', 'nonce', 'userData', 'maxAgeMs'] as const;

/**
 * Checks and copies a policy. Refuses unknown properties, since a misspelt property would silently leave out
 * a check.
 *
 * @throws AttestationError: POLICY_INVALID, POLICY_ZERO_IMAGE
 */
export function checkPolicy(policy: AttestationPolicy): AttestationPolicy {
  if (typeof policy !== 'object' || policy === null) {
    throw invalidPolicy('a policy is required: without expected registers there is nothing to trust');
  }
  const unknown = Object.keys(policy).find((key) => !(KEYS as readonly string[]).includes(key));
  if (unknown !== undefined) {
    throw invalidPolicy(`unknown property "${unknown}" of the policy; known ones: ${KEYS.join(', ')}`);
  }
  // Read each property once, by name, so that the checked values are the values that are used. Getters and
  // inherited properties count too.
  const copy: Partial<Record<keyof AttestationPolicy, unknown>> = {};
  for (const key of KEYS) {
    if (key in policy) copy[key] = policy[key];
  }
  const { images, allowDebug, maxAgeMs } = copy;
  if (!Array.isArray(images) || images.length === 0) {
    throw invalidPolicy('the policy must name at least one accepted image in "images"');
  }
  if (allowDebug !== undefined && typeof allowDebug !== 'boolean') {
    throw invalidPolicy('"allowDebug" of the policy must be true or false');
  }
  for (const key of ['publicKey', 'nonce', 'userData'] as const) {
    const value = copy[key];
    if (key in copy && !(value instanceof Uint8Array && value.length > 0)) {
      throw invalidPolicy(`"${key}" of the policy must be a Uint8Array that is not empty`);
    }
    // Copy the bytes, since their owner may change them before a document is compared with them.
    if (value instanceof Uint8Array) copy[key] = new Uint8Array(value);
  }
  if ('maxAgeMs' in copy && !(typeof maxAgeMs === 'number' && maxAgeMs >= 0)) {
    throw invalidPolicy('"maxAgeMs" of the policy must be a number of milliseconds, 0 or more');
  }
  return { ...copy, images: Array.from(images, checkImage) } as AttestationPolicy;
}

/** Checks a verified document against a policy that `checkPolicy` returned. @throws AttestationError */
export function applyPolicy(
  document: AttestationDocument,
  policy: AttestationPolicy,
  now: number,
  passed: Passed,
): PolicyResult {
  const image = findAcceptedImage(document, policy, passed);
  const checked: PolicyCheck[] = [image === null ? 'debug' : 'image'];
  for (const { property, rule, code, message } of EXPECTED_BYTES) {
    const expected = policy[property];
    if (expected !== undefined) {
      if (!isExpected(document[property], expected)) throw new AttestationError(code, message);
      checked.push(property);
    }
    passed(rule, expected === undefined ? NOT_ASKED : undefined);
  }
  if (policy.maxAgeMs !== undefined) {
    checkAge(now - document.timestamp, policy.maxAgeMs);
    checked.push('maxAge');
  }
  passed('policy.age', policy.maxAgeMs === undefined ? NOT_ASKED : `${now - document.timestamp} ms old`);
  return { image, checked };
}

/** The fields that a policy may expect, byte for byte. */
const EXPECTED_BYTES = [
  {
    property: 'publicKey',
    rule: 'policy.public_key',
    code: 'POLICY_PUBLIC_KEY',
    message: 'the public_key of the document is not the expected one',
  },
  {
    property: 'nonce',
    rule: 'policy.nonce',
    code: 'POLICY_NONCE',
    message: 'the nonce of the document is not the expected one: the document answers another request',
  },
  {
    property: 'userData',
    rule: 'policy.user_data',
    code: 'POLICY_USER_DATA',
    message: 'the user_data of the document is not the expected one',
  },
] as const;

/**
 * Returns the accepted image whose registers the document has; null for a debug enclave, if the policy
 * accepts debug enclaves.
 */
function findAcceptedImage(
  document: AttestationDocument,
  policy: AttestationPolicy,
  passed: Passed,
): Image | null {
  const values = [0, 1, 2].map((index) => {
    const value = document.pcrs.get(index);
    return value === undefined ? null : bytesToHex(value);
  });
  if (values.every((value) => value !== null && /^0+$/.test(value))) {
    if (policy.allowDebug !== true) {
      throw new AttestationError(
        'POLICY_DEBUG',
        'registers 0 to 2 are all zero: the enclave runs in debug mode, and its parent can read its memory. Set allowDebug in the policy to accept that',
      );
    }
    passed('policy.debug', 'debug mode, which the policy accepts');
    passed('policy.images', 'not compared: a debug enclave proves nothing about its image');
    return null;
  }
  passed('policy.debug', 'not in debug mode');
  const position = policy.images.findIndex((image) =>
    registers(image).every((value, index) => value === values[index]),
  );
  const image = policy.images[position];
  if (image === undefined) throw new PcrMismatchError(values, diff(policy.images, values));
  passed('policy.images', `image ${position + 1} of ${policy.images.length}`);
  return image;
}

function checkAge(ageMs: number, limitMs: number): void {
  if (ageMs > limitMs) {
    const message = `the document is ${ageMs} ms old, but the maximum is ${limitMs} ms`;
    throw new AttestationError('POLICY_TOO_OLD', message);
  }
  if (-ageMs > limitMs) {
    const message = `the document is dated ${-ageMs} ms ahead of \`now\`, but the maximum is ${limitMs} ms`;
    throw new AttestationError('POLICY_FROM_FUTURE', message);
  }
}

function invalidPolicy(message: string): AttestationError {
  return new AttestationError('POLICY_INVALID', message);
}

function registers(image: Image): readonly string[] {
  return [image.pcr0, image.pcr1, image.pcr2];
}

function isExpected(bytes: Uint8Array | null, expected: Uint8Array): boolean {
  return bytes !== null && equalBytes(bytes, expected);
}

/** Returns one line for each register that matches, and both values of each register that differs. */
function diff(images: readonly Image[], values: readonly (string | null)[]): string {
  return images
    .flatMap((image, number) => [
      `image ${number + 1} of ${images.length}:`,
      ...registers(image).flatMap((expected, index) =>
        expected === values[index]
          ? [`  PCR${index} matches`]
          : [
              `  PCR${index} differs`,
              `    expected ${expected}`,
              `    found    ${values[index] ?? '(not in the document)'}`,
            ],
      ),
    ])
    .join('\n');
}
