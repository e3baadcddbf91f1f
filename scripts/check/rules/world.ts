/** Provides an account on a node, to try the rules of transactions. */
import type { SuiClientTypes } from '@mysten/sui/client';
import { requestSuiFromFaucetV2 } from '@mysten/sui/faucet';
import { SuiGrpcClient } from '@mysten/sui/grpc';
import { Ed25519Keypair } from '@mysten/sui/keypairs/ed25519';
import { Transaction } from '@mysten/sui/transactions';
import { normalizeSuiAddress } from '@mysten/sui/utils';
import { packageDigest } from '../../../src/devnet/bytecode/package_digest.ts';
import type { NodeUrls } from './node.ts';

export interface Sent {
  /** `done`, or the reason for a failure, in the same words for every node. */
  readonly outcome: string;
  readonly digest: string;
  readonly changed: readonly SuiClientTypes.ChangedObject[];
  /** Types of objects by their ids. */
  readonly types: Readonly<Record<string, string>>;
  readonly events: readonly { readonly eventType: string; readonly bcs: Uint8Array }[];
}

/**
 * Gas budget in MIST, enough for every case. With a set budget, every node reports a failure as a structure.
 */
const BUDGET = 500_000_000;
const FRAMEWORK = ['0x1', '0x2'].map((id) => normalizeSuiAddress(id));
const REFUSED: Sent = { outcome: '', digest: '', changed: [], types: {}, events: [] };

export class World {
  readonly client: SuiGrpcClient;
  readonly key = new Ed25519Keypair();
  readonly #urls: NodeUrls;

  constructor(urls: NodeUrls) {
    this.#urls = urls;
    this.client = new SuiGrpcClient({ network: 'localnet', baseUrl: urls.url });
  }

  get address(): string {
    return this.key.toSuiAddress();
  }

