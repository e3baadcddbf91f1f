/** Generates random signed types, each with values. */
import fc from 'fast-check';
import type { MoveType } from '../../../../src/library/wire/bcs.ts';
import { text, u8, u64 } from '../../../../src/library/wire/bcs.ts';
import { type SignedType, signedType } from '../../../../src/library/wire/intent.ts';
import {
  address,
  bool,
  bytes,
  option,
  u16,
  u32,
  u128,
  u256,
  vector,
} from '../../../../src/library/wire/move.ts';
import { type Struct, struct } from '../../../../src/library/wire/struct.ts';

interface Typed {
  readonly type: MoveType;
  readonly values: fc.Arbitrary<unknown>;
}

const unsigned = (bits: number) => fc.bigInt({ min: 0n, max: 2n ** BigInt(bits) - 1n });
const whole = (bits: number) => fc.nat(2 ** bits - 1);

const LEAVES: readonly Typed[] = [
  { type: u8, values: whole(8) },
  { type: u16, values: whole(16) },
  { type: u32, values: fc.integer({ min: 0, max: 2 ** 32 - 1 }) },
  { type: u64, values: unsigned(64) },
  { type: u128, values: unsigned(128) },
  { type: u256, values: unsigned(256) },
  { type: bool, values: fc.boolean() },
  { type: text, values: fc.string({ unit: 'grapheme', maxLength: 200 }) },
  { type: bytes, values: fc.uint8Array({ maxLength: 200 }) },
  {
    type: address,
    values: fc
      .uint8Array({ minLength: 32, maxLength: 32 })
      .map((value) => `0x${Buffer.from(value).toString('hex')}`),
  },
];

function createType(depth: number): fc.Arbitrary<Typed> {
  const leaf = fc.constantFrom(...LEAVES);
  if (depth === 0) return leaf;
  const inner = createType(depth - 1);
  return fc.oneof(
    leaf,
    inner.map(({ type, values }) => ({
      type: type === u8 ? bytes : vector(type),
      values: type === u8 ? fc.uint8Array({ maxLength: 5 }) : fc.array(values, { maxLength: 4 }),
    })),
    inner.map((typed) =>
      typed.type.move.startsWith('Option<')
        ? typed
        : { type: option(typed.type), values: fc.option(typed.values) },
    ),
    createStruct(depth - 1),
  );
}

/** Number of structs so far. It makes the names of structs unique, as in a Move module. */
let structs = 0;

function createStruct(
  depth: number,
): fc.Arbitrary<Typed & { readonly type: Struct<Record<string, MoveType>> }> {
  return fc.array(createType(depth), { minLength: 1, maxLength: 4 }).map((fields) => {
    const namedFields = fields.map((field, index) => [`field_${index}`, field] as const);
    return {
      type: struct(
        `Struct${++structs}`,
        Object.fromEntries(namedFields.map(([name, { type }]) => [name, type])),
      ),
      values: fc.record(Object.fromEntries(namedFields.map(([name, { values }]) => [name, values])), {
        noNullPrototype: true,
      }),
    };
  });
}

export interface RandomMessage {
  readonly signed: SignedType<unknown, unknown> & { readonly payload: Struct<Record<string, MoveType>> };
  readonly timestampMs: bigint;
  readonly payload: unknown;
  /** BCS of the whole message: intent, time and payload. */
  readonly bytes: Uint8Array;
}

/** Generates a signed type, a value of it, and the bytes that are signed. */
export const randomMessages: fc.Arbitrary<RandomMessage> = createStruct(3).chain(({ type, values }) =>
  fc
    .record({ intent: whole(8), timestampMs: unsigned(64), payload: values })
    .map(({ intent, timestampMs, payload }): RandomMessage => {
      const signed = signedType<unknown, unknown, typeof type>(intent, type);
      const message = { intent, timestamp_ms: timestampMs, payload };
      return { signed, timestampMs, payload, bytes: signed.message.serialize(message).toBytes() };
    }),
);
