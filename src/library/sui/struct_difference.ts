/** Compares what an enclave signs with what a contract on Sui reads. Browser-safe. */
import { isPlainType, type SchemaField, type SchemaStruct, unwrapped } from '../wire/schema_type.ts';

/** The type of a field as a node's gRPC interface gives it (`sui.rpc.v2.OpenSignatureBody`). */
export interface OnChainType {
  /** The number of `OpenSignatureBody.Type`. */
  readonly type?: number;
  /** Full name of a datatype, such as `0x1::string::String`. */
  readonly typeName?: string;
  /** Type arguments, such as the type of the items of a vector. */
  readonly typeParameterInstantiation: readonly OnChainType[];
}

/** A struct as a node's gRPC interface gives it (`sui.rpc.v2.DatatypeDescriptor`), by `getDatatype`. */
export interface OnChainStruct {
  /** Name of the struct in Move. */
  readonly name?: string;
  /** 1 for a struct, 2 for an enum. */
  readonly kind?: number;
  /** Type parameters of the struct; a signed type has none. */
  readonly typeParameters: readonly unknown[];
  /** Fields with their names, positions and types. */
  readonly fields: readonly {
    readonly name?: string;
    readonly position?: number;
    readonly type?: OnChainType;
  }[];
}

const STRUCT_KIND = 1;
const VECTOR = 9;
const DATATYPE = 10;
/** Plain types by their number in `OpenSignatureBody.Type`. */
const PLAIN: Readonly<Record<number, string>> = {
  1: 'address',
  2: 'bool',
  3: 'u8',
  4: 'u16',
  5: 'u32',
  6: 'u64',
  7: 'u128',
  8: 'u256',
};
const SHORT = /^0x0*([0-9a-f]+)(::.*)$/;
const MAX_NAME_LENGTH = 128;

/**
 * Describes in one sentence how a signed type differs from a struct on chain: another name, field, order or
 * type. A contract whose struct differs rebuilds other bytes than the enclave signed, and refuses every
 * answer.
 *
 * An `ID` on chain is equal to an address: it has the same bytes.
 *
 * Exported as `sui-enclave/sui`.
 *
 * @param type of a schema: `SchemaType`
 * @param onChain as `client.movePackageService.getDatatype` returns it
 * @param nested every struct within it, in the same form. A struct that is missing here counts as a
 *   difference
 * @returns undefined if they are equal
 */
export function structDifference(
  type: SchemaStruct,
  onChain: OnChainStruct,
  nested: readonly OnChainStruct[] = [],
): string | undefined {
  return describeDifference(type, onChain, nested, MAX_NESTING);
}

/** A struct can't contain itself in Move: only a node that lies answers with more. */
const MAX_NESTING = 16;

function describeDifference(
  { name, fields }: SchemaStruct,
  onChain: OnChainStruct,
  nested: readonly OnChainStruct[],
  depth: number,
): string | undefined {
  const chainName = formatName(onChain.name);
  if (chainName !== name) return `the signed type is ${name}, and the struct on chain ${chainName}`;
  if (onChain.kind !== undefined && onChain.kind !== STRUCT_KIND) return `${name} on chain is not a struct`;
  if (onChain.typeParameters.length > 0) return `${name} on chain has type parameters`;
  if (depth === 0) return `${name} nests too deep`;
  // The node chooses the order of fields in its answer. The order of their bytes is that of the positions.
  const chainFields = [...onChain.fields].sort((a, b) => (a.position ?? 0) - (b.position ?? 0));
  for (const [index, field] of fields.entries()) {
    const chainField = chainFields[index];
    const place = `field ${index + 1} of ${name}`;
    if (chainField === undefined) return `${place}, ${field.name}, is not on chain`;
    const otherName = formatName(chainField.name);
    if (otherName !== field.name)
      return `${place} is signed as ${field.name}, and on chain it is ${otherName}`;
    const otherType = formatType(chainField.type, MAX_NESTING);
    if (otherType !== field.type) {
      return `${name}.${field.name} is signed as ${field.type}, and on chain it is ${otherType}`;
    }
    const difference = nestedDifference(field, nested, depth - 1);
    if (difference !== undefined) return difference;
  }
  const extra = chainFields[fields.length];
  return extra === undefined ? undefined : `${name} on chain has one more field, ${formatName(extra.name)}`;
}

function nestedDifference(
  { type, fields }: SchemaField,
  nested: readonly OnChainStruct[],
  depth: number,
): string | undefined {
  if (fields === undefined) return undefined;
  const { leaf } = unwrapped(type);
  const onChain = nested.find(({ name }) => name === leaf);
  if (onChain === undefined) return `the struct ${leaf} on chain was not read`;
  return describeDifference({ name: leaf, fields }, onChain, nested, depth);
}

/** Returns a type as Move's sources write it, and spells out in full what a schema can't have. */
function formatType(type: OnChainType | undefined, depth: number): string {
  if (type?.type === undefined || depth === 0) return 'unknown';
  const plain = PLAIN[type.type];
  if (plain !== undefined) return plain;
  const typeArguments = type.typeParameterInstantiation.map((typeArgument) =>
    formatType(typeArgument, depth - 1),
  );
  if (type.type === VECTOR) return `vector<${typeArguments.join(', ')}>`;
  if (type.type !== DATATYPE) return 'unknown';
  const [, address = '', path = ''] = SHORT.exec(type.typeName ?? '') ?? [];
  const full = `0x${address}${path}`;
  if (full === '0x1::string::String') return 'String';
  if (full === '0x2::object::ID') return 'address';
  if (full === '0x1::option::Option') return `Option<${typeArguments.join(', ')}>`;
  const name = formatName(path.split('::').at(-1));
  // No signed type has a struct of the framework, a contract's own struct called String, or one with
  // parameters.
  const isForeign = address === '1' || address === '2' || isPlainType(name) || typeArguments.length > 0;
  return isForeign ? bounded(typeArguments.length > 0 ? `${full}<${typeArguments.join(', ')}>` : full) : name;
}

/** Returns a name from a node, cut to 128 characters; `unknown` for a text that is not a name. */
function formatName(name: string | undefined): string {
  return /^[A-Za-z_][A-Za-z0-9_]*$/.test(name ?? '') ? bounded(name ?? '') : 'unknown';
}

function bounded(text: string): string {
  return text.slice(0, MAX_NAME_LENGTH);
}
