import { equalBytes } from '@noble/curves/utils.js';
import {
  AttestationError,
  type AttestationPolicy,
  readUserData,
  type VerifiedAttestation,
  verifyAttestation,
} from '../attestation/index.ts';
import { checkPolicy } from '../attestation/policy.ts';
import { isTimeout, TIMEOUT_RANGE } from '../fetch.ts';
import type { SignedType } from '../wire/intent.ts';
import { type ReceivedAnswer, readAnswer, unexpectedProperty } from './answer.ts';
import { attestedKey, fetchAttestation } from './attestation.ts';
import { verifyEd25519 } from './ed25519.ts';
import { AnswerTimeError, ClientError, UnauthenticatedError, UnexpectedAnswerError } from './errors.ts';
import { baseUrl, endpointPath, type Http, invalidOption, requestJson } from './http.ts';
import { requestSealed } from './sealed.ts';

export interface EnclaveClientOptions {
  /**
   * What the enclave must be. The client makes the nonce itself. Set `publicKey` to accept only one key, such as
   * the one that is registered on chain.
   */
  readonly policy: Omit<AttestationPolicy, 'nonce'>;
  /** DER of the roots to trust instead of AWS's, for development. */
  readonly roots?: readonly Uint8Array[];
  /**
   * Seals every request to the attested enclave, and accepts only answers that it sealed for them: neither the host nor
   * a proxy can read or change either. Default: false.
   */
  readonly sealed?: boolean;
  /** Sealed requests are padded to a multiple of so many bytes, up to 65536, to hide their length. Default: 0, none. */
  readonly paddingBytes?: number;
  /** How long an attested key is used before the enclave is attested again. Default: 1 hour. */
  readonly pinMaxAgeMs?: number;
  /**
   * The maximum age of the signed `timestampMs` of an answer, by `now`. Default: 1 hour. `Infinity` is for data that
   * doesn't age. The timestamp may always be up to a minute ahead.
   */
  readonly maxAnswerAgeMs?: number;
  /** For one request. Default: 10 seconds. */
  readonly timeoutMs?: number;
  /** The current time in milliseconds since 1970. Default: Date.now. */
  readonly now?: () => number;
  readonly fetch?: typeof globalThis.fetch;
}

/** For one call. */
export interface CallOptions<Input> {
  /**
   * Properties that the signed data must have: those in which the answer repeats the request, since a host can send
   * the genuine answer to another request. A u64 may be a number, a bigint or a decimal string.
   */
  readonly expect?: Readonly<Partial<Input>>;
}

/** An answer that the attested key signed. */
export interface VerifiedAnswer<Data> {
  /** Parsed from the signed bytes: nothing in it is unsigned. */
  readonly data: Data;
  readonly intent: number;
  /** Milliseconds since 1970: the time of the data, as set by the application. */
  readonly timestampMs: bigint;
  /** 64 bytes, as a contract expects it. */
  readonly signature: Uint8Array;
  /** The attested key that signed, 32 bytes. */
  readonly publicKey: Uint8Array;
}

/** The key of an attested enclave. */
interface Pin {
  readonly publicKey: Uint8Array;
  /** Undefined unless requests are sealed. */
  readonly sealingKey: Uint8Array | undefined;
  readonly attestation: VerifiedAttestation;
  readonly at: number;
}

const HOUR = 3_600_000;
/** The server has the same limit. */
const MAX_AHEAD_MS = 60_000;
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
const CALL_OPTION_KEYS = ['expect'];

/**
 * Talks to an enclave, and trusts only what it proves: the key comes from an attestation document that answers a
 * fresh random nonce and meets the policy, and that key must have signed every answer.
 *
 * Exported as `sui-enclave/client`.
 *
 * @example
 * const WeatherResponse = signedType(0, bcs.struct('WeatherResponse', { location: text, temperature: u64 }));
 * const client = new EnclaveClient('https://weather.example', { policy: { images: [image] } });
 * const asked = { location: 'San Francisco' };
 * const { data, signature } = await client.processData(asked, WeatherResponse, { expect: asked });
 */
export class EnclaveClient {
  readonly #http: Http;
  readonly #policy: AttestationPolicy;
  readonly #roots: readonly Uint8Array[] | undefined;
  readonly #sealed: boolean;
  readonly #padding: number;
  readonly #pinMaxAgeMs: number;
  readonly #maxAnswerAgeMs: number;
  readonly #now: () => number;
  #pin: Pin | undefined;
  #attesting: Promise<Pin> | undefined;

