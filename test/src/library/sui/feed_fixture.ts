/**
 * A model of a Sui node with `move/feed`, the contract of its page, and three configs with an enclave each.
 */
import type { SuiClientTypes } from '@mysten/sui/client';
import { SuiGrpcClient } from '@mysten/sui/grpc';
import { Ed25519Keypair } from '@mysten/sui/keypairs/ed25519';
import { Transaction } from '@mysten/sui/transactions';
import { ed25519 } from '@noble/curves/ed25519.js';
import { dumpMovePackage, initMovePackageBuilder } from '@zktx.io/sui-move-builder/full';
import { decode, encode } from 'cborg';
import * as sui from '../../../../src/library/sui/index.ts';
import type { EmulatedNsm } from '../../../../src/testing/emulated_nsm.ts';
import { compileForPublishing } from '../../../../src/toolchain/move/bytecode.ts';
import { chooseFramework } from '../../../../src/toolchain/move/packages.ts';
import { READER_FILES } from '../../../move/feed_reader.ts';
import { ChainFixture } from '../../cli/sui/chain_fixture.ts';
import { publishLineage } from '../../devnet/package_lineage.ts';

/** Cost of a transaction, in MIST, and the objects that it created. */
export interface Sent {
  readonly cost: bigint;
  readonly created: readonly { readonly id: string; readonly type: string }[];
}

export const QUOTES = sui.quoteType(3);

/** Rules of a feed for one config, without `configIds`. */
export const RULES = {
  intent: QUOTES.intent,
  symbol: 'SUI/USD',
  decimals: 6,
  minValue: 1_000,
  maxValue: 10_000_000,
  maxAgeMs: 60_000,
  minIntervalMs: 5_000,
  minMoveBps: 50,
  heartbeatMs: 30_000,
  threshold: 1,
};

/** An enclave that signs with a key of the test, and its objects. */
export interface Signer {
  readonly key: Uint8Array;
  readonly configId: string;
  readonly enclaveId: string;
}

let compiled: Promise<readonly Uint8Array[]> | undefined;

/** Compiles `move/enclave`, `move/feed` and the contract of the page, as one package. */
function readerModules(): Promise<readonly Uint8Array[]> {
  compiled ??= compileReader();
  return compiled;
}

async function compileReader(): Promise<readonly Uint8Array[]> {
  const framework = chooseFramework({});
  const { modules } = await compileForPublishing('feed', framework, 'devnet', { again: true });
  await initMovePackageBuilder();
  const options = { network: 'devnet', lintFlag: 'all', withUnpublishedDependencies: true } as const;
  const reader = await dumpMovePackage({ files: READER_FILES, fetcher: framework.fetcher, ...options });
  if ('error' in reader) throw new Error(reader.error);
  if (reader.warnings) throw new Error(reader.warnings);
  return [...modules, ...reader.modules].map((module) => Buffer.from(module, 'base64'));
}

export class FeedChain {
  readonly fixture: ChainFixture;
  readonly client: SuiGrpcClient;
  readonly feedPackage: string;
  readonly application: string;
  readonly capId: string;
  readonly #clock: { now: number };
  readonly signers: Signer[] = [];
  /** Key of a person without a capability. */
  readonly stranger = new Ed25519Keypair();

  private constructor(fixture: ChainFixture, clock: { now: number }, packageId: string, capId: string) {
    this.fixture = fixture;
    this.#clock = clock;
    this.client = new SuiGrpcClient({ network: 'custom', baseUrl: fixture.node.url });
    this.feedPackage = packageId;
    this.application = sui.applicationType(packageId, 'dollars', 'DOLLARS');
    this.capId = capId;
    fixture.node.executor.now = () => clock.now;
    fixture.node.ledger.give(this.stranger.toSuiAddress(), 10_000_000_000n);
  }

  /**
   * Starts a chain. @param beside chain whose node publishes the packages a second time; default: a new node
   */
  static async start(beside?: FeedChain): Promise<FeedChain> {
    const fixture = beside?.fixture ?? (await ChainFixture.start());
    const { packageId, created } = await publishLineage(fixture, await readerModules());
    const capId = created.find(({ type }) => type.includes('::enclave::EnclaveCap<'))?.id ?? '';
    const clock = beside === undefined ? { now: Date.now() } : beside.#clock;
    const chain = new FeedChain(fixture, clock, packageId, capId);
    for (const seed of [7, 8, 9]) chain.signers.push(await chain.#register(seed));
    return chain;
  }

  /** Time of the chain's clock, in milliseconds since the Unix epoch. Only tests change it. */
  get now(): number {
    return this.#clock.now;
  }

  set now(nowMs: number) {
    this.#clock.now = nowMs;
  }

  close(): void {
    this.fixture.close();
  }

  get call() {
    return { feedPackage: this.feedPackage, application: this.application };
  }

  get admin() {
    return { enclavePackage: this.feedPackage, application: this.application, capId: this.capId };
  }

  /** Creates a config, and registers an enclave under it. Each byte of the enclave's key is the seed. */
  async #register(seed: number): Promise<Signer> {
    const key = new Uint8Array(32).fill(seed);
    const image = sui.parsePcrs(this.fixture.nsm.pcrsFile());
    const name = `operator ${seed}`;
    const config = await this.send((tx) => sui.createEnclaveConfig(tx, { ...this.admin, name, image }));
    const configId = findCreated(config, 'EnclaveConfig<');
    return { key, configId, enclaveId: await this.register(configId, key) };
  }

