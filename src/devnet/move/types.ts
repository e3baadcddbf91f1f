/**
 * Parses and formats Move types, as `readModule` and gRPC write them. Derives their properties from the
 * datatypes of a chain's packages.
 */
import { normalizeSuiAddress } from '@mysten/sui/utils';
import type { Datatype } from '../bytecode/module_bytecode.ts';

export type MoveType =
  | { readonly kind: 'primitive'; readonly name: string }
  | { readonly kind: 'vector'; readonly of: MoveType }
  | { readonly kind: 'parameter'; readonly index: number }
  | { readonly kind: 'reference'; readonly isMutable: boolean; readonly of: MoveType }
  | Struct;

export interface Struct {
  readonly kind: 'struct';
  readonly address: string;
  readonly module: string;
  readonly name: string;
  readonly args: readonly MoveType[];
}

export interface Field {
  readonly name: string;
  readonly type: MoveType;
}

/** Fields of a struct, or for an enum the fields of each variant. */
export type Layout =
  | { readonly kind: 'struct'; readonly fields: readonly Field[] }
  | {
      readonly kind: 'enum';
      readonly variants: readonly { readonly name: string; readonly fields: readonly Field[] }[];
    };

export const ABILITY = { copy: 1, drop: 2, store: 4, key: 8 } as const;
const VALUE = ABILITY.copy | ABILITY.drop | ABILITY.store;
const PRIMITIVES = new Set(['bool', 'u8', 'u16', 'u32', 'u64', 'u128', 'u256', 'address', 'signer']);

/** Splits a text at the commas outside brackets. */
export function splitList(text: string): string[] {
  const parts: string[] = [];
  let depth = 0;
  let from = 0;
  for (const [index, character] of [...text].entries()) {
    if ('<{'.includes(character)) depth += 1;
    else if ('>}'.includes(character)) depth -= 1;
    else if (character === ',' && depth === 0) {
      parts.push(text.slice(from, index));
      from = index + 1;
    }
  }
  return [...parts, text.slice(from)].map((part) => part.trim()).filter((part) => part !== '');
}

/** Parses a type. @throws TypeError for a text that is not a type */
export function parseType(text: string): MoveType {
  const [, reference, typeText = text] = /^(&(?:mut )?)(.*)$/.exec(text) ?? [];
  if (reference !== undefined)
    return { kind: 'reference', isMutable: reference !== '&', of: parseType(typeText) };
  if (PRIMITIVES.has(text)) return { kind: 'primitive', name: text };
  const [, index] = /^T(\d+)$/.exec(text) ?? [];
  if (index !== undefined) return { kind: 'parameter', index: Number(index) };
  const [, name = '', args = ''] = /^([^<]+)(?:<(.*)>)?$/.exec(text) ?? [];
  const parsedArguments = splitList(args).map(parseType);
  const [elementType] = parsedArguments;
  if (name === 'vector' && elementType !== undefined) return { kind: 'vector', of: elementType };
  const [address = '', module, struct, ...surplus] = name.split('::');
  if (module === undefined || struct === undefined || surplus.length > 0)
    throw new TypeError(`${text} is not a Move type`);
  const hex = address.startsWith('0x') ? address : `0x${address}`;
  return { kind: 'struct', address: normalizeSuiAddress(hex), module, name: struct, args: parsedArguments };
}

const parsedTypes = new Map<string, MoveType>();

/**
 * Parses a type of a module, and caches the parsed type, since instructions often name the same types.
 */
export function parseTypeOnce(text: string): MoveType {
  const type = parsedTypes.get(text) ?? parseType(text);
  parsedTypes.set(text, type);
  return type;
}

/** Replaces the type parameters of a type by arguments. */
export function instantiate(type: MoveType, args: readonly MoveType[]): MoveType {
  switch (type.kind) {
    case 'primitive':
      return type;
    case 'parameter':
      return args[type.index] ?? type;
    case 'struct':
      return { ...type, args: type.args.map((arg) => instantiate(arg, args)) };
    default:
      return { ...type, of: instantiate(type.of, args) };
  }
}

