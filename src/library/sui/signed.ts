/** Turns a signed answer into the arguments of a Move call. Browser-safe. */
import { type BcsType, BcsWriter } from '@mysten/bcs';
import type { Transaction, TransactionArgument } from '@mysten/sui/transactions';
import type { U64Input } from '../wire/bcs.ts';
import type { SignedType } from '../wire/intent.ts';
import { pureArgument } from './arguments.ts';
import { checkBytes, encodeU64, invalidValue } from './values.ts';

/** A signed answer, as `EnclaveClient` returns it. */
export interface SubmittedAnswer<Data> {
  /** The signed data, as the schema describes them. */
  readonly data: Data;
  /** First byte of the signed message. If it is set, it must equal the intent of the signed type. */
  readonly intent?: number;
  /** Signed time of the data, in milliseconds since 1970. */
  readonly timestampMs: U64Input;
  /** The enclave's signature, 64 bytes. */
  readonly signature: Uint8Array;
}

/**
 * Values that a Move call takes as one argument, unlike a struct: numbers, text, bytes, vectors, options,
 * enums.
 */
type SingleArgument =
  | string
  | number
  | bigint
  | boolean
  | null
  | undefined
  | Uint8Array
  | readonly unknown[]
  | ReadonlyMap<unknown, unknown>
  | { readonly $kind: string };

type IsStruct<Value> = Value extends SingleArgument ? false : true;

/**
 * One argument for each field, by its name. A field that is a struct has an argument for each of its own
 * fields.
 */
export type FieldArguments<Data> = {
  readonly [Name in keyof Data]: IsStruct<Data[Name]> extends true
    ? FieldArguments<Data[Name]>
    : TransactionArgument;
};

/** Arguments of a Move call that passes on a signed answer. */
export interface SignedArguments<Data> {
  /** Fields of the payload, in the order of the struct. */
  readonly data: FieldArguments<Data>;
  /** Signed time of the data, a `u64` of milliseconds since 1970. */
  readonly timestampMs: TransactionArgument;
  /** The enclave's signature, a `vector<u8>` or `&vector<u8>`. */
  readonly signature: TransactionArgument;
}

/**
 * Returns the arguments for a Move function of any module that verifies a signed answer: the fields of the
 * signed type, which the function puts into its struct, the time and the signature. Pass them in the order of
 * your function's parameters, with the objects that it takes.
 *
 * The signed type writes each field in BCS, so that the submitter can neither round nor rename anything. Sui
 * takes numbers, bool, address, ID, String, and vectors and options of these as arguments, of at most 16,384
 * bytes each.
 *
 * @example
 * const { data, timestampMs, signature } = signedArguments(tx, answer, Award);
 * tx.moveCall({
 *   target: `${appPackage}::rewards::award`,
 *   arguments: [
 *     tx.object(rewardsId),
 *     data.nonce,
 *     data.recipient,
 *     data.points,
 *     timestampMs,
 *     signature,
 *     tx.object(enclaveId),
 *     tx.object(configId),
 *     tx.object.clock(),
 *   ],
 * });
 *
 * @param schema the type that the enclave signs; its payload is a `bcs.struct`
 * @throws SuiError: SUI_VALUE for a value that the type can't hold, and for an intent other than the type's
 */
export function signedArguments<Data, Input>(
  tx: Transaction,
  answer: SubmittedAnswer<NoInfer<Input>>,
  schema: SignedType<Data, Input>,
): SignedArguments<Data> {
  if (answer.intent !== undefined && answer.intent !== schema.intent) {
    throw invalidValue(
      `the answer has the intent ${answer.intent}, but the signed type has the intent ${schema.intent}`,
    );
  }
  const timestampMs = encodeU64('the timestamp', answer.timestampMs);
  const signature = checkBytes('the signature', answer.signature, { min: 64, max: 64 });
  const data = readFields(schema.payload, answer.data);
  return {
    data: createArguments(tx, data) as FieldArguments<Data>,
    timestampMs: tx.pure(timestampMs),
    signature: tx.pure.vector('u8', signature),
  };
}

/** A field in BCS, or the fields of a field that is a struct. */
type Field = Uint8Array | Fields;
interface Fields extends ReadonlyMap<string, Field> {}

function createArguments(tx: Transaction, fields: Fields): Record<string, unknown> {
  const values = [...fields].map(([name, field]) => [
    name,
    field instanceof Uint8Array ? pureArgument(tx, `"${name}"`, field) : createArguments(tx, field),
  ]);
  return Object.fromEntries(values);
}

/**
 * A read of a property while its object is serialized: the number of bytes written before, and the reads
 * within the property's value.
 */
interface Read {
  readonly at: number;
  readonly reads: Reads;
}
type Reads = Map<string, Read>;

/**
 * Returns the fields of a struct, each in BCS. A `bcs.struct` doesn't reveal the types of its fields. But it
 * reads each field from the value just before it writes it, and writes the fields one after the other.
 * Therefore, the reads show where each field starts.
 */
function readFields<Input>(payload: BcsType<unknown, Input>, data: Input): Fields {
  const reads: Reads = new Map();
  const writer = new BcsWriter();
  try {
    payload.write(recordReads(data, writer, reads) as Input, writer);
  } catch (cause) {
    const [name = payload.name] = [...reads.keys()].slice(-1);
    throw invalidValue(`"${name}" is invalid: ${(cause as Error).message}`, { cause });
  }
  const bytes = writer.toBytes();
  const fields = splitFields(bytes, { at: 0, reads }, bytes.length);
  if (fields instanceof Uint8Array) {
    throw invalidValue(
      `the signed type ${payload.name} must be a bcs.struct: a Move function takes its fields as arguments`,
    );
  }
  return fields;
}

/**
 * Returns a copy of a plain object that records each read of a property, also in the plain objects within it.
 * Returns any other value unchanged.
 */
function recordReads(value: unknown, writer: BcsWriter, reads: Reads): unknown {
  if (!isPlain(value)) return value;
  return new Proxy(
    { ...value },
    {
      get(target, name) {
        const member = Reflect.get(target, name);
        if (typeof name === 'symbol') return member;
        const read: Read = { at: writer.toBytes().length, reads: new Map() };
        // Only the last read counts, since a type may read a field earlier to check it. Delete the earlier
        // read, since a Map keeps the first place of a key.
        reads.delete(name);
        reads.set(name, read);
        // The BCS types would write 0 for undefined.
        if (member === undefined) throw new TypeError('it is missing');
        return recordReads(member, writer, read.reads);
      },
    },
  );
}

function isPlain(value: unknown): value is object {
  if (typeof value !== 'object' || value === null) return false;
  const prototype = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}

/**
 * Returns the fields of a value that was written like a struct: from its start, one field after the other.
 * Returns the bytes of any other value.
 */
function splitFields(bytes: Uint8Array, { at: start, reads }: Read, end: number): Field {
  const starts = [...reads.values()].map(({ at }) => at);
  const isStruct = starts[0] === start && starts.every((at, index) => at < (starts[index + 1] ?? end));
  if (!isStruct) return bytes.slice(start, end);
  const fields = [...reads].map(
    ([name, read], index) => [name, splitFields(bytes, read, starts[index + 1] ?? end)] as const,
  );
  return new Map(fields);
}
