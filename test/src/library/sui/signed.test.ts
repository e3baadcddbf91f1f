/**
 * Compares the arguments for a contract with the signed bytes: one after the other, the arguments must be the
 * payload.
 */
import { bcs } from '@mysten/bcs';
import { Transaction, type TransactionArgument } from '@mysten/sui/transactions';
import { fromBase64 } from '@mysten/sui/utils';
import fc from 'fast-check';
import { describe, expect, expectTypeOf, test } from 'vitest';
import { signedArguments } from '../../../../src/library/sui/index.ts';
import { text, u8, u64 } from '../../../../src/library/wire/bcs.ts';
import { type SignedType, signedType } from '../../../../src/library/wire/intent.ts';

const SIGNATURE = new Uint8Array(64).fill(7);
const RECIPIENT = `0x${'ab'.repeat(32)}`;
const Award = signedType(
  3,
  bcs.struct('Award', { nonce: bcs.byteVector(), recipient: bcs.bytes(32), points: u64, note: text }),
);
const data = {
  nonce: new Uint8Array(16).fill(1),
  recipient: new Uint8Array(32).fill(0xab),
  points: 2n ** 64n - 1n,
  note: '',
};
const answer = { data, intent: 3, timestampMs: 1_795_157_100_000n, signature: SIGNATURE };

/** Returns the bytes of an argument that is a pure value. */
function readPure(tx: Transaction, argument: TransactionArgument): Uint8Array {
  const { Input: index } = argument as { Input: number };
  return fromBase64(tx.getData().inputs[index]?.Pure?.bytes ?? '');
}

/** Returns the fields' bytes, in their order. */
function readBytes(tx: Transaction, fields: object): Uint8Array[] {
  return Object.values(fields).flatMap((field) =>
    'Input' in field ? [readPure(tx, field as TransactionArgument)] : readBytes(tx, field),
  );
}

function encodePayload<Data, Input>(schema: SignedType<Data, Input>, value: Input): Uint8Array {
  const tx = new Transaction();
  const signedData = { data: value, timestampMs: 0, signature: SIGNATURE };
  return Buffer.concat(readBytes(tx, signedArguments(tx, signedData, schema).data as object));
}

describe('signedArguments', () => {
  test('returns one argument for each field, the time and the signature, for a call of any module', async () => {
    const tx = new Transaction();
    const { data: fields, timestampMs, signature } = signedArguments(tx, answer, Award);
    const shared = (digit: string) =>
      tx.sharedObjectRef({ objectId: `0x${digit.repeat(64)}`, initialSharedVersion: 1, mutable: false });
    const { nonce, recipient, points, note } = fields;
    tx.moveCall({
      target: `0x${'e'.repeat(64)}::rewards::award`,
      arguments: [shared('1'), nonce, recipient, points, note, timestampMs, signature, shared('2')],
    });
    tx.setSender(RECIPIENT);
    tx.setGasPayment([{ objectId: RECIPIENT, version: '1', digest: '1'.repeat(32) }]);
    tx.setGasPrice(1000);
    tx.setGasBudget(10_000_000);
    // Without a client, the build throws if anything is left for a node to resolve.
    const built = Transaction.from(await tx.build());
    const [call] = built.getData().commands;
    expect(call?.MoveCall).toMatchObject({ module: 'rewards', function: 'award' });
    expect(call?.MoveCall?.arguments.slice(1, -1).map((argument) => readPure(built, argument))).toEqual([
      new Uint8Array([16, ...data.nonce]),
      data.recipient,
      new Uint8Array(8).fill(255),
      new Uint8Array([0]),
      u64.serialize(answer.timestampMs).toBytes(),
      new Uint8Array([64, ...SIGNATURE]),
    ]);
  });

  test('returns fields with the names and types of the schema', () => {
    const { data: fields } = signedArguments(new Transaction(), answer, Award);
    expectTypeOf(fields).toEqualTypeOf<{
      readonly nonce: TransactionArgument;
      readonly recipient: TransactionArgument;
      readonly points: TransactionArgument;
      readonly note: TransactionArgument;
    }>();
    // @ts-expect-error: the type has no such field
    expect(fields.location).toBeUndefined();
    const otherAnswer = { ...answer, data: { location: 'Zürich', temperature: 4 } };
    // @ts-expect-error: the data are of another type
    expect(() => signedArguments(new Transaction(), otherAnswer, Award)).toThrow('"nonce"');
  });

  test('splits a nested struct into its fields, as a Move function takes them', () => {
    const inner = bcs.struct('Inner', { recipient: bcs.bytes(32), points: u64 });
    const Once = signedType(3, bcs.struct('Once', { nonce: bcs.byteVector(), payload: inner, last: u8 }));
    const tx = new Transaction();
    const { nonce, recipient, points } = data;
    const nestedAnswer = { ...answer, data: { nonce, payload: { recipient, points }, last: 9 } };
    const { data: fields } = signedArguments(tx, nestedAnswer, Once);
    expectTypeOf(fields.payload.points).toEqualTypeOf<TransactionArgument>();
    expectTypeOf(fields.last).toEqualTypeOf<TransactionArgument>();
    expect(readPure(tx, fields.payload.recipient)).toEqual(recipient);
    expect(readPure(tx, fields.payload.points)).toEqual(new Uint8Array(8).fill(255));
    expect(readPure(tx, fields.last)).toEqual(new Uint8Array([9]));
  });

  test('passes an option, a vector, an enum or a transformed type as one argument, whatever it contains', () => {
    const point = bcs.struct('Point', { x: u64, y: u64 });
    const Color = bcs.enum('Color', { Red: null, Rgb: bcs.struct('Rgb', { r: u8, g: u8, b: u8 }) });
    const swapped = point.transform({
      input: ({ first, second }: { first: number; second: number }) => ({ x: second, y: first }),
      output: ({ x, y }) => ({ first: Number(y), second: Number(x) }),
    });
    const fields = {
      option: bcs.option(point),
      none: bcs.option(u64),
      many: bcs.vector(point),
      color: Color,
      swapped,
      address: bcs.bytes(32).transform({ input: (hex: string) => Buffer.from(hex, 'hex') }),
    };
    const Mixed = signedType(1, bcs.struct('Mixed', fields));
    const values = {
      option: { x: 1, y: 2 },
      none: null,
      many: [{ x: 3, y: 4 }],
      color: { Rgb: { r: 1, g: 2, b: 3 } },
      swapped: { first: 5, second: 6 },
      address: 'cd'.repeat(32),
    };
    const tx = new Transaction();
    const dataArguments = signedArguments(
      tx,
      { data: values, timestampMs: 0, signature: SIGNATURE },
      Mixed,
    ).data;
    const whole = Object.entries(fields).map(([name, type]) =>
      (type as (typeof fields)['none']).serialize(values[name as 'none']).toBytes(),
    );
    expect(readBytes(tx, dataArguments)).toEqual(whole);
  });

  test('returns fields whose bytes together are the signed payload', () => {
    const pair = bcs.struct('Pair', { left: text, right: bcs.option(u64) });
    const Any = signedType(0, bcs.struct('Any', { a: bcs.byteVector(), b: pair, c: bcs.vector(u8), d: u64 }));
    const value = fc.record({
      a: fc.uint8Array(),
      b: fc.record({
        left: fc.string({ unit: 'binary' }),
        right: fc.option(fc.bigInt(0n, 2n ** 64n - 1n)),
      }),
      c: fc.array(fc.integer({ min: 0, max: 255 })),
      d: fc.bigInt(0n, 2n ** 64n - 1n),
    });
    fc.assert(
      fc.property(value, (any) => {
        expect(Buffer.from(encodePayload(Any, any)).equals(Any.payload.serialize(any).toBytes())).toBe(true);
      }),
      { numRuns: 50 },
    );
  });
});

