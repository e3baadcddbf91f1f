/**
 * The signed message: `IntentMessage<T> { intent: u8, timestamp_ms: u64, payload: T }` in BCS, with the same
 * fields as in Move. Browser-safe: clients serialize answers with it to verify their signatures.
 */
import { type BcsType, bcs } from '@mysten/bcs';
import { type Field, u8, u64 } from './bcs.ts';

/** Returns the envelope of every signed answer around its payload `T`. */
export function IntentMessage<T, Input>(payload: BcsType<T, Input>) {
  return bcs.struct(`IntentMessage<${payload.name}>`, { intent: u8, timestamp_ms: u64, payload });
}

/**
 * A type that an enclave signs, bound to its own intent code: the signed bytes of one type can't be passed
 * off as bytes of another type.
 */
export interface SignedType<Data, Input> {
  /** First byte of the signed message, 0 to 255. */
  readonly intent: number;
  /** BCS type of the payload, the signed data. */
  readonly payload: BcsType<Data, Input>;
  /** BCS type of the whole signed message: intent, time and payload. */
  readonly message: ReturnType<typeof IntentMessage<Data, Input>>;
}

/**
 * Describes a type that an enclave signs, for clients and for generators.
 *
 * @param payload type of the signed data: a `struct` for generators, which need its fields; else also a
 *   struct of `@mysten/bcs`
 * @throws TypeError if `intent` is not a u8
 */
export function signedType<Data, Input, Payload extends BcsType<Data, Input>>(
  intent: number,
  payload: Payload & BcsType<Data, Input>,
): SignedType<Data, Input> & { readonly payload: Payload } {
  u8.validate(intent);
  return { intent, payload, message: IntentMessage<Data, Input>(payload) };
}

/** The part of a signed type that doesn't depend on its data. */
export interface DeclaredType {
  readonly intent: number;
  readonly payload: { readonly name: string };
}

/** A signed type whose fields are known: see `struct`. */
export interface DeclaredStruct extends DeclaredType {
  readonly payload: { readonly name: string; readonly fields: readonly Field[] };
}
