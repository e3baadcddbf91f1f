/** The verdict on a document, rule by rule, for people to look at. */
import type { AttestationDocument } from './decode.ts';
import { AttestationError } from './errors.ts';
import {
  type ChainEntry,
  checkOptions,
  judge,
  type VerifiedAttestation,
  type VerifyOptions,
} from './verify.ts';

/** Of each rule, in the order of the table in `README.md`. */
const TITLES = [
  'at most 32768 bytes',
  'well-formed CBOR, in its shortest form',
  'definite lengths only',
  'tagged as COSE_Sign1, or not at all',
  'four items: bytes, map, bytes, bytes',
  'nothing follows the document',
  'protected header: ES384',
  'unprotected header: empty',
  'size of the payload',
  'size of the signature',
  'the payload is well-formed CBOR',
  'nothing follows the payload',
  'the payload is a map of named fields',
  'no key occurs twice',
  'module',
  'time stamp',
  'digest: SHA384',
  'registers: form and sizes',
  'certificates: number and sizes',
  'public key, user data and nonce: form and sizes',
  'the policy and the other options are valid',
  'the chain starts with a pinned root',
  'certificates: X.509 v3 in DER',
  'certificates: valid at this time',
  'issuers are the subjects before them',
  'authorities are marked as such',
  'the leaf is no authority',
  'path lengths',
  'key usages',
  'keys: P-384 points',
  'signed by ECDSA with SHA-384',
  'no unknown critical extension',
  'signatures of the certificates',
  'signature of the document: range',
  'signature of the document',
  'debug mode',
  'registers of an accepted image',
  'expected public key',
  'expected nonce',
  'expected user data',
  'age',
] as const;

/** Rule 21 is about the options alone: it passed before anything was read. */
const OPTIONS_RULE = 21;
/** The only code whose rule shares its step with the rule before it: the reader checks both, byte by byte. */
const INDEFINITE_LENGTH_RULE = 3;
/** In UTF-16 code units. */
const MAX_FOUND = 400;
/** Control, format and unpaired characters, and separators of lines: what could disturb a terminal or a page. */
const UNSAFE = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]+/gu;

/** What became of one rule. */
export interface RuleResult {
  /** Its number in the table of `README.md`, from 1. */
  readonly rule: number;
  /** A few words. */
  readonly title: string;
  /** A rule of the policy for which the policy doesn't ask is passed, and `found` is "not asked". */
  readonly state: 'passed' | 'failed' | 'not reached';
  /**
   * What the document has, or why it is refused: one line without control characters, of 400 characters at most.
   * Left out where it would repeat the rule. Its content is the sender's unless the document is `verified`.
   */
  readonly found?: string;
}

interface Explanation {
  /** All rules in order. */
  readonly rules: readonly RuleResult[];
  /** As soon as it could be decoded. Don't trust anything in it without `verified`. */
  readonly document?: AttestationDocument;
  /** Root first, as soon as it starts with a pinned root and could be parsed: also when it has expired. */
  readonly chain?: readonly ChainEntry[];
}

/** What became of each rule, and either the verified document or the error that `verifyAttestation` throws. */
export type AttestationExplanation =
  | (Explanation & { readonly verified: VerifiedAttestation; readonly error?: never })
  | (Explanation & { readonly error: AttestationError; readonly verified?: never });

/**
 * Verifies a document as `verifyAttestation` does, by the same code, and returns what became of each rule: those
 * before the failed one passed, those after it were not reached, except rule 21, which is about the options.
 *
 * Exported as `sui-enclave/attestation`.
 *
 * @param bytes the binary document, not its hexadecimal form
 * @throws AttestationError when an option is invalid, as `verifyAttestation` does; never for a document
 */
export async function explainAttestation(
  bytes: Uint8Array,
  options: VerifyOptions,
): Promise<AttestationExplanation> {
  const checked = checkOptions(options);
  const { policy, roots } = checked;
  const passed = new Map<number, string | undefined>();
  passed.set(OPTIONS_RULE, `images: ${policy.images.length}, roots: ${roots.length}`);
  let document: AttestationDocument | undefined;
  let chain: readonly ChainEntry[] | undefined;
  const reached = () => ({ ...(document && { document }), ...(chain && { chain }) });
  try {
    const verified = await judge(bytes, checked, {
      passed: (rule, found) => passed.set(rule, found),
      decoded: (decoded) => {
        document = decoded;
      },
      parsed: (parsed) => {
        chain = parsed;
      },
    });
    return { rules: rows(passed), ...reached(), verified };
  } catch (error) {
    if (!(error instanceof AttestationError)) throw error;
    return { rules: rows(passed, error), ...reached(), error };
  }
}

function rows(passed: ReadonlyMap<number, string | undefined>, error?: AttestationError): RuleResult[] {
  const numbers = TITLES.map((_, index) => index + 1);
  const failed =
    error?.code === 'CBOR_INDEFINITE_LENGTH'
      ? INDEFINITE_LENGTH_RULE
      : (numbers.find((rule) => !passed.has(rule)) ?? TITLES.length + 1);
  return TITLES.map((title, index) => {
    const rule = index + 1;
    if (rule === failed && error) return { rule, title, state: 'failed', found: oneLine(error.message) };
    if (rule > failed && rule !== OPTIONS_RULE) return { rule, title, state: 'not reached' };
    const found = passed.get(rule);
    return { rule, title, state: 'passed', ...(found === undefined ? {} : { found: oneLine(found) }) };
  });
}

/** The text on one line, without unsafe characters, and cut where it is too long. */
function oneLine(text: string): string {
  const line = text.slice(0, 2 * MAX_FOUND).replace(UNSAFE, ' ');
  return line.length > MAX_FOUND || text.length > 2 * MAX_FOUND ? `${line.slice(0, MAX_FOUND - 1)}…` : line;
}
