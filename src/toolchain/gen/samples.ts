/** Makes fixed values of signed types, to test that all languages encode them in the same bytes. */
import { type DeclaredStruct, signedType } from 'sui-enclave/wire/intent';
import { type SchemaField, toSchemaType, unwrapType } from 'sui-enclave/wire/schema_type';
import { struct } from 'sui-enclave/wire/struct';
import { itemOf, snakeCase } from './signed_structs.ts';

/** A value, both in JSON and for the codec: a large integer is decimal, and bytes are a list. */
export type Sample =
  | string
  | number
  | boolean
  | null
  | readonly Sample[]
  | { readonly [name: string]: Sample };

export interface Vector {
  /** Name of the vector, such as `price_zeros`. */
  readonly name: string;
  /** Name of the type in Move. */
  readonly type: string;
  readonly intent: number;
  /** Time of the signature, in decimal. */
  readonly timestamp_ms: string;
  readonly payload: { readonly [name: string]: Sample };
  /** BCS of the whole message, in hexadecimal. */
  readonly bytes: string;
}

/** Kinds of values. Only the second kind reveals swapped fields. */
const KINDS = ['zeros', 'different', 'largest'] as const;
type Kind = (typeof KINDS)[number];

const TIMES: Readonly<Record<Kind, string>> = {
  zeros: '0',
  different: '1700000000000',
  largest: String(2n ** 64n - 1n),
};
/** Length of a list whose own encoding in BCS takes two bytes. */
const LONG = 130;

export function createVectors(signed: readonly DeclaredStruct[]): Vector[] {
  return signed.flatMap((type) => {
    const { intent, name, fields } = toSchemaType(type);
    const codecs = type.payload.fields.map((field) => [field.name, field.type] as const);
    const { message } = signedType(intent, struct(name, Object.fromEntries(codecs)));
    return KINDS.map((kind): Vector => {
      const values = {
        intent,
        timestamp_ms: TIMES[kind],
        payload: createStruct(fields, kind, new Counter()),
      };
      const bytes = message.serialize(values).toHex();
      return { name: `${snakeCase(name)}_${kind}`, type: name, ...values, bytes };
    });
  });
}

/** Counts from 1, so that all numbers differ. */
class Counter {
  #last = 0;

  next(): number {
    this.#last += 1;
    return this.#last;
  }
}

function createStruct(
  fields: readonly SchemaField[],
  kind: Kind,
  counter: Counter,
): { [name: string]: Sample } {
  return Object.fromEntries(fields.map((field) => [field.name, createSample(field, kind, counter)]));
}

function createSample(field: SchemaField, kind: Kind, counter: Counter): Sample {
  const { type, fields } = field;
  const [wrapper] = unwrapType(type).wrappers;
  if (type === 'vector<u8>') return createBytes(kind, counter);
  const createElement = () => createSample(itemOf(field), kind, counter);
  if (wrapper === 'Option') return kind === 'zeros' ? null : createElement();
  if (wrapper === 'vector') return kind === 'zeros' ? [] : [createElement(), createElement()];
  if (fields !== undefined) return createStruct(fields, kind, counter);
  return createPlain(type, kind, counter);
}

function createPlain(type: string, kind: Kind, counter: Counter): Sample {
  if (type === 'bool') return { zeros: false, different: counter.next() % 2 === 1, largest: true }[kind];
  if (type === 'String')
    return { zeros: '', different: `Zürich ${counter.next()} 東京 🌤`, largest: 'a'.repeat(LONG) }[kind];
  const bits = type === 'address' ? 256 : Number(type.slice(1));
  const value = { zeros: 0n, different: BigInt(counter.next()), largest: 2n ** BigInt(bits) - 1n }[kind];
  if (type === 'address') return `0x${value.toString(16).padStart(64, '0')}`;
  return bits <= 32 ? Number(value) : String(value);
}

function createBytes(kind: Kind, counter: Counter): Sample {
  if (kind === 'zeros') return [];
  return kind === 'different' ? [counter.next(), 0] : Array.from({ length: LONG }, () => 255);
}
