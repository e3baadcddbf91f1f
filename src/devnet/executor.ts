/**
 * Resolves, simulates and executes programmable transactions on the ledger of a loopback Sui node.
 */
import { randomUUID } from 'node:crypto';
import { bcs } from '@mysten/sui/bcs';
import { GrpcTypes } from '@mysten/sui/grpc';
import { normalizeSuiAddress } from '@mysten/sui/utils';
import { type Command, readBcsCommand, readGrpcCommand, type TransactionData } from './commands.ts';
import { createEffects, describeChanges } from './effects.ts';
import type { CommandResult, Engine, Executed, Execution } from './engine.ts';
import { budgetRefusal, INSUFFICIENT_GAS, Refusal, type Status } from './failures.ts';
import { computeGas, type GasUsed, netOf, proposeBudget } from './gas.ts';
import {
  checkTransaction,
  findObject,
  formatReference,
  listArguments,
  lockedRefusal,
  ownedInputs,
  type Reference,
  readBcsInputs,
  readGrpcInputs,
  resolveInput,
} from './inputs.ts';
import { Changes, clockAt, computeDigest, createMockCoin, type Ledger, type LedgerObject } from './ledger.ts';
import { moveEngine } from './move/transaction.ts';
import { findChangedInputs } from './move/usage.ts';

type Run = Pick<Execution, 'sender' | 'inputs' | 'commands' | 'keepsResults'> & {
  /** Text from which new ids are derived. */
  readonly seed: string;
  /** Gas budget in MIST; undefined allows any amount. */
  readonly budget: bigint | undefined;
  /** Coins that pay for gas. All of them are merged into the first. */
  readonly payment: readonly string[];
};

/** The outcome of a transaction, with the gas paid. */
interface Outcome extends Executed {
  readonly changes: Changes;
  readonly gas: GasUsed;
}

interface Simulation {
  readonly resolved: GrpcTypes.Transaction;
  readonly status: Status;
  readonly gas: GasUsed;
  readonly results: readonly CommandResult[];
  /** Objects that the transaction would change, without a package that it would publish. */
  readonly changedObjects: readonly GrpcTypes.ChangedObject[];
}

const CLOCK = normalizeSuiAddress('0x6');
/** Maximum number of coins that a node selects for payment. */
const MAX_SELECTED = 255;
/** Coin that a node uses to simulate a transaction whose payer has no coin. */
const MOCK_COIN = createMockCoin(`0x${'c0'.repeat(32)}`, 10n ** 18n);

export class Executor {
  /** Returns the time of the chain's clock, in milliseconds since 1970. */
  now = () => Date.now();
  /** Gas cost in MIST of every transaction, without storage. Default: the costs that Sui charges. */
  gasNeeded: bigint | undefined;
  /** Budget in MIST that the node proposes. Default: close to Sui's proposal. */
  proposedBudget: bigint | undefined;
  /** The payer of a transaction that the node resolves. Default: the payer that the transaction names. */
  payer: string | undefined;
  /** Expiration that the node adds to a transaction that it resolves. Default: none. */
  expiration: GrpcTypes.TransactionExpiration | undefined;
  /**
   * Whether refusals have the texts of Sui 1.63. That version reports a failure during the estimate of the
   * budget only as text.
   */
  isOld = false;
  engine: Engine = moveEngine;
  /** Returns the current epoch, which Move code reads. */
  epoch = () => 1n;
  /** Modules of each published or upgraded package, in order. */
  readonly published: Uint8Array[][] = [];
  readonly #ledger: Ledger;
  /** DER of the root certificate that the model of `nitro_attestation` pins. */
  readonly root: Uint8Array;

  constructor(ledger: Ledger, root: Uint8Array) {
    this.#ledger = ledger;
    this.root = root;
  }

  /** Returns an executor with the same settings on another ledger. */
  withLedger(ledger: Ledger): Executor {
    return Object.assign(new Executor(ledger, this.root), this);
  }

  /** Returns an object of the chain. The Clock object has the present time of `now`. */
  find(id: string): LedgerObject | undefined {
    return id === CLOCK ? clockAt(this.now()) : this.#ledger.objects.get(id);
  }

  readonly #find = (id: string): LedgerObject | undefined => this.find(id);

