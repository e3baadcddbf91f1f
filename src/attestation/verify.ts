/** Whether an enclave can be trusted, and why not. The rules and their numbers are in `README.md`. */
import { type Chain, checkChain, checkChainSignatures, fingerprint } from './chain.ts';
import { PROTECTED_HEADER, signedBytes } from './cose.ts';
import { type AttestationDocument, decodeAttestation } from './decode.ts';
import { partOutOfRange, verifyEcdsa } from './ecdsa.ts';
import {
  InvalidPolicyError,
  InvalidTimeError,
  SignatureMismatchError,
  SignatureRangeError,
} from './errors.ts';
import { type AttestationPolicy, applyPolicy, checkPolicy, type PolicyResult } from './policy.ts';
import { awsNitroRoot } from './root.ts';

export interface VerifyOptions {
  /** The time to judge by, as a Date or in milliseconds since 1970. */
  readonly now: Date | number;
  /** What the enclave must be. */
  readonly policy: AttestationPolicy;
  /**
   * DER of the roots to trust in place of AWS's. For development: whoever holds such a root's key can attest
   * anything.
   */
  readonly roots?: readonly Uint8Array[];
}

/** A certificate of a verified chain. */
export interface ChainEntry {
  /** `CN=…, O=…` */
  readonly subject: string;
  readonly notBefore: Date;
  /** Its last valid second. */
  readonly notAfter: Date;
}

/** Everything that was checked of a trusted document. */
export interface VerifiedAttestation extends PolicyResult {
  readonly document: AttestationDocument;
  /** Root first, leaf last. */
  readonly chain: readonly ChainEntry[];
  /** SHA-256 of the pinned root's DER, in hexadecimal. */
  readonly rootSha256: string;
  readonly verifiedAt: Date;
  /** The earliest notAfter of the chain: after this second the document no longer verifies. */
  readonly validUntil: Date;
}

const OPTION_KEYS: readonly string[] = ['now', 'policy', 'roots'];

/**
 * Verifies an attestation document: form and sizes, the certificate chain from the pinned root, the
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
 * @throws InvalidPolicyError, ZeroImageError, InvalidTimeError when the options can't be used, before
 *   anything is read
 * @throws a subclass of AttestationError, one for each cause, each with its own `code`
 */
export async function verifyAttestation(
  bytes: Uint8Array,
  options: VerifyOptions,
): Promise<VerifiedAttestation> {
  const { now, policy, roots } = checkOptions(options); // rule 21
  const document = decodeAttestation(bytes); // rules 1 to 20
  const chain = checkChain([...document.cabundle, document.certificate], roots, now); // rules 22 to 32
  await checkChainSignatures(chain); // rule 33
  await checkSignature(document, chain); // rules 34 and 35
  const result = applyPolicy(document, policy, now); // rules 36 to 41
  return {
    ...result,
    document,
    chain: chain.map(({ subjectText, notBefore, notAfter }) => ({
      subject: subjectText,
      notBefore,
      notAfter,
    })),
    rootSha256: fingerprint(chain[0].der),
    verifiedAt: new Date(now),
    validUntil: new Date(Math.min(...chain.map(({ notAfter }) => notAfter.getTime()))),
  };
}

function checkOptions(options: VerifyOptions) {
  if (typeof options !== 'object' || options === null) {
    throw new InvalidPolicyError('verifyAttestation needs { now, policy }');
  }
  const unknown = Object.keys(options).find((key) => !OPTION_KEYS.includes(key));
  if (unknown !== undefined) {
    throw new InvalidPolicyError(`there is no option "${unknown}"; there are: ${OPTION_KEYS.join(', ')}`);
  }
  const { roots = [awsNitroRoot()] } = options;
  if (!Array.isArray(roots) || roots.length === 0 || !roots.every((root) => root instanceof Uint8Array)) {
    throw new InvalidPolicyError('"roots" must be an array of at least one certificate in DER (Uint8Array)');
  }
  return { now: milliseconds(options.now), policy: checkPolicy(options.policy), roots }; // [21]
}

/** @throws InvalidTimeError when `time` is no date that JavaScript can tell, from 1970 on */
export function milliseconds(time: Date | number): number {
  const value = time instanceof Date ? time.getTime() : time;
  if (typeof value !== 'number' || Number.isNaN(new Date(value).getTime()) || value < 0) {
    throw new InvalidTimeError();
  }
  return value;
}

async function checkSignature({ payload, signature }: AttestationDocument, chain: Chain): Promise<void> {
  const part = partOutOfRange(signature);
  if (part !== null) throw new SignatureRangeError(part); // [34]
  const leaf = chain.at(-1) as Chain[0];
  const valid = await verifyEcdsa({
    curve: 'P-384',
    hash: 'SHA-384',
    publicKey: leaf.publicKey,
    signature,
    message: signedBytes(PROTECTED_HEADER, payload),
  });
  if (!valid) throw new SignatureMismatchError(); // [35]
}
