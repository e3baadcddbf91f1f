/**
 * Executes a transaction's commands with published bytecode, in the same way as Sui's programmable
 * transactions.
 */
import { normalizeSuiAddress } from '@mysten/sui/utils';
import { decodeAttestation, predictRegistration } from 'sui-enclave/attestation';
import type { Upgrade } from '../commands.ts';
import type { CommandResult, Engine, Executed, Execution, ObjectInput, Published } from '../engine.ts';
import { CommandFailure, MoveAbort, Refusal, toFailureStatus } from '../failures.ts';
import type { LedgerObject } from '../ledger.ts';
import { loadModules, type Package } from '../packages.ts';
import { ChainCode } from './code.ts';
import { frameworkPackage } from './framework.ts';
import { Machine } from './machine.ts';
import { Runtime } from './natives.ts';
import { type Publishing, publishPackage, upgradePackage } from './publication.ts';
import { format, type MoveType, splitList } from './types.ts';
import {
  GAS,
  inputPlace,
  isContext,
  purePlace,
  resultPlace,
  type TypedArgument,
  type TypedCall,
  type TypedCommand,
  type TypedInputs,
  Typing,
} from './typing.ts';
import {
  Composite,
  composite,
  copyValue,
  createVector,
  Int,
  idOf,
  int,
  Reference,
  toBytes,
  u64,
  type Value,
} from './values.ts';
import { verify } from './verification.ts';

/** Maximum number of instructions and values in a transaction. They take one or two seconds. */
const GAS_UNITS = 10_000_000;
const MAX_U64 = 2n ** 64n - 1n;

/** A value that commands use: an input, or a result of a command. */
interface Slot {
  readonly type: MoveType;
  /** Cell with the value, which references point to. The cell is empty once the value is taken. */
  readonly cell: Value[];
  readonly input: ObjectInput | undefined;
  isMutated: boolean;
}

/** The engine of the loopback node. */
export const moveEngine: Engine = async (execution) =>
  await new Transaction(execution, frameworkPackage()).execute();

class Transaction {
  readonly #execution: Execution;
  readonly #packages: Map<string, Package>;
  readonly #code: ChainCode;
  readonly #runtime: Runtime;
  readonly #machine: Machine;
  readonly #slots = new Map<string, Slot>();
  readonly #results: CommandResult[] = [];
  readonly #context: Composite;
  #published: Published | undefined;
  #command = 0;

