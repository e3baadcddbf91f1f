import {
  AttestationError,
  type AttestationPolicy,
  type VerifiedAttestation,
  verifyAttestation,
} from '../attestation/index.ts';
import { checkPolicy } from '../attestation/policy.ts';
import { isTimeout, TIMEOUT_RANGE } from '../fetch.ts';
import type { SignedType } from '../wire/intent.ts';
import { type ReceivedAnswer, readAnswer, unexpectedMember } from './answer.ts';
import { attestedKey, fetchAttestation } from './attestation.ts';
import { verifyEd25519 } from './ed25519.ts';
import {
  AnswerSignatureError,
  FutureAnswerError,
  InvalidClientOptionError,
  StaleAnswerError,
  UnexpectedAnswerError,
} from './errors.ts';
import { baseUrl, endpointPath, type Http, requestJson } from './http.ts';

export interface EnclaveClientOptions {
  /**
   * What the enclave must be. The nonce is the client's own; name `publicKey` to accept one key only, such as
   * the one that is registered on the chain.
   */
  readonly policy: Omit<AttestationPolicy, 'nonce'>;
  /** DER of the roots to trust in place of AWS's: for development. */
  readonly roots?: readonly Uint8Array[];
  /** How long an attested key is used before the enclave is attested again: an hour unless told. */
  readonly pinMaxAgeMs?: number;
  /**
   * How old the signed `timestampMs` of an answer may be, by `now`: an hour unless told; `Infinity` for data that
   * does not age. It may be a minute ahead in any case.
   */
  readonly maxAnswerAgeMs?: number;
  /** For one request: 10 seconds unless told. */
  readonly timeoutMs?: number;
  /** The clock, in milliseconds since 1970. */
  readonly now?: () => number;
  readonly fetch?: typeof globalThis.fetch;
}

/** For one call. */
export interface CallOptions<Input> {
  /**
   * Members of the signed data that must be equal to these: what the answer must repeat of the request, since a host
   * can send the genuine answer to another one. A u64 may be a number, a bigint or decimal text.
   */
  readonly expect?: Readonly<Partial<Input>>;
}

/** An answer that the attested key signed. */
export interface VerifiedAnswer<Data> {
  /** What was signed, read back from its bytes: nothing in it is unsigned. */
  readonly data: Data;
  readonly intent: number;
  /** Milliseconds since 1970: of the data itself, as the application gave it. */
  readonly timestampMs: bigint;
  /** 64 bytes, as a contract takes it. */
  readonly signature: Uint8Array;
  /** The attested key that signed, 32 bytes. */
  readonly publicKey: Uint8Array;
}

/** A key that an enclave was attested with. */
interface Pin {
  readonly publicKey: Uint8Array;
  readonly attestation: VerifiedAttestation;
  readonly at: number;
}

const HOUR = 3_600_000;
/** As far as the server itself lets a reading be ahead. */
const MAX_AHEAD_MS = 60_000;
const OPTION_KEYS = ['policy', 'roots', 'pinMaxAgeMs', 'maxAnswerAgeMs', 'timeoutMs', 'now', 'fetch'];
const CALL_OPTION_KEYS = ['expect'];

