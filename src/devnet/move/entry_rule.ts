/**
 * Checks the arguments of an entry function that is not public (`private_entry_arguments.rs` of Sui's
 * execution layer). An argument must not have been used together with a value that the transaction must
 * consume, or with a shared object that was taken by value. Such a value could dictate which commands follow
 * the entry function.
 */
import { argumentFailure } from '../failures.ts';
import type { ChainCode } from './code.ts';
import { ABILITY, type MoveType } from './types.ts';
import { inputPlace, resultPlace, type TypedCommand, type TypedInputs } from './typing.ts';

/** Values that commands have used together. */
interface Clique {
  /**
   * Number of values in the clique that have neither `drop` nor `store`. Infinity means that the clique has
   * taken a shared object.
   */
  heat: number;
  /** The clique that contains the values of this one since a command used them together with other values. */
  mergedInto: Clique | undefined;
}

interface Member {
  readonly clique: Clique;
  readonly isHot: boolean;
}

/** Checks all commands of a transaction. @throws CommandFailure: InvalidArgumentToPrivateEntryFunction */
export function checkEntryRule(
  code: ChainCode,
  commands: readonly TypedCommand[],
  { inputs }: TypedInputs,
): void {
  const members = new Map<string, Member>();
  /** Places that hold shared objects. */
  const shared = new Set(
    inputs.flatMap((input, index) =>
      !(input instanceof Uint8Array) && input.object.owner.kind === 'shared' ? [inputPlace(index)] : [],
    ),
  );
  const findMember = (place: string): Member => {
    const member = members.get(place) ?? { clique: { heat: 0, mergedInto: undefined }, isHot: false };
    members.set(place, member);
    return member;
  };
  for (const [index, command] of commands.entries()) {
    const { args, results } = command;
    // A value that this command consumes no longer counts as a value that the transaction must consume.
    const cliques = args.map(({ place, use }) => {
      const { clique, isHot } = findMember(place);
      if (use === 'move') {
        members.delete(place);
        if (isHot) findRoot(clique).heat -= 1;
      }
      return clique;
    });
    if (command.kind === 'call' && command.declaration.visibility !== 'public') {
      const hotArgument = args.find((_, position) => findRoot(cliques[position] as Clique).heat > 0);
      if (hotArgument !== undefined)
        throw argumentFailure(index, hotArgument.position, 'InvalidArgumentToPrivateEntryFunction');
    }
    const clique = merge(cliques);
    const takesShared = args.some(({ place, use }) => use === 'move' && shared.has(place));
    // A vector passes shared objects on to its result. Every other command consumes them.
    if (takesShared && command.kind === 'vector') shared.add(resultPlace(index, 0));
    else if (takesShared) clique.heat = Number.POSITIVE_INFINITY;
    for (const [resultIndex, type] of results.entries()) {
      const isHot = isHotPotato(code, type);
      members.set(resultPlace(index, resultIndex), { clique, isHot });
      if (isHot) clique.heat += 1;
    }
  }
}

function isHotPotato(code: ChainCode, type: MoveType): boolean {
  return (code.datatypes.abilitiesOf(type) & (ABILITY.drop | ABILITY.store)) === 0;
}

function findRoot(clique: Clique): Clique {
  return clique.mergedInto === undefined ? clique : findRoot(clique.mergedInto);
}

function merge(cliques: readonly Clique[]): Clique {
  const roots = new Set(cliques.map(findRoot));
  const union: Clique = { heat: 0, mergedInto: undefined };
  for (const root of roots) {
    union.heat += root.heat;
    root.mergedInto = union;
  }
  return union;
}
