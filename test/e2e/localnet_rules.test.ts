/**
 * Tests the rules of transactions on a Sui node (`SUI_RPC_URL` and `SUI_FAUCET_URL`, with the framework's
 * sources), or else on the model. Each transaction of a list of cases must have the outcome that the list
 * expects.
 */
import { Transaction } from '@mysten/sui/transactions';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createProbe, findEffect, makeObjects, type Probe } from '../../scripts/check/rules/case.ts';
import { CASES } from '../../scripts/check/rules/cases.ts';
import { type OpenNode, openNode } from '../../scripts/check/rules/node.ts';
import { compileProbe, SOURCES } from '../../scripts/check/rules/probe.ts';
import { findCreatedId, findPackageId, World } from '../../scripts/check/rules/world.ts';
import { buildTransaction, sendTransaction } from '../../src/library/sui/index.ts';

let node: OpenNode;
let world: World;
let probe: Probe;

beforeAll(async () => {
  const { SUI_RPC_URL: url, SUI_FAUCET_URL: faucet } = process.env;
  node = await openNode({ url, faucet });
  world = new World(node.urls);
  await world.fund(2);
  probe = createProbe(world, await world.publish(await compileProbe(SOURCES.probe)));
}, 60_000);
afterAll(async () => await node.close());

test.each(CASES)('$name: $outcome', async ({ needs = [], effects = [], outcome, build }) => {
  const ids = await makeObjects(probe, needs);
  const sent = await world.send((tx) => build(tx, probe, ids));
  expect(sent.outcome).toEqual(typeof outcome === 'string' ? outcome : expect.stringMatching(outcome));
  const operations = ids.slice(0, effects.length).map((id) => findEffect(id, sent));
  expect(operations).toEqual(effects);
});

test('the coins that pay for gas are merged, even if the first alone is too small', async () => {
  const rich = new World(node.urls);
  await rich.fund(2);
  const { objects } = await rich.client.core.listCoins({ owner: rich.address });
  const [first = 0n, second = 0n] = objects.map(({ balance }) => BigInt(balance));
  const amount = first + second / 2n;
  const sent = await rich.send((tx) => {
    const [coin] = tx.splitCoins(tx.gas, [amount]);
    tx.transferObjects([coin], rich.address);
  });
  expect(sent.outcome).toBe('done');
  expect(sent.changed.filter(({ idOperation }) => idOperation === 'Deleted')).toHaveLength(1);
});

test('a transaction that fails increments the versions of the objects that it could have changed', async () => {
  const [owned = '', shared = ''] = await makeObjects(probe, ['thing', 'shared']);
  const versions = async () => {
    const { objects } = await world.client.getObjects({ objectIds: [owned, shared] });
    return objects.map((object) => ('version' in object ? BigInt(object.version) : 0n));
  };
  const before = await versions();
  const sent = await sendFailing(owned, shared);
  expect(sent.outcome).toMatch(/^abort probe::coded 12$/);
  const after = await versions();
  expect(after.map((version, index) => version > (before[index] ?? 0n))).toEqual([true, true]);
});

/**
 * Sends a transaction that fails in its execution. Its bytes are built from the parts of a transaction that
 * succeeds.
 */
async function sendFailing(owned: string, shared: string) {
  const tx = new Transaction();
  tx.setSender(world.address);
  tx.setGasBudget(100_000_000);
  probe.call(tx, 'write', [tx.object(owned), tx.pure.u64(1)]);
  probe.call(tx, 'write', [tx.object(shared), tx.pure.u64(1)]);
  probe.call(tx, 'coded', [tx.pure.u64(1)]);
  await tx.build({ client: world.client });
  const data = tx.getData();
  const changed = Transaction.from(
    JSON.stringify(data, (_, value) => (typeof value === 'bigint' ? String(value) : value)),
  );
  probe.call(changed, 'coded', [changed.pure.u64(0)]);
  return await world.sendBytes(await changed.build());
}

