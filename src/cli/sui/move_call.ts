/**
 * Reads the declaration of a Move function that verifies a signed answer. The types alone give the meaning of
 * its parameters.
 */

import { type BcsType, bcs } from '@mysten/sui/bcs';
import { normalizeStructTag } from '@mysten/sui/utils';
import { type SignedType, signedType } from 'sui-enclave/wire/intent';
import { quantity } from 'sui-enclave/wording';
import type { Datatype, ModuleInterface, PublicFunction } from 'sui-enclave-devnet/bytecode/module_bytecode';
import { SuiCommandError } from './errors.ts';
import type { AnyRoles } from './move_function.ts';
import { splitTypes, valueType } from './move_types.ts';

/** Meaning of an argument of a Move function. */
export type Role =
  | { readonly kind: 'value'; readonly index: number }
  | { readonly kind: 'timestamp' | 'signature' }
  | { readonly kind: 'enclave' | 'config' | 'clock' | 'random' }
  | {
      readonly kind: 'object';
      readonly type: string;
      /** Whether the function takes the object by value or by a mutable reference. */
      readonly isMutable: boolean;
    };

export interface MoveCall {
  /** Roles of the arguments in order, without the TxContext. */
  readonly roles: readonly Role[];
  /** Types of the values that the enclave signs, in order. */
  readonly values: readonly string[];
  /** The type for which the enclave is registered: `T` of Enclave<T>, or a type parameter such as `T0`. */
  readonly application: string;
  readonly typeParameters: number;
  /** Names of the structs of its module that the function itself creates. */
  readonly packed: readonly string[];
  /** For each returned value in order, whether it must be transferred to the sender. */
  readonly returns: readonly boolean[];
}

const CLOCK = normalizeStructTag('0x2::clock::Clock');
const RANDOM = normalizeStructTag('0x2::random::Random');
const CONTEXT = normalizeStructTag('0x2::tx_context::TxContext');
export const DROP = 2;
const STORE = 4;
export const KEY = 8;

function createFunctionError(name: string, reason: string): SuiCommandError {
  return new SuiCommandError('FUNCTION', `${name} can't be called with a signed answer here: ${reason}`);
}

/**
 * Returns the meaning of a function's parameters.
 *
 * @param name name of the function in the module
 * @param otherModules the other modules of its package
 * @throws SuiCommandError: FUNCTION
 */
export function readMoveCall(
  module: ModuleInterface,
  name: string,
  otherModules: readonly ModuleInterface[] = [],
): MoveCall {
  const fullName = `${module.name}::${name}`;
  const declaration = findDeclaration(module, name, createFunctionError);
  const parameters = listParameters(declaration);
  const types = parameters.map(({ type }) => type);
  const isValue = (type: string) => valueType(type) !== undefined;
  const values = types.filter(isValue);
  if (values.at(-1) !== 'vector<u8>' || values.at(-2) !== 'u64') {
    throw createFunctionError(
      fullName,
      'its last two values must be timestamp_ms: u64 and sig: &vector<u8>, after the signed values',
    );
  }
  const enclaves = types.flatMap((type) => /^0x\w+::enclave::Enclave<(.*)>$/.exec(type)?.[1] ?? []);
  const [application] = enclaves;
  if (application === undefined || enclaves.length > 1)
    throw createFunctionError(fullName, 'it must take one Enclave<T>');
  let index = 0;
  const roles = parameters.map(({ type, isMutable }): Role => {
    if (!isValue(type)) return objectRole(type, isMutable);
    index += 1;
    if (index === values.length) return { kind: 'signature' };
    return index === values.length - 1 ? { kind: 'timestamp' } : { kind: 'value', index: index - 1 };
  });
  return {
    roles,
    values: values.slice(0, -2),
    application,
    typeParameters: declaration.constraints.length,
    packed: module.packed.get(name) ?? [],
    returns: splitTypes(declaration.returns).map((type) => isTransferable(type, [module, ...otherModules])),
  };
}

/**
 * Returns the declaration of a public or entry function.
 *
 * @param refuse creates the error for a function that can't be called
 * @throws SuiCommandError: FUNCTION
 */
export function findDeclaration(
  module: ModuleInterface,
  name: string,
  refuse: (name: string, reason: string) => SuiCommandError,
): PublicFunction {
  const declaration = module.callable.get(name);
  if (declaration !== undefined) return declaration;
  const names = [...module.callable.keys()].join(', ') || 'none';
  throw refuse(`${module.name}::${name}`, `the module has no such public or entry function; it has ${names}`);
}

/** A parameter of a function. */
export interface Parameter {
  /** Type of the parameter, without a reference. */
  readonly type: string;
  readonly isReference: boolean;
  /** Whether the function takes it by value or by a mutable reference. */
  readonly isMutable: boolean;
}

/** Lists the parameters of a function in order, without the TxContext. */
export function listParameters({ parameters }: PublicFunction): Parameter[] {
  return splitTypes(parameters)
    .map((text) => ({
      type: text.replace(/^&(mut )?/, ''),
      isReference: text.startsWith('&'),
      isMutable: !/^&(?!mut )/.test(text),
    }))
    .filter(({ type }) => type !== CONTEXT);
}

