/**
 * Tests audits against lies on chain and nodes that hide objects: other configs of an application, and
 * capabilities that seem to have no holder.
 */
import { GrpcTypes } from '@mysten/sui/grpc';
import { Transaction, TransactionDataBuilder, type TransactionResult } from '@mysten/sui/transactions';
import { normalizeSuiAddress } from '@mysten/sui/utils';
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest';
import { Chain } from '../../../src/cli/sui/chain.ts';
import { readConfig } from '../../../src/library/sui/objects.ts';
import { beginOverlap, createEnclaveConfig, retireConfig } from '../../../src/library/sui/transactions.ts';
import { compileApart } from '../../../src/toolchain/audit/compile_process.ts';
import { addsNothing, findOtherConfigs } from '../../../src/toolchain/audit/configs.ts';
import { formerSources } from '../../../src/toolchain/audit/older_sources.ts';
import { findHolders, findUpgradeHolder } from '../../../src/toolchain/audit/people.ts';
import { chooseFramework } from '../../../src/toolchain/move/packages.ts';
import { weatherFiles } from '../../src/toolchain/audit/applications.ts';
import type { TestRepository } from '../../src/toolchain/audit/git_server.ts';
import { type Application, type Deployed, World } from './world.ts';

const WEATHER: Application = { files: weatherFiles(), folder: 'src/apps/weather', module: 'weather' };
const EVIL = { pcr0: 'e'.repeat(96), pcr1: 'e'.repeat(96), pcr2: 'e'.repeat(96) };

let world: World;
let chain: Chain;
let repository: TestRepository;
let commit: string;
beforeAll(async () => {
  world = await World.start();
  chain = new Chain({ 'rpc-url': world.node.url }, {});
  repository = world.repository();
  commit = repository.writeCommit(WEATHER.files);
});
afterAll(() => world.close());
afterEach(() => {
  vi.restoreAllMocks();
  world.node.faults.clear();
  world.node.transactions.prunedBeforeMs = 0;
  world.node.lowestCheckpoint = 0n;
});

const deploy = () => world.deploy(WEATHER, repository, commit);

/** Creates another config with the same capability. @returns its id */
async function createOtherConfig(deployed: Deployed, image = EVIL, name = 'another'): Promise<string> {
  const tx = new Transaction();
  createEnclaveConfig(tx, { ...deployed, name, image });
  const { created } = await world.submit(tx);
  return created.find(({ type }) => type.includes('::EnclaveConfig<'))?.id ?? '';
}

async function change(deployed: Deployed, configId: string, add: typeof retireConfig): Promise<void> {
  const tx = new Transaction();
  add(tx, { ...deployed, configId });
  await world.submit(tx);
}

async function readOtherConfigs({ configId }: Deployed) {
  return await findOtherConfigs(await readConfig(chain.client, configId), chain);
}

const describeOutcome = (promise: Promise<unknown>) =>
  promise.then(
    () => 'done',
    ({ code, message }: { code: string; message: string }) => `${code}: ${message}`,
  );

