/** Decides whether an enclave can be trusted, by the rules of `rules.ts`. */
import {
  type Chain,
  certificateFingerprint,
  checkChain,
  checkChainSignatures,
  parseChain,
  validUntil,
} from './chain.ts';
import { PROTECTED_HEADER, signedBytes } from './cose.ts';
import { type AttestationDocument, decodeAndReport } from './decode.ts';
import { findPartOutOfRange, verifyEcdsa } from './ecdsa.ts';
import { AttestationError } from './errors.ts';
import { type AttestationPolicy, applyPolicy, checkPolicy, type PolicyResult } from './policy.ts';
import { awsNitroRoot } from './root.ts';
import type { Passed } from './rules.ts';

/** Options of a verification: the time, the policy and the pinned roots. */
export interface VerifyOptions {
  /** The time at which the document must be valid: a Date, or milliseconds since 1970. */
  readonly now: Date | number;
  /** The requirements that the enclave must meet. */
  readonly policy: AttestationPolicy;
  /**
   * DER of the roots to trust instead of AWS's. For development: anyone who holds the key of such a root can
   * attest anything.
   */
  readonly roots?: readonly Uint8Array[];
}

/** A certificate of a verified chain. */
export interface ChainEntry {
  /** The subject as text, such as `CN=…, O=…`. */
  readonly subject: string;
  /** The first second at which it is valid. */
  readonly notBefore: Date;
  /** The last second at which it is valid. */
  readonly notAfter: Date;
}

/** A trusted document, and what was checked. */
export interface VerifiedAttestation extends PolicyResult {
  /** The verified document, whose content is now trusted. */
  readonly document: AttestationDocument;
  /** Root first, leaf last. */
  readonly chain: readonly ChainEntry[];
  /** SHA-256 of the pinned root's DER, in hexadecimal. */
  readonly rootSha256: string;
  /** The time at which the document was verified: the option `now`. */
  readonly verifiedAt: Date;
  /** The earliest notAfter of the chain: after this second the document no longer verifies. */
  readonly validUntil: Date;
}

const OPTION_KEYS: readonly string[] = ['now', 'policy', 'roots'];

/**
 * Verifies an attestation document: its form and sizes, the certificate chain from the pinned root, the
 * signature over the received bytes, then the policy.
 *
 * Exported as `sui-enclave/attestation`.
 *
 * @example
 * const { document } = await verifyAttestation(bytes, {
 *   now: Date.now(),
 *   policy: { images: [parsePcrs(await readFile('out/nitro.pcrs', 'utf8'))], nonce },
 * });
 *
 * @param bytes the binary document, not its hexadecimal form
 * @throws AttestationError with a `code` for each cause. POLICY_INVALID, POLICY_ZERO_IMAGE and TIME_INVALID
 *   mean that an option is invalid, and that nothing was verified
 */
export async function verifyAttestation(
  bytes: Uint8Array,
  options: VerifyOptions,
): Promise<VerifiedAttestation> {
  return judge(bytes, checkOptions(options), { passed() {}, decoded() {}, parsed() {} });
}

/** Receives the progress of a verification. */
export interface Progress {
  readonly passed: Passed;
  readonly decoded: (document: AttestationDocument) => void;
  /** @param chain the parsed chain, before its dates and signatures are checked */
  readonly parsed: (chain: readonly ChainEntry[]) => void;
}

/**
 * Applies every rule but `options`, which `checkOptions` applies. Reads `bytes` before it returns its
 * promise.
 *
 * @throws AttestationError
 */
export async function judge(
  bytes: Uint8Array,
  { now, policy, roots }: VettedOptions,
  { passed, decoded, parsed }: Progress,
): Promise<VerifiedAttestation> {
  const document = decodeAndReport(bytes, passed);
  decoded(document);
  const chain = parseChain([...document.cabundle, document.certificate], roots, passed);
  const entries = chain.map(({ subjectText, notBefore, notAfter }) => ({
    subject: subjectText,
    notBefore,
    notAfter,
  }));
  parsed(entries);
  checkChain(chain, now, passed);
  await checkChainSignatures(chain, passed);
  await checkSignature(document, chain, passed);
  const accepted = applyPolicy(document, policy, now, passed);
  return {
    ...accepted,
    document,
    chain: entries,
    rootSha256: certificateFingerprint(chain[0].der),
    verifiedAt: new Date(now),
    validUntil: validUntil(chain),
  };
}

/** Options that were checked and copied. */
export interface VettedOptions {
  /** The time of the verification, in milliseconds since 1970. */
  readonly now: number;
  readonly policy: AttestationPolicy;
  readonly roots: readonly Uint8Array[];
}

/**
 * Checks and copies the options.
 *
 * @throws AttestationError: POLICY_INVALID, POLICY_ZERO_IMAGE, TIME_INVALID
 */
export function checkOptions(options: VerifyOptions): VettedOptions {
  if (typeof options !== 'object' || options === null) {
    throw new AttestationError('POLICY_INVALID', 'verifyAttestation needs { now, policy }');
  }
  const unknown = Object.keys(options).find((key) => !OPTION_KEYS.includes(key));
  if (unknown !== undefined) {
    const message = `unknown option "${unknown}"; known ones: ${OPTION_KEYS.join(', ')}`;
    throw new AttestationError('POLICY_INVALID', message);
  }
  const { roots = [awsNitroRoot()], now, policy } = options;
  if (!Array.isArray(roots) || roots.length === 0 || !roots.every((root) => root instanceof Uint8Array)) {
    const message = '"roots" must be an array of at least one certificate in DER (Uint8Array)';
    throw new AttestationError('POLICY_INVALID', message);
  }
  const copies = Array.from(roots, (root) => new Uint8Array(root));
  return { now: toMilliseconds(now), policy: checkPolicy(policy), roots: copies };
}

/**
 * Returns the time in milliseconds since 1970.
 *
 * @throws AttestationError: TIME_INVALID when `time` is before 1970 or not a valid time of JavaScript
 */
export function toMilliseconds(time: Date | number): number {
  const value = time instanceof Date ? time.getTime() : time;
  if (typeof value !== 'number' || Number.isNaN(new Date(value).getTime()) || value < 0) {
    const message = '"now" must be a Date or a number of milliseconds since 1970';
    throw new AttestationError('TIME_INVALID', message);
  }
  return value;
}

async function checkSignature(
  { payload, signature }: AttestationDocument,
  chain: Chain,
  passed: Passed,
): Promise<void> {
  const part = findPartOutOfRange(signature);

  if (part !== null) {
    const message = `the ${part} of the signature is not in the range 1 to n - 1 of P-384`;
    throw new AttestationError('COSE_SIGNATURE_RANGE', message);
  }
  passed('signature.range');
  const leaf = chain.at(-1) as Chain[0];
  const valid = await verifyEcdsa({
    curve: 'P-384',
    hash: 'SHA-384',
    publicKey: leaf.publicKey,
    signature,
    message: signedBytes(PROTECTED_HEADER, payload),
  });

  if (!valid) {
    const message = 'the signature does not match the payload and the certificate: the document was changed';
    throw new AttestationError('COSE_SIGNATURE_MISMATCH', message);
  }
  passed('signature');
}
