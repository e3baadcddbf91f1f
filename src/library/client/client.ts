import type { ClientWithCoreApi } from '@mysten/sui/client';
import type { VerifiedAttestation } from '../attestation/index.ts';
import { abortable } from '../waiting.ts';
import type { SignedType } from '../wire/intent.ts';
import { Calls } from './calls.ts';
import { baseUrl, invalidOption } from './http.ts';
import {
  type AttestOptions,
  type CallOptions,
  type ConfigClientOptions,
  type EnclaveClientOptions,
  type RequestOptions,
  readCallOptions,
  readOptions,
} from './options.ts';
import { type Trust, trustIn } from './trust.ts';

/** An answer that an attested key signed. */
export interface VerifiedAnswer<Data> {
  /** Signed data, parsed from the signed bytes: nothing in it is unsigned. */
  readonly data: Data;
  /** First byte of the signed message, which tells signed types apart. */
  readonly intent: number;
  /** Time of the data, as set by the application, in milliseconds since 1970. */
  readonly timestampMs: bigint;
  /** Signature of 64 bytes, as a contract expects it. */
  readonly signature: Uint8Array;
  /** The attested key that signed, 32 bytes. */
  readonly publicKey: Uint8Array;
  /**
   * The JSON that the application sent together with its answer, if any. A host can change it: before you use
   * it, check it against `data`, for example a text against its hash.
   */
  readonly unsigned?: unknown;
}

/** An answer that a contract accepts under the config. */
export interface RegisteredAnswer<Data> extends VerifiedAnswer<Data> {
  /** The id of the registered Enclave object whose key signed. */
  readonly enclaveId: string;
}

/**
 * Calls an enclave, and accepts only verified answers: the key comes from an attestation document that
 * answers a fresh random nonce and meets the policy, and that key must have signed every answer.
 *
 * Exported as `sui-enclave/client`.
 *
 * @example
 * const WeatherResponse = signedType(0, bcs.struct('WeatherResponse', { location: text, temperature: u64 }));
 * const client = new EnclaveClient('https://weather.example', { policy: { images: [image] } });
 * const payload = { location: 'San Francisco' };
 * const { data, signature } = await client.processData(payload, WeatherResponse, { expect: payload });
 */
export class EnclaveClient {
  readonly #calls: Calls;
  readonly #sealed: boolean;

  /**
   * @param url base URL of the enclave's endpoints. Its path is kept, and its query is dropped
   * @throws AttestationError: POLICY_INVALID, POLICY_ZERO_IMAGE; ClientError: CLIENT_OPTION
   */
  constructor(url: string | URL, options: EnclaveClientOptions);
  /** @internal `trust` replaces the policy. */
  constructor(url: string | URL, options: EnclaveClientOptions, trust?: Trust);
  constructor(url: string | URL, options: EnclaveClientOptions, trust?: Trust) {
    const checked = readOptions(options);
    this.#calls = new Calls(baseUrl(url), trust ?? trustIn(options?.policy), checked);
    this.#sealed = checked.sealed;
  }

  /**
   * Returns a client that trusts exactly what an EnclaveConfig on Sui trusts. The image comes from the chain.
   * Each answer contains the id of the registered Enclave whose key signed it. Loads `@mysten/sui`, which the
   * rest of the client doesn't need.
   *
   * @param suiClient any client of `@mysten/sui`. Its node decides what the config says, so use a node that
   *   you trust
   * @param configId object id of the EnclaveConfig
   * @param url as for the constructor
   * @throws ClientError: CLIENT_OPTION; SuiError if the config can't be read; AttestationError if its image
   *   is all zeros
   * @example
   * const client = await EnclaveClient.forConfig(suiClient, configId, 'https://weather.example');
   * const expect = { location: 'Oslo' };
   * const { enclaveId, data, signature } = await client.processData(expect, WeatherResponse, { expect });
   */
  static forConfig(
    suiClient: ClientWithCoreApi,
    configId: string,
    url: string | URL,
    options?: ConfigClientOptions,
  ): Promise<RegisteredEnclaveClient>;
  /** @internal `wrapTrust` may observe which keys the trust admits. */
  static forConfig(
    suiClient: ClientWithCoreApi,
    configId: string,
    url: string | URL,
    options?: ConfigClientOptions,
    wrapTrust?: (trust: Trust) => Trust,
  ): Promise<RegisteredEnclaveClient>;
  static async forConfig(
    suiClient: ClientWithCoreApi,
    configId: string,
    url: string | URL,
    options: ConfigClientOptions = {},
    wrapTrust: (trust: Trust) => Trust = (trust) => trust,
  ): Promise<RegisteredEnclaveClient> {
    const { trustInConfig } = await import('./registered.ts');
    const { trust, signal, options: clientOptions } = trustInConfig(suiClient, configId, options);
    // The policy comes from the chain: see `trust`.
    const client = new RegisteredEnclaveClient(url, clientOptions as EnclaveClientOptions, wrapTrust(trust));
    await abortable(trust.current(), signal);
    return client;
  }