describe('another config of the application', () => {
  test('with other registers prevents agreement, and the report names its registers', async () => {
    const deployed = await deploy();
    const evil = await createOtherConfig(deployed, EVIL, 'weather\u001b[2J');
    const { capId } = deployed;
    const verdict = await world.audit(deployed.configId, ['--source', repository.folder, '--quick']);
    expect(verdict, verdict.out).toMatchObject({ exit: 3, code: 'NOT_FULLY_CHECKED' });
    const row = verdict.checks.find(({ what: subject }) => subject === 'another config of the application');
    expect(row).toMatchObject({ result: 'not checked' });
    expect(row?.detail).toContain(`${evil}, "weather\\\\u{1b}[2J" at version 0\nPCR0 eeee`);
    expect(verdict.line).toContain(evil);
    expect(verdict.proves[0]).toContain('gave the image of this config');
    expect(verdict.proves.join()).not.toContain('that contracts accept');
    expect(
      verdict.holders.filter(({ what: capability }) => capability === 'EnclaveCap').map(({ id }) => id),
    ).toEqual([capId]);
  });

  test('adds nothing if it has the same registers or is retired', async () => {
    const deployed = await deploy();
    const ids = [
      await createOtherConfig(deployed, deployed.image),
      await createOtherConfig(deployed),
      await createOtherConfig(deployed),
    ];
    await change(deployed, ids[1] ?? '', retireConfig);
    const config = await readConfig(chain.client, deployed.configId);
    const { configs, capabilities } = await readOtherConfigs(deployed);
    expect(configs.map(({ id }) => id)).toEqual(ids);
    expect(configs.map((otherConfig) => addsNothing(otherConfig, config, Date.now()))).toEqual([
      true,
      true,
      false,
    ]);
    expect(capabilities).toEqual([deployed.capId]);
  });

  test('adds the image of the previous version, as long as contracts accept it', async () => {
    const deployed = await deploy();
    const otherId = await createOtherConfig(deployed);
    const untilMs = BigInt(Date.now() + 3_600_000);
    await change(deployed, otherId, (tx, call) =>
      beginOverlap(tx, { ...call, ...deployed, configId: otherId, untilMs }),
    );
    const config = await readConfig(chain.client, deployed.configId);
    const [otherConfig] = (await readOtherConfigs(deployed)).configs;
    if (otherConfig === undefined) throw new Error('not listed');
    const now = Number(untilMs) - 1;
    expect(otherConfig.image).toEqual(config.image);
    expect([addsNothing(otherConfig, config, now), addsNothing(otherConfig, config, now + 1)]).toEqual([
      false,
      true,
    ]);
  });

  test.each<[string, (deployed: Deployed, otherId: string) => void]>([
    [
      'lists no events',
      () => world.node.faults.set('ListEvents', { status: 'UNIMPLEMENTED', message: 'none \u001b[2J' }),
    ],
    [
      'has pruned its history',
      () => {
        world.node.transactions.prunedBeforeMs = Date.now() + 1e6;
      },
    ],
    [
      'says that it has pruned its history',
      () => {
        world.node.lowestCheckpoint = 1_000_000n;
      },
    ],
    [
      'does not list this config itself',
      () => {
        const end = { reason: GrpcTypes.QueryEndReason.LEDGER_TIP };
        const frame = GrpcTypes.ListEventsResponse.toBinary({ end });
        vi.spyOn(world.node.events, 'list').mockReturnValue([frame]);
      },
    ],
    [
      'does not show the other config',
      (_deployed, otherId) => void world.node.ledger.objects.delete(otherId),
    ],
    [
      'returns another object instead of the other config',
      ({ capId }, otherId) => {
        const cap = world.node.ledger.objects.get(capId);
        const otherObject = world.node.ledger.objects.get(otherId);
        if (cap && otherObject) world.node.ledger.objects.set(otherId, { ...otherObject, type: cap.type });
      },
    ],
  ])('can not be ruled out if the node %s', async (_name, lie) => {
    const deployed = await deploy();
    const otherId = await createOtherConfig(deployed, deployed.image);
    lie(deployed, otherId);
    const code = await describeOutcome(readOtherConfigs(deployed));
    expect(code).toMatch(/^(?:NOT_FULLY_CHECKED|SUI_OBJECT_TYPE): /);
    expect(code).not.toContain('\u001b');
  });
});

test('an audit does not wait for a list of events that never ends', async () => {
  const deployed = await deploy();
  const config = await readConfig(chain.client, deployed.configId);
  let page = 0;
  vi.spyOn(world.node.events, 'list').mockImplementation(() => {
    const cursor = Buffer.from(String(++page));
    const end = { reason: GrpcTypes.QueryEndReason.SCAN_LIMIT };
    return [GrpcTypes.ListEventsResponse.toBinary({ watermark: { cursor }, end })];
  });
  expect(await describeOutcome(findOtherConfigs(config, chain, 300))).toMatch(
    /^NOT_FULLY_CHECKED: .* within 0\.3 s/,
  );
  expect(page).toBeGreaterThan(1);
  expect(await formerSources(config, chain, 300)).toEqual([]);
});

test('of thousands of registrars, an audit looks up only some, and counts the others', async () => {
  const deployed = await deploy();
  const config = await readConfig(chain.client, deployed.configId);
  const registrars = Array.from({ length: 5000 }, (_, index) =>
    normalizeSuiAddress(`0x${index.toString(16)}ff`),
  );
  const before = world.node.calls.length;
  const holders = await findHolders({ ...config, registrars }, [], chain);
  expect(world.node.calls.length - before).toBeLessThan(100);
  expect(holders.filter(({ what: capability }) => capability === 'RegistrarCap')).toHaveLength(51);
  expect(holders.find(({ id }) => id === null)?.holder).toBe('not looked up: 4950 more');
});

