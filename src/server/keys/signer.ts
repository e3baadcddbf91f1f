import { isDeepStrictEqual } from 'node:util';
import { ApplicationMistake, ConfigError } from 'sui-enclave/errors';
import { ENCLAVE_KEY_HEADER } from 'sui-enclave/fetch';
import { findFailingProperty } from 'sui-enclave/wire/failing_property';
import type { DeclaredType, SignedType } from 'sui-enclave/wire/intent';
import { JsonText } from 'sui-enclave-service/http/respond';
import type { EphemeralKey } from './key.ts';
import { propertyThatDiffers } from './unfit_property.ts';

/**
 * A signed answer that can be sent any number of times. Since ed25519 is deterministic, the same data always
 * results in the same bytes.
 */
export class SignedAnswer extends JsonText {
  readonly #publicKey: string;
  readonly #hasUnsigned: boolean;

  /**
   * @param json `{"response": {"intent", "timestamp_ms", "data"}, "signature"}`
   * @param publicKey the key that signed it, in hex. If several enclaves share one URL, the header saves
   *   callers from trying all keys that they know.
   */
  constructor(json: string, publicKey: string, hasUnsigned = false) {
    super(json, [ENCLAVE_KEY_HEADER, publicKey]);
    this.#publicKey = publicKey;
    this.#hasUnsigned = hasUnsigned;
  }

  /**
   * Returns the same answer with an object in addition to the signed part, as its property `unsigned`. A host
   * can change it, so it is for values that a caller can check by the signed data, such as a text whose hash
   * is signed.
   *
   * @throws ApplicationMistake if the answer has such an object already
   */
  withUnsigned(values: object): SignedAnswer {
    if (this.#hasUnsigned) throw new ApplicationMistake('withUnsigned takes all values in one call');
    const json = `${this.json.slice(0, -1)},"unsigned":${JSON.stringify(values)}}`;
    return new SignedAnswer(json, this.#publicKey, true);
  }
}

/** Signs values with the enclave's key. Their types must be among those that the application declared. */
export class Signer {
  readonly #key: EphemeralKey;
  readonly #publicKey: string;
  readonly #types: ReadonlySet<DeclaredType>;

  /** @throws ConfigError if two types share an intent code */
  constructor(key: EphemeralKey, types: readonly DeclaredType[]) {
    const byIntent = new Map<number, DeclaredType>();
    for (const type of types) {
      const declared = byIntent.get(type.intent);
      if (declared) {
        throw new ConfigError(
          `${declared.payload.name} and ${type.payload.name} share the intent code ${type.intent}: each signed type needs its own`,
        );
      }
      byIntent.set(type.intent, type);
    }
    this.#key = key;
    this.#publicKey = Buffer.from(key.publicKey).toString('hex');
    this.#types = new Set(types);
  }

  /**
   * @param timestampMs time at which the data was valid, not at which it was requested, in milliseconds since
   *   the Unix epoch
   * @throws ApplicationMistake if the type was not declared, or if `data` changes when it is encoded as BCS
   *   and decoded again, since the signed data would then differ from what the application meant
   */
  sign<Data, Input>(type: SignedType<Data, Input>, timestampMs: bigint, data: Data & Input): SignedAnswer {
    if (!this.#types.has(type)) {
      throw new ApplicationMistake(
        `${type.payload.name} is not among the application's signed types: add it to signs`,
      );
    }
    const message = { intent: type.intent, timestamp_ms: timestampMs, payload: data };
    let bytes: Uint8Array;
    try {
      bytes = type.message.serialize(message).toBytes();
    } catch {
      // The library's own message may repeat a value.
      throw unfit(
        type,
        findFailingProperty((value) => type.message.serialize(value as typeof message), message),
      );
    }
    const signed = type.message.parse(bytes);
    if (!isDeepStrictEqual(signed, message)) throw unfit(type, propertyThatDiffers(message, signed));
    const signature = this.#key.sign(bytes).toString('hex');
    const response = { intent: signed.intent, timestamp_ms: signed.timestamp_ms, data: signed.payload };
    return new SignedAnswer(JSON.stringify({ response, signature }, exactIntegers), this.#publicKey);
  }
}

/** @param path path of the property within the signed message */
function unfit({ payload }: DeclaredType, path: string): ApplicationMistake {
  const property = path.startsWith('payload.') ? path.slice('payload.'.length) : path;
  const subject = path === 'payload' || path === '' ? 'the data to sign' : `property ${property}`;
  return new ApplicationMistake(
    `${payload.name} can't hold ${subject}: use the types of sui-enclave-server and give a u64 as a bigint (5n, not 5), a u8 as an integer, a string without lone surrogates, and exactly the type's properties`,
  );
}

/**
 * Converts a value to JSON without loss. A u64 becomes a number up to 2^53 - 1, which JavaScript represents
 * exactly, and a decimal string above. Bytes become an array of numbers, and a map an array of its entries.
 */
function exactIntegers(_name: string, value: unknown): unknown {
  if (typeof value === 'bigint') {
    return value <= BigInt(Number.MAX_SAFE_INTEGER) ? Number(value) : value.toString();
  }
  if (value instanceof Uint8Array) return Array.from(value);
  return value instanceof Map ? Array.from(value) : value;
}
