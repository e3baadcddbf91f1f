/**
 * Finds the functions of a transaction and the types of its arguments before anything runs, by the rules of
 * `loading/translate.rs` and `typing/translate.rs` in Sui's execution layer.
 */
import type { DeclaredFunction } from '../bytecode/module_bytecode.ts';
import type { Argument, Call, Command, Upgrade } from '../commands.ts';
import type { ObjectInput } from '../engine.ts';
import { argumentFailure, CommandFailure, Refusal, typeArgumentFailure } from '../failures.ts';
import { type ChainCode, normalizePackageId } from './code.ts';
import { findCallLinkage, type Linkage } from './linkage.ts';
import type { Linked } from './program.ts';
import { ABILITY, format, instantiate, type MoveType, parseType, type Struct, splitList } from './types.ts';

/** Way in which a command uses an argument. */
export type Use = 'move' | 'copy' | 'borrow' | 'borrow mutably';

export interface TypedArgument {
  /** Index of the argument in the command. */
  readonly position: number;
  readonly argument: Argument;
  /** Place of the value. Bytes that are used as two types are two values, with two places. */
  readonly place: string;
  readonly use: Use;
  /** Type of the value. */
  readonly type: MoveType;
}

interface TypedParts {
  /** Arguments in the order in which the command takes them. */
  readonly args: readonly TypedArgument[];
  readonly results: readonly MoveType[];
}

export interface TypedCall extends TypedParts {
  readonly kind: 'call';
  readonly packageId: string;
  readonly linked: Linked;
  readonly declaration: DeclaredFunction;
  readonly linkage: Linkage;
  readonly types: readonly MoveType[];
  /** Parameters of the function. They include contexts, which a transaction does not pass. */
  readonly parameters: readonly MoveType[];
}

export type TypedCommand =
  | TypedCall
  /** The recipient is the last argument. */
  | (TypedParts & { readonly kind: 'transfer' })
  /** The coin is the first argument. */
  | (TypedParts & { readonly kind: 'split' | 'merge' })
  | (TypedParts & { readonly kind: 'vector'; readonly of: MoveType })
  | (TypedParts & { readonly kind: 'publish'; readonly command: Extract<Command, { kind: 'publish' }> })
  | (TypedParts & { readonly kind: 'upgrade'; readonly command: Upgrade });

/** Use of an input's bytes as a value of a type, by an argument of a command. */
export interface PureUse {
  readonly input: number;
  readonly type: MoveType;
  readonly command: number;
  readonly position: number;
}

/** The inputs of a transaction with their types. */
export interface TypedInputs {
  readonly inputs: readonly (Uint8Array | ObjectInput)[];
  /** The first use of an input's bytes as a type, for each input and type. */
  readonly pure: readonly PureUse[];
}

export const GAS = 'gas';
export const inputPlace = (index: number) => `input ${index}`;
export const purePlace = (index: number, type: MoveType) => `input ${index} as ${format(type)}`;
export const resultPlace = (command: number, index: number) => `result ${command}, ${index}`;

export const COIN_OF_SUI = parseType('0x2::coin::Coin<0x2::sui::SUI>');
export const UPGRADE_CAP = parseType('0x2::package::UpgradeCap');
const UPGRADE_TICKET = parseType('0x2::package::UpgradeTicket');
const UPGRADE_RECEIPT = parseType('0x2::package::UpgradeReceipt');
const U64 = parseType('u64');
const ADDRESS = parseType('address');
const COIN = /^0x0*2::coin::Coin</;

/** Argument whose place has been found. Its type is undefined if it consists of bytes. */
interface LocatedArgument {
  readonly position: number;
  readonly argument: Argument;
  readonly place: string;
  readonly type: MoveType | undefined;
  readonly input: number;
}

/** Determines the types of the commands' arguments and results, in order. */
export class Typing {
  readonly #code: ChainCode;
  readonly #inputs: readonly (Uint8Array | ObjectInput)[];
  readonly #objectTypes = new Map<number, MoveType>();
  readonly #results: (readonly MoveType[])[] = [];
  /** Types of the inputs that a command has changed. Such an input can no longer be used as another type. */
  readonly #fixed = new Map<number, MoveType>();
  readonly #pure = new Map<string, PureUse>();
  #command = 0;

  constructor(code: ChainCode, inputs: readonly (Uint8Array | ObjectInput)[]) {
    this.#code = code;
    this.#inputs = inputs;
    for (const [index, input] of inputs.entries()) {
      if (!(input instanceof Uint8Array)) this.#objectTypes.set(index, code.parse(input.object.type));
    }
  }

