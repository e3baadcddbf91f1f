/**
 * The tables that the chain stores with each version of a package (`MovePackage` of Sui's `move_package.rs`).
 * Browser-safe.
 *
 * In the types of objects and events, in type arguments, and in the addresses that are derived from types, a
 * datatype has the id of the version that introduced it. If an upgrade adds a datatype, this is the upgrade's
 * id. Bytecode, and the names that Move compares by `type_name::with_original_ids`, have the id of the
 * package's first version instead.
 */
import { bcs } from '@mysten/sui/bcs';
import type { ClientWithCoreApi } from '@mysten/sui/client';
import { type AskOptions, askNode, badAnswer } from './ask.ts';
import { WrongObjectTypeError } from './errors.ts';
import { applicationType, checkAddress, checkIdentifier } from './values.ts';

/** The first fields of an object in BCS: enum `Data` of `sui_types::object`. */
const PackageData = bcs.enum('Data', {
  Move: null,
  Package: bcs.struct('MovePackage', {
    id: bcs.Address,
    version: bcs.u64(),
    modules: bcs.map(bcs.string(), bcs.byteVector()),
    typeOrigins: bcs.vector(
      bcs.struct('TypeOrigin', { module: bcs.string(), name: bcs.string(), package: bcs.Address }),
    ),
    linkage: bcs.map(
      bcs.Address,
      bcs.struct('UpgradeInfo', { upgradedId: bcs.Address, upgradedVersion: bcs.u64() }),
    ),
  }),
});

/** One version of a package. */
export interface PackageVersion {
  /** Bytecode of the modules. */
  readonly modules: readonly Uint8Array[];
  /** Ids of the versions that introduced the datatypes, by `module::Name`. */
  readonly typeOrigins: ReadonlyMap<string, string>;
  /** Ids of the package versions that it depends on, by the id of each package's first version. */
  readonly linkage: ReadonlyMap<string, string>;
}

/**
 * Reads a version of a package.
 *
 * @throws SuiError: also its subclasses ObjectNotFoundError and WrongObjectTypeError; the signal's reason
 *   once the signal is aborted
 */
export async function readPackage(
  client: ClientWithCoreApi,
  packageId: string,
  options: AskOptions = {},
): Promise<PackageVersion> {
  const id = checkAddress('the package', packageId);
  const { object } = await askNode(options, (signal) =>
    client.core.getObject({ objectId: id, include: { objectBcs: true }, ...signal }),
  );
  if (object.type.includes('::')) throw new WrongObjectTypeError(id, 'a package', object.type);
  const movePackage = parsePackage(object.objectBcs);
  if (movePackage?.id !== id) throw badAnswer(`the node's answer does not contain the package ${id}`);
  return {
    modules: [...movePackage.modules.values()],
    typeOrigins: new Map(
      movePackage.typeOrigins.map((type) => [`${type.module}::${type.name}`, type.package]),
    ),
    linkage: new Map([...movePackage.linkage].map(([first, { upgradedId }]) => [first, upgradedId])),
  };
}

function parsePackage(object: Uint8Array | undefined) {
  try {
    return PackageData.parse(object ?? new Uint8Array()).Package ?? undefined;
  } catch {
    return undefined;
  }
}

/**
 * Returns the type `T` for which an application registers its enclaves, written as `applicationType` writes
 * it. `applicationType` requires the id of the package version that introduced the type. This function
 * accepts the id of any version that has the type, and finds the version that introduced it.
 *
 * @example await readApplicationType(client, appPackageId, 'weather', 'WEATHER')
 * @throws the errors of `readPackage`; WrongObjectTypeError if this version does not have the type
 */
export async function readApplicationType(
  client: ClientWithCoreApi,
  appPackage: string,
  moduleName: string,
  witness: string,
  options: AskOptions = {},
): Promise<string> {
  const module = checkIdentifier('the module', moduleName);
  const name = checkIdentifier('the one-time witness', witness);
  const origin = await readTypeOrigin(client, appPackage, `${module}::${name}`, options);
  return applicationType(origin, module, name);
}

/**
 * Returns the id of the version of a package that introduced a datatype.
 *
 * @param packageId id of any version that has the datatype
 * @param datatype `module::Name`
 * @throws the errors of `readPackage`; WrongObjectTypeError if this version does not have the datatype
 */
export async function readTypeOrigin(
  client: ClientWithCoreApi,
  packageId: string,
  datatype: string,
  options: AskOptions = {},
): Promise<string> {
  const { typeOrigins } = await readPackage(client, packageId, options);
  const origin = typeOrigins.get(datatype);
  if (origin !== undefined) return origin;
  throw new WrongObjectTypeError(packageId, `a package with the type ${datatype}`, 'a package without it');
}