/** Returns the role of an argument that is not a value. */
export function objectRole(
  type: string,
  isMutable: boolean,
): Extract<Role, { kind: 'enclave' | 'config' | 'clock' | 'random' | 'object' }> {
  if (type === CLOCK) return { kind: 'clock' };
  if (type === RANDOM) return { kind: 'random' };
  if (/^0x\w+::enclave::Enclave</.test(type)) return { kind: 'enclave' };
  if (/^0x\w+::enclave::EnclaveConfig</.test(type)) return { kind: 'config' };
  return { kind: 'object', type, isMutable };
}

/**
 * Returns whether the sender of a transaction must get a returned value: it has `key` and `store`, or its
 * type is of another package, where its abilities are unknown.
 */
export function isTransferable(type: string, modules: readonly ModuleInterface[]): boolean {
  if (valueType(type) !== undefined) return false;
  const datatype = findDatatype(type, modules);
  return datatype === undefined || (datatype.abilities & (KEY | STORE)) === (KEY | STORE);
}

/** Returns a datatype of the package; undefined for other types. */
export function findDatatype(type: string, modules: readonly ModuleInterface[]): Datatype | undefined {
  const [, address, moduleName, name = ''] = /^(0x\w+)::(\w+)::(\w+)(?:<.*>)?$/.exec(type) ?? [];
  const definingModule = modules.find((module) => module.address === address && module.name === moduleName);
  return definingModule?.datatypes.get(name);
}

/**
 * Returns the objects of the command line. If the command line names none, takes them from the deployment
 * file: for each object that the function takes, the only object of its type in the file.
 */
export function chooseObjects(
  { roles }: AnyRoles,
  optionIds: readonly string[],
  recordedObjects: readonly { readonly id: string; readonly type: string }[],
): readonly string[] {
  if (optionIds.length > 0) return optionIds;
  return roles.flatMap((role) => {
    const matches = role.kind === 'object' ? recordedObjects.filter(({ type }) => type === role.type) : [];
    return matches.length === 1 ? matches.map(({ id }) => id) : [];
  });
}

/** The signed fields, by their names. */
export type Answer = Record<string, unknown>;

/** Intent of the signed type, and the struct that names its fields, or the names of the fields in order. */
export interface Naming {
  readonly intent: number;
  readonly struct?: string | undefined;
  readonly fields?: readonly string[] | undefined;
}

/**
 * Returns the type that the enclave signs. Without `fields`, its field names come from a struct whose fields
 * have the types of the signed values, in order; the first value may also be a nonce (`enclave::once`), which
 * the struct lacks. Structs that the function creates come first, then other structs of its module, and then
 * those of other modules. It is an error if several structs fit but name their fields differently.
 *
 * @param otherModules the other modules of the package
 * @throws SuiCommandError: FUNCTION
 */
export function createSignedType(
  module: ModuleInterface,
  call: MoveCall,
  { intent, struct, fields }: Naming,
  otherModules: readonly ModuleInterface[] = [],
): { readonly names: readonly string[]; readonly schema: SignedType<Answer, Answer> } {
  const { values } = call;
  const names = fields ?? findNames(module, call, struct, otherModules);
  if (names.length !== values.length || new Set(names).size < names.length) {
    const types = values.join(', ');
    throw createFunctionError(
      module.name,
      `the enclave signs ${quantity(values.length, 'field')} (${types}): name each once by --fields`,
    );
  }
  const types = Object.fromEntries(names.map((name, index) => [name, valueType(values[index] ?? '')]));
  const payload = bcs.struct(struct ?? 'the signed type', types as never) as unknown as BcsType<
    Answer,
    Answer
  >;
  return { names, schema: signedType(intent, payload) };
}

function findNames(
  module: ModuleInterface,
  { values, packed }: MoveCall,
  struct: string | undefined,
  otherModules: readonly ModuleInterface[],
): string[] {
  const moduleStructs = findStructs([module], values, struct);
  const createdStructs = moduleStructs.filter(({ name }) => packed.includes(name));
  const candidates =
    [createdStructs, moduleStructs, findStructs(otherModules, values, struct)].find(
      ({ length }) => length > 0,
    ) ?? [];
  const [first] = candidates;
  const isUnique = candidates.every(({ names }) => names.join() === first?.names.join());
  if (first !== undefined && isUnique) return first.names;
  const signed = values.join(', ') || 'nothing';
  throw createFunctionError(
    module.name,
    first === undefined
      ? `${struct === undefined ? 'no struct of the package has' : `${struct} does not have`} the fields ${signed}: name the fields of the answer by --fields`
      : `several structs have the fields ${signed}: name one of them by --struct: ${candidates.map(({ name }) => name).join(', ')}`,
  );
}

function findStructs(
  modules: readonly ModuleInterface[],
  values: readonly string[],
  struct: string | undefined,
): { readonly name: string; readonly names: string[] }[] {
  const datatypes = modules.flatMap((module) => [...module.datatypes]);
  return datatypes.flatMap(([name, { abilities, layout }]) => {
    const [, list] = /^struct \{(.*)\}$/.exec(layout) ?? [];
    if (list === undefined || (abilities & KEY) !== 0 || (struct !== undefined && name !== struct)) return [];
    const fields = splitTypes(list).map((field) => field.split(': ') as [string, string]);
    const types = fields.map(([, type]) => type).join();
    const names = fields.map(([field]) => field);
    if (fields.length > 0 && types === values.join()) return [{ name, names }];
    const [firstType, ...followingTypes] = values;
    return firstType === 'vector<u8>' && fields.length > 0 && types === followingTypes.join()
      ? [{ name, names: ['nonce', ...names] }]
      : [];
  });
}
