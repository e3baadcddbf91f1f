/** A transaction as a Move test: its objects rebuilt, its calls, and the notes of what they leave behind. */
import { bcs, TypeTagSerializer } from '@mysten/sui/bcs';
import type { PublicFunction } from 'sui-enclave-move-bytecode/module_bytecode';
import { packageDigest } from 'sui-enclave-move-bytecode/package_digest';
import type { Argument, Command, Upgrade } from '../commands.ts';
import { CommandFailure, Refusal } from '../failures.ts';
import type { LedgerObject } from '../ledger.ts';
import { bytes, literalOf } from './literals.ts';
import type { Code } from './packages.ts';
import {
  ABILITY,
  format,
  instantiate,
  type MoveType,
  parseType,
  splitList,
  typeArguments,
  valueType,
} from './types.ts';

/** Kinds of notes, besides those of `move_framework/model`. */
export const COMMAND = 0;
export const LEFT = 10;

/** A transaction, as the VM is given it. */
export interface Transaction {
  readonly sender: string;
  readonly nowMs: number;
  readonly epoch: bigint;
  /** 32 bytes. */
  readonly digest: Uint8Array;
  /** Pure values and objects; undefined is the clock. */
  readonly inputs: readonly (Uint8Array | LedgerObject | undefined)[];
  readonly gasCoin: LedgerObject | undefined;
  /** The dynamic fields of the objects, and theirs. */
  readonly fields: readonly LedgerObject[];
  readonly commands: readonly Command[];
  /** The id of the package that it publishes or upgrades to. */
  readonly published: string;
  /** BCS of the `NitroAttestationDocument` of a command. */
  readonly documents: ReadonlyMap<number, Uint8Array>;
  /** Whether further commands were left out. */
  readonly isPartial: boolean;
  /** The id under which the package of a call was first published. */
  original(packageId: string): string;
}

export interface Program {
  readonly source: string;
  /** The command of a line, from 1. */
  commandAt(line: number): number | undefined;
  /** Ids of the objects that it takes by value. */
  readonly consumed: readonly string[];
  /** What it fails with if its calls do not: with the command that follows them, or at the end. */
  readonly failure: CommandFailure | undefined;
}

/** A type and an id of an object to note, if the transaction leaves it. */
export interface Left {
  readonly type: string;
  readonly parent: string;
  readonly id: string;
}

/** A value that commands use: an object, or what a command returned. */
interface Slot {
  readonly name: string;
  readonly type: MoveType;
  /** Of the command and of the value in it; none for an input. */
  readonly result?: readonly [command: number, value: number];
  readonly object?: LedgerObject;
  isGone: boolean;
  isUsed: boolean;
  isMutated: boolean;
}

const CLOCK = parseType('0x2::clock::Clock');
const U64 = parseType('u64');
const ADDRESS = parseType('address');
const DOCUMENT = parseType('0x2::nitro_attestation::NitroAttestationDocument');
const COIN = /^0x0*2::coin::Coin</;
const PURE = new Set(['1::string::String', '1::ascii::String', '1::option::Option', '2::object::ID']);

/** @param chunks how many pieces of the notes it is to give back */
export function programOf(
  transaction: Transaction,
  code: Code,
  chunks: number,
  left: readonly Left[],
): Program {
  return new Writer(transaction, code).write(chunks, left);
}

class Writer {
  readonly #transaction: Transaction;
  readonly #code: Code;
  readonly #lines: string[] = [];
  readonly #commands = new Map<number, number>();
  readonly #inputs = new Map<number, Slot>();
  readonly #results: Slot[][] = [];
  #gas: Slot | undefined;

  constructor(transaction: Transaction, code: Code) {
    this.#transaction = transaction;
    this.#code = code;
  }

