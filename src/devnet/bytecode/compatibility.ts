/**
 * Compares the modules of two versions of a package, to see whether the newer may replace the older on chain.
 */
import type { Datatype, ModuleInterface, PublicFunction } from './module_bytecode.ts';

/**
 * Lists the changes that the policy `compatible` forbids, one per line. The rules are those of Sui's
 * verifier. Datatypes and public functions must not be removed. A datatype keeps its abilities, parameters
 * and layout. A function keeps its signature, but may require fewer abilities of its type parameters.
 *
 * The node's simulation checks the rest: the stricter policies, which also forbid changes to the code of
 * functions, and the verifier's rules for any module.
 */
export function listIncompatibilities(
  before: readonly ModuleInterface[],
  after: readonly ModuleInterface[],
): string[] {
  return before.flatMap((old) => {
    const next = after.find(({ name }) => name === old.name);
    if (next === undefined) return [`the module ${old.name} is gone`];
    const datatypes = [...old.datatypes].flatMap(([name, datatype]) =>
      datatypeChanges(`${old.name}::${name}`, datatype, next.datatypes.get(name)),
    );
    const functions = [...old.functions].flatMap(([name, fun]) =>
      functionChanges(`${old.name}::${name}`, fun, next.functions.get(name)),
    );
    return [...datatypes, ...functions];
  });
}

function datatypeChanges(name: string, old: Datatype, next: Datatype | undefined): string[] {
  if (next === undefined) return [`the type ${name} is gone`];
  return [
    ...(next.abilities === old.abilities ? [] : [`the type ${name} has other abilities`]),
    ...(next.typeParameters === old.typeParameters ? [] : [`the type ${name} has other type parameters`]),
    ...(next.layout === old.layout ? [] : [`the type ${name} was ${old.layout}, and is ${next.layout}`]),
  ];
}

function functionChanges(name: string, old: PublicFunction, next: PublicFunction | undefined): string[] {
  if (next === undefined) return [`the public function ${name} is gone, or not public`];
  const isAsBroad =
    next.constraints.length === old.constraints.length &&
    next.constraints.every((required, index) => (required & ~(old.constraints[index] ?? 0)) === 0);
  return [
    ...(isAsBroad
      ? []
      : [`the function ${name} requires more of its type parameters, or has another number of them`]),
    ...(next.parameters === old.parameters
      ? []
      : [`the function ${name} took (${old.parameters}), and takes (${next.parameters})`]),
    ...(next.returns === old.returns
      ? []
      : [`the function ${name} returned (${old.returns}), and returns (${next.returns})`]),
  ];
}