  /**
   * @param url base URL of the enclave's endpoints: a path is kept, a query is dropped
   * @throws AttestationError: POLICY_INVALID, POLICY_ZERO_IMAGE; ClientError: CLIENT_OPTION
   */
  constructor(url: string | URL, options: EnclaveClientOptions) {
    requireKnown(options ?? {}, OPTION_KEYS);
    this.#policy = checkPolicy(options?.policy);
    if ('nonce' in this.#policy) {
      const message = 'the client makes a fresh nonce for each attestation: leave "nonce" out of the policy';
      throw new AttestationError('POLICY_INVALID', message);
    }
    this.#roots = options.roots;
    // A given undefined or null is a mistake too: requests must not be sent unsealed because of it.
    this.#sealed = 'sealed' in options ? options.sealed : false;
    if (typeof this.#sealed !== 'boolean') throw invalidOption('"sealed" must be true or false');
    this.#padding = paddingOf(options);
    this.#pinMaxAgeMs = duration('pinMaxAgeMs', options.pinMaxAgeMs ?? HOUR);
    this.#maxAnswerAgeMs = options.maxAnswerAgeMs ?? HOUR;
    if (typeof this.#maxAnswerAgeMs !== 'number' || !(this.#maxAnswerAgeMs > 0)) {
      throw invalidOption('"maxAnswerAgeMs" must be a number of milliseconds over 0, or Infinity');
    }
    this.#now = options.now ?? Date.now;
    this.#http = {
      base: baseUrl(url),
      fetch: options.fetch,
      timeoutMs: duration('timeoutMs', options.timeoutMs ?? 10_000),
    };
  }