  /** Determines the types of all commands. @throws CommandFailure, Refusal */
  commands(commands: readonly Command[]): TypedCommand[] {
    return commands.map((command, index) => {
      this.#command = index;
      const typedCommand = this.#typeCommand(command);
      this.#results.push(typedCommand.results);
      return typedCommand;
    });
  }

  get inputs(): TypedInputs {
    return { inputs: this.#inputs, pure: [...this.#pure.values()] };
  }

  #typeCommand(command: Command): TypedCommand {
    switch (command.kind) {
      case 'call':
        return this.#call(command.call, command.args);
      case 'transfer': {
        const objects = this.#locateAll(command.objects, 0);
        const to = this.#locate(command.to, objects.length);
        const values = objects.map((located) =>
          this.#argumentWithAbilities(located, ABILITY.store | ABILITY.key, 'InvalidTransferObject'),
        );
        return { kind: 'transfer', args: [...values, this.#argument(to, ADDRESS)], results: [] };
      }
      case 'split': {
        const coin = this.#locate(command.coin, 0);
        const amounts = this.#locateAll(command.amounts, 1);
        const { type, argument } = this.#coin(coin);
        const values = amounts.map((amount) => this.#argument(amount, U64));
        return { kind: 'split', args: [argument, ...values], results: values.map(() => type) };
      }
      case 'merge': {
        const coin = this.#locate(command.coin, 0);
        const coins = this.#locateAll(command.coins, 1);
        const { type, argument } = this.#coin(coin);
        return {
          kind: 'merge',
          args: [argument, ...coins.map((source) => this.#argument(source, type))],
          results: [],
        };
      }
      case 'vector':
        return this.#vector(command.type, command.items);
      case 'publish':
        return { kind: 'publish', command, args: [], results: [UPGRADE_CAP] };
      case 'upgrade': {
        const ticket = this.#argument(this.#locate(command.ticket, 0), UPGRADE_TICKET);
        return { kind: 'upgrade', command, args: [ticket], results: [UPGRADE_RECEIPT] };
      }
    }
  }

  #call({ package: id, module, function: name, typeArguments }: Call, args: readonly Argument[]): TypedCall {
    const callee = normalizePackageId(id);
    if (!this.#code.has(callee)) throw new Refusal('NOT_FOUND', `Object ${id} not found`);
    const declaration = this.#code.module(callee, module)?.moduleInterface.declared.get(name);
    if (declaration === undefined) {
      const fullName = `${id}::${module}::${name}`;
      if (this.#code.isFramework(callee))
        throw new Refusal('UNIMPLEMENTED', `the stub of Sui's framework has no ${fullName}`);
      throw new CommandFailure(this.#command, 'FUNCTION_NOT_FOUND', 'FunctionNotFound');
    }
    const types = this.#typeArguments(typeArguments, declaration);
    const linkage = findCallLinkage(this.#code.packages, {
      id: callee,
      isPrivate: declaration.visibility !== 'public',
      typePackages: new Set(types.flatMap((type) => [...this.#code.listPackages(type)])),
      command: this.#command,
    });
    const parameters = splitList(declaration.parameters).map((text) => instantiate(parseType(text), types));
    const argumentTypes = parameters.filter((type) => !isContext(type));
    if (argumentTypes.length !== args.length) {
      throw new CommandFailure(this.#command, 'ARITY_MISMATCH', 'ArityMismatch');
    }
    const located = this.#locateAll(args, 0);
    return {
      kind: 'call',
      packageId: callee,
      linked: this.#code.function(callee, module, name),
      declaration,
      linkage,
      types,
      parameters,
      args: located.map((argument, index) => this.#argument(argument, argumentTypes[index] as MoveType)),
      results: splitList(declaration.returns).map((text) => instantiate(parseType(text), types)),
    };
  }

  #typeArguments(texts: readonly string[], { constraints }: DeclaredFunction): MoveType[] {
    if (texts.length !== constraints.length) {
      throw new CommandFailure(this.#command, 'TYPE_ARITY_MISMATCH', 'TypeArityMismatch');
    }
    return texts.map((text, position) => {
      const type = this.#typeArgument(text, position);
      const missing = (constraints[position] ?? 0) & ~this.#abilities(type);
      if (missing !== 0) throw typeArgumentFailure(this.#command, position, 'ConstraintNotSatisfied');
      return type;
    });
  }

  #typeArgument(text: string, position: number): MoveType {
    const type = this.#code.parseArgument(text);
    if (type === undefined) throw typeArgumentFailure(this.#command, position, 'TypeNotFound');
    return type;
  }

  #vector(text: string | undefined, items: readonly Argument[]): TypedCommand {
    const located = this.#locateAll(items, 0);
    const of =
      text === undefined
        ? this.#argumentWithAbilities(located[0], ABILITY.key, 'InvalidMakeMoveVecNonObjectArgument').type
        : this.#typeArgument(text, 0);
    const args = located.map((element) => this.#argument(element, of));
    return { kind: 'vector', of, args, results: [{ kind: 'vector', of }] };
  }

  #abilities(type: MoveType): number {
    return this.#code.datatypes.abilitiesOf(type);
  }

  #locateAll(args: readonly Argument[], from: number): LocatedArgument[] {
    return args.map((argument, index) => this.#locate(argument, from + index));
  }

  #locate(argument: Argument, position: number): LocatedArgument {
    if ('gas' in argument) return { position, argument, place: GAS, type: COIN_OF_SUI, input: -1 };
    if ('input' in argument) {
      const { input } = argument;
      if (this.#inputs[input] === undefined) throw this.#outOfBounds(position, input);
      return { position, argument, place: inputPlace(input), type: this.#objectTypes.get(input), input };
    }
    const { result: commandIndex, nested } = argument;
    const results = this.#results[commandIndex];
    if (results === undefined) throw this.#outOfBounds(position, commandIndex);
    if (nested === undefined && results.length !== 1) {
      const text = `result_idx: ${commandIndex}`;
      throw argumentFailure(this.#command, position, 'InvalidResultArity', { index: commandIndex, text });
    }
    const type = results[nested ?? 0];
    if (type === undefined) {
      const text = `result_idx: ${commandIndex}, secondary_idx: ${nested}`;
      const indexError = { index: commandIndex, ...(nested !== undefined && { subresult: nested }), text };
      throw argumentFailure(this.#command, position, 'SecondaryIndexOutOfBounds', indexError);
    }
    return { position, argument, place: resultPlace(commandIndex, nested ?? 0), type, input: -1 };
  }

  #outOfBounds(position: number, index: number): CommandFailure {
    return argumentFailure(this.#command, position, 'IndexOutOfBounds', { index, text: `idx: ${index}` });
  }

  /** Returns how a command uses an argument of this type. */
  #use(parameter: MoveType): Use {
    if (parameter.kind === 'reference') return parameter.isMutable ? 'borrow mutably' : 'borrow';
    return (this.#abilities(parameter) & ABILITY.copy) !== 0 ? 'copy' : 'move';
  }

  #argument({ position, argument, place, type, input }: LocatedArgument, parameter: MoveType): TypedArgument {
    const value = parameter.kind === 'reference' ? parameter.of : parameter;
    const use = this.#use(parameter);
    const actual = type ?? this.#fixed.get(input);
    if (actual !== undefined && format(actual) !== format(value)) {
      throw argumentFailure(this.#command, position, 'TypeMismatch');
    }
    if (type !== undefined) return { position, argument, place, use, type: value };
    const pure = purePlace(input, value);
    if (!this.#pure.has(pure)) this.#pure.set(pure, { input, type: value, command: this.#command, position });
    if (use === 'borrow mutably') this.#fixed.set(input, value);
    return { position, argument, place: pure, use, type: value };
  }

  /** Returns an argument with its own type, which must have these abilities. */
  #argumentWithAbilities(
    located: LocatedArgument | undefined,
    abilities: number,
    problem: 'InvalidTransferObject' | 'InvalidMakeMoveVecNonObjectArgument',
  ): TypedArgument {
    const { position = 0, type } = located ?? {};
    if (located === undefined || type === undefined || (abilities & ~this.#abilities(type)) !== 0) {
      throw argumentFailure(this.#command, position, problem);
    }
    return this.#argument(located, type);
  }

  #coin(located: LocatedArgument): { readonly type: Struct; readonly argument: TypedArgument } {
    const { type, position } = located;
    if (type?.kind !== 'struct' || !COIN.test(format(type))) {
      throw argumentFailure(this.#command, position, 'TypeMismatch');
    }
    return { type, argument: this.#argument(located, { kind: 'reference', isMutable: true, of: type }) };
  }
}

export function isContext(type: MoveType): boolean {
  const value = type.kind === 'reference' ? type.of : type;
  return value.kind === 'struct' && value.module === 'tx_context' && /^0x0*2$/.test(value.address);
}