  constructor(execution: Execution, framework: Package) {
    const { changes, sender, packages, epoch, nowMs } = execution;
    this.#execution = execution;
    // The transaction adds the package that it publishes to this copy.
    this.#packages = new Map(packages);
    const code = new ChainCode(this.#packages, framework);
    const runtime = new Runtime(changes, normalizeSuiAddress(sender), code);
    this.#code = code;
    this.#runtime = runtime;
    this.#machine = new Machine({ native: runtime.native.bind(runtime), codec: code.codec }, GAS_UNITS);
    const times = [u64(epoch), u64(nowMs), u64(0)];
    this.#context = new Composite([runtime.sender, createVector(changes.digest), ...times]);
  }

  async execute(): Promise<Executed> {
    const { inputs, gasCoin, commands } = this.#execution;
    try {
      for (const [index, input] of inputs.entries()) {
        if (!(input instanceof Uint8Array)) this.#addSlot(inputPlace(index), input);
      }
      if (gasCoin !== undefined) this.#addSlot(GAS, { object: gasCoin, isMutable: true });
      const typing = new Typing(this.#code, inputs);
      const typedCommands = typing.commands(commands);
      verify(this.#code, typedCommands, typing.inputs);
      this.#readPure(typing.inputs);
      for (const [index, command] of typedCommands.entries()) {
        this.#command = index;
        this.#runtime.command = index;
        const results = await this.#perform(command);
        for (const [resultIndex, type] of command.results.entries()) {
          const cell = results.slice(resultIndex, resultIndex + 1);
          this.#slots.set(resultPlace(index, resultIndex), {
            type,
            cell,
            input: undefined,
            isMutated: false,
          });
        }
        this.#recordResults(command, results);
      }
      this.#finish();
      return { ...this.#outcome, status: { success: true } };
    } catch (error) {
      const cause = error instanceof TypeError ? this.#unverified(error) : error;
      const status = toFailureStatus(cause, BigInt(this.#command));
      return { ...this.#outcome, status, events: [], published: undefined };
    }
  }

  get #outcome() {
    return { events: this.#runtime.events, published: this.#published, results: this.#results };
  }

  /** Returns the failure of code that a verifier would have refused at the publication of the package. */
  #unverified({ message }: TypeError): CommandFailure {
    return this.#createFailure('VM_INVARIANT_VIOLATION', `VMInvariantViolation: ${message}`);
  }

  #addSlot(place: string, input: ObjectInput): void {
    const type = this.#code.parse(input.object.type);
    const cell = [this.#decode(input.object, type)];
    this.#slots.set(place, { type, cell, input, isMutated: false });
  }

  /** Decodes an object. @throws Refusal if no package of the chain declares its type */
  #decode({ content }: LedgerObject, type: MoveType): Value {
    try {
      return this.#code.codec.decode(content, type);
    } catch (error) {
      const reason = error instanceof Error ? error.message : '';
      throw new Refusal('INVALID_ARGUMENT', `an object of type ${format(type)} can't be read: ${reason}`);
    }
  }

  #readPure({ inputs, pure }: TypedInputs): void {
    for (const { input, type } of pure) {
      const bytes = inputs[input];
      if (!(bytes instanceof Uint8Array)) continue;
      const cell = [this.#code.codec.decode(bytes, type)];
      this.#slots.set(purePlace(input, type), { type, cell, input: undefined, isMutated: false });
    }
  }

  #perform(command: TypedCommand): Promise<readonly Value[]> | readonly Value[] {
    const values = command.args.map((argument) => this.#argument(argument));
    switch (command.kind) {
      case 'call':
        return this.#call(command, values);
      case 'transfer':
        return this.#transfer(command, values);
      case 'split':
        return this.#split(values);
      case 'merge':
        return this.#merge(values);
      case 'vector':
        return [new Composite(values)];
      case 'publish':
        return this.#publish(command.command);
      case 'upgrade':
        return [this.#upgrade(command.command, composite(values[0]))];
    }
  }

  #argument({ place, use }: TypedArgument): Value {
    const slot = this.#slots.get(place);
    if (slot === undefined) throw new TypeError(`there is no ${place}`);
    if (use === 'borrow' || use === 'borrow mutably') {
      slot.isMutated ||= use === 'borrow mutably';
      return new Reference(slot.cell, 0);
    }
    const [value] = slot.cell;
    if (value === undefined) throw new TypeError('the value was moved');
    if (use === 'copy') return copyValue(value, () => undefined);
    slot.cell.pop();
    if (slot.input !== undefined) this.#runtime.take(slot.input.object);
    return value;
  }

  async #call(call: TypedCall, args: readonly Value[]): Promise<readonly Value[]> {
    const { linked, linkage, types, parameters, packageId } = call;
    let next = 0;
    const values = parameters.map((type) => {
      if (isContext(type)) return new Reference([this.#context], 0);
      next += 1;
      return args[next - 1] as Value;
    });
    const isDocument = linked.code.name === 'load_nitro_attestation' && this.#code.isFramework(packageId);
    if (isDocument) await this.#verifyDocument(linked.packageId, toBytes(args[0] as Value));
    return await this.#machine.call(linked, types, values, this.#code.linker(linkage));
  }

  /**
   * Verifies the document of a call in the same way as a node, so that Move can load it. @throws MoveAbort
   */
  async #verifyDocument(id: string, bytes: Uint8Array): Promise<void> {
    const { nowMs, root } = this.#execution;
    const { abort } = await predictRegistration(bytes, nowMs, root);
    if (abort !== null) {
      const [module, functionName] = ['nitro_attestation', 'load_nitro_attestation_internal'];
      const linked = this.#code.function(id, module, functionName);
      const { index } = linked.code;
      const location = { package: id, module, function: index, functionName, instruction: 0 };
      throw new MoveAbort(location, BigInt(abort));
    }
    const { pcrs, publicKey, timestamp } = decodeAttestation(bytes);
    const none = new Composite([new Composite([])]);
    const entries = [...pcrs].map(
      ([index, value]) => new Composite([new Int(8, BigInt(index)), createVector(value)]),
    );
    this.#runtime.document = new Composite([
      createVector(new Uint8Array()),
      u64(timestamp),
      createVector(new Uint8Array()),
      new Composite(entries),
      publicKey === undefined || publicKey === null
        ? none
        : new Composite([new Composite([createVector(publicKey)])]),
      none,
      none,
    ]);
  }

  #transfer({ args }: TypedCommand, values: readonly Value[]): readonly Value[] {
    const recipient = String(values.at(-1));
    for (const [index, { type }] of args.slice(0, -1).entries()) {
      this.#runtime.give(values[index] as Value, type, { kind: 'address', address: recipient });
    }
    return [];
  }