  /** Registers an enclave with this key. @returns its id */
  async register(configId: string, key: Uint8Array, nsm: EmulatedNsm = this.fixture.nsm): Promise<string> {
    const request = { Attestation: { public_key: ed25519.getPublicKey(key), user_data: null, nonce: null } };
    const { Attestation } = decode(await nsm.transact(encode(request))) as {
      Attestation: { document: Uint8Array };
    };
    const attestation = Uint8Array.from(Attestation.document);
    const enclave = await this.send((tx) =>
      sui.registerEnclave(tx, { ...this.admin, configId, attestation }),
    );
    return findCreated(enclave, 'Enclave<');
  }

  /** Creates a feed. @returns its id */
  async createFeed(rules: Partial<sui.NewFeedRules> = {}): Promise<string> {
    return findCreated(await this.sendCreation(rules), '::feed::Feed<');
  }

  sendCreation(rules: Partial<sui.NewFeedRules> = {}): Promise<Sent> {
    const configIds = this.signers.slice(0, 1).map(({ configId }) => configId);
    return this.send((tx) => {
      sui.createFeed(tx, { ...this.call, capId: this.capId, rules: { ...RULES, configIds, ...rules } });
    });
  }

  /** Signs a value as an enclave does. */
  quote(signer: number, value: bigint, timestampMs = this.now, data: { symbol?: string } = {}) {
    const { key, enclaveId, configId } = this.signer(signer);
    const payload = { symbol: RULES.symbol, decimals: RULES.decimals, value, ...data };
    const message = { intent: QUOTES.intent, timestamp_ms: timestampMs, payload };
    const signature = ed25519.sign(QUOTES.message.serialize(message).toBytes(), key);
    return { enclaveId, configId, answer: { data: payload, timestampMs, signature } };
  }

  signer(index: number): Signer {
    const signer = this.signers[index];
    if (signer === undefined) throw new Error(`there is no signer ${index}`);
    return signer;
  }

  /** Sends an update with these quotes, as the stranger. */
  update(feedId: string, ...quotes: sui.FeedQuote[]): Promise<Sent> {
    return this.send((tx) => sui.updateFeed(tx, { ...this.call, feedId, quotes }), this.stranger);
  }

  /** Calls `dollars::open` for a feed. @returns the id of the desk */
  async openDesk(feedId: string): Promise<string> {
    const desk = await this.send((tx) => {
      const target = `${this.feedPackage}::dollars::open`;
      tx.moveCall({ target, arguments: [tx.object(this.capId), tx.object(feedId)] });
    });
    return findCreated(desk, '::dollars::Desk');
  }

  /** Adds the contract's call that reads the feed and returns the worth of 2 SUI. */
  addWorthCall(tx: Transaction, deskId: string, feedId: string, configIds: readonly string[]): void {
    const name = configIds.length === 1 ? 'worth' : 'worth_of_three';
    const objects = [deskId, feedId, ...configIds].map((id) => tx.object(id));
    tx.moveCall({
      target: `${this.feedPackage}::dollars::${name}`,
      arguments: [...objects, tx.object.clock(), tx.pure.u64(2_000_000_000)],
    });
  }

  /** Executes a transaction. @throws SuiError if it would fail */
  async send(build: (tx: Transaction) => void, sender: Ed25519Keypair = this.fixture.admin): Promise<Sent> {
    const tx = new Transaction();
    build(tx);
    return await this.sendBuilt(tx, sender);
  }

  /** Executes a transaction to which all calls were added. @throws the errors of `send` */
  async sendBuilt(tx: Transaction, sender: Ed25519Keypair): Promise<Sent> {
    tx.setSender(sender.toSuiAddress());
    const transaction = await sui.buildTransaction(this.client, tx);
    const { signature } = await sender.signTransaction(transaction);
    const include = { effects: true, objectTypes: true } as const;
    const executed = await sui.sendTransaction(this.client, {
      transaction,
      signatures: [signature],
      include,
    });
    return { cost: computeCost(executed.effects.gasUsed), created: listCreated(executed) };
  }
}

function computeCost(gas: SuiClientTypes.GasCostSummary): bigint {
  return BigInt(gas.computationCost) + BigInt(gas.storageCost) - BigInt(gas.storageRebate);
}

function listCreated({
  effects,
  objectTypes,
}: SuiClientTypes.Transaction<{ effects: true; objectTypes: true }>) {
  return effects.changedObjects
    .filter(({ idOperation }) => idOperation === 'Created')
    .map(({ objectId }) => ({ id: objectId, type: objectTypes[objectId] ?? '' }));
}

export function findCreated({ created }: Sent, type: string): string {
  const object = created.find((candidate) => candidate.type.includes(type));
  if (object === undefined) throw new Error(`the transaction created no ${type}`);
  return object.id;
}
