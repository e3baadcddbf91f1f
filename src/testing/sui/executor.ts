/** Resolves, simulates and executes programmable transactions over a ledger, as a loopback Sui node needs it. */
import { bcs } from '@mysten/sui/bcs';
import { GrpcTypes } from '@mysten/sui/grpc';
import { packageDigest } from 'sui-enclave-move-bytecode/package_digest';
import { type ExecutionContext, HotPotato, UpgradeReceipt, type UpgradeTicket } from './call.ts';
import {
  type Argument,
  bcsCommand,
  type Command,
  grpcCommand,
  type TransactionData,
  type Upgrade,
} from './commands.ts';
import { publish, runCall } from './contract.ts';
import {
  budgetRefusal,
  DigestMismatch,
  failure,
  INSUFFICIENT_GAS,
  Refusal,
  type Status,
  UNUSED_VALUE,
} from './failures.ts';
import { Changes, digestOf, type Ledger, type LedgerObject } from './ledger.ts';
import type { MoveVm } from './vm/vm.ts';

/** A package that a transaction wrote. */
interface Published {
  readonly id: string;
  readonly original: string;
  readonly modules: readonly Uint8Array[];
  /** What the command returns. */
  readonly result: unknown;
}

const GAS_USED = 2_000_000n;
const DEFAULT_BUDGET = 5_000_000n;
const { Input_InputKind: InputKind } = GrpcTypes;

export class Executor {
  /** The chain's clock. */
  now = () => Date.now();
  /** Gas that every transaction needs. */
  gasNeeded = GAS_USED;
  /** The budget that the node proposes. */
  proposedBudget = DEFAULT_BUDGET;
  /** The payer of a transaction that the node resolves. Default: the payer that the transaction names. */
  payer: string | undefined;
  /** What the node adds to a transaction that it resolves. Default: nothing. */
  expiration: GrpcTypes.TransactionExpiration | undefined;
  /** Refuses in the words of Sui 1.63, which has no structure for what fails while it estimates the budget. */
  isOld = false;
  /** Runs each call's Move code too, and refuses a transaction where it does anything else than the model. */
  vm: MoveVm | undefined;
  /** Modules published so far. */
  readonly published: Uint8Array[][] = [];
  readonly #ledger: Ledger;
  /** DER of the root that its model of `nitro_attestation` pins. */
  readonly root: Uint8Array;

  constructor(ledger: Ledger, root: Uint8Array) {
    this.#ledger = ledger;
    this.root = root;
  }

  /** The same executor over another ledger. */
  over(ledger: Ledger): Executor {
    return Object.assign(new Executor(ledger, this.root), this);
  }

