/**
 * The rules of a verification, in the order in which they are applied. Everything that names a rule reads
 * this list: the checks, the explanation of a verdict, the console, and the table in `README.md`, which `npm
 * run tables` writes.
 */
import type { AttestationCode } from './errors.ts';

interface RuleEntry {
  /** Name of the rule: the subject, and the property that it checks. It never changes. */
  readonly id: string;
  /** A few words, for a list of results. */
  readonly title: string;
  /** Text of one or two sentences, in Markdown. */
  readonly text: string;
  /** The codes of the errors for a document that breaks the rule. */
  readonly codes: readonly AttestationCode[];
  /**
   * Comparison with Sui's verifier. `same`: Sui's verifier has the same rule. `stricter`: Sui's verifier
   * accepts some documents that this rule refuses. `caller`: Sui's verifier leaves the check to the contract.
   */
  readonly sui: 'same' | 'stricter' | 'caller';
  /**
   * The line of Sui's verifier (`nitro_attestation.rs` of the crate fastcrypto, version 0.1.11) that checks
   * this rule, or comes nearest to it. Left out if no line checks it.
   */
  readonly suiLine?: number;
}

/** The rules of a verification, in the order in which they are applied. */
export const RULES = [
  {
    id: 'document.size',
    title: 'at most 32768 bytes',
    text: 'The input is a Uint8Array of 1 to 32768 bytes.',
    codes: ['DOCUMENT_SIZE'],
    sui: 'stricter',
  },
  {
    id: 'document.cbor',
    title: 'well-formed CBOR, in its shortest form',
    text: 'The document outside the payload is well-formed CBOR. Each length and integer has as few bytes as possible.',
    codes: ['CBOR_MALFORMED'],
    sui: 'stricter',
    suiLine: 286,
  },
  {
    id: 'document.lengths',
    title: 'definite lengths only',
    text: 'Nothing outside the payload has an indefinite length.',
    codes: ['CBOR_INDEFINITE_LENGTH'],
    sui: 'stricter',
    suiLine: 286,
  },
  {
    id: 'document.tag',
    title: 'tagged as COSE_Sign1, or not at all',
    text: 'The document has the tag 18 (COSE_Sign1), or no tag.',
    codes: ['COSE_TAG'],
    sui: 'same',
    suiLine: 296,
  },
  {
    id: 'document.shape',
    title: 'four items: bytes, map, bytes, bytes',
    text: 'The document is an array of exactly four items: bytes, map, bytes, bytes.',
    codes: ['COSE_SHAPE'],
    sui: 'stricter',
    suiLine: 311,
  },
  {
    id: 'document.end',
    title: 'nothing follows the document',
    text: 'Nothing follows the document.',
    codes: ['CBOR_TRAILING_BYTES'],
    sui: 'stricter',
    suiLine: 286,
  },
  {
    id: 'header.protected',
    title: 'protected header: ES384',
    text: 'The protected header is `a1013822`, {1: -35} (ES384).',
    codes: ['COSE_PROTECTED_HEADER'],
    sui: 'stricter',
    suiLine: 343,
  },
  {
    id: 'header.unprotected',
    title: 'unprotected header: empty',
    text: 'The unprotected header is empty.',
    codes: ['COSE_UNPROTECTED_HEADER'],
    sui: 'stricter',
    suiLine: 194,
  },
  {
    id: 'payload.size',
    title: 'size of the payload',
    text: 'The payload has 1 to 16383 bytes.',
    codes: ['COSE_PAYLOAD_SIZE'],
    sui: 'same',
    suiLine: 326,
  },
  {
    id: 'signature.size',
    title: 'size of the signature',
    text: 'The signature has 96 bytes.',
    codes: ['COSE_SIGNATURE_SIZE'],
    sui: 'same',
    suiLine: 327,
  },
  {
    id: 'payload.cbor',
    title: 'the payload is well-formed CBOR',
    text: 'The payload is well-formed CBOR. Lengths may be indefinite, strings are UTF-8, and nothing nests deeper than 256 levels.',
    codes: ['CBOR_MALFORMED'],
    sui: 'stricter',
    suiLine: 417,
  },
  {
    id: 'payload.end',
    title: 'nothing follows the payload',
    text: 'Nothing follows the map in the payload.',
    codes: ['CBOR_TRAILING_BYTES'],
    sui: 'stricter',
    suiLine: 417,
  },
  {
    id: 'payload.fields',
    title: 'the payload is a map of named fields',
    text: 'The payload is a map whose keys are strings. Fields that are not listed here are ignored.',
    codes: ['DOCUMENT_FIELD'],
    sui: 'same',
    suiLine: 430,
  },
  {
    id: 'payload.keys',
    title: 'no key occurs twice',
    text: 'Neither the payload nor `pcrs` contains a key twice.',
    codes: ['CBOR_DUPLICATE_KEY'],
    sui: 'stricter',
    suiLine: 440,
  },
  {
    id: 'payload.module_id',
    title: 'module',
    text: '`module_id` is a string that is not empty.',
    codes: ['DOCUMENT_FIELD'],
    sui: 'same',
    suiLine: 463,
  },
  {
    id: 'payload.timestamp',
    title: 'time stamp',
    text: '`timestamp` is an integer from 0 to 8640000000000000 (milliseconds).',
    codes: ['DOCUMENT_FIELD'],
    sui: 'stricter',
    suiLine: 504,
  },
  {
    id: 'payload.digest',
    title: 'digest: SHA384',
    text: '`digest` is "SHA384".',
    codes: ['DOCUMENT_DIGEST'],
    sui: 'same',
    suiLine: 475,
  },
  {
    id: 'payload.pcrs',
    title: 'registers: form and sizes',
    text: '`pcrs` has 1 to 32 entries. Their indexes are 0 to 31, and their values have 32, 48 or 64 bytes.',
    codes: ['DOCUMENT_FIELD', 'DOCUMENT_FIELD_SIZE', 'REGISTER_INDEX', 'REGISTER_SIZE'],
    sui: 'stricter',
    suiLine: 566,
  },
  {
    id: 'payload.certificates',
    title: 'certificates: number and sizes',
    text: '`certificate` has 1 to 1024 bytes. `cabundle` has 1 to 10 certificates of 1 to 1024 bytes.',
    codes: ['DOCUMENT_FIELD', 'DOCUMENT_FIELD_SIZE'],
    sui: 'same',
    suiLine: 656,
  },
  {
    id: 'payload.optional',
    title: 'public key, user data and nonce: form and sizes',
    text: 'Each of `public_key`, `user_data` and `nonce` is bytes, null or left out. `public_key` has at most 1024 bytes, the others at most 512.',
    codes: ['DOCUMENT_FIELD', 'DOCUMENT_FIELD_SIZE'],
    sui: 'stricter',
    suiLine: 521,
  },
  {
    id: 'options',
    title: 'the policy and the other options are valid',
    text: 'The policy names at least one image, and no register of an image is zero. Every property is known and has the right type. The time is valid. This rule is checked before the document is read.',
    codes: ['POLICY_INVALID', 'POLICY_ZERO_IMAGE', 'TIME_INVALID'],
    sui: 'caller',
  },
  {
    id: 'chain.root',
    title: 'the chain starts with a pinned root',
    text: 'The first certificate of `cabundle` is a pinned root, byte for byte.',
    codes: ['CHAIN_ROOT'],
    sui: 'stricter',
    suiLine: 801,
  },
  {
    id: 'certificate.der',
    title: 'certificates: X.509 v3 in DER',
    text: 'Every certificate is X.509 v3 in DER. It contains no extension twice, and no byte follows it.',
    codes: ['CERTIFICATE_MALFORMED'],
    sui: 'stricter',
    suiLine: 732,
  },
  {
    id: 'certificate.validity',
    title: 'certificates: valid at this time',
    text: 'Every certificate, including the root, is valid at the given time. Times are compared in whole seconds, and the first and last second count as valid.',
    codes: ['CERTIFICATE_EXPIRED', 'CERTIFICATE_NOT_YET_VALID'],
    sui: 'same',
    suiLine: 794,
  },
  {
    id: 'chain.issuer',
    title: 'each issuer is the previous subject',
    text: 'The issuer of every certificate is the subject of the previous certificate.',
    codes: ['CHAIN_ISSUER'],
    sui: 'same',
    suiLine: 810,
  },
  {
    id: 'certificate.authority',
    title: 'authorities are marked as such',
    text: 'Every authority has the critical extension basicConstraints with CA set.',
    codes: ['CERTIFICATE_NOT_AUTHORITY'],
    sui: 'same',
    suiLine: 763,
  },
  {
    id: 'certificate.leaf',
    title: 'the leaf is not an authority',
    text: 'The leaf has neither CA nor a path length set.',
    codes: ['CERTIFICATE_LEAF_IS_AUTHORITY'],
    sui: 'same',
    suiLine: 786,
  },
  {
    id: 'certificate.path_length',
    title: 'path lengths',
    text: 'An authority with a pathLenConstraint is followed by at most that many authorities.',
    codes: ['CERTIFICATE_PATH_LENGTH'],
    sui: 'same',
    suiLine: 772,
  },
  {
    id: 'certificate.key_usage',
    title: 'key usages',
    text: 'Every authority has keyUsage with keyCertSign. The leaf has keyUsage with digitalSignature.',
    codes: ['CERTIFICATE_KEY_USAGE'],
    sui: 'same',
    suiLine: 737,
  },
  {
    id: 'certificate.key',
    title: 'keys: P-384 points',
    text: 'Every key is an uncompressed P-384 point.',
    codes: ['CERTIFICATE_KEY'],
    sui: 'stricter',
    suiLine: 805,
  },
  {
    id: 'certificate.algorithm',
    title: 'signed by ECDSA with SHA-384',
    text: 'Every certificate is signed by ECDSA with SHA-384. Its signed part names the same algorithm.',
    codes: ['CERTIFICATE_ALGORITHM'],
    sui: 'stricter',
    suiLine: 817,
  },
  {
    id: 'certificate.extensions',
    title: 'no unknown critical extension',
    text: 'No certificate has an unknown critical extension.',
    codes: ['CERTIFICATE_CRITICAL_EXTENSION'],
    sui: 'stricter',
  },
  {
    id: 'chain.signature',
    title: 'signatures of the certificates',
    text: 'Every certificate is signed by the key of the previous certificate.',
    codes: ['CHAIN_SIGNATURE'],
    sui: 'same',
    suiLine: 817,
  },
  {
    id: 'signature.range',
    title: 'signature of the document: range',
    text: "r and s of the document's signature are from 1 to n - 1.",
    codes: ['COSE_SIGNATURE_RANGE'],
    sui: 'same',
    suiLine: 124,
  },
  {
    id: 'signature',
    title: 'signature of the document',
    text: "The leaf's key signed the payload as it was received.",
    codes: ['COSE_SIGNATURE_MISMATCH'],
    sui: 'same',
    suiLine: 134,
  },
  {
    id: 'policy.debug',
    title: 'debug mode',
    text: 'Registers 0 to 2 are not all zero, unless the policy has `allowDebug`.',
    codes: ['POLICY_DEBUG'],
    sui: 'caller',
  },
  {
    id: 'policy.images',
    title: 'registers of an accepted image',
    text: 'Registers 0, 1 and 2 are those of one accepted image.',
    codes: ['POLICY_PCRS'],
    sui: 'caller',
  },
  {
    id: 'policy.public_key',
    title: 'expected public key',
    text: '`public_key` is the expected key, if the policy names one.',
    codes: ['POLICY_PUBLIC_KEY'],
    sui: 'caller',
  },
  {
    id: 'policy.nonce',
    title: 'expected nonce',
    text: '`nonce` is the expected nonce, if the policy names one.',
    codes: ['POLICY_NONCE'],
    sui: 'caller',
  },
  {
    id: 'policy.user_data',
    title: 'expected user data',
    text: '`user_data` is the expected content, if the policy names one.',
    codes: ['POLICY_USER_DATA'],
    sui: 'caller',
  },
  {
    id: 'policy.age',
    title: 'age',
    text: 'If the policy has `maxAgeMs`, the document is at most that old, and dated at most that far ahead.',
    codes: ['POLICY_TOO_OLD', 'POLICY_FROM_FUTURE'],
    sui: 'caller',
  },
] as const satisfies readonly RuleEntry[];

/** A rule of the list. */
export type Rule = (typeof RULES)[number];
/** Name of a rule, such as `chain.issuer`. It never changes. */
export type RuleId = Rule['id'];

/** Returns the number of a rule in the list, from 1. */
export function getRuleNumber(id: RuleId): number {
  return RULES.findIndex((rule) => rule.id === id) + 1;
}

/**
 * Receives each rule that a document passes, in the order of the list. The first rule that it does not
 * receive is the failed one.
 *
 * @param detail the document's value, if that says more than the rule. Unlimited in length, and not
 *   trustworthy
 */
export type Passed = (rule: RuleId, detail?: string) => void;