/** Replaces the structs that a type names. */
export function mapStructs(type: MoveType, change: (struct: Struct) => Struct): MoveType {
  switch (type.kind) {
    case 'primitive':
    case 'parameter':
      return type;
    case 'struct':
      return change({ ...type, args: type.args.map((arg) => mapStructs(arg, change)) });
    default:
      return { ...type, of: mapStructs(type.of, change) };
  }
}

/** Formats a type in the way that nodes write the type of an object. */
export function format(type: MoveType): string {
  switch (type.kind) {
    case 'primitive':
      return type.name;
    case 'parameter':
      return `T${type.index}`;
    case 'vector':
      return `vector<${format(type.of)}>`;
    case 'reference':
      return `&${type.isMutable ? 'mut ' : ''}${format(type.of)}`;
    case 'struct':
      return `${type.address}::${type.module}::${type.name}${formatTypeArguments(type.args)}`;
  }
}

export function formatTypeArguments(types: readonly MoveType[]): string {
  return types.length === 0 ? '' : `<${types.map(format).join(',')}>`;
}

/** Returns the type without its reference, if it has one. */
export function valueType(type: MoveType): MoveType {
  return type.kind === 'reference' ? type.of : type;
}

/** Finds a datatype by its module (address and name), and by its own name. */
export type FindDatatype = (module: string, name: string) => Datatype | undefined;

/** Datatypes that a transaction can name. */
export class Datatypes {
  readonly #find: FindDatatype;
  readonly #layouts = new Map<Datatype, Layout>();

  constructor(find: FindDatatype) {
    this.#find = find;
  }

  /** @throws TypeError for a type that no module declares */
  of({ address, module, name }: Struct): Datatype {
    const datatype = this.#find(`${address}::${module}`, name);
    if (datatype === undefined) throw new TypeError(`no module declares ${address}::${module}::${name}`);
    return datatype;
  }

  findLayout(struct: Struct): Layout {
    const datatype = this.of(struct);
    const layout = this.#layouts.get(datatype) ?? parseLayout(datatype);
    this.#layouts.set(datatype, layout);
    return layout;
  }

  /**
   * Computes an instance's abilities in the same way as Sui. A non-phantom argument must have the abilities
   * that the type promises.
   */
  abilitiesOf(type: MoveType): number {
    if (type.kind === 'vector') return VALUE & this.abilitiesOf(type.of);
    if (type.kind !== 'struct') return type.kind === 'primitive' && type.name === 'signer' ? 2 : VALUE;
    const { abilities, typeParameters } = this.of(type);
    const inner = typeParameters
      .split(',')
      .flatMap((parameter, index) => (parameter.endsWith('phantom') ? [] : (type.args[index] ?? [])))
      .map((argument) => this.abilitiesOf(argument));
    const commonAbilities = inner.reduce((all, abilities) => all & abilities, VALUE);
    // An instance has `key` only if its type arguments have `store`.
    const key = (commonAbilities & ABILITY.store) === 0 ? 0 : ABILITY.key;
    return abilities & (commonAbilities | key);
  }
}

/** Parses the layout in the form that `readModule` writes. */
export function parseLayout({ layout }: Datatype): Layout {
  const [, kind, body = ''] = /^(struct|enum) \{(.*)\}$/.exec(layout) ?? [];
  if (kind === 'struct') return { kind, fields: parseFields(body) };
  const variants = splitList(body).map((text) => {
    const [, name = '', fields = ''] = /^(\w+) \{(.*)\}$/.exec(text) ?? [];
    return { name, fields: parseFields(fields) };
  });
  return { kind: 'enum', variants };
}

function parseFields(text: string): Field[] {
  return splitList(text).map((field) => {
    const colon = field.indexOf(': ');
    return { name: field.slice(0, colon), type: parseType(field.slice(colon + 2)) };
  });
}
