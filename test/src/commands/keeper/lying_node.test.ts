/** What a node that lies can make a keeper sign. */
import { afterEach, beforeEach, expect, onTestFinished, test } from 'vitest';
import { GasBudget, NO_RECORD } from '../../../../src/commands/keeper/budget.ts';
import { parseKeeperFile } from '../../../../src/commands/keeper/file.ts';
import { Keeper } from '../../../../src/commands/keeper/round.ts';
import { worldOf } from '../../../../src/commands/keeper/world.ts';
import { startServer } from '../../server/support.ts';
import { KeeperFixture } from './keeper_fixture.ts';
import { gasPrice, LyingNode } from './lying_node.ts';

const BUDGET = 50_000_000n;
/** For 20 transactions. */
const GAS_A_DAY = 1_000_000_000;
const { signal } = new AbortController();

let fixture: KeeperFixture;
let lying: LyingNode;
beforeEach(async () => {
  fixture = await KeeperFixture.start();
  lying = await LyingNode.start(fixture.chain.node);
});
afterEach(() => fixture.close());

const start = async () => {
  const server = await startServer({ nsm: fixture.chain.nsm });
  onTestFinished(() => server.close());
  return server.url;
};

/** A keeper that runs without pauses. */
async function keeperOf(urls: readonly string[], content: object = {}) {
  const { chain, operator } = fixture;
  const yaml = {
    ...fixture.content(urls),
    ...{ node: lying.url, root: chain.file('root.pem'), gas_a_day: GAS_A_DAY },
    ...content,
  };
  const file = parseKeeperFile(JSON.stringify(yaml), 'keeper.yaml');
  const clock = () => 0;
  const gas = new GasBudget(file.gasADay, clock, NO_RECORD);
  const env = { SUI_PRIVATE_KEY: operator.key.getSecretKey() };
  const world = await worldOf(file, 'keeper.yaml', {}, env, (budget) => gas.spend(budget));
  const keeper = new Keeper(world, { ...file, random: () => 0, now: Date.now, clock });
  /** What each round did, and the codes of its alerts. */
  const rounds = async (count: number) => {
    const reports = [];
    for (let round = 0; round < count; round += 1) {
      const { done, alerts } = await keeper.round(signal);
      reports.push({ done: done.map(({ result }) => result), codes: alerts.map(({ code }) => code), alerts });
    }
    return reports;
  };
  return { rounds, gas };
}

test('a gas price that is too high is not signed', async () => {
  lying.lies.set('SimulateTransaction', gasPrice(1_000_000n));
  const { rounds, gas } = await keeperOf([await start()]);
  for (const { codes, alerts } of await rounds(3)) {
    expect(codes).toEqual(['ACTION_FAILED']);
    expect(alerts).toMatchObject([
      { message: expect.stringMatching(/^SUI_NODE_ANSWER: the node sets a gas price of 1000000 MIST/) },
    ]);
  }
  expect([lying.signed, gas.spent()]).toEqual([[], 0n]);
  // The highest one that is.
  lying.lies.set('SimulateTransaction', gasPrice(3000n));
  expect((await rounds(1))[0]?.done).toEqual(['done']);
  expect(lying.signed).toEqual([{ budget: BUDGET, price: 3000n }]);
});
