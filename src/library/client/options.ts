/** Checks the options of the client and of its calls. */
import type { AttestationPolicy, Image } from '../attestation/index.ts';
import { isTimeout, TIMEOUT_RANGE } from '../fetch.ts';
import { invalidOption } from './http.ts';

/**
 * The requirements of a client: a policy without the nonce, which the client makes. The policy names
 * either the images that may answer, or a release that `verifyRelease` of `sui-enclave/release` has verified.
 * In the latter case, the release's image may answer.
 */
export type ClientPolicy =
  | Omit<AttestationPolicy, 'nonce'>
  | (Omit<AttestationPolicy, 'nonce' | 'images'> & { readonly release: { readonly image: Image } });

/** Options of a client of an enclave. */
export interface EnclaveClientOptions {
  /**
   * The requirements that the enclave must meet. The client makes the nonce itself. Set `publicKey` to accept
   * only one key, such as the one that is registered on chain.
   */
  readonly policy: ClientPolicy;
  /** DER of the roots to trust instead of AWS's, for development. */
  readonly roots?: readonly Uint8Array[];
  /**
   * Seals every request to the attested enclave, and accepts only answers that the enclave sealed for the
   * request. Neither the host nor a proxy can read or change requests and answers. Default: false.
   */
  readonly sealed?: boolean;
  /**
   * Sealed requests are padded to a multiple of this number of bytes, at most 65536. Default: 0, no padding.
   */
  readonly paddingBytes?: number;
  /** Maximum age of an attested key, in milliseconds; an older key is attested again. Default: 1 hour. */
  readonly pinMaxAgeMs?: number;
  /**
   * The maximum age of the signed `timestampMs` of an answer, by `now`. Default: 1 hour. `Infinity` is for
   * data that doesn't age. The timestamp may always be up to a minute ahead.
   */
  readonly maxAnswerAgeMs?: number;
  /** Time limit of one request, in milliseconds; an idempotent call may make several. Default: 10 seconds. */
  readonly timeoutMs?: number;
  /** The current time in milliseconds since 1970. Default: Date.now. */
  readonly now?: () => number;
  /** Function that sends requests. Default: the platform's own. */
  readonly fetch?: typeof globalThis.fetch;
}

/** Options of `EnclaveClient.forConfig`, whose policy comes from the chain. */
export interface ConfigClientOptions extends Omit<EnclaveClientOptions, 'policy'> {
  /** Maximum age of the cached config and registrations, in milliseconds. Default: 1 minute. */
  readonly configMaxAgeMs?: number;
  /** Ends `forConfig` itself early, which then rejects with the signal's reason. */
  readonly signal?: AbortSignal;
}

/** Options of an attestation or a call: a signal that ends it. */
export interface AttestOptions {
  /** Ends the attestation or call early, which then rejects with the signal's reason. */
  readonly signal?: AbortSignal;
}

/** Options of one call whose answer is not signed. */
export interface RequestOptions extends AttestOptions {
  /**
   * Whether repeating the call is harmless. If so, the client repeats it up to four times when the connection
   * or a gateway fails, or an unknown enclave answers. Any other call is sent once, and `mayHaveExecuted`
   * says what a failure means. Default: false.
   */
  readonly idempotent?: boolean;
}

/** Options of one call. */
export interface CallOptions<Input> extends RequestOptions {
  /**
   * Properties that the signed data must have. Pass those that the answer repeats from the request: a host
   * could otherwise send a genuine answer to another request. A u64 may be a number, a bigint or a decimal
   * string.
   */
  readonly expect?: Readonly<Partial<Input>>;
}

const HOUR = 3_600_000;
const MAX_PADDING = 65_536;
const OPTION_KEYS = [
  'policy',
  'roots',
  'sealed',
  'paddingBytes',
  'pinMaxAgeMs',
  'maxAnswerAgeMs',
  'timeoutMs',
  'now',
  'fetch',
];

