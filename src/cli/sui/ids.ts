/** The ids of a deployment. Commands take them as options, whose defaults are in the deployment file. */
import { applicationType } from 'sui-enclave/sui/values';
import { UsageError } from '../command.ts';
import type { Argument, Option } from '../command_line.ts';
import { identifier, objectId } from '../values.ts';

/** Options for the ids. `label` is the name of an id that older versions took as an argument. */
const IDS = {
  enclavePackage: {
    option: 'enclave-package',
    label: 'enclave_package_id',
    value: '<id>',
    help: 'the latest version of the package that has enclave::enclave',
    schema: objectId,
  },
  appPackage: {
    option: 'app-package',
    label: 'app_package_id',
    value: '<id>',
    help: "the latest version of the application's package",
    schema: objectId,
  },
  module: {
    option: 'module',
    label: 'module_name',
    value: '<name>',
    help: "the application's module",
    schema: identifier,
  },
  witness: {
    option: 'witness',
    label: 'otw_name',
    value: '<name>',
    help: "the one-time witness of the application's module",
    schema: identifier,
  },
  configId: {
    option: 'config',
    label: 'enclave_config_id',
    value: '<id>',
    help: 'the config',
    schema: objectId,
  },
} as const satisfies Readonly<Record<string, Option & { readonly option: string; readonly label: string }>>;

export type IdName = keyof typeof IDS;
export type Ids = Readonly<Record<IdName, string>>;
export const ID_NAMES = Object.keys(IDS) as IdName[];

/** Returns the option for an id, such as `--config`. */
export function optionFor(name: IdName): `--${(typeof IDS)[IdName]['option']}` {
  return `--${IDS[name].option}`;
}

/** Returns the options of a command that takes these ids. */
export function idOptions(names: readonly IdName[]): Readonly<Record<string, Option>> {
  return Object.fromEntries(
    names.map((name) => {
      const { option, value, help, schema } = IDS[name];
      return [option, { value, help: `${help} (default: the one in the deployment file)`, schema }];
    }),
  );
}

/** Returns the ids that older versions took as arguments, in the order of these arguments. */
export function formerIds(...names: IdName[]): Readonly<Record<string, Argument>> {
  return Object.fromEntries(names.map((name) => [optionFor(name), IDS[name]]));
}

/** Returns the ids that the options have. */
export function idsIn(names: readonly IdName[], options: Readonly<Record<string, unknown>>): Partial<Ids> {
  const all = names.map((name) => [name, options[IDS[name].option]]);
  return Object.fromEntries(all.filter(([, id]) => id !== undefined));
}

/** Returns the type that names an application on chain: its one-time witness. */
export function formatApplicationType({
  appPackage,
  module,
  witness,
}: Pick<Ids, 'appPackage' | 'module' | 'witness'>): string {
  return applicationType(appPackage, module, witness);
}

/**
 * Checks the name of a one-time witness. Structs begin with an upper-case letter, and a one-time witness has
 * its module's name in upper case.
 *
 * @throws UsageError
 */
export function checkWitness({ witness: name, module }: Partial<Ids>): void {
  if (name === undefined || module === undefined || /^[A-Z]/.test(name)) return;
  const swapped = name.toUpperCase() === module.toUpperCase() && /^[A-Z]/.test(module);
  throw new UsageError(
    swapped
      ? `--witness is ${name} and --module is ${module}: swap them, as structs begin with an upper-case letter`
      : `--witness is ${name}, but structs begin with an upper-case letter: the one-time witness of ${module} is ${module.toUpperCase()}`,
  );
}