  write(chunks: number, left: readonly Left[]): Program {
    const { sender, digest, epoch, nowMs, inputs, gasCoin, fields, commands } = this.#transaction;
    this.#lines.push(
      '#[test_only, allow(unused_variable, unused_let_mut, unused_assignment, unused_function, dead_code)]',
      'module model_run::run;',
      'fun run(chunk: u64) {',
      `let mut context = 0x2::tx_context::model_context(@${sender}, ${bytes(digest)}, ${epoch}, ${nowMs});`,
    );
    for (const [index, input] of inputs.entries()) {
      if (!(input instanceof Uint8Array)) this.#inputs.set(index, this.#object(`i${index}`, input));
    }
    if (gasCoin !== undefined) this.#gas = this.#object('gas', gasCoin);
    for (const field of fields) this.#restore(field);
    const tags = keyTypes(this.#code.datatypes).map((type) => knownTag(format(type)));
    this.#lines.push(`0x2::dynamic_field::begin_log(vector[${tags.join(', ')}]);`);
    const failure = this.#failure(commands);
    const objects = [...this.#inputs.values(), ...(this.#gas === undefined ? [] : [this.#gas])];
    for (const slot of objects) {
      if (slot.isGone || !slot.isMutated) continue;
      this.#note(LEFT, `0x1::bcs::to_bytes(&${slot.name})`);
    }
    const kept = fields.map(({ type, id, owner }) => ({ type, id, parent: addressOf(owner) }));
    for (const { type, parent, id } of [...kept, ...left]) {
      this.#lines.push(`0x2::dynamic_field::note_left<${format(parseType(type))}>(@${parent}, @${id});`);
    }
    this.#lines.push(
      'let log = 0x2::dynamic_field::end_log();',
      'abort 0x2::dynamic_field::chunk(&log, chunk)',
      '}',
    );
    for (let chunk = 0; chunk < chunks; chunk += 1) {
      this.#lines.push(`#[test] fun t${chunk}() { run(${chunk}) }`);
    }
    return {
      failure,
      source: this.#lines.join('\n'),
      commandAt: (line) => this.#commands.get(line),
      consumed: objects.flatMap(({ object, isGone }) => (isGone && object !== undefined ? [object.id] : [])),
    };
  }

  #failure(commands: readonly Command[]): CommandFailure | undefined {
    try {
      for (const [index, command] of commands.entries()) this.#command(command, index);
      if (!this.#transaction.isPartial) this.#checkUnused();
      return undefined;
    } catch (error) {
      if (error instanceof CommandFailure) return error;
      throw error;
    }
  }

  #object(name: string, object: LedgerObject | undefined): Slot {
    const type = object === undefined ? CLOCK : parseType(object.type);
    const clock = () => Buffer.concat([Buffer.alloc(31), Buffer.of(6), u64(this.#transaction.nowMs)]);
    this.#lines.push(`let mut ${name} = ${this.#literal(object?.content ?? clock(), type)};`);
    const state = { isGone: false, isUsed: false, isMutated: false };
    return { name, type, ...(object && { object }), ...state };
  }

  #restore({ type, owner, content }: LedgerObject): void {
    const value = this.#literal(content, parseType(type));
    this.#lines.push(`0x2::dynamic_field::restore(@${addressOf(owner)}, ${value});`);
  }

  #literal(content: Uint8Array, type: MoveType): string {
    return literalOf(content, type, this.#code.datatypes);
  }

  #note(kind: number, value: string): void {
    this.#lines.push(`0x2::dynamic_field::note_untyped(${kind}, @0x0, ${value});`);
  }

