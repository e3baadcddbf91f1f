/** The ids of a deployment: arguments of the commands, which its file can stand in for. */
import { applicationType } from 'sui-enclave/sui/values';
import { UsageError } from '../command.ts';
import type { Argument } from '../command_line.ts';
import { identifier, objectId } from '../values.ts';

/**
 * An argument that may be left out where the network's deployment file is read: `id` comes from the file, and `omitted`
 * is looked up by the command.
 */
export interface SuiArgument extends Argument {
  readonly fromFile?: 'id' | 'omitted';
}

/** The arguments that are ids of a deployment, by the names that transactions have for them. */
export const IDS = {
  /** The latest version of the package that has `enclave::enclave`. */
  enclavePackage: { label: 'enclave_package_id', schema: objectId, fromFile: 'id' },
  /** The latest version of the application's package. */
  appPackage: { label: 'app_package_id', schema: objectId, fromFile: 'id' },
  module: { label: 'module_name', schema: identifier, fromFile: 'id' },
  /** The one-time witness. */
  witness: { label: 'otw_name', schema: identifier, fromFile: 'id' },
  configId: { label: 'enclave_config_id', schema: objectId, fromFile: 'id' },
} as const satisfies Readonly<Record<string, SuiArgument>>;

export type IdName = keyof typeof IDS;
export type Ids = Readonly<Record<IdName, string>>;

export function isIdName(name: string): name is IdName {
  return Object.hasOwn(IDS, name);
}

/** The type that names an application on chain: its one-time witness. */
export function applicationOf({
  appPackage,
  module,
  witness,
}: Pick<Ids, 'appPackage' | 'module' | 'witness'>): string {
  return applicationType(appPackage, module, witness);
}

/** Structs begin with an upper-case letter, and a one-time witness is named as its module, in upper case. @throws UsageError */
export function checkWitness({ witness: name, module }: Readonly<Record<string, unknown>>): void {
  if (typeof name !== 'string' || typeof module !== 'string' || /^[A-Z]/.test(name)) return;
  const swapped = name.toUpperCase() === module.toUpperCase() && /^[A-Z]/.test(module);
  throw new UsageError(
    swapped
      ? `<otw_name> is ${name} and <module_name> is ${module}: swap them, as structs begin with an upper-case letter`
      : `<otw_name> is ${name}, but structs begin with an upper-case letter: the one-time witness of ${module} is ${module.toUpperCase()}`,
  );
}
