import { isDeepStrictEqual } from 'node:util';
import { ApplicationMistake, ConfigError } from '../errors.ts';
import type { DeclaredType, SignedType } from '../wire/intent.ts';
import type { EphemeralKey } from './key.ts';
import { propertyThatDiffers, propertyThatFails } from './unfit_property.ts';

/**
 * A signed answer, ready to be sent as often as it is asked for: ed25519 is deterministic, so the same
 * reading always gives the same bytes.
 */
export class SignedAnswer {
  /** `{"response": {"intent", "timestamp_ms", "data"}, "signature"}`. */
  readonly json: string;
  /** Its length in UTF-8. */
  readonly bytes: number;

  constructor(json: string) {
    this.json = json;
    this.bytes = Buffer.byteLength(json);
  }
}

/** Signs with the enclave's key, and only the types that the application declared. */
export class Signer {
  readonly #key: EphemeralKey;
  readonly #types: ReadonlySet<DeclaredType>;

  /** @throws ConfigError when two types share an intent code. */
  constructor(key: EphemeralKey, types: readonly DeclaredType[]) {
    const byIntent = new Map<number, DeclaredType>();
    for (const type of types) {
      const other = byIntent.get(type.intent);
      if (other) {
        throw new ConfigError(
          `intent ${type.intent} stands for ${other.payload.name} and for ${type.payload.name}: one intent code belongs to one signed type`,
        );
      }
      byIntent.set(type.intent, type);
    }
    this.#key = key;
    this.#types = new Set(types);
  }

  /**
   * @param timestampMs milliseconds since the Unix epoch, of the data itself rather than of the request.
   * @throws ApplicationMistake when the type was not declared, or when `data` doesn't read back from its BCS
   *   bytes as it was given: nothing is signed that says something else than the application meant.
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
        propertyThatFails((value) => type.message.serialize(value as typeof message), message),
      );
    }
    const signed = type.message.parse(bytes);
    if (!isDeepStrictEqual(signed, message)) throw unfit(type, propertyThatDiffers(message, signed));
    const signature = this.#key.sign(bytes).toString('hex');
    const response = { intent: signed.intent, timestamp_ms: signed.timestamp_ms, data: signed.payload };
    return new SignedAnswer(JSON.stringify({ response, signature }, exactIntegers));
  }
}

/** @param path of the property, from the signed message */
function unfit({ payload }: DeclaredType, path: string): ApplicationMistake {
  const property = path.startsWith('payload.') ? path.slice('payload.'.length) : path;
  const what = path === 'payload' || path === '' ? 'the data that was to be signed' : `property ${property}`;
  return new ApplicationMistake(
    `${payload.name} can't hold ${what}: use u64, u8 and text of src/wire/bcs.ts and give a u64 as a bigint (5n, not 5), a u8 as an integer, a string without lone surrogates, and exactly the type's properties`,
  );
}

/**
 * A u64 as a JSON number while JavaScript's numbers hold it exactly (up to 2^53 - 1), as decimal text
 * beyond; bytes as an array of numbers and a map as an array of its entries, so that nothing is lost.
 */
function exactIntegers(_name: string, value: unknown): unknown {
  if (typeof value === 'bigint') {
    return value <= BigInt(Number.MAX_SAFE_INTEGER) ? Number(value) : value.toString();
  }
  if (value instanceof Uint8Array) return Array.from(value);
  return value instanceof Map ? Array.from(value) : value;
}