  /** One line, by which an abort is found to be the command's. */
  #statement(index: number, statement: string, returns: readonly MoveType[] = []): void {
    const slots = this.#results[index] ?? [];
    const from = slots.length;
    for (const [value, type] of returns.entries()) {
      const name = `r${index}_${from + value}`;
      const state = { isGone: false, isUsed: false, isMutated: false };
      slots.push({ name, type, result: [index, from + value], ...state });
    }
    const names = slots.slice(from).map(({ name }) => `mut ${name}`);
    const kept = names.length === 0 ? '' : `let (${names.join(', ')}) = `;
    this.#lines.push(`${kept}${statement};`);
    this.#commands.set(this.#lines.length, index);
  }

  #command(command: Command, index: number): void {
    this.#results[index] = [];
    this.#note(COMMAND, `0x1::bcs::to_bytes(&${index}u16)`);
    this.#commands.set(this.#lines.length, index);
    if (command.kind === 'call') this.#call(command, index);
    else if (command.kind === 'publish') this.#publish(command.modules, index);
    else if (command.kind === 'upgrade') this.#upgrade(command, index);
    else if (command.kind === 'transfer') this.#transfer(command, index);
    else if (command.kind === 'split') this.#split(command, index);
    else if (command.kind === 'merge') this.#merge(command, index);
    else this.#vector(command, index);
  }

  #call({ call, args }: Extract<Command, { kind: 'call' }>, index: number): void {
    const document = this.#transaction.documents.get(index);
    if (document !== undefined) {
      this.#statement(index, this.#literal(document, DOCUMENT), [DOCUMENT]);
      return;
    }
    const address = this.#transaction.original(call.package);
    const module = this.#code.modules.get(`${address}::${call.module}`);
    const called = module?.callable.get(call.function);
    if (module === undefined || called === undefined) {
      const name = `${call.package}::${call.module}::${call.function}`;
      if (/^0x0*[12]$/.test(address))
        throw new Refusal('UNIMPLEMENTED', `the stub of Sui's framework has no ${name}`);
      throw new CommandFailure(index, 'FUNCTION_NOT_FOUND', `FunctionNotFound: ${name}`);
    }
    const given = this.#typeArguments(call.typeArguments, called, index);
    const parameters = splitList(called.parameters).map((text) => instantiate(parseType(text), given));
    const taken = parameters.filter((type) => !isContext(type));
    if (taken.length !== args.length) {
      throw new CommandFailure(index, 'ARITY_MISMATCH', 'ArityMismatch');
    }
    let next = 0;
    const values = parameters.map((type) => {
      if (isContext(type)) return type.kind === 'reference' && type.isMutable ? '&mut context' : '&context';
      next += 1;
      return this.#argument(args[next - 1], type, index, next - 1);
    });
    const name = module.functions.has(call.function) ? call.function : `model_call_${call.function}`;
    const returns = splitList(called.returns).map((text) => instantiate(parseType(text), given));
    this.#statement(
      index,
      `${address}::${call.module}::${name}${typeArguments(given)}(${values.join(', ')})`,
      returns,
    );
  }

  #typeArguments(texts: readonly string[], { constraints }: PublicFunction, index: number): MoveType[] {
    if (texts.length !== constraints.length) {
      throw new CommandFailure(index, 'TYPE_ARITY_MISMATCH', 'TypeArityMismatch');
    }
    return texts.map((text, at) => {
      const refused = (kind: string) =>
        new CommandFailure(
          index,
          'TYPE_ARGUMENT_ERROR',
          `TypeArgumentError { argument_idx: ${at}, kind: ${kind} }`,
        );
      let abilities: number;
      const type = this.#original(parseType(text));
      try {
        abilities = this.#code.datatypes.abilitiesOf(type);
      } catch {
        throw refused('TypeNotFound');
      }
      if (((constraints[at] ?? 0) & ~abilities) !== 0) throw refused('ConstraintNotSatisfied');
      return type;
    });
  }

  /** Types have the address of the package's first version here. */
  #original(type: MoveType): MoveType {
    if (type.kind === 'vector') return { ...type, of: this.#original(type.of) };
    if (type.kind !== 'struct') return type;
    const args = type.args.map((inner) => this.#original(inner));
    return { ...type, args, address: this.#transaction.original(type.address) };
  }

  #argument(argument: Argument | undefined, type: MoveType, index: number, at: number): string {
    const mismatch = (kind: string) =>
      new CommandFailure(
        index,
        'COMMAND_ARGUMENT_ERROR',
        `CommandArgumentError { arg_idx: ${at}, kind: ${kind} }`,
      );
    const wanted = valueType(type);
    const reference = type.kind === 'reference' ? `&${type.isMutable ? 'mut ' : ''}` : '';
    const input = argument && 'input' in argument ? this.#transaction.inputs[argument.input] : undefined;
    if (input instanceof Uint8Array) {
      if (!isPure(wanted)) throw mismatch('InvalidUsageOfPureArg');
      return `${reference}${this.#pure(input, wanted, mismatch)}`;
    }
    const slot = this.#slot(argument, mismatch);
    if (format(slot.type) !== format(wanted)) throw mismatch('TypeMismatch');
    slot.isUsed = true;
    const isImmutable = slot.object?.owner.kind === 'immutable' || slot.type === CLOCK;
    if (reference !== '') {
      const isMutable = reference !== '&';
      if (isMutable && isImmutable) throw mismatch('InvalidObjectByMutRef');
      slot.isMutated ||= isMutable;
      return `${reference}${slot.name}`;
    }
    if (isImmutable) throw mismatch('InvalidObjectByValue');
    if ((this.#code.datatypes.abilitiesOf(slot.type) & ABILITY.copy) !== 0) return `copy ${slot.name}`;
    slot.isGone = true;
    return slot.name;
  }

  #pure(value: Uint8Array, type: MoveType, mismatch: (kind: string) => Error): string {
    try {
      checkText(value, type);
      return this.#literal(value, type);
    } catch {
      throw mismatch('InvalidBCSBytes');
    }
  }

  #slot(argument: Argument | undefined, mismatch: (kind: string) => Error): Slot {
    const slot =
      argument === undefined
        ? undefined
        : 'gas' in argument
          ? this.#gas
          : 'input' in argument
            ? this.#inputs.get(argument.input)
            : this.#results[argument.result]?.[argument.nested];
    if (slot === undefined) throw mismatch('IndexOutOfBounds');
    if (slot.isGone) throw mismatch('InvalidValueUsage');
    return slot;
  }

  #publish(modules: readonly Uint8Array[], index: number): void {
    const { published } = this.#transaction;
    this.#freshId(index);
    const own = [...this.#code.modules.values()].filter(({ address }) => address === published);
    for (const { name, init } of own) {
      if (init !== undefined) this.#statement(index, `${published}::${name}::model_init(&mut context)`);
    }
    const id = `0x2::object::id_from_address(@${published})`;
    const cap = parseType('0x2::package::UpgradeCap');
    this.#statement(index, `0x2::package::test_publish(${id}, &mut context)`, [cap]);
    if (modules.length !== own.length) throw new RangeError('the modules are not those that were compiled');
  }

  #upgrade({ modules, dependencies, packageId, ticket }: Upgrade, index: number): void {
    const value = this.#argument(ticket, parseType('0x2::package::UpgradeTicket'), index, 0);
    this.#freshId(index);
    const digest = bytes(packageDigest(modules, dependencies));
    const ids = [`@${packageId}`, digest, `@${this.#transaction.published}`];
    this.#statement(index, `0x2::package::model_upgrade(${value}, ${ids.join(', ')})`, [
      parseType('0x2::package::UpgradeReceipt'),
    ]);
  }

  /** The id of the new package, which must be the first that the transaction makes. */
  #freshId(index: number): void {
    const id = '0x2::tx_context::fresh_object_address(&mut context)';
    this.#statement(index, `assert!(${id} == @${this.#transaction.published}, 0)`);
  }

  #transfer({ objects, to }: Extract<Command, { kind: 'transfer' }>, index: number): void {
    const recipient = this.#argument(to, ADDRESS, index, objects.length);
    for (const [at, argument] of objects.entries()) {
      const type = this.#typeOf(argument, index, at);
      if ((this.#code.datatypes.abilitiesOf(type) & ABILITY.store) === 0) {
        throw new CommandFailure(index, 'INVALID_TRANSFER_OBJECT', 'InvalidTransferObject');
      }
      const value = this.#argument(argument, type, index, at);
      this.#statement(index, `0x2::transfer::public_transfer(${value}, ${recipient})`);
    }
  }

  #split({ coin, amounts }: Extract<Command, { kind: 'split' }>, index: number): void {
    const type = this.#coinType(coin, index, 0);
    const from = this.#argument(coin, { kind: 'reference', isMutable: true, of: type }, index, 0);
    for (const [at, amount] of amounts.entries()) {
      const value = this.#argument(amount, U64, index, at + 1);
      this.#statement(index, `0x2::coin::split(${from}, ${value}, &mut context)`, [type]);
    }
  }

  #merge({ coin, coins }: Extract<Command, { kind: 'merge' }>, index: number): void {
    const type = this.#coinType(coin, index, 0);
    const into = this.#argument(coin, { kind: 'reference', isMutable: true, of: type }, index, 0);
    for (const [at, coin] of coins.entries()) {
      this.#statement(index, `0x2::coin::join(${into}, ${this.#argument(coin, type, index, at + 1)})`);
    }
  }

  #vector({ type, items }: Extract<Command, { kind: 'vector' }>, index: number): void {
    const [first] = items;
    const of = type === undefined ? this.#typeOf(first, index, 0) : this.#original(parseType(type));
    const values = items.map((item, at) => this.#argument(item, of, index, at));
    this.#statement(index, `vector<${format(of)}>[${values.join(', ')}]`, [{ kind: 'vector', of }]);
  }

  #coinType(argument: Argument, index: number, at: number): MoveType {
    const type = this.#typeOf(argument, index, at);
    if (COIN.test(format(type))) return type;
    const description = `CommandArgumentError { arg_idx: ${at}, kind: TypeMismatch }`;
    throw new CommandFailure(index, 'COMMAND_ARGUMENT_ERROR', description);
  }

  #typeOf(argument: Argument | undefined, index: number, at: number): MoveType {
    const mismatch = (kind: string) =>
      new CommandFailure(
        index,
        'COMMAND_ARGUMENT_ERROR',
        `CommandArgumentError { arg_idx: ${at}, kind: ${kind} }`,
      );
    return this.#slot(argument, mismatch).type;
  }

  #checkUnused(): void {
    for (const { type, result, isGone, isUsed } of this.#results.flat()) {
      const abilities = this.#code.datatypes.abilitiesOf(type);
      const isKept = isGone || (isUsed && (abilities & ABILITY.copy) !== 0);
      if (isKept || (abilities & ABILITY.drop) !== 0 || result === undefined) continue;
      const [command, value] = result;
      throw new CommandFailure(
        undefined,
        'UNUSED_VALUE_WITHOUT_DROP',
        `UnusedValueWithoutDrop { result_idx: ${command}, secondary_idx: ${value} }`,
      );
    }
  }
}

