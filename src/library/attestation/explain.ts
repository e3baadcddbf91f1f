/** Explains the verdict on a document to people, by the outcome of each rule. */
import type { AttestationDocument } from './decode.ts';
import { AttestationError } from './errors.ts';
import { RULES, type RuleId } from './rules.ts';
import {
  type ChainEntry,
  checkOptions,
  judge,
  type VerifiedAttestation,
  type VerifyOptions,
} from './verify.ts';

/**
 * The code of the rule `document.lengths`. The CBOR reader checks this rule and the previous one together,
 * byte by byte, so only the code tells which of the two failed.
 */
const INDEFINITE_LENGTH = 'CBOR_INDEFINITE_LENGTH';
/** Maximum length of `found`, in UTF-16 code units. */
const MAX_FOUND = 400;
/**
 * Characters that could disturb a terminal or a page: control and format characters, unpaired surrogates, and
 * separators of lines and paragraphs.
 */
const UNSAFE = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]+/gu;

/** The outcome of one rule. */
export interface RuleResult {
  /** The number of the rule in the table of `README.md`, from 1. */
  readonly rule: number;
  /** The name of the rule, such as `chain.issuer`. It never changes, unlike its number. */
  readonly id: RuleId;
  /** The rule in a few words, for a list. */
  readonly title: string;
  /**
   * The outcome. A rule about a property that the policy lacks counts as passed, and its `found` is "not
   * asked".
   */
  readonly state: 'passed' | 'failed' | 'not reached';
  /**
   * The document's value, or the reason of the refusal: one line of at most 400 characters, without control
   * characters. Left out where it would repeat the rule. Don't trust it unless the document is
   * `verified`.
   */
  readonly found?: string;
}

interface Explanation {
  /** All rules in order. */
  readonly rules: readonly RuleResult[];
  /** The decoded document, if it could be decoded. Don't trust anything in it without `verified`. */
  readonly document?: AttestationDocument;
  /** The chain, root first, if it starts with a pinned root and could be parsed, even if it has expired. */
  readonly chain?: readonly ChainEntry[];
}

/**
 * The outcome of each rule, and either the verified document or the error that `verifyAttestation` throws.
 */
export type AttestationExplanation =
  | (Explanation & { readonly verified: VerifiedAttestation; readonly error?: never })
  | (Explanation & { readonly error: AttestationError; readonly verified?: never });

/**
 * Verifies a document with the same code as `verifyAttestation`, and returns the outcome of each rule. The
 * rules before the failed one passed. Those after it were not reached, except `options`, which is checked
 * first.
 *
 * Exported as `sui-enclave/attestation`.
 *
 * @param bytes the binary document, not its hexadecimal form
 * @throws AttestationError only when an option is invalid, never because of the document
 * @example
 * const { rules, error } = await explainAttestation(bytes, { now: Date.now(), policy: { images: [image] } });
 * for (const { id, state } of rules) console.log(state, id);
 * if (error) console.log(error.code, error.message);
 */
export async function explainAttestation(
  bytes: Uint8Array,
  options: VerifyOptions,
): Promise<AttestationExplanation> {
  const checked = checkOptions(options);
  const { policy, roots } = checked;
  const passed = new Map<RuleId, string | undefined>();
  passed.set('options', `images: ${policy.images.length}, roots: ${roots.length}`);
  let document: AttestationDocument | undefined;
  let chain: readonly ChainEntry[] | undefined;
  const collectParts = () => ({ ...(document && { document }), ...(chain && { chain }) });
  try {
    const verified = await judge(bytes, checked, {
      passed: (rule, detail) => passed.set(rule, detail),
      decoded: (decoded) => {
        document = decoded;
      },
      parsed: (parsed) => {
        chain = parsed;
      },
    });
    return { rules: listOutcomes(passed), ...collectParts(), verified };
  } catch (error) {
    if (!(error instanceof AttestationError)) throw error;
    return { rules: listOutcomes(passed, error), ...collectParts(), error };
  }
}

function listOutcomes(
  passed: ReadonlyMap<RuleId, string | undefined>,
  error?: AttestationError,
): RuleResult[] {
  const failedIndex = error ? findFailedRule(passed, error) : RULES.length;
  return RULES.map(({ id, title }, index): RuleResult => {
    const rule = { rule: index + 1, id, title };
    if (index === failedIndex && error) return { ...rule, state: 'failed', found: formatLine(error.message) };
    if (index > failedIndex && !passed.has(id)) return { ...rule, state: 'not reached' };
    const detail = passed.get(id);
    return detail === undefined
      ? { ...rule, state: 'passed' }
      : { ...rule, state: 'passed', found: formatLine(detail) };
  });
}

/** Returns the failed rule's index in the list. */
function findFailedRule(passed: ReadonlyMap<RuleId, string | undefined>, { code }: AttestationError): number {
  const isIndefinite = code === INDEFINITE_LENGTH;
  return RULES.findIndex(({ id }) => (isIndefinite ? id === 'document.lengths' : !passed.has(id)));
}

/** Returns the text on one line, without unsafe characters, and cut if it is too long. */
function formatLine(text: string): string {
  const line = text.slice(0, 2 * MAX_FOUND).replace(UNSAFE, ' ');
  return line.length > MAX_FOUND || text.length > 2 * MAX_FOUND ? `${line.slice(0, MAX_FOUND - 1)}…` : line;
}