  /**
   * Splits a coin without a call of Move's `coin::split`. If the balance is too low, the failure is the
   * command's, and not that of a Move function.
   */
  #split([coin, ...amounts]: readonly Value[]): readonly Value[] {
    return amounts.map((amount) => {
      const { value } = int(amount);
      const balance = balanceOf(coin);
      if (balance < value) throw this.#createFailure('INSUFFICIENT_COIN_BALANCE', 'InsufficientCoinBalance');
      setBalance(coin, balance - value);
      const id = this.#execution.changes.freshId();
      return new Composite([new Composite([new Composite([id])]), new Composite([u64(value)])]);
    });
  }

  #merge([target, ...coins]: readonly Value[]): readonly Value[] {
    for (const coin of coins) {
      const sum = balanceOf(target) + balanceOf(coin);
      if (sum > MAX_U64) throw this.#createFailure('COIN_BALANCE_OVERFLOW', 'CoinBalanceOverflow');
      setBalance(target, sum);
      this.#execution.changes.destroy(idOf(coin));
    }
    return [];
  }

  async #publish(publishing: Publishing): Promise<readonly Value[]> {
    const { published, linkage } = publishPackage(this.#writing, publishing);
    this.#published = published;
    const { id } = published;
    const link = this.#code.linker(new Map([...linkage, [id, id]]));
    for (const { moduleInterface } of loadModules(published).values()) {
      if (moduleInterface.init === undefined) continue;
      const context = new Reference([this.#context], 0);
      // This is the value of a one-time witness, whose only field is false.
      const witness = splitList(moduleInterface.init.parameters).length > 1 ? [new Composite([false])] : [];
      const init = this.#code.function(id, moduleInterface.name, 'init');
      await this.#machine.call(init, [], [...witness, context], link);
    }
    const uid = new Composite([new Composite([this.#execution.changes.freshId()])]);
    return [new Composite([uid, new Composite([id]), u64(1), new Int(8, 0n)])];
  }

  #upgrade(upgrade: Upgrade, { items: [cap, upgradedPackage, policy, digest] }: Composite): Value {
    const ticket = {
      packageId: idOf(upgradedPackage),
      policy: Number(int(policy).value),
      digest: toBytes(digest as Value),
    };
    const published = upgradePackage(this.#writing, upgrade, ticket);
    this.#published = published;
    return new Composite([cap as Value, new Composite([published.id])]);
  }

  get #writing() {
    if (this.#published !== undefined)
      throw new Refusal(
        'UNIMPLEMENTED',
        'this model of Sui publishes or upgrades only one package in a transaction',
      );
    return { packages: this.#packages, changes: this.#execution.changes, command: this.#command };
  }

  #recordResults({ args, results }: TypedCommand, values: readonly Value[]): void {
    if (this.#execution.keepsResults !== true) return;
    const output = (type: MoveType, value: Value) => ({
      type: this.#code.formatType(type),
      content: this.#code.codec.encode(value, type),
    });
    const returned = results.map((type, index) => output(type, values[index] as Value));
    const mutated = args.flatMap(({ use, argument, place, type }) => {
      const value = use === 'borrow mutably' ? this.#slots.get(place)?.cell[0] : undefined;
      return value === undefined ? [] : [{ ...output(type, value), argument }];
    });
    this.#results.push({ returned, mutated });
  }

  /** Writes the objects that commands have borrowed mutably. */
  #finish(): void {
    this.#runtime.finish();
    const { changes } = this.#execution;
    for (const { input, cell, type, isMutated } of this.#slots.values()) {
      const [value] = cell;
      if (input === undefined) continue;
      if (value === undefined) this.#checkShared(input.object);
      else if (isMutated) changes.write({ ...input.object, content: this.#code.codec.encode(value, type) });
    }
  }

  /** Checks that a shared object that was taken by value has been shared again or deleted. */
  #checkShared({ id, owner }: LedgerObject): void {
    const { written, destroyed } = this.#execution.changes;
    if (owner.kind !== 'shared' || written.get(id)?.owner.kind === 'shared') return;
    if (!written.has(id) && destroyed.has(id)) return;
    throw new CommandFailure(
      undefined,
      'CONSENSUS_OBJECT_OPERATION_NOT_ALLOWED',
      'SharedObjectOperationNotAllowed',
    );
  }

  #createFailure(kind: CommandFailure['kind'], description: string): CommandFailure {
    return new CommandFailure(this.#command, kind, description);
  }
}

/** Returns the `Balance` of a coin. @param value a coin, or a reference to a coin */
function balanceIn(value: Value | undefined): Composite {
  const coin = composite(value instanceof Reference ? value.value : value);
  return composite(coin.items[1]);
}

function balanceOf(coin: Value | undefined): bigint {
  return int(balanceIn(coin).items[0]).value;
}

function setBalance(coin: Value | undefined, balance: bigint): void {
  balanceIn(coin).items[0] = u64(balance);
}