test('a call uses the versions that its root package was published with', async () => {
  const base = await world.send(world.publication(await compileProbe(SOURCES.base)));
  expect(base.outcome).toBe('done');
  const [first, cap] = [findPackageId(base), findCreatedId(base, '::package::UpgradeCap')];
  const below = { base: { source: SOURCES.base, id: first } };
  const mid = await world.publish(await compileProbe(SOURCES.mid, below), [first]);
  const upgraded = await world.send(world.upgrade(first, cap, await compileProbe(SOURCES.base_2)));
  expect(upgraded.outcome).toBe('done');
  const second = findPackageId(upgraded);
  const newer = await world.publish(await compileProbe(SOURCES.mid, below), [second]);
  const topModules = await compileProbe(SOURCES.top, {
    ...below,
    mid: { source: SOURCES.mid, id: mid },
  });
  const top = await world.publish(topModules, [mid, second]);
  const call = async (target: string, value: number, types: string[] = []) => {
    const sent = await world.send((tx) => {
      const args = target.endsWith('::generic') && target.includes('::base::') ? [] : [tx.pure.u64(value)];
      tx.moveCall({ target, arguments: args, typeArguments: types });
    });
    return sent.outcome;
  };
  expect(await call(`${first}::base::is`, 1)).toBe('done');
  expect(await call(`${second}::base::is`, 2)).toBe('done');
  // A published package stays linked to the versions that it was published with.
  expect(await call(`${mid}::mid::is`, 1)).toBe('done');
  expect(await call(`${newer}::mid::is`, 2)).toBe('done');
  // The root determines the versions below it: here the same code of mid calls a newer base.
  expect(await call(`${top}::top::is`, 2)).toBe('done');
  // A type argument of a later version raises the versions of packages below the root, but not the root's.
  const [old, later] = [`${first}::base::Old`, `${second}::base::Later`];
  expect(await call(`${mid}::mid::generic`, 2, [later])).toBe('done');
  expect(await call(`${mid}::mid::generic`, 1, [old])).toBe('done');
  expect(await call(`${first}::base::generic`, 0, [later])).toBe('InvalidLinkage');
  expect(await call(`${second}::base::generic`, 0, [old])).toBe('done');
  expect(await call(`${second}::base::generic`, 0, [`${first}::base::Later`])).toBe('TypeNotFound of type 0');
  expect(await call(`${second}::base::generic`, 0, [`${second}::base::Old`])).toBe('done');
  // An event's type has the id of the version that introduced it.
  const announcement = await world.send((tx) => void tx.moveCall({ target: `${second}::base::announce` }));
  expect(announcement.events.map(({ eventType }) => eventType)).toEqual([`${second}::base::Added`]);
  // An object's type has the id of that version too, and the later version takes the object.
  const keeping = await world.send((tx) => void tx.moveCall({ target: `${second}::base::keep` }));
  const keptId = findCreatedId(keeping, `${second}::base::Kept`);
  const ending = await world.send(
    (tx) => void tx.moveCall({ target: `${second}::base::end`, arguments: [tx.object(keptId)] }),
  );
  expect([ending.outcome, findEffect(keptId, ending)]).toEqual(['done', 'deleted']);
  // A Publisher belongs to all types of its module, no matter which version introduced them.
  const publisher = findCreatedId(base, '::package::Publisher');
  const publishes = async (type: string) => {
    const sent = await world.send((tx) => {
      const publication = { target: `${second}::base::publishes`, typeArguments: [type] };
      tx.moveCall({ ...publication, arguments: [tx.object(publisher)] });
    });
    return sent.outcome;
  };
  expect(await publishes(old)).toBe('done');
  expect(await publishes(later)).toBe('done');
  expect(await publishes(`${first}::base::Later`)).toBe('TypeNotFound of type 0');
  expect(await publishes('0x2::clock::Clock')).toBe('abort base::publishes 9');
  // A package must link to the versions that its dependencies link to, or to newer ones.
  const publish = async (dependencies: string[]) =>
    (await world.send(world.publication(topModules, dependencies))).outcome;
  const topOfNewer = await compileProbe(SOURCES.top, { ...below, mid: { source: SOURCES.mid, id: newer } });
  const downgraded = await world.send(world.publication(topOfNewer, [newer, first]));
  expect(downgraded.outcome).toBe('PublishUpgradeDependencyDowngrade');
  expect(await publish([second])).toBe('PublishUpgradeMissingDependency');
  expect(await publish([mid])).toBe('PublishUpgradeMissingDependency');
  expect(await publish([mid, first, second])).toBe('InvalidLinkage');

  const { response } = await world.client.movePackageService.getPackage({ packageId: second });
  expect(response.package).toMatchObject({ storageId: second, originalId: first, version: 2n });
  expect(response.package?.typeOrigins).toEqual(
    expect.arrayContaining([
      { moduleName: 'base', datatypeName: 'Old', packageId: first },
      { moduleName: 'base', datatypeName: 'Later', packageId: second },
    ]),
  );
  const { response: topPackages } = await world.client.movePackageService.getPackage({ packageId: top });
  expect(topPackages.package?.linkage).toEqual(
    expect.arrayContaining([
      { originalId: first, upgradedId: second, upgradedVersion: 2n },
      { originalId: mid, upgradedId: mid, upgradedVersion: 1n },
    ]),
  );
  const versions = await world.client.movePackageService.listPackageVersions({ packageId: second });
  expect(versions.response.versions).toEqual([
    { packageId: first, version: 1n },
    { packageId: second, version: 2n },
  ]);
});

