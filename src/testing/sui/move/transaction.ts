/** Executes the commands of a transaction over published bytecode, as Sui's programmable transactions do. */
import { bcs } from '@mysten/sui/bcs';
import { normalizeSuiAddress } from '@mysten/sui/utils';
import { decodeAttestation, predictRegistration } from 'sui-enclave/attestation';
import type { PublicFunction } from 'sui-enclave-move-bytecode/module_bytecode';
import { packageDigest } from 'sui-enclave-move-bytecode/package_digest';
import type { Argument, Call, Command, Upgrade } from '../commands.ts';
import type { Engine, Executed, Execution, Published } from '../engine.ts';
import { CommandFailure, failure, MoveAbort, Refusal } from '../failures.ts';
import type { LedgerObject, Package } from '../ledger.ts';
import { ChainCode } from './code.ts';
import { frameworkModules } from './framework.ts';
import { Machine } from './machine.ts';
import { Runtime } from './natives.ts';
import {
  ABILITY,
  format,
  instantiate,
  type MoveType,
  parseType,
  type Struct,
  splitList,
  valueType,
} from './types.ts';
import { Composite, composite, copyOf, Int, idOf, Reference, u64, type Value, vectorOf } from './values.ts';

/** Instructions and values of a transaction, which take a second or two. */
const GAS = 10_000_000;

const CLOCK = parseType('0x2::clock::Clock');
const U64 = parseType('u64');
const ADDRESS = parseType('address');
const TICKET = parseType('0x2::package::UpgradeTicket');
const RECEIPT = parseType('0x2::package::UpgradeReceipt');
const UPGRADE_CAP = parseType('0x2::package::UpgradeCap');
const COIN = /^0x0*2::coin::Coin</;
const PURE = new Set(['1::string::String', '1::ascii::String', '1::option::Option', '2::object::ID']);
const CLOCK_ID = normalizeSuiAddress('0x6');

/** A value that commands use: an input, or what a command returned. */
interface Slot {
  readonly type: MoveType;
  /** The value, which references point to. */
  readonly cell: Value[];
  readonly object: LedgerObject | undefined;
  isGone: boolean;
  isUsed: boolean;
  isMutated: boolean;
}

let framework: Package | undefined;

/** The engine of the loopback node. */
export const moveEngine: Engine = async (execution) => {
  framework ??= { original: '', modules: await frameworkModules(), dependencies: [] };
  return await new Transaction(execution, framework).execute();
};

class Transaction {
  readonly #execution: Execution;
  readonly #packages: Map<string, Package>;
  readonly #code: ChainCode;
  readonly #runtime: Runtime;
  readonly #machine: Machine;
  readonly #inputs = new Map<number, Slot>();
  readonly #results: Slot[][] = [];
  readonly #context: Composite;
  #gas: Slot | undefined;
  #published: Published | undefined;
  #command = 0;