describe('the capability of a package', () => {
  /** Module that wraps the capability of another package in an object, or deletes it. */
  const KEEPER = `module keeper::keeper;
    use sui::package::UpgradeCap;
    public struct Box has key { id: UID, cap: UpgradeCap }
    public fun wrap(cap: UpgradeCap, ctx: &mut TxContext) {
      transfer::transfer(Box { id: object::new(ctx), cap }, ctx.sender());
    }
    public fun end(cap: UpgradeCap) { sui::package::make_immutable(cap); }
  `;
  const SMALL = 'module small::small; public fun one(): u64 { 1 }';
  const OTHER_MODULE = 'module other::other; public fun two(): u64 { 2 }';
  const IMMUTABLE = '0x2::package::make_immutable';

  const compiled = new Map<string, readonly string[]>();
  async function compile(name: string, source: string): Promise<string[]> {
    const manifest = `[package]\nname = "${name}"\nedition = "2024"\n[addresses]\n${name} = "0x0"\n`;
    const files = { 'Move.toml': manifest, [`sources/${name}.move`]: source };
    const cachedModules = compiled.get(name);
    if (cachedModules !== undefined) return [...cachedModules];
    const output = await compileApart({ files, network: 'testnet' }, chooseFramework({}).fetcher);
    if ('error' in output) throw new Error(output.error);
    compiled.set(name, output.modules);
    return [...output.modules];
  }

  /** Adds the use of a new package's capability to the transaction. */
  type Add = (tx: Transaction, cap: TransactionResult) => void;
  const keep: Add = (tx, cap) => void tx.transferObjects([cap], world.address);
  const call =
    (target: string): Add =>
    (tx, cap) =>
      void tx.moveCall({ target, arguments: [cap] });

  /** Publishes packages in one transaction. @returns their ids, by the names of their modules */
  async function publish(...packages: (readonly [name: string, source: string, add: Add])[]) {
    const tx = new Transaction();
    const before = new Set(world.node.ledger.packages.keys());
    for (const [name, source, add] of packages) {
      add(tx, tx.publish({ modules: await compile(name, source), dependencies: ['0x1', '0x2'] }));
    }
    const { created } = await world.submit(tx);
    const ids = [...world.node.ledger.packages.keys()].filter((id) => !before.has(id));
    const caps = created.filter(({ type }) => type.endsWith('::package::UpgradeCap')).map(({ id }) => id);
    return { ids, caps };
  }

  /** Publishes the keeper package. @returns its id */
  const publishKeeper = async () => (await publish(['keeper', KEEPER, keep])).ids[0] ?? '';

  async function passCapability(target: string, cap: string): Promise<string> {
    const tx = new Transaction();
    tx.moveCall({ target, arguments: [tx.object(cap)] });
    return (await world.submit(tx)).digest;
  }

  const findHolder = async (id: string | undefined) =>
    await findUpgradeHolder(normalizeSuiAddress(id ?? ''), chain);

  test('is at an address, or was deleted in the publishing transaction', async () => {
    const { ids, caps } = await publish(['small', SMALL, keep]);
    expect(await findHolder(ids[0])).toMatchObject({ id: caps[0], holder: world.address });
    const immutable = await publish(['small', SMALL, call(IMMUTABLE)]);
    expect(await findHolder(immutable.ids[0])).toMatchObject({
      id: null,
      holder: 'nobody: the transaction that published the package made it immutable',
    });
  });

  /**
   * Joins publications into one transaction, which the model does not execute, but reports as executed.
   * @returns the holders that an audit finds, and the publications
   */
  async function join(...publications: (readonly [source: string, add: Add])[]) {
    const published = [];
    const tx = new Transaction();
    for (const [source, add] of publications) {
      const name = /module (\w+)/.exec(source)?.[1] ?? '';
      published.push(await publish([name, source, add === keep ? keep : call(IMMUTABLE)]));
      add(tx, tx.publish({ modules: await compile(name, source), dependencies: ['0x1', '0x2'] }));
    }
    tx.setSender(world.address);
    tx.setGasPrice(1000);
    tx.setGasBudget(1_000_000_000);
    tx.setGasPayment([{ objectId: `0x${'6'.repeat(64)}`, version: 1, digest: '1'.repeat(32) }]);
    const value = await tx.build();
    const digest = TransactionDataBuilder.getDigestFromBytes(value);
    const { transactions, ledger } = world.node;
    const executions = published.map(({ ids }) =>
      transactions.get(transactions.publisherOf(ids[0] ?? '') ?? ''),
    );
    const changedObjects = executions.flatMap((executed) => executed?.effects?.changedObjects ?? []);
    const effects = { ...executions[0]?.effects, changedObjects } as GrpcTypes.TransactionEffects;
    const transaction = GrpcTypes.ExecutedTransaction.create({
      digest,
      effects,
      transaction: { bcs: { name: 'TransactionData', value } },
    });
    ledger.executed.push(digest);
    vi.spyOn(transactions, 'publisherOf').mockReturnValue(digest);
    vi.spyOn(transactions, 'get').mockReturnValue(transaction);
    const holders = await Promise.all(published.map(({ ids }) => findHolder(ids[0])));
    vi.restoreAllMocks();
    return { holders: holders.map(({ holder: text }) => text), published };
  }

  test('is found for each package that a transaction publishes', async () => {
    const nobody = 'nobody: the transaction that published the package made it immutable';
    const both = await join([SMALL, call(IMMUTABLE)], [OTHER_MODULE, keep]);
    expect(both.holders).toEqual([nobody, world.address]);
    // Packages of the same bytes can't be told apart if the capability of one of them was kept.
    const twins = await join([SMALL, call(IMMUTABLE)], [SMALL, keep]);
    expect(twins.holders).toEqual([expect.stringMatching(/^not known: /), world.address]);
    // Changes to the other package's capability say nothing about a package whose capability is inside
    // another object.
    const id = await publishKeeper();
    const hidden = await join([SMALL, call(`${id}::keeper::wrap`)], [OTHER_MODULE, call(IMMUTABLE)]);
    expect(hidden.holders).toEqual([expect.stringMatching(/^not known: /), nobody]);
  });

  test('has an unknown holder if a function of another package wrapped or deleted it in the publishing transaction', async () => {
    const id = await publishKeeper();
    for (const name of ['wrap', 'end']) {
      const { ids } = await publish(['small', SMALL, call(`${id}::keeper::${name}`)]);
      const capHolder = await findHolder(ids[0]);
      expect(capHolder.holder, name).toMatch(/^not known: the publication left no capability on chain/);
    }
  });

  test('that was deleted later has no holder if the node lists the transaction, and otherwise an unknown holder', async () => {
    const { ids, caps } = await publish(['small', SMALL, keep]);
    const digest = await passCapability(IMMUTABLE, caps[0] ?? '');
    expect((await findHolder(ids[0])).holder).toBe(
      `nobody: the transaction ${digest} deleted it, and so made the package immutable`,
    );
    world.node.faults.set('ListTransactions', { status: 'UNIMPLEMENTED', message: '' });
    expect((await findHolder(ids[0])).holder).toMatch(/^not known: the node does not show it/);
  });

  test('has an unknown holder if another object holds it, or the node hides it', async () => {
    const { ids, caps } = await publish(['small', SMALL, keep]);
    await passCapability(`${await publishKeeper()}::keeper::wrap`, caps[0] ?? '');
    expect((await findHolder(ids[0])).holder).toMatch(/^not known: the node does not show it/);
    const hidden = await publish(['small', SMALL, keep]);
    world.node.ledger.objects.delete(hidden.caps[0] ?? '');
    expect(await findHolder(hidden.ids[0])).toMatchObject({
      id: hidden.caps[0],
      holder: expect.stringMatching(/^not known: the node does not show it/),
    });
  });

  test('has an unknown holder if the node returns another publication, or none', async () => {
    const immutable = await publish(['small', SMALL, call(IMMUTABLE)]);
    const { ids } = await publish(['small', SMALL, keep]);
    const { transactions, ledger } = world.node;
    const findDigest = (id: string) => transactions.publisherOf(id) ?? '';
    const [forged, real] = [immutable.ids[0] ?? '', ids[0] ?? ''].map((id) =>
      transactions.get(findDigest(id)),
    );
    expect(ledger.packages.has(ids[0] ?? '')).toBe(true);
    const get = vi.spyOn(transactions, 'get');
    // Returns the real record with the bytes of another transaction, which made a package immutable.
    get.mockReturnValue(real && ({ ...real, transaction: forged?.transaction } as typeof real));
    expect((await findHolder(ids[0])).holder).toMatch(/^not known: the node has no record/);
    get.mockReturnValue(forged);
    expect((await findHolder(ids[0])).holder).toMatch(/^not known: the node has no record/);
    get.mockReturnValue(undefined);
    expect((await findHolder(ids[0])).holder).toMatch(/^not known: the node has no record/);
  });
});