describe('signedArguments refuses', () => {
  const refused = (message: string) => expect.objectContaining({ code: 'SUI_VALUE', message });

  test.each<[string, string, () => unknown]>([
    [
      'an answer of another intent',
      'the answer has the intent 2, but the signed type has the intent 3',
      () => signedArguments(new Transaction(), { ...answer, intent: 2 }, Award),
    ],
    [
      'a signature of 65 bytes',
      'the signature must be a Uint8Array of 64 bytes',
      () => signedArguments(new Transaction(), { ...answer, signature: new Uint8Array(65) }, Award),
    ],
    [
      'a fraction for a u64',
      '"points" is invalid: a u64 must be a bigint, a safe integer or a decimal string, from 0 to 18446744073709551615 (2^64 - 1)',
      () => signedArguments(new Transaction(), { ...answer, data: { ...data, points: 1.5 } }, Award),
    ],
    [
      'a missing field, which BCS would write as the number 0',
      '"b" is invalid: it is missing',
      () => {
        const Plain = signedType(0, bcs.struct('Plain', { a: bcs.u8(), b: bcs.u8() }));
        return signedArguments(new Transaction(), { ...answer, intent: 0, data: { a: 1 } as never }, Plain);
      },
    ],
    [
      'a field that is longer than an argument may be',
      '"note" has 16385 bytes in BCS: an argument has at most 16384',
      () =>
        signedArguments(new Transaction(), { ...answer, data: { ...data, note: 'x'.repeat(16_383) } }, Award),
    ],
    [
      'a type that is not a struct',
      'the signed type u64 must be a bcs.struct: a Move function takes its fields as arguments',
      () => signedArguments(new Transaction(), { ...answer, intent: 0, data: 7 }, signedType(0, u64)),
    ],
    [
      'a type that changes the whole payload',
      'the signed type Point must be a bcs.struct: a Move function takes its fields as arguments',
      () => {
        const point = bcs.struct('Point', { x: u64, y: u64 });
        const swapped = point.transform({ input: (v: { x: number; y: number }) => ({ x: v.y, y: v.x }) });
        const pairAnswer = { ...answer, intent: 0, data: { x: 1, y: 2 } };
        return signedArguments(new Transaction(), pairAnswer, signedType(0, swapped));
      },
    ],
  ])('%s', (_, message, make) => {
    expect(make).toThrow(refused(message));
  });
});