  constructor(execution: Execution, framework: Package) {
    const { changes, sender, packages, epoch, nowMs } = execution;
    this.#execution = execution;
    // With those that it publishes.
    this.#packages = new Map(packages);
    const code = new ChainCode(this.#packages, framework);
    const runtime = new Runtime(changes, normalizeSuiAddress(sender), code.codec);
    this.#code = code;
    this.#runtime = runtime;
    const program = {
      link: code.link.bind(code),
      native: runtime.native.bind(runtime),
      codec: code.codec,
    };
    this.#machine = new Machine(program, GAS);
    const times = [u64(epoch), u64(nowMs), u64(0)];
    this.#context = new Composite([runtime.sender, vectorOf(changes.digest), ...times]);
  }

  async execute(): Promise<Executed> {
    const { inputs, gasCoin, commands } = this.#execution;
    try {
      for (const [index, input] of inputs.entries()) {
        if (!(input instanceof Uint8Array)) this.#inputs.set(index, this.#object(input));
      }
      this.#gas = gasCoin && this.#object(gasCoin);
      for (const [index, command] of commands.entries()) {
        this.#command = index;
        this.#runtime.command = index;
        this.#results[index] = [];
        await this.#perform(command);
      }
      this.#checkUnused();
      this.#finish();
      return { status: { success: true }, events: this.#runtime.events, published: this.#published };
    } catch (error) {
      const cause = error instanceof TypeError ? this.#unverified(error) : error;
      return { status: failure(cause, BigInt(this.#command)), events: [], published: undefined };
    }
  }

  /** What a verifier would have refused when the package was published. */
  #unverified({ message }: TypeError): CommandFailure {
    return this.#failed('VM_INVARIANT_VIOLATION', `VMInvariantViolation: ${message}`);
  }

  #object(object: LedgerObject | undefined): Slot {
    const state = { object, isGone: false, isUsed: false, isMutated: false };
    if (object === undefined) return { ...state, type: CLOCK, cell: [this.#clock()] };
    const type = parseType(object.type);
    return { ...state, type, cell: [this.#decoded(object.content, type)] };
  }

  /** @throws Refusal for an object whose type no package of the chain declares */
  #decoded(content: Uint8Array, type: MoveType): Value {
    try {
      return this.#code.codec.decode(content, type);
    } catch (error) {
      const reason = error instanceof Error ? error.message : '';
      throw new Refusal('INVALID_ARGUMENT', `an object of type ${format(type)} can't be read: ${reason}`);
    }
  }

  #clock(): Value {
    const id = new Composite([new Composite([CLOCK_ID])]);
    return new Composite([id, u64(this.#execution.nowMs)]);
  }

  #perform(command: Command): Promise<void> | void {
    switch (command.kind) {
      case 'call':
        return this.#call(command.call, command.args);
      case 'publish':
        return this.#publish(command.modules, command.dependencies);
      case 'upgrade':
        return this.#upgrade(command);
      case 'transfer':
        return this.#transfer(command.objects, command.to);
      case 'split':
        return this.#split(command.coin, command.amounts);
      case 'merge':
        return this.#merge(command.coin, command.coins);
      case 'vector':
        return this.#vector(command.type, command.items);
    }
  }

  async #call({ package: id, module, function: name, typeArguments }: Call, args: readonly Argument[]) {
    if (!this.#code.has(id)) throw new Refusal('NOT_FOUND', `Object ${id} not found`);
    const called = this.#code.module(id, module)?.face.callable.get(name);
    if (called === undefined) {
      const full = `${id}::${module}::${name}`;
      if (this.#code.isFramework(id))
        throw new Refusal('UNIMPLEMENTED', `the stub of Sui's framework has no ${full}`);
      throw this.#failed('FUNCTION_NOT_FOUND', `FunctionNotFound: ${full}`);
    }
    const types = this.#typeArguments(typeArguments, called);
    const parameters = splitList(called.parameters).map((text) => instantiate(parseType(text), types));
    if (parameters.filter((type) => !isContext(type)).length !== args.length) {
      throw this.#failed('ARITY_MISMATCH', 'ArityMismatch');
    }
    const returns = splitList(called.returns).map((text) => instantiate(parseType(text), types));
    if (returns.some(({ kind }) => kind === 'reference')) {
      throw this.#failed('INVALID_PUBLIC_FUNCTION_RETURN_TYPE', 'InvalidPublicFunctionReturnType { idx: 0 }');
    }
    let next = 0;
    const values = parameters.map((type) => {
      if (isContext(type)) return new Reference([this.#context], 0);
      next += 1;
      return this.#argument(args[next - 1], type, next - 1);
    });
    if (module === 'nitro_attestation' && name === 'load_nitro_attestation' && this.#code.isFramework(id)) {
      await this.#verifyDocument(id, args[0]);
    }
    const linked = this.#code.function(id, module, name);
    this.#return(await this.#machine.call(linked, types, values), returns);
  }

  /** The node verifies the document of the call, which Move then loads. @throws MoveAbort */
  async #verifyDocument(id: string, argument: Argument | undefined): Promise<void> {
    const { inputs, nowMs, root } = this.#execution;
    const given = argument && 'input' in argument ? inputs[argument.input] : undefined;
    if (!(given instanceof Uint8Array)) {
      throw new Refusal(
        'UNIMPLEMENTED',
        'this model of Sui takes an attestation document from the transaction only',
      );
    }
    const bytes = bcs.byteVector().parse(given);
    const { abort } = await predictRegistration(bytes, nowMs, root);
    if (abort !== null) {
      const [module, functionName] = ['nitro_attestation', 'load_nitro_attestation_internal'];
      throw new MoveAbort(
        { package: normalizeSuiAddress(id), module, functionName, instruction: 0 },
        BigInt(abort),
      );
    }
    const { pcrs, publicKey, timestamp } = decodeAttestation(bytes);
    const none = new Composite([new Composite([])]);
    const entries = [...pcrs].map(
      ([index, value]) => new Composite([new Int(8, BigInt(index)), vectorOf(value)]),
    );
    this.#runtime.document = new Composite([
      vectorOf(new Uint8Array()),
      u64(timestamp),
      vectorOf(new Uint8Array()),
      new Composite(entries),
      publicKey === undefined || publicKey === null
        ? none
        : new Composite([new Composite([vectorOf(publicKey)])]),
      none,
      none,
    ]);
  }

  #typeArguments(texts: readonly string[], { constraints }: PublicFunction): MoveType[] {
    if (texts.length !== constraints.length) {
      throw this.#failed('TYPE_ARITY_MISMATCH', 'TypeArityMismatch');
    }
    return texts.map((text, at) => {
      const refused = (kind: string) =>
        this.#failed('TYPE_ARGUMENT_ERROR', `TypeArgumentError { argument_idx: ${at}, kind: ${kind} }`);
      const type = this.#original(parseType(text));
      const abilities = this.#abilities(type);
      if (abilities === undefined) throw refused('TypeNotFound');
      if (((constraints[at] ?? 0) & ~abilities) !== 0) throw refused('ConstraintNotSatisfied');
      return type;
    });
  }

  /** Undefined for a type that no package declares. */
  #abilities(type: MoveType): number | undefined {
    try {
      return this.#code.datatypes.abilitiesOf(type);
    } catch {
      return undefined;
    }
  }

  /** Types have the address of the package's first version here. */
  #original(type: MoveType): MoveType {
    if (type.kind === 'vector') return { ...type, of: this.#original(type.of) };
    if (type.kind !== 'struct') return type;
    const args = type.args.map((inner) => this.#original(inner));
    return { ...type, args, address: this.#code.original(type.address) };
  }

  #argument(argument: Argument | undefined, type: MoveType, at: number): Value {
    const wanted = valueType(type);
    const isReference = type.kind === 'reference';
    const input = argument && 'input' in argument ? this.#execution.inputs[argument.input] : undefined;
    if (input instanceof Uint8Array) {
      if (!isPure(wanted)) throw this.#mismatch(at, 'InvalidUsageOfPureArg');
      const value = this.#pure(input, wanted, at);
      return isReference ? new Reference([value], 0) : value;
    }
    const slot = this.#slot(argument, at);
    if (format(slot.type) !== format(wanted)) throw this.#mismatch(at, 'TypeMismatch');
    slot.isUsed = true;
    const isImmutable = slot.object?.owner.kind === 'immutable' || slot.type === CLOCK;
    if (isReference) {
      if (type.isMutable && isImmutable) throw this.#mismatch(at, 'InvalidObjectByMutRef');
      slot.isMutated ||= type.isMutable;
      return new Reference(slot.cell, 0);
    }
    if (isImmutable) throw this.#mismatch(at, 'InvalidObjectByValue');
    return this.#take(slot);
  }

  /** The value itself, or a copy where it can be copied. */
  #take(slot: Slot): Value {
    const [value] = slot.cell;
    if (value === undefined) throw new TypeError('the value is gone');
    if (((this.#abilities(slot.type) ?? 0) & ABILITY.copy) !== 0) return copyOf(value, () => undefined);
    slot.isGone = true;
    if (slot.object !== undefined) this.#runtime.take(slot.object);
    return value;
  }

  #pure(bytes: Uint8Array, type: MoveType, at: number): Value {
    try {
      checkText(bytes, type);
      return this.#code.codec.decode(bytes, type);
    } catch {
      throw this.#mismatch(at, 'InvalidBCSBytes');
    }
  }

  #slot(argument: Argument | undefined, at: number): Slot {
    const slot = this.#slotOf(argument);
    if (slot === undefined) throw this.#mismatch(at, 'IndexOutOfBounds');
    if (slot.isGone) throw this.#mismatch(at, 'InvalidValueUsage');
    return slot;
  }

  #slotOf(argument: Argument | undefined): Slot | undefined {
    if (argument === undefined) return undefined;
    if ('gas' in argument) return this.#gas;
    if ('input' in argument) return this.#inputs.get(argument.input);
    return this.#results[argument.result]?.[argument.nested];
  }

  #return(values: readonly Value[], types: readonly MoveType[]): void {
    for (const [index, type] of types.entries()) {
      const cell = values.slice(index, index + 1);
      const state = { object: undefined, isGone: false, isUsed: false, isMutated: false };
      this.#results[this.#command]?.push({ ...state, type, cell });
    }
  }

  async #publish(modules: readonly Uint8Array[], dependencies: readonly string[]): Promise<void> {
    const id = this.#write(modules, dependencies);
    for (const { face } of this.#code.modules(id)) {
      if (face.init === undefined) continue;
      const context = new Reference([this.#context], 0);
      // The value of a one-time witness, whose only field is false.
      const witness = splitList(face.init.parameters).length > 1 ? [new Composite([false])] : [];
      await this.#machine.call(this.#code.function(id, face.name, 'init'), [], [...witness, context]);
    }
    const { changes } = this.#execution;
    const uid = new Composite([new Composite([changes.freshId()])]);
    const cap = new Composite([uid, new Composite([id]), u64(1), new Int(8, 0n)]);
    this.#return([cap], [UPGRADE_CAP]);
  }

  #upgrade({ modules, dependencies, packageId, ticket }: Upgrade): void {
    const value = composite(this.#argument(ticket, TICKET, 0));
    const [cap, of, , digest] = value.items;
    const wrong = (kind: string) =>
      this.#failed('PACKAGE_UPGRADE_ERROR', `PackageUpgradeError { upgrade_error: ${kind} }`);
    if (idOf(of) !== normalizeSuiAddress(packageId)) throw wrong('PackageIDDoesNotMatch');
    const given = vectorOf(packageDigest(modules, dependencies));
    const authorized = this.#code.codec.encode(digest ?? given, VECTOR);
    if (!Buffer.from(authorized).equals(this.#code.codec.encode(given, VECTOR))) {
      throw wrong('DigestDoesNotMatch');
    }
    const id = this.#write(modules, dependencies, this.#code.original(packageId));
    this.#return([new Composite([cap ?? '', new Composite([id])])], [RECEIPT]);
  }

  /** @param of the id of the package's first version, where this is not it @returns the package's id */
  #write(modules: readonly Uint8Array[], dependencies: readonly string[], of?: string): string {
    if (this.#published !== undefined)
      throw new Refusal('UNIMPLEMENTED', 'this model of Sui writes one package a transaction');
    const id = this.#execution.changes.freshId();
    const published = { id, original: of ?? id, modules, dependencies };
    this.#published = published;
    this.#packages.set(id, published);
    try {
      this.#code.modules(id);
    } catch (error) {
      if (!(error instanceof RangeError)) throw error;
      const description = `VMVerificationOrDeserializationError: ${error.message}`;
      throw this.#failed('VM_VERIFICATION_OR_DESERIALIZATION_ERROR', description);
    }
    return id;
  }

  #transfer(objects: readonly Argument[], to: Argument): void {
    const recipient = this.#argument(to, ADDRESS, objects.length);
    for (const [at, argument] of objects.entries()) {
      const slot = this.#slot(argument, at);
      if (((this.#abilities(slot.type) ?? 0) & ABILITY.store) === 0) {
        throw this.#failed('INVALID_TRANSFER_OBJECT', 'InvalidTransferObject');
      }
      const value = this.#argument(argument, slot.type, at);
      this.#runtime.give(value, slot.type, { kind: 'address', address: String(recipient) });
    }
  }

  async #split(coin: Argument, amounts: readonly Argument[]): Promise<void> {
    const type = this.#coinType(coin, 0);
    const from = this.#argument(coin, { kind: 'reference', isMutable: true, of: type }, 0);
    for (const [at, amount] of amounts.entries()) {
      const value = this.#argument(amount, U64, at + 1);
      const split = this.#code.function('0x2', 'coin', 'split');
      const context = new Reference([this.#context], 0);
      this.#return(await this.#machine.call(split, type.args, [from, value, context]), [type]);
    }
  }

  async #merge(coin: Argument, coins: readonly Argument[]): Promise<void> {
    const type = this.#coinType(coin, 0);
    const into = this.#argument(coin, { kind: 'reference', isMutable: true, of: type }, 0);
    for (const [at, other] of coins.entries()) {
      const value = this.#argument(other, type, at + 1);
      await this.#machine.call(this.#code.function('0x2', 'coin', 'join'), type.args, [into, value]);
    }
  }

  #vector(text: string | undefined, items: readonly Argument[]): void {
    const of = text === undefined ? this.#slot(items[0], 0).type : this.#original(parseType(text));
    const values = items.map((item, at) => this.#argument(item, of, at));
    this.#return([new Composite(values)], [{ kind: 'vector', of }]);
  }

  #coinType(argument: Argument, at: number): Struct {
    const { type } = this.#slot(argument, at);
    if (type.kind === 'struct' && COIN.test(format(type))) return type;
    throw this.#mismatch(at, 'TypeMismatch');
  }

  /** What a command returned must be used, or have drop. */
  #checkUnused(): void {
    for (const [command, results] of this.#results.entries()) {
      for (const [value, { type, isGone, isUsed }] of results.entries()) {
        const abilities = this.#abilities(type) ?? 0;
        const isKept = isGone || (isUsed && (abilities & ABILITY.copy) !== 0);
        if (isKept || (abilities & ABILITY.drop) !== 0) continue;
        throw new CommandFailure(
          undefined,
          'UNUSED_VALUE_WITHOUT_DROP',
          `UnusedValueWithoutDrop { result_idx: ${command}, secondary_idx: ${value} }`,
        );
      }
    }
  }

  /** Writes the objects that calls were given as `&mut`. */
  #finish(): void {
    this.#runtime.finish();
    const given = this.#gas === undefined ? this.#inputs.values() : [...this.#inputs.values(), this.#gas];
    for (const { object, cell, type, isGone, isMutated } of given) {
      const [value] = cell;
      if (object === undefined || value === undefined || isGone || !isMutated) continue;
      this.#execution.changes.write({ ...object, content: this.#code.codec.encode(value, type) });
    }
  }

  #failed(kind: CommandFailure['kind'], description: string): CommandFailure {
    return new CommandFailure(this.#command, kind, description);
  }

  #mismatch(at: number, kind: string): CommandFailure {
    const description = `CommandArgumentError { arg_idx: ${at}, kind: ${kind} }`;
    return this.#failed('COMMAND_ARGUMENT_ERROR', description);
  }
}

const VECTOR = parseType('vector<u8>');

function isContext(type: MoveType): boolean {
  const value = valueType(type);
  return value.kind === 'struct' && value.module === 'tx_context' && /^0x0*2$/.test(value.address);
}

/** Whether bytes of a transaction can be a value of the type. */
function isPure(type: MoveType): boolean {
  if (type.kind === 'primitive') return type.name !== 'signer';
  if (type.kind === 'vector') return isPure(type.of);
  if (type.kind !== 'struct') return false;
  const name = `${type.address.replace(/^0x0*/, '')}::${type.module}::${type.name}`;
  return PURE.has(name) && type.args.every(isPure);
}

/** A string of a transaction is UTF-8, or ASCII. */
function checkText(value: Uint8Array, type: MoveType): void {
  if (type.kind !== 'struct' || type.name !== 'String') return;
  const bytes = Uint8Array.from(bcs.byteVector().parse(value));
  const text = new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  if (type.module === 'ascii' && /[^\0-\x7f]/.test(text)) throw new RangeError('it is not ASCII');
}