test('an upgrade may change only what its policy allows', async () => {
  const published = await world.send(world.publication(await compileProbe(SOURCES.base)));
  const [first, cap] = [findPackageId(published), findCreatedId(published, '::package::UpgradeCap')];
  const { base } = SOURCES;
  const upgrade = async (source: string, policy = 0, from = first) =>
    await world.send(world.upgrade(from, cap, await compileProbe(source), policy));
  const refused = 'IncompatibleUpgrade';
  for (const [source, policy] of [
    [base.replaceAll('value()', 'worth()'), 0],
    [base.replace('public struct Old has drop, store {}', ''), 0],
    [base.replace('Old has drop, store', 'Old has drop'), 0],
    [base.replace('{ 1 }', '{ 2 }'), 128],
    [base.replace('entry fun roll() {}', ''), 128],
    [`${base}\npublic fun more() {}`, 192],
  ] as const) {
    expect((await upgrade(source, policy)).outcome, source).toBe(refused);
  }
  expect((await upgrade(base, 7)).outcome).toBe('UnknownUpgradePolicy');
  const second = await upgrade(base.replace('entry fun roll() {}', ''));
  expect(second.outcome).toBe('done');
  const third = await upgrade(
    `${base.replace('entry fun roll() {}', '')}\npublic fun more() {}`,
    128,
    findPackageId(second),
  );
  expect(third.outcome).toBe('done');
  const fourth = await upgrade(
    `${base.replace('entry fun roll() {}', '')}\npublic fun more() {}`,
    192,
    findPackageId(third),
  );
  expect(fourth.outcome).toBe('done');
});

test('a failed instruction is distinguished from an abort with code 0, in simulation and in execution', async () => {
  const outcomes = async (name: string, ...values: number[]) => {
    const call = (budget?: number) => {
      const tx = new Transaction();
      tx.setSender(world.address);
      if (budget !== undefined) tx.setGasBudget(budget);
      const args = values.map((value) => tx.pure.u64(value));
      probe.call(tx, name, args);
      return tx;
    };
    const { objects } = await world.client.core.listCoins({ owner: world.address });
    const unsimulated = call(100_000_000);
    unsimulated.setGasPrice(Number((await world.client.core.getReferenceGasPrice()).referenceGasPrice));
    unsimulated.setGasPayment(objects);
    const transaction = await unsimulated.build();
    const { signature } = await world.key.signTransaction(transaction);
    const attempts = [
      buildTransaction(world.client, call()),
      buildTransaction(world.client, call(100_000_000)),
      sendTransaction(world.client, { transaction, signatures: [signature] }),
    ];
    const settled = await Promise.allSettled(attempts);
    return settled.map((outcome) => outcome.status === 'rejected' && outcome.reason.code);
  };
  expect(await outcomes('subtract', 1, 2)).toEqual(Array(3).fill('SUI_MOVE_RUNTIME'));
  expect(await outcomes('item', 2)).toEqual(Array(3).fill('SUI_MOVE_RUNTIME'));
  expect(await outcomes('zero', 0)).toEqual(Array(3).fill('SUI_MOVE_ABORT'));
});

test('the node returns listings, functions and the results of a simulation', async () => {
  const { core } = world.client;
  const checkListings = async () => {
    const { objects } = await core.listCoins({ owner: world.address });
    const total = objects.reduce((sum, { balance }) => sum + BigInt(balance), 0n);
    expect(total).toBeGreaterThan(0n);
    const { balances } = await core.listBalances({ owner: world.address });
    expect(balances).toMatchObject([
      { coinType: expect.stringMatching(/::sui::SUI$/), balance: String(total) },
    ]);
    return true;
  };
  // Each listing shows the last transaction after a delay of its own.
  await expect.poll(checkListings).toBe(true);
  expect(Number((await core.getReferenceGasPrice()).referenceGasPrice)).toBeGreaterThan(0);
  const { function: moveFunction } = await core.getMoveFunction({
    packageId: probe.packageId,
    moduleName: 'probe',
    name: 'enter_clock',
  });
  expect(moveFunction).toMatchObject({
    visibility: 'private',
    isEntry: true,
    parameters: [{ reference: 'immutable', body: { $kind: 'datatype' } }],
  });
  const tx = new Transaction();
  tx.setSender(world.address);
  const n = tx.pure.u64(5);
  probe.call(tx, 'bump', [n]);
  probe.call(tx, 'subtract', [n, tx.pure.u64(2)]);
  const simulated = await world.client.simulateTransaction({
    transaction: tx,
    include: { commandResults: true },
  });
  const results = simulated.commandResults?.map(({ returnValues, mutatedReferences }) =>
    [returnValues, mutatedReferences].map((values) => values.map(({ bcs }) => bcs?.[0])),
  );
  expect(results).toEqual([
    [[], [6]],
    [[4], []],
  ]);
});
