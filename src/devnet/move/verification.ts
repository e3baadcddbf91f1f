/**
 * Verifies a typed transaction before anything runs, in the order of `typing/verify` in Sui's execution
 * layer. A transaction can't call a function that returns a reference (Sui 1.63), so a borrow ends with its
 * command.
 */
import { argumentFailure, CommandFailure } from '../failures.ts';
import type { ChainCode } from './code.ts';
import { checkEntryRule } from './entry_rule.ts';
import { ABILITY, type MoveType } from './types.ts';
import {
  GAS,
  inputPlace,
  type PureUse,
  resultPlace,
  type TypedArgument,
  type TypedCall,
  type TypedCommand,
  type TypedInputs,
} from './typing.ts';

/** Functions of the framework that are public, but that a transaction may not call. */
const NOT_CALLABLE: Readonly<Record<string, readonly string[] | undefined>> = {
  event: undefined,
  transfer: ['transfer', 'share_object', 'freeze_object', 'receive', 'party_transfer'],
};
const PURE = new Set(['1::string::String', '1::ascii::String', '1::option::Option', '2::object::ID']);

/** Verifies the inputs and commands of a transaction. @throws CommandFailure */
export function verify(code: ChainCode, commands: readonly TypedCommand[], inputs: TypedInputs): void {
  checkInputs(code, commands, inputs);
  for (const [index, command] of commands.entries()) {
    if (command.kind === 'call') checkFunction(code, command, index);
  }
  checkBorrows(commands);
  const refinedCommands = refineUses(commands);
  checkUnused(code, refinedCommands);
  checkEntryRule(code, refinedCommands, inputs);
}

/** Applies the rules of `input_arguments.rs`. */
function checkInputs(
  code: ChainCode,
  commands: readonly TypedCommand[],
  { inputs, pure }: TypedInputs,
): void {
  for (const use of [...pure].sort((left, right) => left.input - right.input)) checkBytes(code, inputs, use);
  const objects = new Map(
    inputs.flatMap((input, index) =>
      input instanceof Uint8Array ? [] : ([[inputPlace(index), input]] as const),
    ),
  );
  for (const [index, { kind, args }] of commands.entries()) {
    for (const { place, use, position } of args) {
      const input = objects.get(place);
      const isFixed = input !== undefined && (!input.isMutable || input.object.owner.kind === 'immutable');
      if (isFixed && use === 'borrow mutably')
        throw argumentFailure(index, position, 'InvalidObjectByMutRef');
      if (isFixed && use === 'move') throw argumentFailure(index, position, 'InvalidObjectByValue');
    }
    // Only TransferObjects may take the gas coin by value.
    const gas =
      kind === 'transfer' ? undefined : args.find(({ place, use }) => place === GAS && use === 'move');
    if (gas !== undefined) throw argumentFailure(index, gas.position, 'InvalidGasCoinUsage');
  }
}

function checkBytes(
  code: ChainCode,
  inputs: TypedInputs['inputs'],
  { input, type, command, position }: PureUse,
): void {
  const bytes = inputs[input];
  if (!(bytes instanceof Uint8Array)) return;
  if (!isPure(type)) throw argumentFailure(command, position, 'InvalidUsageOfPureArg');
  try {
    code.codec.decodeArgument(bytes, type);
  } catch {
    throw argumentFailure(command, position, 'InvalidBCSBytes');
  }
}

/** Returns whether a transaction can give a value of this type as bytes. */
function isPure(type: MoveType): boolean {
  if (type.kind === 'primitive') return type.name !== 'signer';
  if (type.kind === 'vector') return isPure(type.of);
  if (type.kind !== 'struct') return false;
  const name = `${type.address.replace(/^0x0*/, '')}::${type.module}::${type.name}`;
  return PURE.has(name) && type.args.every(isPure);
}