/** Checks the options, and adds the defaults. @throws ClientError: CLIENT_OPTION */
export function readOptions(options: EnclaveClientOptions) {
  requireKnown(options ?? {}, OPTION_KEYS);
  const { roots, fetch, now = Date.now, maxAnswerAgeMs = HOUR } = options ?? {};
  // A value of undefined or null is a mistake too: requests must not be sent unsealed because of it.
  const sealed = options !== undefined && 'sealed' in options ? options.sealed : false;
  if (typeof sealed !== 'boolean') throw invalidOption('"sealed" must be true or false');
  const padding = checkPadding(options?.paddingBytes, sealed);
  const pinMaxAgeMs = checkDuration('pinMaxAgeMs', options?.pinMaxAgeMs ?? HOUR);
  if (typeof maxAnswerAgeMs !== 'number' || !(maxAnswerAgeMs > 0)) {
    throw invalidOption('"maxAnswerAgeMs" must be a number of milliseconds over 0, or Infinity');
  }
  const timeoutMs = checkDuration('timeoutMs', options?.timeoutMs ?? 10_000);
  return { roots: copyRoots(roots), sealed, padding, pinMaxAgeMs, maxAnswerAgeMs, now, fetch, timeoutMs };
}

export type CheckedOptions = ReturnType<typeof readOptions>;

/** The checked options of a call. */
export interface CheckedCall {
  readonly expect: Readonly<Record<string, unknown>>;
  readonly idempotent: boolean;
  readonly signal: AbortSignal | undefined;
}

/**
 * Checks and copies the options of a call.
 *
 * @param keys names of the options that the call accepts
 * @throws ClientError: CLIENT_OPTION
 */
export function readCallOptions(
  options: RequestOptions & { readonly expect?: unknown },
  keys: readonly (keyof CallOptions<unknown>)[],
): CheckedCall {
  if (typeof options !== 'object' || options === null) {
    throw invalidOption('the options of a call must be an object such as { idempotent: true }');
  }
  requireKnown(options, keys);
  const { expect = {}, idempotent = false, signal } = options;
  if (typeof expect !== 'object' || expect === null || Array.isArray(expect)) {
    throw invalidOption('"expect" must be an object with properties of the signed data');
  }
  if (typeof idempotent !== 'boolean') throw invalidOption('"idempotent" must be true or false');
  if (signal !== undefined && !(signal instanceof AbortSignal)) {
    throw invalidOption('"signal" must be an AbortSignal');
  }
  // The copy keeps what the caller expected at the time of the call.
  return { expect: { ...expect } as Readonly<Record<string, unknown>>, idempotent, signal };
}

/** Refuses unknown options: a misspelt option would silently leave out a check. */
export function requireKnown(options: object, keys: readonly string[]): void {
  const unknown = Object.keys(options).find((key) => !keys.includes(key));
  if (unknown !== undefined) {
    throw invalidOption(`unknown option "${unknown}"; known ones: ${keys.join(', ')}`);
  }
}

/** Copies the roots, since their owner may change them later. An invalid root is refused when it is used. */
function copyRoots(roots: EnclaveClientOptions['roots']): EnclaveClientOptions['roots'] {
  if (!Array.isArray(roots)) return roots;
  return roots.map((root) => (root instanceof Uint8Array ? new Uint8Array(root) : root));
}

function checkPadding(paddingBytes: number | undefined = 0, sealed: boolean): number {
  if (!(Number.isInteger(paddingBytes) && paddingBytes >= 0 && paddingBytes <= MAX_PADDING)) {
    throw invalidOption(`"paddingBytes" must be an integer from 0 to ${MAX_PADDING}`);
  }
  if (paddingBytes > 0 && !sealed) throw invalidOption('"paddingBytes" needs { sealed: true }');
  return paddingBytes;
}

export function checkDuration(name: string, value: unknown): number {
  if (!isTimeout(value)) throw invalidOption(`"${name}" must be ${TIMEOUT_RANGE}`);
  return value;
}