  /** Requests coins from the faucet, and waits until the node lists them. @param coins number of coins */
  async fund(coins = 1): Promise<void> {
    for (let count = 1; count <= coins; count += 1) {
      await requestSuiFromFaucetV2({ host: this.#urls.faucet, recipient: this.address });
      const deadline = performance.now() + 30_000;
      while ((await this.client.core.listCoins({ owner: this.address })).objects.length < count) {
        if (performance.now() > deadline) throw new Error('the faucet gave nothing in 30 s');
        await new Promise((resolve) => setTimeout(resolve, 50));
      }
    }
  }

  /** Builds, signs and sends a transaction. Returns once the node shows it. */
  async send(build: (tx: Transaction) => void, budget = BUDGET): Promise<Sent> {
    const tx = new Transaction();
    tx.setSender(this.address);
    tx.setGasBudget(budget);
    build(tx);
    let bytes: Uint8Array<ArrayBuffer>;
    try {
      bytes = await tx.build({ client: this.client });
    } catch (error) {
      return { ...REFUSED, outcome: describeOutcome(error) };
    }
    return await this.sendBytes(bytes);
  }

  async sendBytes(transaction: Uint8Array<ArrayBuffer>): Promise<Sent> {
    const { signature } = await this.key.signTransaction(transaction);
    const include = { effects: true, events: true, objectTypes: true } as const;
    try {
      const executed = await this.client.executeTransaction({
        transaction,
        signatures: [signature],
        include,
      });
      const { digest, status, effects, events, objectTypes } =
        executed.Transaction ?? executed.FailedTransaction;
      await this.client.waitForTransaction({ digest });
      return {
        outcome: status.success
          ? 'done'
          : describeOutcome({ message: status.error.message, executionError: status.error }),
        digest,
        changed: effects.changedObjects,
        types: objectTypes,
        events,
      };
    } catch (error) {
      return { ...REFUSED, outcome: describeOutcome(error) };
    }
  }

  /** Publishes a package. @returns its id */
  async publish(modules: readonly Uint8Array[], dependencies: readonly string[] = []): Promise<string> {
    const sent = await this.send(this.publication(modules, dependencies));
    if (sent.outcome !== 'done') throw new Error(`can't publish: ${sent.outcome}`);
    return findPackageId(sent);
  }

  publication(modules: readonly Uint8Array[], dependencies: readonly string[] = []) {
    return (tx: Transaction) => {
      const cap = tx.publish({
        modules: modules.map((module) => [...module]),
        dependencies: [...FRAMEWORK, ...dependencies],
      });
      tx.transferObjects([cap], this.address);
    };
  }

  /**
   * Returns a function that adds the commands of an upgrade. @param policy 0 compatible, 128 additive, 192
   * dependencies only
   */
  upgrade(
    packageId: string,
    cap: string,
    modules: readonly Uint8Array[],
    policy = 0,
    dependencies: readonly string[] = [],
  ) {
    return (tx: Transaction) => {
      const allDependencies = [...FRAMEWORK, ...dependencies];
      const ticket = tx.moveCall({
        target: '0x2::package::authorize_upgrade',
        arguments: [
          tx.object(cap),
          tx.pure.u8(policy),
          tx.pure.vector('u8', [...packageDigest(modules, allDependencies)]),
        ],
      });
      const receipt = tx.upgrade({
        modules: modules.map((module) => [...module]),
        dependencies: allDependencies,
        package: packageId,
        ticket,
      });
      tx.moveCall({ target: '0x2::package::commit_upgrade', arguments: [tx.object(cap), receipt] });
    };
  }
}

/** Returns the id of the package that a transaction published or upgraded. */
export function findPackageId({ changed }: Sent): string {
  const packageChange = changed.find(({ outputState }) => outputState === 'PackageWrite');
  if (packageChange === undefined) throw new Error('no package was written');
  return packageChange.objectId;
}

/** Returns the id of an object that a transaction created, by a part of the object's type. */
export function findCreatedId({ changed, types }: Sent, type: string): string {
  const createdObject = changed.find(
    ({ objectId, idOperation }) => idOperation === 'Created' && types[objectId]?.includes(type) === true,
  );
  if (createdObject === undefined) throw new Error(`no ${type} was made`);
  return createdObject.objectId;
}

interface Failure {
  readonly message: string;
  readonly executionError?: {
    readonly message?: string;
    readonly command?: number;
    readonly MoveAbort?: {
      readonly abortCode: string;
      readonly location?: { readonly module?: string; readonly functionName?: string };
      readonly cleverError?: { readonly constantName?: string };
    };
  };
}

/** Flag in the abort code of an error that encodes its source line. */
const CLEVER = 1n << 63n;

/**
 * Describes an error as `Problem at command.argument`, as `abort module::function code`, by its name, or as a
 * node's refusal.
 */
export function describeOutcome(error: unknown): string {
  const { message, executionError } = error as Failure;
  const { MoveAbort: abort, command } = executionError ?? {};
  if (abort !== undefined) {
    const { abortCode, location, cleverError } = abort;
    const isClever = (BigInt(abortCode) & CLEVER) !== 0n;
    const code = cleverError?.constantName ?? (isClever ? 'assert' : abortCode);
    return `abort ${location?.module}::${location?.functionName} ${code}`;
  }
  const text = executionError?.message ?? message;
  const [, argument, problem] = /CommandArgumentError \{ arg_idx: (\d+), kind: (\w+)/.exec(text) ?? [];
  const at = command ?? /in command (\d+)|command: Some\((\d+)\)/.exec(text)?.slice(1).find(Boolean);
  if (problem !== undefined) return `${problem} at ${at}.${argument}`;
  const [, typeArgument, typeProblem] =
    /TypeArgumentError \{ argument_idx: (\d+), kind: (\w+)/.exec(text) ?? [];
  if (typeProblem !== undefined) return `${typeProblem} of type ${typeArgument}`;
  const [, upgrade] = /PackageUpgradeError \{ upgrade_error: (\w+)/.exec(text) ?? [];
  if (upgrade !== undefined) return upgrade;
  const [, name] =
    /^(?:Transaction resolution failed: )?([A-Z]\w+)(?: \{.*)?(?: in command \d+)?$/.exec(text) ?? [];
  return name ?? `refused: ${decodeURIComponent(text)}`;
}