  /**
   * Attests the enclave now, even if the client knows keys already. Afterwards the client knows only this
   * enclave's key, or no key if the attestation failed.
   *
   * @throws ClientError when there is no document, AttestationError when it can't be trusted
   */
  async attest(options: AttestOptions = {}): Promise<VerifiedAttestation> {
    const { signal } = readCallOptions(options, ['signal']);
    this.#calls.keys.forget();
    return (await this.#calls.keys.attest(signal)).attestation;
  }

  /**
   * Sends `payload` to `/process_data` and returns what the enclave signed.
   *
   * If the enclave has restarted, or another enclave behind the same URL answered, the client may not know
   * the key that signed. It then attests until it finds this key.
   *
   * @param payload what the application's endpoint accepts, as JSON
   * @param schema the type that the application signs: the bytes are rebuilt with it
   * @param options `expect` lists the properties of the request that the signed data must repeat. For
   *   `idempotent` and `signal`, see CallOptions
   * @throws ClientError, AttestationError; the signal's reason. `mayHaveExecuted` says whether the enclave
   *   may have executed the call
   */
  async processData<Data, Input>(
    payload: unknown,
    schema: SignedType<Data, Input>,
    options: CallOptions<NoInfer<Input>> = {},
  ): Promise<VerifiedAnswer<Data>> {
    return await this.call('process_data', { payload }, schema, options);
  }

  /**
   * Calls any endpoint that signs its answers, in the same way as `processData` calls `/process_data`.
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
    const checked = readCallOptions(options, ['expect', 'idempotent', 'signal']);
    return await this.#calls.callSigned(path, body, schema, checked);
  }

  /**
   * Sends a sealed request to an endpoint that does not sign its answers, such as `/get_salt` of a salt
   * service. The answer comes from the attested enclave, but proves nothing to third parties. Requires the
   * client's option `sealed`.
   *
   * @param path such as `/get_salt`
   * @param body as for `call`
   * @returns the JSON of the answer, in any form
   * @throws ClientError, AttestationError; of a client of `forConfig` also NotRegisteredError, SuiError
   */
  async ask(path: string, body: unknown, options: RequestOptions = {}): Promise<unknown> {
    const checked = readCallOptions(options, ['idempotent', 'signal']);
    if (!this.#sealed) {
      throw invalidOption('"ask" needs { sealed: true }: otherwise anyone on the path can forge the answer');
    }
    return await this.#calls.askSealed(path, body, checked);
  }
}

/**
 * The client of `EnclaveClient.forConfig`, whose answers are signed by keys that are registered under the
 * config.
 */
export class RegisteredEnclaveClient extends EnclaveClient {
  override async processData<Data, Input>(
    payload: unknown,
    schema: SignedType<Data, Input>,
    options: CallOptions<NoInfer<Input>> = {},
  ): Promise<RegisteredAnswer<Data>> {
    return (await super.processData(payload, schema, options)) as RegisteredAnswer<Data>;
  }

  /**
   * Calls an endpoint that signs its answers. The answer has the id of the registered enclave.
   *
   * @throws what `EnclaveClient.call` throws, and NotRegisteredError, SuiError
   */
  override async call<Data, Input>(
    path: string,
    body: unknown,
    schema: SignedType<Data, Input>,
    options: CallOptions<NoInfer<Input>> = {},
  ): Promise<RegisteredAnswer<Data>> {
    return (await super.call(path, body, schema, options)) as RegisteredAnswer<Data>;
  }
}
