/**
 * What is signed: `IntentMessage<T> { intent: u8, timestamp_ms: u64, payload: T }` in BCS, field for field
 * as the Move side has it. Browser-safe: clients rebuild the signed bytes with it.
 */
import { type BcsType, bcs } from '@mysten/bcs';
import { u8, u64 } from './bcs.ts';

/** The envelope of every signed answer around its payload `T`. */
export function IntentMessage<T, Input>(payload: BcsType<T, Input>) {
  return bcs.struct(`IntentMessage<${payload.name}>`, { intent: u8, timestamp_ms: u64, payload });
}

/**
 * A type that an enclave signs, bound to the one intent code that stands for it: a contract that expects
 * one type can't be given the bytes of another.
 */
export interface SignedType<Data, Input> {
  /** 0 to 255. */
  readonly intent: number;
  readonly payload: BcsType<Data, Input>;
  readonly message: ReturnType<typeof IntentMessage<Data, Input>>;
}

/** @throws TypeError when `intent` is not a u8. */
export function signedType<Data, Input>(
  intent: number,
  payload: BcsType<Data, Input>,
): SignedType<Data, Input> {
  u8.validate(intent);
  return { intent, payload, message: IntentMessage(payload) };
}

/** What is known of a signed type where its data doesn't matter. */
export interface DeclaredType {
  readonly intent: number;
  readonly payload: { readonly name: string };
}
