/** Finds the Move function that a command calls: its application in the deployment file, and its modules. */
import type { PackageVersion } from 'sui-enclave/sui/packages';
import { quantity } from 'sui-enclave/wording';
import { type ModuleInterface, readModule } from 'sui-enclave-devnet/bytecode/module_bytecode';
import * as v from 'valibot';
import { UsageError } from '../command.ts';
import type { Chain } from './chain.ts';
import { resolveType } from './defined_types.ts';
import type { Application, Deployments } from './deployments.ts';
import { SuiCommandError } from './errors.ts';

const FUNCTION = /^(?:(0x[0-9a-f]{64})::)?([a-zA-Z]\w{0,127})::([a-zA-Z]\w{0,127})$/i;

/** The name of a Move function, as people write it. */
export const functionName = v.pipe(
  v.string(),
  v.regex(
    FUNCTION,
    'must be PACKAGE::module::function, the package as 0x and 64 hexadecimal digits; with --network, the package may be left out',
  ),
);

/** Splits a name that matches `functionName`. The package is undefined if the name leaves it out. */
export function parseFunctionName(text: string): {
  readonly packageId: string | undefined;
  readonly module: string;
  readonly name: string;
} {
  const [, id, module = '', name = ''] = FUNCTION.exec(text) ?? [];
  return { packageId: id?.toLowerCase(), module, name };
}

/**
 * Returns the application of the deployment file that has the package and the module.
 *
 * @param isOptional whether the file may lack the application: if it does, the function returns undefined
 * @throws UsageError; SuiCommandError: DEPLOYMENT
 */
export function findEntry(
  deployments: Deployments | undefined,
  packageId: string | undefined,
  module: string,
  isOptional = false,
): [name: string, Application] | undefined {
  if (deployments === undefined) {
    if (packageId === undefined) throw new UsageError('give the package of <function>, or --network');
    return undefined;
  }
  const entries = [...(deployments.read()?.applications ?? [])];
  const matches = entries.filter(
    ([name, app]) =>
      (deployments.app === undefined || name === deployments.app) &&
      (packageId === undefined ? app.module === module : [app.package, app.original].includes(packageId)),
  );
  const [match] = matches;
  if (match === undefined && isOptional) return undefined;
  if (match !== undefined && matches.length === 1) return match;
  throw new SuiCommandError(
    'DEPLOYMENT',
    `${deployments.path} has ${quantity(matches.length, 'application')} with this package and module: give the package and the ids that the function takes, or --app`,
  );
}

/** A version of a package, with one of its modules and all other modules. */
export interface PackageModules {
  readonly packageVersion: PackageVersion & { readonly originalId: string };
  readonly module: ModuleInterface;
  readonly otherModules: readonly ModuleInterface[];
}

/** Reads the modules of a package from the chain. @throws SuiCommandError: FUNCTION; SuiError */
export async function readModules(
  chain: Chain,
  packageId: string,
  moduleName: string,
): Promise<PackageModules> {
  const packageVersion = await chain.package(packageId);
  const { originalId, modules } = packageVersion;
  const readBytecode = (bytes: Uint8Array) => {
    try {
      return readModule(bytes, originalId);
    } catch (cause) {
      const { message } = cause as RangeError;
      throw new SuiCommandError('FUNCTION', `a module of ${packageId} can't be read: ${message}`, { cause });
    }
  };
  const interfaces = modules.map(readBytecode);
  const module = interfaces.find(({ name }) => name === moduleName);
  if (module === undefined) {
    throw new SuiCommandError('FUNCTION', `the package ${packageId} has no module ${moduleName}`);
  }
  return { packageVersion, module, otherModules: interfaces.filter((candidate) => candidate !== module) };
}

/** Roles of the arguments of a function, in order. */
export interface AnyRoles {
  readonly roles: readonly { readonly kind: string; readonly type?: string }[];
}

/** Sets the types of the objects that a function takes, as they are on chain. @throws SuiError */
export async function resolveObjectTypes<R extends AnyRoles['roles'][number]>(
  chain: Chain,
  packageVersion: PackageModules['packageVersion'],
  roles: readonly R[],
): Promise<R[]> {
  const resolvedRoles: R[] = [];
  for (const role of roles) {
    const { type } = role;
    resolvedRoles.push(
      type === undefined ? role : { ...role, type: await resolveType(chain, packageVersion, type) },
    );
  }
  return resolvedRoles;
}

/**
 * Checks that `--object` names as many objects as the function takes.
 *
 * @throws UsageError
 */
export function checkObjectCount({ roles }: AnyRoles, objects: readonly string[]): void {
  const types = roles.flatMap(({ kind, type }) => (kind === 'object' && type !== undefined ? [type] : []));
  if (types.length === objects.length) return;
  const typeList = types.length === 0 ? 'none' : types.join(', ');
  throw new UsageError(
    `the function takes ${quantity(types.length, 'object')} by --object, in this order: ${typeList}`,
  );
}
