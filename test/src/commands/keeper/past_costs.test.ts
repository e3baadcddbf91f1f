/** What earlier processes of a keeper spent, read from the model of a node. */
import { GrpcTypes } from '@mysten/sui/grpc';
import { afterEach, beforeEach, expect, onTestFinished, test } from 'vitest';
import { parseKeeperFile } from '../../../../src/commands/keeper/file.ts';
import { readPastCosts } from '../../../../src/commands/keeper/past_costs.ts';
import { type World, worldOf } from '../../../../src/commands/keeper/world.ts';
import { connect } from '../../../../src/commands/sui/network.ts';
import { startServer } from '../../server/support.ts';
import { KeeperFixture } from './keeper_fixture.ts';

const HOUR = 3_600_000;
const DAY = 24 * HOUR;
const { signal } = new AbortController();

interface Omission {
  readonly transaction?: object;
  readonly effects?: object;
  readonly change?: object;
}

let fixture: KeeperFixture;
beforeEach(async () => {
  fixture = await KeeperFixture.start();
});
afterEach(() => fixture.close());

const start = async () => {
  const server = await startServer({ nsm: fixture.chain.nsm });
  onTestFinished(() => server.close());
  return server.url;
};
/** The chain's clock is ahead by so much from now on. */
const setAhead = (ms: number) => {
  fixture.chain.node.executor.now = () => Date.now() + ms;
};
const read = async () => {
  const { client } = connect(undefined, fixture.chain.node.url);
  const { registrar, key } = fixture.operator;
  return await readPastCosts(client, registrar, key.toSuiAddress(), { signal, shownMs: 100 });
};

test('are those of the last day, by the chain, and of this address alone', async () => {
  // The admin, who made the registrar.
  expect(await read()).toEqual([]);
  await fixture.once([await start()]);
  setAhead(2 * HOUR);
  await fixture.once([await start(), await start()]);
  const costs = await read();
  expect(costs.map(({ ageMs }) => Math.round(ageMs / HOUR))).toEqual([0, 0, 2]);
  for (const { mist } of costs) expect([mist > 10_000_000n, mist < 50_000_000n]).toEqual([true, true]);
  setAhead(DAY + HOUR);
  expect(await read()).toHaveLength(2);
  setAhead(3 * DAY);
  expect(await read()).toEqual([]);
});

test('have what failed on chain', async () => {
  const url = await start();
  const { chain, operator } = fixture;
  const other = await fixture.addOperator();
  const content = { ...fixture.content([url]), root: chain.file('root.pem') };
  const worldFor = async ({ key, registrar }: typeof operator) =>
    await worldOf(
      parseKeeperFile(JSON.stringify({ ...content, registrar }), 'keeper.yaml'),
      'keeper.yaml',
      {},
      { SUI_PRIVATE_KEY: key.getSecretKey() },
    );
  const [one, two] = [await worldFor(other), await worldFor(operator)];
  const { config } = await one.read(signal);
  // Both are simulated before one is executed.
  const { node } = chain;
  const { verify } = node;
  const countSent = () => node.calls.filter((name) => name === 'ExecuteTransaction').length;
  const before = countSent();
  const bothSent = Promise.withResolvers<void>();
  node.verify = async (...signed) => {
    if (countSent() === before + 2) bothSent.resolve();
    await bothSent.promise;
    return await verify(...signed);
  };
  const register = async (world: World) => await world.register(await world.attest(url), config);
  expect((await Promise.all([register(one), register(two)])).sort()).toEqual(['done', 'theirs']);
  for (const world of [one, two]) {
    expect((await world.readPastCosts(signal)).map(({ mist }) => mist)).toEqual([world.lastGas]);
    expect(world.lastGas > 0n).toBe(true);
  }
});

test('are unknown where the node has pruned a part of the day, and of no matter where it is older', async () => {
  const { node } = fixture.chain;
  await fixture.once([await start()]);
  setAhead(2 * HOUR);
  await fixture.once([await start()]);
  node.transactions.prunedBeforeMs = Date.now() + HOUR;
  await expect(read()).rejects.toMatchObject({ code: 'SUI_NODE_ANSWER' });
  setAhead(DAY);
  await expect(read()).rejects.toMatchObject({ code: 'SUI_NODE_ANSWER' });
  setAhead(DAY + 1.5 * HOUR);
  expect(await read()).toHaveLength(1);
  // The last one, too.
  node.transactions.prunedBeforeMs = Date.now() + 3 * HOUR;
  await expect(read()).rejects.toMatchObject({ code: 'SUI_NODE_ANSWER' });
  setAhead(DAY + 4 * HOUR);
  expect(await read()).toEqual([]);
});

test.each(['GetServiceInfo', 'BatchGetTransactions', 'BatchGetObjects'])(
  'are unknown where the node does not answer %s',
  async (method) => {
    await fixture.once([await start()]);
    fixture.chain.node.faults.set(method, { status: 'UNIMPLEMENTED', message: '' });
    await expect(read()).rejects.toMatchObject({ code: expect.stringMatching(/^SUI_/) });
  },
);

test.each([
  ['the sender', { transaction: {} }],
  ['the cost', { effects: { gasUsed: undefined } }],
  ['the version before', { change: { inputVersion: undefined } }],
])('are unknown where the node leaves out %s', async (_part, { transaction, effects, change }: Omission) => {
  await fixture.once([await start()]);
  const { transactions } = fixture.chain.node;
  const { get } = transactions;
  transactions.get = (digest) => {
    const executed = get.call(transactions, digest);
    const changedObjects =
      executed?.effects?.changedObjects.map((object) => ({ ...object, ...change })) ?? [];
    return GrpcTypes.ExecutedTransaction.create({
      ...executed,
      ...(transaction && { transaction }),
      effects: { ...executed?.effects, changedObjects, ...effects },
    });
  };
  await expect(read()).rejects.toMatchObject({ code: 'SUI_NODE_ANSWER' });
});

test('bound the next process too', async () => {
  const content = { gas_a_day: 60_000_000, gas_budget: 40_000_000 };
  const [one, two, three] = [await start(), await start(), await start()];
  expect((await fixture.once([one], { content })).done).toHaveLength(1);
  expect((await fixture.once([one, two], { content })).done).toHaveLength(1);
  const { exit, done, alerts } = await fixture.once([one, two, three], { content });
  expect([exit, done, alerts.map(({ code }) => code)]).toEqual([1, [], ['GAS_A_DAY']]);
});

test('are unknown where the registrar does not exist: nothing is sent', async () => {
  const url = await start();
  const { sent } = fixture;
  const registrar = `0x${'7'.repeat(64)}`;
  const { exit, done, alerts } = await fixture.once([url], { content: { registrar } });
  expect([exit, done]).toEqual([1, []]);
  expect(alerts.map(({ code }) => code)).toContain('GAS_A_DAY');
  expect(fixture.sent).toBe(sent);
});