  /**
   * Attests the enclave now, even if a key is pinned, and pins its key. On failure no key is pinned.
   *
   * @throws ClientError when there is no document, AttestationError when it can't be trusted
   */
  async attest(): Promise<VerifiedAttestation> {
    this.#pin = undefined;
    return (await this.#freshPin()).attestation;
  }

  /**
   * Sends `payload` to `/process_data` and returns what the enclave signed.
   *
   * If the pinned key is too old, or did not sign the answer because the enclave has restarted, the client attests
   * the enclave again, and the new key must have signed the answer.
   *
   * @param payload what the application's endpoint accepts, as JSON
   * @param schema the type that the application signs: the bytes are rebuilt with it
   * @param options `expect`: the properties in which the signed data must repeat the request
   * @throws ClientError, AttestationError
   */
  async processData<Data, Input>(
    payload: unknown,
    schema: SignedType<Data, Input>,
    options: CallOptions<NoInfer<Input>> = {},
  ): Promise<VerifiedAnswer<Data>> {
    return await this.call('process_data', { payload }, schema, options);
  }

  /**
   * Calls an endpoint of the application, whose answers are signed, like `processData` calls `/process_data`.
   *
   * @param path such as `/draw`
   * @param body sent as JSON by POST; undefined for an endpoint that is called by GET
   * @throws ClientError, AttestationError
   */
  async call<Data, Input>(
    path: string,
    body: unknown,
    schema: SignedType<Data, Input>,
    options: CallOptions<NoInfer<Input>> = {},
  ): Promise<VerifiedAnswer<Data>> {
    const endpoint = endpointPath(this.#http, path);
    const expect = expectOf(options);
    const pin = await this.#validPin();
    const [name = endpoint] = endpoint.split('?');
    const received = await this.#request(endpoint, body, pin);
    const answer = readAnswer(name, received, schema);
    const signer = await this.#signerOf(answer, pin);
    this.#requireCurrent(answer.timestampMs);
    const property = unexpectedProperty(answer, schema, expect);
    if (property !== undefined) throw new UnexpectedAnswerError(property);
    const { data, intent, timestampMs, signature } = answer;
    return { data, intent, timestampMs, signature, publicKey: signer.publicKey.slice() };
  }

  /**
   * Calls an endpoint whose answers are not signed, such as that of a salt service, with a sealed request. The answer
   * comes from the attested enclave, but proves nothing to others. Only with the option `sealed`.
   *
   * @param path such as `/get_salt`
   * @param body as for `call`
   * @returns the JSON of the answer, which has any form
   * @throws ClientError, AttestationError
   */
  async ask(path: string, body: unknown): Promise<unknown> {
    if (!this.#sealed) {
      throw invalidOption('"ask" needs { sealed: true }: otherwise anyone on the way may write the answer');
    }
    return await this.#request(endpointPath(this.#http, path), body, await this.#validPin());
  }

  async #request(endpoint: string, body: unknown, pin: Pin): Promise<unknown> {
    if (pin.sealingKey === undefined) return await requestJson(this.#http, endpoint, body);
    const method = body === undefined ? 'GET' : 'POST';
    const send = (sealingKey: Uint8Array) =>
      requestSealed(this.#http, sealingKey, { method, path: `/${endpoint}`, body }, this.#padding);
    try {
      return await send(pin.sealingKey);
    } catch (error) {
      if (!(error instanceof UnauthenticatedError) || error.serverCode !== 'SEALED_KEY_UNKNOWN') throw error;
      // Anyone may claim that the enclave has another key. Only a new attestation that shows one makes a difference.
      if (this.#pin === pin) this.#pin = undefined;
      const { sealingKey } = await this.#validPin();
      if (sealingKey === undefined || equalBytes(sealingKey, pin.sealingKey)) throw error;
      return await send(sealingKey);
    }
  }

  /** The pin that signed the answer: the given one, or that of a new attestation. @throws ClientError: CLIENT_SIGNATURE */
  async #signerOf(answer: ReceivedAnswer<unknown>, pin: Pin): Promise<Pin> {
    if (await isSignedBy(pin, answer)) return pin;
    // Another call may have attested the enclave in the meantime.
    if (this.#pin === pin) this.#pin = undefined;
    const newPin = await this.#validPin();
    if (await isSignedBy(newPin, answer)) return newPin;
    const message =
      "the answer's signature does not match its data and the attested key: do not use the answer";
    throw new ClientError('CLIENT_SIGNATURE', message);
  }

  #requireCurrent(timestampMs: bigint): void {
    const age = this.#now() - Number(timestampMs);
    if (age < -MAX_AHEAD_MS) throw new AnswerTimeError('CLIENT_FUTURE', timestampMs, MAX_AHEAD_MS);
    // Negated, so that a clock that returns NaN refuses every answer.
    if (!(age <= this.#maxAnswerAgeMs)) {
      throw new AnswerTimeError('CLIENT_STALE', timestampMs, this.#maxAnswerAgeMs);
    }
  }

  async #validPin(): Promise<Pin> {
    if (this.#pin !== undefined) {
      const age = this.#now() - this.#pin.at;
      // After the clock was set back, the age is unknown.
      if (age >= 0 && age <= this.#pinMaxAgeMs) return this.#pin;
    }
    return await this.#freshPin();
  }

  /** Concurrent calls share one attestation. */
  async #freshPin(): Promise<Pin> {
    this.#attesting ??= this.#attestOnce().finally(() => {
      this.#attesting = undefined;
    });
    return await this.#attesting;
  }

  async #attestOnce(): Promise<Pin> {
    this.#pin = undefined;
    const { document, nonce } = await fetchAttestation(this.#http);
    const at = this.#now();
    const attestation = await verifyAttestation(document, {
      now: at,
      policy: { ...this.#policy, nonce },
      ...(this.#roots && { roots: this.#roots }),
    });
    const sealingKey = this.#sealed ? readUserData(attestation.document).sealingKey : undefined;
    this.#pin = { publicKey: attestedKey(attestation), sealingKey, attestation, at };
    return this.#pin;
  }
}

async function isSignedBy(pin: Pin, { signature, signedBytes }: ReceivedAnswer<unknown>): Promise<boolean> {
  return await verifyEd25519(pin.publicKey, signature, signedBytes);
}

/** A misspelt option would silently leave out a check. */
function requireKnown(options: object, keys: readonly string[]): void {
  const unknown = Object.keys(options).find((key) => !keys.includes(key));
  if (unknown !== undefined) {
    throw invalidOption(`unknown option "${unknown}"; known ones: ${keys.join(', ')}`);
  }
}

function expectOf<Input>(options: CallOptions<Input>): Readonly<Record<string, unknown>> {
  if (typeof options !== 'object' || options === null) {
    throw invalidOption('the options of a call must be an object such as { expect: { … } }');
  }
  requireKnown(options, CALL_OPTION_KEYS);
  const { expect = {} } = options;
  if (typeof expect !== 'object' || expect === null || Array.isArray(expect)) {
    throw invalidOption('"expect" must be an object with properties of the signed data');
  }
  return expect as Readonly<Record<string, unknown>>;
}

function paddingOf({ paddingBytes = 0, sealed }: EnclaveClientOptions): number {
  if (!(Number.isInteger(paddingBytes) && paddingBytes >= 0 && paddingBytes <= MAX_PADDING)) {
    throw invalidOption(`"paddingBytes" must be an integer from 0 to ${MAX_PADDING}`);
  }
  if (paddingBytes > 0 && sealed !== true) throw invalidOption('"paddingBytes" needs { sealed: true }');
  return paddingBytes;
}

function duration(name: string, value: unknown): number {
  if (!isTimeout(value)) throw invalidOption(`"${name}" must be ${TIMEOUT_RANGE}`);
  return value;
}
