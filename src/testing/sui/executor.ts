/** Resolves, simulates and executes programmable transactions over a ledger, as a loopback Sui node needs it. */
import { randomUUID } from 'node:crypto';
import { GrpcTypes } from '@mysten/sui/grpc';
import { bcsCommand, type Command, grpcCommand, type TransactionData } from './commands.ts';
import { effectsBytes } from './effects.ts';
import type { Engine, Executed, Execution } from './engine.ts';
import { budgetRefusal, INSUFFICIENT_GAS, Refusal, type Status } from './failures.ts';
import { FAILED_GAS, type GasUsed, gasOf, netOf, proposedBudget } from './gas.ts';
import { Changes, digestOf, type Ledger, type LedgerObject } from './ledger.ts';
import { moveEngine } from './move/transaction.ts';

type Run = Pick<Execution, 'sender' | 'inputs' | 'commands' | 'gasCoin'> & {
  /** Ids follow from it. */
  readonly seed: string;
  /** Undefined: as much as it needs. */
  readonly budget: bigint | undefined;
};

const { Input_InputKind: InputKind } = GrpcTypes;

export class Executor {
  /** The chain's clock. */
  now = () => Date.now();
  /** Gas that every transaction needs. Default: near to what Sui charges. */
  gasNeeded: bigint | undefined;
  /** The budget that the node proposes. Default: near to what Sui proposes. */
  proposedBudget: bigint | undefined;
  /** The payer of a transaction that the node resolves. Default: the payer that the transaction names. */
  payer: string | undefined;
  /** What the node adds to a transaction that it resolves. Default: nothing. */
  expiration: GrpcTypes.TransactionExpiration | undefined;
  /** Refuses in the words of Sui 1.63, which has no structure for what fails while it estimates the budget. */
  isOld = false;
  engine: Engine = moveEngine;
  /** The epoch that calls see. */
  epoch = () => 1n;
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
    const coins = this.#ledger.coins(gasPayment?.owner ?? sender);
    const values = resolved.map(({ kind: inputKind, pure, objectId = '' }) =>
      inputKind === InputKind.PURE ? pure : this.#ledger.objects.get(objectId),
    );
    const gasCoin = coins[0]?.object;
    const run = { sender, inputs: values, commands: commands.map(grpcCommand), gasCoin };
    const given = gasPayment?.budget;
    const { status, gas } = await this.#run({ ...run, seed: randomUUID(), budget: given });
    if (this.isOld && !status.success && given === undefined) throw budgetRefusal(status);
    const budget = given ?? this.proposedBudget ?? proposedBudget(gas);
    if (isChecked && coins.reduce((sum, { balance }) => sum + balance, 0n) < budget) {
      const message = this.isOld
        ? `unable to select sufficient gas coins from account ${sender} to satisfy required budget ${budget}`
        : `Unable to perform gas selection due to insufficient SUI balance (in address balance or coins) for account ${sender} to satisfy required budget ${budget}.`;
      throw new Refusal('INVALID_ARGUMENT', message);
    }
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
    data: TransactionData,
    digest: string,
  ): Promise<{ effects: GrpcTypes.TransactionEffects; events: Executed['events'] }> {
    const { sender, kind, gasData } = data;
    const { inputs, commands } = kind.ProgrammableTransaction ?? { inputs: [], commands: [] };
    const used = inputs.flatMap(({ Object: input }) => input?.ImmOrOwnedObject ?? []);
    for (const owned of ownedInputs(data)) {
      const { objectId, digest: seen } = owned;
      const object = this.#ledger.objects.get(objectId);
      if (!object) throw new Refusal('INVALID_ARGUMENT', `Could not find the referenced object ${objectId}`);
      if (this.#ledger.locked.has(objectId)) throw lockedRefusal(owned);
      if (digestOf(object) !== seen) {
        throw new Refusal(
          'INVALID_ARGUMENT',
          `Transaction needs to be rebuilt because object ${referenceOf(owned)} version is not available for consumption, current version: ${object.version}`,
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
    const gasCoin = this.#ledger.objects.get(gasData.payment?.[0]?.objectId ?? '');
    const run = { sender, inputs: values, commands: commands.map(bcsCommand), gasCoin };
    const executed = await this.#run({ ...run, seed: digest, budget });
    const { status, changes, published, events, gas } = executed;
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
      const { id: packageId, ...some } = published;
      this.#ledger.packages.set(packageId, some);
      this.published.push([...some.modules]);
      changedObjects.push(
        GrpcTypes.ChangedObject.create({
          objectId: packageId,
          objectType: 'package',
          outputState: State.PACKAGE_WRITE,
          idOperation: Id.CREATED,
        }),
      );
    }
    const before = new Map(
      kept.flatMap(({ id }) => this.#ledger.objects.get(id) ?? []).map((object) => [object.id, object]),
    );
    this.#ledger.charge(effective, gasData.payment?.[0]?.objectId ?? '', netOf(gas));
    this.#ledger.commit(digest, effective);
    const effects = GrpcTypes.TransactionEffects.create({
      status,
      transactionDigest: digest,
      epoch: this.epoch(),
      gasUsed: gas,
      changedObjects,
    });
    const { version } = effective;
    const value = effectsBytes(effects, { before, after: this.#ledger.objects, version });
    return { effects: { ...effects, ...(value && { bcs: { value } }) }, events };
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

  async #run({ seed, budget, gasCoin, ...run }: Run): Promise<Executed & { changes: Changes; gas: GasUsed }> {
    const changes = new Changes(this.#ledger, seed);
    const executed = await this.engine({
      ...run,
      changes,
      nowMs: this.now(),
      epoch: this.epoch(),
      root: this.root,
      gasCoin: run.commands.some(usesGas) ? gasCoin : undefined,
      packages: this.#ledger.packages,
    });
    if (!executed.status.success) return { ...executed, changes, gas: FAILED_GAS };
    // An owned object that is only read gets a new version too.
    for (const input of run.inputs) {
      if (input === undefined || !('owner' in input) || input.owner.kind !== 'address') continue;
      if (!changes.written.has(input.id) && !changes.deleted.has(input.id)) changes.write(input);
    }
    const gas = this.#gas(changes, run.commands, gasCoin);
    if (budget === undefined || netOf(gas) <= budget) return { ...executed, changes, gas };
    return { ...executed, status: INSUFFICIENT_GAS, changes, gas: FAILED_GAS };
  }

  #gas(changes: Changes, commands: readonly Command[], gasCoin: LedgerObject | undefined): GasUsed {
    if (this.gasNeeded !== undefined) return { ...FAILED_GAS, computationCost: this.gasNeeded };
    return gasOf(changes, this.#ledger, commands, gasCoin);
  }
}

type Reference = NonNullable<TransactionData['gasData']['payment']>[number];

/** The owned objects of a transaction, with the coins that pay for it. */
export function ownedInputs({ kind, gasData }: TransactionData): Reference[] {
  const inputs = kind.ProgrammableTransaction?.inputs ?? [];
  const used = inputs.flatMap(({ Object: input }) => input?.ImmOrOwnedObject ?? []);
  return [...used, ...(gasData.payment ?? [])];
}

function referenceOf({ objectId, version, digest }: Reference): string {
  return `(${objectId}, SequenceNumber(${version}), o#${digest})`;
}

/** What validators say of a transaction that conflicts with another. */
export function lockedRefusal(reference: Reference): Refusal {
  return new Refusal(
    'INVALID_ARGUMENT',
    `Transaction is rejected as invalid by more than 1/3 of validators by stake (non-retriable). Non-retriable errors: [Object ${referenceOf(reference)} already locked by a different transaction: TransactionDigest(1) { k#1 } with 10000 stake].`,
  );
}

function checkOwner({ id, owner }: LedgerObject, sender: string): void {
  if (owner.kind !== 'address' || owner.address === sender) return;
  throw new Refusal(
    'INVALID_ARGUMENT',
    `Transaction was not signed by the correct sender: Object ${id} is owned by account address ${owner.address}, but given owner/signer address is ${sender}`,
  );
}

function usesGas(command: Command): boolean {
  return Object.values(command)
    .flat()
    .some((part) => typeof part === 'object' && part !== null && 'gas' in part);
}
