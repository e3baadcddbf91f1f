/** Makes the codec of a signed type that a schema describes. */
import { type BcsType, bcs } from '@mysten/bcs';
import { type SchemaType, type SignedType, signedType, text, u8, u64 } from 'sui-enclave/client';
import { fromHex, toHex } from '../lib/bytes.ts';

/** Type of a value that is known only at run time. */
// biome-ignore lint/suspicious/noExplicitAny: BcsType is invariant in its value, which no type can name here.
type AnyType = BcsType<any>;
type Field = SchemaType['fields'][number];

/** Codec of Move's `address`. In JSON, it is `0x` with hexadecimal digits. */
const address = bcs.bytes(32).transform({
  name: 'address',
  input: (value: string) => fromHex(value) ?? new Uint8Array(),
  output: (value) => `0x${toHex(value)}`,
});

const PLAIN: ReadonlyMap<string, AnyType> = new Map<string, AnyType>(
  Object.entries({
    bool: bcs.bool(),
    u8,
    u16: bcs.u16(),
    u32: bcs.u32(),
    u64,
    u128: bcs.u128(),
    u256: bcs.u256(),
    address,
    String: text,
    'vector<u8>': bcs.byteVector(),
  }),
);

/**
 * Creates the codec of a type in a schema that `readSchema` returned.
 *
 * @throws TypeError for an unknown type
 */
export function createSignedType({ intent, name, fields }: SchemaType): SignedType<unknown, unknown> {
  return signedType(intent, createStruct(name, fields));
}

function createStruct(name: string, fields: readonly Field[]): AnyType {
  return bcs.struct(
    name,
    Object.fromEntries(fields.map((field) => [field.name, createType(field.type, field)])),
  );
}

function createType(type: string, field: Field): AnyType {
  const plain = PLAIN.get(type);
  if (plain) return plain;
  const [, wrapper, innerType = ''] = /^(vector|Option)<(.*)>$/s.exec(type) ?? [];
  if (wrapper === 'vector') return bcs.vector(createType(innerType, field));
  if (wrapper === 'Option') return bcs.option(createType(innerType, field));
  if (field.fields === undefined) throw new TypeError('the schema has an unknown type');
  return createStruct(type, field.fields);
}