const KEY = ABILITY.copy | ABILITY.drop | ABILITY.store;
const PRIMITIVE_KEYS = [
  'u8',
  'u64',
  'address',
  '0x1::string::String',
  '0x1::ascii::String',
  '0x2::object::ID',
];

/** Types that keys of dynamic fields and of derived objects are likely to have: reading their names takes the VM long. */
function keyTypes({ all }: Code['datatypes']): MoveType[] {
  const declared = [...all.values()].filter(
    ({ module, abilities, typeParameters }) =>
      !/^0x0*[12]::/.test(module) && abilities === KEY && typeParameters === '',
  );
  const names = [...PRIMITIVE_KEYS, ...declared.map(({ module, name }) => `${module}::${name}`)];
  const derived = declared.map(
    ({ module, name }) => `0x2::derived_object::DerivedObjectKey<${module}::${name}>`,
  );
  return [...names, ...derived, '0x2::derived_object::Claimed'].map(parseType);
}

function knownTag(type: string): string {
  const tag = bcs.TypeTag.serialize(TypeTagSerializer.parseFromStr(type, true)).toBytes();
  const name = type.replaceAll('0x', '').replaceAll(', ', ',');
  return `0x2::type_tag::known(b"${name}", ${bytes(tag)})`;
}

function u64(value: number): Uint8Array {
  const buffer = Buffer.alloc(8);
  buffer.writeBigUInt64LE(BigInt(value));
  return buffer;
}

function addressOf(owner: LedgerObject['owner']): string {
  return 'address' in owner ? owner.address : '0x0';
}

function isContext(type: MoveType): boolean {
  const value = valueType(type);
  return value.kind === 'struct' && value.module === 'tx_context' && /^0x0*2$/.test(value.address);
}

function nameOf({ address, module, name }: Extract<MoveType, { kind: 'struct' }>): string {
  return `${address.replace(/^0x0*/, '')}::${module}::${name}`;
}

/** Whether bytes of a transaction can be a value of the type. */
function isPure(type: MoveType): boolean {
  if (type.kind === 'primitive') return type.name !== 'signer';
  if (type.kind === 'vector') return isPure(type.of);
  return type.kind === 'struct' && PURE.has(nameOf(type)) && type.args.every(isPure);
}

/** A string of a transaction is UTF-8, or ASCII. */
function checkText(value: Uint8Array, type: MoveType): void {
  if (type.kind !== 'struct' || type.name !== 'String') return;
  const text = new TextDecoder('utf-8', { fatal: true }).decode(
    value.subarray(value.findIndex((byte) => byte < 0x80) + 1),
  );
  if (type.module === 'ascii' && /[^\0-\x7f]/.test(text)) throw new RangeError('it is not ASCII');
}
