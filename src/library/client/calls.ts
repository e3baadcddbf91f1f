/** Sends the calls of a client, and checks the answers. */
import { hexToBytes } from '@noble/curves/utils.js';
import { abortable } from '../waiting.ts';
import type { SignedType } from '../wire/intent.ts';
import { findUnexpectedProperty, readAnswer } from './answer.ts';
import { AnswerTimeError, UnexpectedAnswerError } from './errors.ts';
import { endpointPath, type Http, invalidOption, type JsonAnswer, requestJson } from './http.ts';
import { KnownKeys } from './keys.ts';
import type { CheckedCall, CheckedOptions } from './options.ts';
import { type CallState, isKeyUnknown, sendOnce, withAttempts } from './outcome.ts';
import { requestSealed } from './sealed.ts';
import type { Trust } from './trust.ts';

/** Maximum time by which an answer may be dated ahead, in milliseconds. The server has the same limit. */
const MAX_AHEAD_MS = 60_000;
/**
 * Maximum number of times that one call is sealed, if its messages keep reaching enclaves with other keys.
 */
const MAX_MESSAGES = 16;

export class Calls {
  readonly keys: KnownKeys;
  readonly #http: Http;
  readonly #trust: Trust;
  readonly #options: CheckedOptions;

  constructor(base: URL, trust: Trust, options: CheckedOptions) {
    const { roots, sealed, now, fetch, timeoutMs, pinMaxAgeMs: maxAgeMs } = options;
    this.#http = { base, fetch, timeoutMs };
    this.#trust = trust;
    this.#options = options;
    this.keys = new KnownKeys({ http: this.#http, trust, roots, sealed, maxAgeMs, now });
  }

  /** Makes a call whose answer must be signed. @throws ClientError, AttestationError */
  async callSigned<Data, Input>(
    path: string,
    body: unknown,
    schema: SignedType<Data, Input>,
    call: CheckedCall,
  ) {
    const endpoint = endpointPath(this.#http, path);
    const content = copyBody(body);
    const { signal, expect } = call;
    return await withAttempts(call, async (state) => {
      const { json, enclaveKey } = await this.#request(endpoint, content, signal, state);
      const answer = readAnswer(getEndpointName(endpoint), json, schema);
      const publicKey = await this.keys.findSigner(answer, enclaveKey, signal);
      const enclaveId = await abortable(this.#trust.admit(publicKey), signal);
      this.#requireCurrent(answer.timestampMs);
      const property = findUnexpectedProperty(answer, schema, expect);
      if (property !== undefined) throw new UnexpectedAnswerError(property);
      const { data, intent, timestampMs, signature, unsigned } = answer;
      return {
        data,
        intent,
        timestampMs,
        signature,
        publicKey: publicKey.slice(),
        ...(unsigned !== undefined && { unsigned }),
        ...(enclaveId !== undefined && { enclaveId }),
      };
    });
  }

  /** Makes a sealed call, whose answer may have any form. @throws ClientError, AttestationError */
  async askSealed(path: string, body: unknown, call: CheckedCall): Promise<unknown> {
    const endpoint = endpointPath(this.#http, path);
    const content = copyBody(body);
    const { signal } = call;
    return await withAttempts(call, async (state) => {
      const { json, enclaveKey } = await this.#requestSealed(endpoint, content, signal, state);
      await abortable(this.#trust.admit(hexToBytes(enclaveKey)), signal);
      return json;
    });
  }

  /** Sends a request. If the client trusts no key, it attests an enclave first. */
  async #request(
    endpoint: string,
    body: unknown,
    signal: AbortSignal | undefined,
    state: CallState,
  ): Promise<JsonAnswer> {
    if (this.#options.sealed) return await this.#requestSealed(endpoint, body, signal, state);
    await this.keys.findTrusted(signal);
    signal?.throwIfAborted();
    return await sendOnce(state, () => requestJson({ ...this.#http, signal }, endpoint, body));
  }

  /**
   * Seals the request again if its message reached an enclave that can't open it. Anyone on the path can also
   * claim this falsely about a message that the enclave opened. The claim is harmless: the server accepts
   * sealed requests only for idempotent endpoints, since a host could repeat such requests by itself.
   */
  async #requestSealed(
    endpoint: string,
    body: unknown,
    signal: AbortSignal | undefined,
    state: CallState,
  ): Promise<JsonAnswer & { readonly enclaveKey: string }> {
    const method = body === undefined ? 'GET' : 'POST';
    const content = { method, path: `/${endpoint}`, body } as const;
    const http = { ...this.#http, signal };
    let key = await this.keys.pickSealingKey(signal);
    // If a balancer picks the enclaves in turn, each known enclave has had its turn after this many
    // messages.
    let attestAfter = 2 * this.keys.size - 1;
    for (let messages = 1; ; messages++) {
      const { hex, sealingKey } = key;
      try {
        const json = await sendOnce(state, () =>
          requestSealed(http, sealingKey as Uint8Array, content, this.#options.padding),
        );
        key.misses = 0;
        return { json, enclaveKey: hex };
      } catch (error) {
        if (!isKeyUnknown(error) || messages === MAX_MESSAGES) throw error;
        key.misses++;
      }
      // The client does not attest after each message: a balancer could then send every attestation to one
      // enclave, and every message to another.
      const attested = messages === attestAfter ? await this.keys.attest(signal) : undefined;
      if (attested) attestAfter *= 2;
      key = attested?.misses === 0 ? attested : await this.keys.pickSealingKey(signal);
    }
  }

  #requireCurrent(timestampMs: bigint): void {
    const { now, maxAnswerAgeMs } = this.#options;
    const age = now() - Number(timestampMs);
    if (age < -MAX_AHEAD_MS) throw new AnswerTimeError('CLIENT_FUTURE', timestampMs, MAX_AHEAD_MS);
    // The comparison is negated, so that every answer is refused if the clock returns NaN.
    if (!(age <= maxAnswerAgeMs)) throw new AnswerTimeError('CLIENT_STALE', timestampMs, maxAnswerAgeMs);
  }
}

/**
 * Copies the body at the time of the call. The body may be sent later, after an attestation, and several
 * times.
 *
 * @throws ClientError: CLIENT_OPTION
 */
function copyBody(body: unknown): unknown {
  if (body === undefined) return undefined;
  let text: string | undefined;
  try {
    text = JSON.stringify(body);
  } catch (cause) {
    throw invalidOption('the body must be a value that JSON can represent', { cause });
  }
  if (text === undefined) throw invalidOption('the body must be a value that JSON can represent');
  return JSON.parse(text);
}

/** Returns the name of an endpoint for messages, without its query, which may be confidential. */
function getEndpointName(endpoint: string): string {
  const [name = endpoint] = endpoint.split('?');
  return name;
}