  /** @param isChecked whether the sender, or its sponsor, must have the gas */
  async simulate(
    transaction: GrpcTypes.Transaction,
    isChecked = true,
  ): Promise<{ resolved: GrpcTypes.Transaction; status: Status }> {
    const { sender = '', kind, gasPayment } = transaction;
    if (kind?.data.oneofKind !== 'programmableTransaction') {
      throw new Refusal('INVALID_ARGUMENT', 'only programmable transactions on loopback');
    }
    const { inputs, commands } = kind.data.programmableTransaction;
    const resolved = inputs.map((input) => this.#resolve(input, sender));
    const budget = gasPayment?.budget ?? this.proposedBudget;
    const coins = this.#ledger.coins(gasPayment?.owner ?? sender);
    if (isChecked && coins.reduce((sum, { balance }) => sum + balance, 0n) < budget) {
      const message = this.isOld
        ? `unable to select sufficient gas coins from account ${sender} to satisfy required budget ${budget}`
        : `Unable to perform gas selection due to insufficient SUI balance (in address balance or coins) for account ${sender} to satisfy required budget ${budget}.`;
      throw new Refusal('INVALID_ARGUMENT', message);
    }
    const values = resolved.map(({ kind: inputKind, pure, objectId = '' }) =>
      inputKind === InputKind.PURE ? pure : this.#ledger.objects.get(objectId),
    );
    const { status } = await this.#run(sender, values, commands.map(grpcCommand), 'simulated', budget);
    if (this.isOld && !status.success && gasPayment?.budget === undefined) throw budgetRefusal(status);
    const objects = coins.map(({ object }) =>
      GrpcTypes.ObjectReference.create({
        objectId: object.id,
        version: object.version,
        digest: digestOf(object),
      }),
    );
    return {
      resolved: GrpcTypes.Transaction.create({
        sender,
        kind: {
          data: {
            oneofKind: 'programmableTransaction',
            programmableTransaction: { inputs: resolved, commands },
          },
        },
        gasPayment: { objects, owner: this.payer ?? gasPayment?.owner ?? sender, price: 1000n, budget },
        ...(this.expiration && { expiration: this.expiration }),
      }),
      status,
    };
  }

  async execute(
    { sender, kind, gasData }: TransactionData,
    digest: string,
  ): Promise<GrpcTypes.TransactionEffects> {
    const { inputs, commands } = kind.ProgrammableTransaction ?? { inputs: [], commands: [] };
    const used = inputs.flatMap(({ Object: input }) => input?.ImmOrOwnedObject ?? []);
    for (const { objectId, version, digest: seen } of [...used, ...(gasData.payment ?? [])]) {
      const object = this.#ledger.objects.get(objectId);
      if (!object) throw new Refusal('INVALID_ARGUMENT', `Could not find the referenced object ${objectId}`);
      const reference = `(${objectId}, SequenceNumber(${version}), o#${seen})`;
      if (this.#ledger.locked.has(objectId)) {
        throw new Refusal(
          'INVALID_ARGUMENT',
          `Transaction is rejected as invalid by more than 1/3 of validators by stake (non-retriable). Non-retriable errors: [Object ${reference} already locked by a different transaction: TransactionDigest(1) { k#1 } with 10000 stake].`,
        );
      }
      if (digestOf(object) !== seen) {
        throw new Refusal(
          'INVALID_ARGUMENT',
          `Transaction needs to be rebuilt because object ${reference} version is not available for consumption, current version: ${object.version}`,
        );
      }
    }
    for (const { objectId } of used) checkOwner(this.#ledger.objects.get(objectId) as LedgerObject, sender);
    const values = inputs.map(({ Pure: pure, Object: input }) => {
      if (pure) return Buffer.from(pure.bytes, 'base64');
      const { objectId = '' } = input?.ImmOrOwnedObject ?? input?.SharedObject ?? {};
      return this.#ledger.objects.get(objectId);
    });
    const budget = BigInt(gasData.budget ?? 0);
    const { status, changes, published } = await this.#run(
      sender,
      values,
      commands.map(bcsCommand),
      digest,
      budget,
    );
    const effective = status.success ? changes : new Changes(this.#ledger, digest);
    const { ChangedObject_IdOperation: Id, ChangedObject_OutputObjectState: State } = GrpcTypes;
    const kept = [...effective.written.values()].filter(({ id }) => !effective.deleted.has(id));
    const changedObjects = kept.map(({ id, type }) =>
      GrpcTypes.ChangedObject.create({
        objectId: id,
        objectType: type,
        outputState: State.OBJECT_WRITE,
        idOperation: this.#ledger.objects.has(id) ? Id.NONE : Id.CREATED,
      }),
    );
    if (status.success && published !== undefined) {
      const { id: packageId, original, modules } = published;
      this.#ledger.packages.set(packageId, original);
      this.#ledger.modules.set(packageId, modules);
      this.published.push([...modules]);
      changedObjects.push(
        GrpcTypes.ChangedObject.create({
          objectId: packageId,
          objectType: 'package',
          outputState: State.PACKAGE_WRITE,
          idOperation: Id.CREATED,
        }),
      );
    }
    this.#ledger.charge(effective, gasData.payment?.[0]?.objectId ?? '', this.gasNeeded);
    this.#ledger.commit(digest, effective);
    return GrpcTypes.TransactionEffects.create({
      status,
      transactionDigest: digest,
      epoch: 1n,
      gasUsed: {
        computationCost: this.gasNeeded,
        storageCost: 0n,
        storageRebate: 0n,
        nonRefundableStorageFee: 0n,
      },
      changedObjects,
    });
  }

  #resolve(input: GrpcTypes.Input, sender: string): GrpcTypes.Input {
    if (input.kind !== undefined) return input;
    const { objectId = '' } = input;
    const object = this.#ledger.objects.get(objectId);
    if (!object) throw new Refusal('NOT_FOUND', `Object ${objectId} not found`);
    const { owner, version } = object;
    if (owner.kind === 'shared') {
      return GrpcTypes.Input.create({
        kind: InputKind.SHARED,
        objectId,
        version: owner.since,
        mutable: true,
      });
    }
    checkOwner(object, sender);
    const digest = digestOf(object);
    return GrpcTypes.Input.create({ kind: InputKind.IMMUTABLE_OR_OWNED, objectId, version, digest });
  }

  async #run(
    sender: string,
    inputs: readonly unknown[],
    commands: readonly Command[],
    seed: string,
    budget: bigint,
  ): Promise<{ status: Status; changes: Changes; published?: Published }> {
    const changes = new Changes(this.#ledger, seed);
    const context: ExecutionContext = {
      changes,
      sender,
      nowMs: this.now(),
      root: this.root,
      original: (id) => this.#ledger.packages.get(id) ?? id,
    };
    const results: (readonly unknown[])[] = [];
    const value = (argument: Argument) => {
      if ('result' in argument) return results[argument.result]?.[argument.nested];
      const input = inputs[argument.input];
      // A call sees what the calls before it wrote.
      return input !== null && typeof input === 'object' && 'id' in input
        ? changes.get((input as LedgerObject).id)
        : input;
    };
    const used = new Set<unknown>();
    const take = (argument: Argument) => {
      const given = value(argument);
      used.add(given);
      return given;
    };
    let published: Published | undefined;
    for (const [index, command] of commands.entries()) {
      try {
        if (command.kind === 'publish') published = this.#publish(context, command.modules);
        else if (command.kind === 'upgrade')
          published = this.#upgrade(context, command, take(command.ticket));
        const made = published && 'modules' in command ? [published.result] : undefined;
        results.push(made ?? (await this.#perform(context, command, take)));
      } catch (error) {
        return { status: failure(error, BigInt(index)), changes };
      }
    }
    const isUnused = results.flat().some((result) => result instanceof HotPotato && !used.has(result));
    const status = isUnused ? UNUSED_VALUE : this.gasNeeded > budget ? INSUFFICIENT_GAS : { success: true };
    return { status, changes, ...(status.success && published && { published }) };
  }

  #publish(context: ExecutionContext, modules: readonly Uint8Array[]): Published {
    const { packageId: id, upgradeCap } = publish(context);
    this.vm?.publish(id, id, modules);
    return { id, original: id, modules, result: upgradeCap };
  }

  #upgrade(context: ExecutionContext, command: Upgrade, ticket: unknown): Published {
    const { capId, packageId, digest } = ticket as UpgradeTicket;
    const { modules } = command;
    if (packageId !== command.packageId || !isDigestOf(digest, command)) throw new DigestMismatch();
    const original = context.original(packageId);
    const id = context.changes.freshId();
    this.vm?.publish(id, original, modules);
    return { id, original, modules, result: new UpgradeReceipt(capId, id) };
  }

  /** Calls a function, or transfers objects. */
  async #perform(
    context: ExecutionContext,
    command: Command,
    take: (argument: Argument) => unknown,
  ): Promise<readonly unknown[]> {
    if (command.kind === 'call') {
      const { package: id } = command.call;
      const isKnown = this.#ledger.packages.has(id) || /^0x0*2$/.test(id);
      if (!isKnown) throw new Refusal('NOT_FOUND', `Object ${id} not found`);
      const call = { ...command.call, args: command.args.map(take) };
      return await (this.vm ? this.vm.run(context, call) : runCall(context, call));
    }
    if (command.kind !== 'transfer') return [];
    const address = bcs.Address.parse(take(command.to) as Uint8Array);
    for (const object of command.objects.map(take) as LedgerObject[]) {
      context.changes.write({ ...object, owner: { kind: 'address', address } });
    }
    return [];
  }
}

function checkOwner({ id, owner }: LedgerObject, sender: string): void {
  if (owner.kind !== 'address' || owner.address === sender) return;
  throw new Refusal(
    'INVALID_ARGUMENT',
    `Transaction was not signed by the correct sender: Object ${id} is owned by account address ${owner.address}, but given owner/signer address is ${sender}`,
  );
}

function isDigestOf(digest: Uint8Array, { modules, dependencies }: Upgrade): boolean {
  return Buffer.from(digest).equals(packageDigest(modules, dependencies));
}
