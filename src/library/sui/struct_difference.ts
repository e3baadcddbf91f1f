/** Compares what an enclave signs with what a contract on Sui reads. Browser-safe. */
import { isPlainType, type SchemaField, type SchemaStruct, unwrapType } from '../wire/schema_type.ts';

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
const TYPE_NAME = /^0x0*([0-9a-f]+)(::.*)$/;
const MAX_NAME_LENGTH = 128;

/**
 * Describes in one sentence how a signed type differs from a struct on chain: in its name, or in the names,
 * the order or the types of its fields. A contract rebuilds the signed bytes from its own struct. If this
 * struct differs, so do the bytes, and the contract refuses every answer.
 *
 * An `ID` on chain is equal to an address: it has the same bytes.
 *
 * Exported from `sui-enclave/sui`.
 *
 * @param type signed type, as a `SchemaType` of a schema describes it
 * @param onChain as `client.movePackageService.getDatatype` returns it
 * @param nested every struct within the struct on chain, in the same form. A struct that is missing here
 *   counts as a difference
 * @returns undefined if they are equal
 */
export function structDifference(
  type: SchemaStruct,
  onChain: OnChainStruct,
  nested: readonly OnChainStruct[] = [],
): string | undefined {
  return describeDifference(type, onChain, nested, MAX_NESTING);
}

/**
 * Maximum nesting of structs. It ends the comparison if a lying node describes a struct that contains itself,
 * which Move does not permit.
 */
const MAX_NESTING = 16;

function describeDifference(
  { name, fields }: SchemaStruct,
  onChain: OnChainStruct,
  nested: readonly OnChainStruct[],
  depth: number,
): string | undefined {
  const chainName = formatName(onChain.name);
  if (chainName !== name) return `the signed type is ${name}, but the struct on chain is ${chainName}`;
  if (onChain.kind !== undefined && onChain.kind !== STRUCT_KIND) return `${name} on chain is not a struct`;
  if (onChain.typeParameters.length > 0) return `${name} on chain has type parameters`;
  if (depth === 0) return `${name} is nested too deeply`;
  // The node chooses the order of fields in its answer. Their bytes follow the order of the positions.
  const chainFields = [...onChain.fields].sort((a, b) => (a.position ?? 0) - (b.position ?? 0));
  for (const [index, field] of fields.entries()) {
    const chainField = chainFields[index];
    const place = `field ${index + 1} of ${name}`;
    if (chainField === undefined) return `${place}, ${field.name}, is not on chain`;
    const chainFieldName = formatName(chainField.name);
    if (chainFieldName !== field.name)
      return `${place} is signed as ${field.name}, but on chain it is ${chainFieldName}`;
    const chainFieldType = formatType(chainField.type, MAX_NESTING);
    if (chainFieldType !== field.type) {
      return `${name}.${field.name} is signed as ${field.type}, but on chain it is ${chainFieldType}`;
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
  const { leaf } = unwrapType(type);
  const onChain = nested.find(({ name }) => name === leaf);
  if (onChain === undefined) return `the struct ${leaf} on chain was not read`;
  return describeDifference({ name: leaf, fields }, onChain, nested, depth);
}

/** Returns a type as Move's sources write it. A type that a schema can't have gets its full name. */
function formatType(type: OnChainType | undefined, depth: number): string {
  if (type?.type === undefined || depth === 0) return 'unknown';
  const plain = PLAIN[type.type];
  if (plain !== undefined) return plain;
  const typeArguments = type.typeParameterInstantiation.map((typeArgument) =>
    formatType(typeArgument, depth - 1),
  );
  if (type.type === VECTOR) return `vector<${typeArguments.join(', ')}>`;
  if (type.type !== DATATYPE) return 'unknown';
  const [, address = '', path = ''] = TYPE_NAME.exec(type.typeName ?? '') ?? [];
  const full = `0x${address}${path}`;
  if (full === '0x1::string::String') return 'String';
  if (full === '0x2::object::ID') return 'address';
  if (full === '0x1::option::Option') return `Option<${typeArguments.join(', ')}>`;
  const name = formatName(path.split('::').at(-1));
  // A signed type never contains a struct of Move's libraries, a contract's own struct with the name of a
  // plain type (such as String), or a struct with type arguments.
  const isForeign = address === '1' || address === '2' || isPlainType(name) || typeArguments.length > 0;
  return isForeign
    ? truncateName(typeArguments.length > 0 ? `${full}<${typeArguments.join(', ')}>` : full)
    : name;
}

/** Returns a name from a node, cut to 128 characters; `unknown` for a text that is not a name. */
function formatName(name: string | undefined): string {
  return /^[A-Za-z_][A-Za-z0-9_]*$/.test(name ?? '') ? truncateName(name ?? '') : 'unknown';
}

function truncateName(text: string): string {
  return text.slice(0, MAX_NAME_LENGTH);
}