/** Applies the rules of `move_functions.rs`. */
function checkFunction(
  code: ChainCode,
  { packageId, linked, declaration, results }: TypedCall,
  index: number,
): void {
  const reference = results.findIndex(({ kind }) => kind === 'reference');
  if (reference >= 0) {
    throw new CommandFailure(
      index,
      'INVALID_PUBLIC_FUNCTION_RETURN_TYPE',
      `InvalidPublicFunctionReturnType { idx: ${reference} }`,
      { oneofKind: 'indexError', indexError: { index: reference } },
    );
  }
  const [, module = ''] = linked.module.module.split('::');
  const names = NOT_CALLABLE[module];
  const isForbidden =
    code.isFramework(packageId) &&
    module in NOT_CALLABLE &&
    (names === undefined || names.includes(linked.code.name));
  if (isForbidden || (declaration.visibility !== 'public' && !declaration.isEntry)) {
    throw new CommandFailure(index, 'NON_ENTRY_FUNCTION_INVOKED', 'NonEntryFunctionInvoked');
  }
}

/** Applies the rules of `memory_safety.rs`. */
function checkBorrows(commands: readonly TypedCommand[]): void {
  const movedPlaces = new Set<string>();
  for (const [index, { kind, args }] of commands.entries()) {
    const borrowedPlaces = new Set<string>();
    for (const { place, use, position } of args) {
      if (use === 'move' && borrowedPlaces.has(place))
        throw argumentFailure(index, position, 'CannotMoveBorrowedValue');
      if (movedPlaces.has(place)) throw argumentFailure(index, position, 'ArgumentWithoutValue');
      if (use === 'move') movedPlaces.add(place);
      if (isBorrow(use)) borrowedPlaces.add(place);
    }
    if (kind !== 'call') continue;
    const aliasedArgument = args.find(
      (argument) =>
        argument.use === 'borrow mutably' &&
        args.some((alias) => alias !== argument && isBorrow(alias.use) && alias.place === argument.place),
    );
    if (aliasedArgument !== undefined)
      throw argumentFailure(index, aliasedArgument.position, 'InvalidReferenceArgument');
  }
}

function isBorrow(use: TypedArgument['use']): boolean {
  return use === 'borrow' || use === 'borrow mutably';
}

/** Makes the last use of a value a move, even if it could be a copy, by the rules of `drop_safety.rs`. */
function refineUses(commands: readonly TypedCommand[]): TypedCommand[] {
  const last = new Map<string, TypedArgument>();
  for (const { args } of commands) for (const argument of args) last.set(argument.place, argument);
  return commands.map((command) => {
    const borrowedPlaces = new Set<string>();
    const args = command.args.map((argument): TypedArgument => {
      const { place, use } = argument;
      if (isBorrow(use)) borrowedPlaces.add(place);
      const isLastCopy = use === 'copy' && last.get(place) === argument && !borrowedPlaces.has(place);
      return isLastCopy ? { ...argument, use: 'move' } : argument;
    });
    return { ...command, args };
  });
}

/**
 * Checks that each returned value has the ability `drop` or is moved by a later command, by the rules of
 * `drop_safety.rs`.
 */
function checkUnused(code: ChainCode, commands: readonly TypedCommand[]): void {
  const movedPlaces = new Set(
    commands.flatMap(({ args }) => args.filter(({ use }) => use === 'move').map(({ place }) => place)),
  );
  for (const [command, { results }] of commands.entries()) {
    for (const [index, type] of results.entries()) {
      if (movedPlaces.has(resultPlace(command, index))) continue;
      if ((code.datatypes.abilitiesOf(type) & ABILITY.drop) !== 0) continue;
      throw new CommandFailure(
        undefined,
        'UNUSED_VALUE_WITHOUT_DROP',
        `UnusedValueWithoutDrop { result_idx: ${command}, secondary_idx: ${index} }`,
        { oneofKind: 'indexError', indexError: { index: command, subresult: index } },
      );
    }
  }
}
