/** A Move function that the holder of an EnclaveCap calls: the meaning of its parameters, by their types. */
import type { ModuleInterface } from 'sui-enclave-devnet/bytecode/module_bytecode';
import { SuiCommandError } from './errors.ts';
import {
  DROP,
  findDatatype,
  findDeclaration,
  isTransferable,
  KEY,
  listParameters,
  type MoveCall,
  objectRole,
  type Parameter,
  type Role,
} from './move_call.ts';
import { splitTypes, valueType } from './move_types.ts';

/** The kind of an argument. The types name `T` of a generic function as `T0`. */
export type AdminRole =
  | { readonly kind: 'capability' | 'config'; readonly type: string }
  | Extract<Role, { kind: 'object' }>
  | { readonly kind: 'clock' | 'random' };

export interface AdminCall extends Pick<MoveCall, 'typeParameters' | 'returns'> {
  /** Roles of the arguments in order, without the TxContext. */
  readonly roles: readonly AdminRole[];
}

const CAPABILITY = /^0x\w+::enclave::EnclaveCap<(.*)>$/;
const CONFIG = /^0x\w+::enclave::EnclaveConfig<(.*)>$/;
/** Matches the type parameter of a generic function, but no struct of that name. */
const TYPE_PARAMETER = /(?<![\w:])T0(?!\w)/g;

function createUnfitError(name: string, reason: string): SuiCommandError {
  return new SuiCommandError('FUNCTION', `${name} can't be called with an EnclaveCap here: ${reason}`);
}

/**
 * Describes the call of a function that takes an EnclaveCap.
 *
 * @param name name of the function in the module
 * @param otherModules the other modules of its package
 * @throws SuiCommandError: FUNCTION
 */
export function adminCall(
  module: ModuleInterface,
  name: string,
  otherModules: readonly ModuleInterface[] = [],
): AdminCall {
  const modules = [module, ...otherModules];
  const functionName = `${module.name}::${name}`;
  const declaration = findDeclaration(module, name, createUnfitError);
  const parameters = listParameters(declaration);
  const roles = parameters.filter(isPassable).map((parameter) => adminRole(parameter, functionName, modules));
  const value = parameters.find((parameter) => !isPassable(parameter));
  if (value !== undefined) {
    throw createUnfitError(
      functionName,
      `it takes a value (${value.type}), and this command passes objects alone`,
    );
  }
  const [capability, ...moreCapabilities] = listTypes(roles, 'capability');
  const [config, ...moreConfigs] = listTypes(roles, 'config');
  if (capability === undefined || moreCapabilities.length > 0) {
    throw createUnfitError(functionName, 'it must take one EnclaveCap<T>, as & or &mut');
  }
  if (moreConfigs.length > 0) throw createUnfitError(functionName, 'it takes more than one EnclaveConfig<T>');
  const application = findApplicationIn(capability);
  const configApplication = config === undefined ? application : CONFIG.exec(config)?.[1];
  if (configApplication !== application) {
    throw createUnfitError(
      functionName,
      `its EnclaveConfig is for ${configApplication}, and its EnclaveCap for ${application}`,
    );
  }
  const typeParameters = declaration.constraints.length;
  if (typeParameters > 1 || (typeParameters === 1 && application !== 'T0')) {
    throw createUnfitError(functionName, 'it has type parameters other than T of its EnclaveCap<T>');
  }
  const returned = splitTypes(declaration.returns);
  for (const type of returned) checkReturned(type, functionName, modules);
  return {
    roles,
    typeParameters,
    returns: returned.map((type) => isTransferable(type, modules)),
  };
}

/** Returns `T` of EnclaveCap<T>; undefined for another type. */
export function findApplicationIn(capabilityType: string): string | undefined {
  return CAPABILITY.exec(capabilityType)?.[1];
}

/** Returns the call of a generic function for an application. */
export function fillApplication(call: AdminCall, application: string): AdminCall {
  const roles = call.roles.map((role) =>
    'type' in role ? { ...role, type: role.type.replace(TYPE_PARAMETER, () => application) } : role,
  );
  return { ...call, roles };
}

/** Lists the types of the arguments of a kind. */
export function listTypes(roles: readonly AdminRole[], kind: AdminRole['kind']): string[] {
  return roles.flatMap((role) => (role.kind === kind && 'type' in role ? [role.type] : []));
}

/** Returns whether a parameter may be an object: it is not a value, a vector or a type parameter. */
function isPassable({ type }: Parameter): boolean {
  return valueType(type) === undefined && type.includes('::') && !type.startsWith('vector<');
}

function adminRole(
  { type, isReference, isMutable }: Parameter,
  functionName: string,
  modules: readonly ModuleInterface[],
): AdminRole {
  const datatype = findDatatype(type, modules);
  if (datatype !== undefined && (datatype.abilities & KEY) === 0) {
    throw createUnfitError(functionName, `it takes ${type}, which is not an object`);
  }
  if (!isReference)
    throw createUnfitError(functionName, `it takes ${type} by value: this command passes references alone`);
  if (CAPABILITY.test(type)) return { kind: 'capability', type };
  const role = objectRole(type, isMutable);
  if (role.kind === 'config') return { kind: 'config', type };
  if (role.kind === 'enclave')
    throw createUnfitError(functionName, 'it takes an Enclave<T>: call it by submit, with an answer');
  return role.kind === 'object' ? role : { kind: role.kind };
}

/** Refuses a value that can be neither given to the sender nor dropped. @throws SuiCommandError: FUNCTION */
function checkReturned(type: string, functionName: string, modules: readonly ModuleInterface[]): void {
  const datatype = findDatatype(type, modules);
  const isStuck =
    datatype !== undefined && (datatype.abilities & DROP) === 0 && !isTransferable(type, modules);
  if (!isStuck && !type.startsWith('&')) return;
  throw createUnfitError(
    functionName,
    `it returns ${type}, which can be neither transferred to the sender nor dropped`,
  );
}