  /**
   * Resolves and simulates a transaction.
   *
   * @param isChecked whether the sender or the sponsor must have coins for the gas budget
   * @throws Refusal
   */
  async simulate(transaction: GrpcTypes.Transaction, isChecked = true): Promise<Simulation> {
    const { sender = '', kind, gasPayment, bcs: bytes } = transaction;
    if (kind === undefined && bytes?.value !== undefined) return await this.#simulateBytes(bytes.value);
    if (kind?.data.oneofKind !== 'programmableTransaction') {
      throw new Refusal('INVALID_ARGUMENT', 'the loopback node supports only programmable transactions');
    }
    const { inputs, commands: callerCommands } = kind.data.programmableTransaction;
    const commands = callerCommands.map(readGrpcCommand);
    const changedIndices = findChangedInputs(this.#ledger.packages, commands);
    const resolvedInputs = inputs.map((input, index) =>
      input.kind === undefined ? resolveInput(input, sender, this.#find, changedIndices.has(index)) : input,
    );
    const values = readGrpcInputs(resolvedInputs, sender, this.#find);
    const usedIds = new Set(values.flatMap((value) => (value instanceof Uint8Array ? [] : value.object.id)));
    const coins = this.#ledger
      .coins(gasPayment?.owner ?? sender)
      .filter(({ object }) => !usedIds.has(object.id))
      .slice(0, MAX_SELECTED);
    const budget = gasPayment?.budget;
    const payment = coins.map(({ object }) => object.id);
    const run = { sender, inputs: values, commands, payment, seed: randomUUID(), budget, keepsResults: true };
    const { status, gas, results, changes } = await this.#run(run);
    if (this.isOld && !status.success && budget === undefined) throw budgetRefusal(status);
    const finalBudget = budget ?? this.proposedBudget ?? proposeBudget(gas);
    if (isChecked && status.success && coins.reduce((sum, { balance }) => sum + balance, 0n) < finalBudget) {
      throw insufficientCoins(this.isOld, sender, finalBudget);
    }
    const objects = coins.map(({ object }) =>
      GrpcTypes.ObjectReference.create({
        objectId: object.id,
        version: object.version,
        digest: computeDigest(object),
      }),
    );
    return {
      resolved: GrpcTypes.Transaction.create({
        sender,
        kind: {
          data: {
            oneofKind: 'programmableTransaction',
            programmableTransaction: { inputs: resolvedInputs, commands: callerCommands },
          },
        },
        gasPayment: {
          objects,
          owner: this.payer ?? gasPayment?.owner ?? sender,
          price: 1000n,
          budget: finalBudget,
        },
        ...(this.expiration && { expiration: this.expiration }),
      }),
      status,
      gas,
      results,
      changedObjects: describeChanges(changes, this.#ledger),
    };
  }

  /** Simulates a transaction that needs no resolution. */
  async #simulateBytes(bytes: Uint8Array): Promise<Simulation> {
    const { V1: data } = bcs.TransactionData.parse(bytes);
    const { sender, gasData } = data;
    const outcome = await this.#run({
      sender,
      inputs: readBcsInputs(data, this.#find),
      commands: listCommands(data),
      payment: (gasData.payment ?? []).map(({ objectId }) => objectId),
      seed: randomUUID(),
      budget: BigInt(gasData.budget ?? 0),
      keepsResults: true,
    });
    const resolved = GrpcTypes.Transaction.create({ sender, bcs: { value: bytes } });
    return { ...outcome, resolved, changedObjects: describeChanges(outcome.changes, this.#ledger) };
  }

  /** Executes a transaction, and commits its changes to the ledger. @throws Refusal */
  async execute(
    data: TransactionData,
    digest: string,
  ): Promise<{ effects: GrpcTypes.TransactionEffects; events: Executed['events'] }> {
    const { sender, gasData } = data;
    for (const reference of ownedInputs(data)) this.#checkReference(reference);
    const inputs = readBcsInputs(data, this.#find);
    const payment = (gasData.payment ?? []).map(({ objectId }) => objectId);
    const budget = BigInt(gasData.budget ?? 0);
    const run = { sender, inputs, commands: listCommands(data), payment, seed: digest, budget };
    const { status, changes, published, events, gas } = await this.#run(run);
    const packages = new Map(this.#ledger.packages);
    if (published !== undefined) {
      const { id, ...movePackage } = published;
      packages.set(id, movePackage);
      this.published.push([...movePackage.modules]);
    }
    const effects = createEffects(changes, this.#ledger, {
      status,
      digest,
      published,
      packages,
      epoch: this.epoch(),
      gasUsed: gas,
      gasCoin: payment[0] ?? '',
    });
    for (const [id, movePackage] of packages) this.#ledger.packages.set(id, movePackage);
    this.#ledger.commit(digest, changes);
    return { effects, events };
  }

  #checkReference(reference: Reference): void {
    const object = findObject(this.#find, reference.objectId);
    if (this.#ledger.locked.has(object.id)) throw lockedRefusal(reference);
    if (computeDigest(object) === reference.digest) return;
    throw new Refusal(
      'INVALID_ARGUMENT',
      `Transaction needs to be rebuilt because object ${formatReference(reference)} version is not available for consumption, current version: ${object.version}`,
    );
  }

  async #run(run: Run): Promise<Outcome> {
    const { seed, budget, payment, inputs, commands } = run;
    checkTransaction(inputs, commands, payment);
    const changes = new Changes(this.#ledger, seed);
    const total = this.#smash(changes, payment);
    // Commands may spend only the part of the gas coin that exceeds the budget.
    const withheld = budget ?? 0n;
    if (payment.length > 0 && total < withheld) {
      const message = `Balance of gas object ${total} is lower than the needed amount: ${withheld}`;
      throw new Refusal('INVALID_ARGUMENT', message);
    }
    const [coin] = payment;
    const gasCoin = coin === undefined ? MOCK_COIN : this.#ledger.addBalance(changes, coin, -withheld);
    const executed = await this.engine({
      ...run,
      changes,
      nowMs: this.now(),
      epoch: this.epoch(),
      root: this.root,
      gasCoin: commands.some(usesGasCoin) ? gasCoin : undefined,
      packages: this.#ledger.packages,
    });
    if (executed.status.success) {
      const outcome = this.#settle(run, changes, executed);
      if (budget === undefined || netOf(outcome.gas) <= budget) return outcome;
    }
    const status = executed.status.success ? INSUFFICIENT_GAS : executed.status;
    // A failed transaction changes only versions, and the coin that pays.
    const failureChanges = new Changes(this.#ledger, seed);
    this.#smash(failureChanges, payment);
    const failed = { ...executed, status, events: [], published: undefined };
    return this.#settle({ ...run, budget: undefined }, failureChanges, failed);
  }

  /** Increases the versions of inputs, and pays for the gas. */
  #settle({ inputs, commands, payment, budget }: Run, changes: Changes, executed: Executed): Outcome {
    for (const input of inputs) {
      if (input instanceof Uint8Array || !input.isMutable) continue;
      const { id } = input.object;
      if (!changes.written.has(id) && !changes.deleted.has(id)) changes.write(input.object);
    }
    const { status, published } = executed;
    const gas = this.#computeGas(changes, status.success ? commands : [], published);
    const [coin] = payment;
    if (coin !== undefined) this.#ledger.addBalance(changes, coin, (budget ?? 0n) - netOf(gas));
    return { ...executed, changes, gas };
  }

  /** Merges the coins that pay for gas into the first. @returns its balance in MIST */
  #smash(changes: Changes, payment: readonly string[]): bigint {
    const [first, ...moreCoins] = payment;
    if (first === undefined) return 0n;
    const sum = moreCoins.reduce(
      (total, id) => total + this.#ledger.balanceOf(findObject(this.#find, id)),
      0n,
    );
    for (const id of moreCoins) {
      changes.delete(id);
      changes.destroy(id);
    }
    return this.#ledger.balanceOf(this.#ledger.addBalance(changes, first, sum));
  }

  #computeGas(changes: Changes, commands: readonly Command[], published: Executed['published']): GasUsed {
    if (this.gasNeeded === undefined) return computeGas(changes, this.#ledger, commands, published);
    const free = { storageCost: 0n, storageRebate: 0n, nonRefundableStorageFee: 0n };
    return { computationCost: this.gasNeeded, ...free };
  }
}

function listCommands({ kind }: TransactionData): Command[] {
  return (kind.ProgrammableTransaction?.commands ?? []).map(readBcsCommand);
}

function insufficientCoins(isOld: boolean, account: string, budget: bigint): Refusal {
  const message = isOld
    ? `unable to select sufficient gas coins from account ${account} to satisfy required budget ${budget}`
    : `Unable to perform gas selection due to insufficient SUI balance (in address balance or coins) for account ${account} to satisfy required budget ${budget}.`;
  return new Refusal('INVALID_ARGUMENT', message);
}

function usesGasCoin(command: Command): boolean {
  return listArguments(command).some(
    (argument) => typeof argument === 'object' && argument !== null && 'gas' in argument,
  );
}