/**
 * Talks to an enclave and believes it only as far as it is attested: the key comes from a document that
 * answers a fresh random nonce and meets the policy, and every answer must be signed by that key.
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
  readonly #pinMaxAgeMs: number;
  readonly #maxAnswerAgeMs: number;
  readonly #now: () => number;
  #pin: Pin | undefined;
  #attesting: Promise<Pin> | undefined;

  /**
   * @param url where the enclave's endpoints are; a path is kept, a query is not
   * @throws InvalidPolicyError, InvalidClientOptionError
   */
  constructor(url: string | URL, options: EnclaveClientOptions) {
    requireKnown(options ?? {}, OPTION_KEYS);
    this.#policy = checkPolicy(options?.policy);
    if ('nonce' in this.#policy) {
      const message = 'the client makes a fresh nonce for each attestation: leave "nonce" out of the policy';
      throw new AttestationError('POLICY_INVALID', message);
    }
    this.#roots = options.roots;
    this.#pinMaxAgeMs = duration('pinMaxAgeMs', options.pinMaxAgeMs ?? HOUR);
    this.#maxAnswerAgeMs = options.maxAnswerAgeMs ?? HOUR;
    if (typeof this.#maxAnswerAgeMs !== 'number' || !(this.#maxAnswerAgeMs > 0)) {
      throw new InvalidClientOptionError(
        '"maxAnswerAgeMs" must be a number of milliseconds over 0, or Infinity',
      );
    }
    this.#now = options.now ?? Date.now;
    this.#http = {
      base: baseUrl(url),
      fetch: options.fetch,
      timeoutMs: duration('timeoutMs', options.timeoutMs ?? 10_000),
    };
  }

  /**
   * Attests the enclave now, whatever is known of it, and pins its key.
   *
   * @throws ClientError when there is no document, AttestationError when it can't be trusted: then no key is
   *   pinned any more
   */
  async attest(): Promise<VerifiedAttestation> {
    this.#pin = undefined;
    return (await this.#freshPin()).attestation;
  }

  /**
   * Sends `payload` to `/process_data` and returns what the enclave signed.
   *
   * A key that was attested too long ago, or that did not sign the answer because the enclave was started
   * anew, is attested again first; the answer stands only under the key of that attestation.
   *
   * @param payload what the application's endpoint takes, as JSON
   * @param schema the type that the application signs: the bytes are rebuilt with it
   * @param options `expect`: what the signed data must repeat of the request
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
   * Asks an endpoint of the application's own, whose answers are signed, as `processData` asks `/process_data`.
   *
   * @param path such as `/draw`
   * @param body sent as JSON by POST; undefined for an endpoint that is asked by GET
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
    const answer = readAnswer(name, await requestJson(this.#http, endpoint, body), schema);
    const signer = await this.#signerOf(answer, pin);
    this.#requireCurrent(answer.timestampMs);
    const member = unexpectedMember(answer, schema, expect);
    if (member !== undefined) throw new UnexpectedAnswerError(member);
    const { data, intent, timestampMs, signature } = answer;
    return { data, intent, timestampMs, signature, publicKey: signer.publicKey.slice() };
  }

  /** The pin, or that of a new attestation, whichever signed the answer. @throws AnswerSignatureError */
  async #signerOf(answer: ReceivedAnswer<unknown>, pin: Pin): Promise<Pin> {
    if (await isSignedBy(pin, answer)) return pin;
    // Another call may have attested the enclave since.
    if (this.#pin === pin) this.#pin = undefined;
    const newPin = await this.#validPin();
    if (await isSignedBy(newPin, answer)) return newPin;
    throw new AnswerSignatureError();
  }

  #requireCurrent(timestampMs: bigint): void {
    const age = this.#now() - Number(timestampMs);
    if (age < -MAX_AHEAD_MS) throw new FutureAnswerError(timestampMs, MAX_AHEAD_MS);
    // Not age > …: a clock that gives no number refuses.
    if (!(age <= this.#maxAnswerAgeMs)) throw new StaleAnswerError(timestampMs, this.#maxAnswerAgeMs);
  }

  async #validPin(): Promise<Pin> {
    if (this.#pin !== undefined) {
      const age = this.#now() - this.#pin.at;
      // A clock that was set back tells nothing about age.
      if (age >= 0 && age <= this.#pinMaxAgeMs) return this.#pin;
    }
    return await this.#freshPin();
  }

  /** Calls that need a pin at the same time share one attestation. */
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
    this.#pin = { publicKey: attestedKey(attestation), attestation, at };
    return this.#pin;
  }
}

async function isSignedBy(pin: Pin, { signature, signedBytes }: ReceivedAnswer<unknown>): Promise<boolean> {
  return await verifyEd25519(pin.publicKey, signature, signedBytes);
}

/** A misspelt option would leave a check out without a word. */
function requireKnown(options: object, keys: readonly string[]): void {
  const unknown = Object.keys(options).find((key) => !keys.includes(key));
  if (unknown !== undefined) {
    throw new InvalidClientOptionError(`there is no option "${unknown}"; there are: ${keys.join(', ')}`);
  }
}

function expectOf<Input>(options: CallOptions<Input>): Readonly<Record<string, unknown>> {
  if (typeof options !== 'object' || options === null) {
    throw new InvalidClientOptionError('the options of a call must be an object such as { expect: { … } }');
  }
  requireKnown(options, CALL_OPTION_KEYS);
  const { expect = {} } = options;
  if (typeof expect !== 'object' || expect === null || Array.isArray(expect)) {
    throw new InvalidClientOptionError('"expect" must be an object with members of the signed data');
  }
  return expect as Readonly<Record<string, unknown>>;
}

function duration(name: string, value: unknown): number {
  if (!isTimeout(value)) throw new InvalidClientOptionError(`"${name}" must be ${TIMEOUT_RANGE}`);
  return value;
}
