/** A lying node can make a keeper sign only a few transactions. */
import { afterEach, beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import { parseKeeperFile } from '../../../../src/cli/keeper/file.ts';
import { Keeper } from '../../../../src/cli/keeper/round.ts';
import { createWorld } from '../../../../src/cli/keeper/world.ts';
import { GasBudget, NO_RECORD } from '../../../../src/cli/rounds/budget.ts';
import { startServer } from '../../server/support.ts';
import { KeeperFixture } from './keeper_fixture.ts';
import {
  acceptSimulations,
  gasPrice,
  LyingNode,
  noEnclaves,
  noGas,
  noRegistrations,
  outdated,
} from './lying_node.ts';

const BUDGET = 50_000_000n;
/**
 * Gas for 5 transactions. A node that gets one transaction in each round gets all of them within MANY_ROUNDS,
 * and none in the last 2 rounds.
 */
const GAS_A_DAY = 250_000_000;
const MANY_ROUNDS = 7;
const { signal } = new AbortController();
// The tests run many rounds, each with several requests.
vi.setConfig({ testTimeout: 60_000 });

let fixture: KeeperFixture;
let lyingNode: LyingNode;
beforeEach(async () => {
  fixture = await KeeperFixture.start();
  lyingNode = await LyingNode.start(fixture.chain.node);
});
afterEach(() => {
  lyingNode.close();
  fixture.close();
});

const startEnclave = async () => {
  const server = await startServer({ nsm: fixture.chain.nsm });
  onTestFinished(() => server.close());
  return server.url;
};

/** Creates a keeper that runs without pauses. @param urls an array that the test may change */
async function createKeeper(urls: readonly string[], content: object = {}) {
  const { chain, operator } = fixture;
  const yaml = {
    ...fixture.content(urls),
    node: lyingNode.url,
    root: chain.file('root.pem'),
    gas_a_day: GAS_A_DAY,
    ...content,
  };
  const file = parseKeeperFile(JSON.stringify(yaml), 'keeper.yaml');
  const clock = () => 0;
  const gas = new GasBudget({ GAS_A_DAY: file.gasADay }, clock, NO_RECORD);
  const env = { SUI_PRIVATE_KEY: operator.key.getSecretKey() };
  const world = await createWorld(file, 'keeper.yaml', {}, env, (budget) => gas.spend(budget));
  const keeper = new Keeper(world, { ...file, urls, random: () => 0, now: Date.now, clock });
  /** Runs rounds. @returns the outcomes of each round's actions, and its alerts */
  const rounds = async (count: number) => {
    const reports = [];
    for (let round = 0; round < count; round += 1) {
      const { done, alerts, accepted } = await keeper.round(signal);
      const codes = alerts.map(({ code }) => code);
      reports.push({ done: done.map(({ result: outcome }) => outcome), codes, alerts, accepted });
    }
    return reports;
  };
  return { rounds, gas };
}

/** Has the node hide all registrations, and lets every simulation succeed. */
function hideEnclaves(): void {
  lyingNode.lies.set('ListDynamicFields', noRegistrations);
  lyingNode.lies.set('BatchGetObjects', noEnclaves);
  acceptSimulations(fixture.chain.node);
}

test('a gas price that is too high is not signed', async () => {
  lyingNode.lies.set('SimulateTransaction', gasPrice(1_000_000n));
  const { rounds, gas } = await createKeeper([await startEnclave()]);
  for (const { codes, alerts } of await rounds(3)) {
    expect(codes).toEqual(['ACTION_FAILED']);
    expect(alerts).toMatchObject([
      { message: expect.stringMatching(/^SUI_NODE_ANSWER: the node sets a gas price of 1000000 MIST/) },
    ]);
  }
  expect([lyingNode.signed, gas.spent()]).toEqual([[], 0n]);
  // 3000 is the highest gas price that a keeper signs.
  lyingNode.lies.set('SimulateTransaction', gasPrice(3000n));
  expect((await rounds(1))[0]?.done).toEqual(['done']);
  expect(lyingNode.signed).toEqual([{ budget: BUDGET, price: 3000n }]);
});

describe('a node that hides what was registered', () => {
  test('and claims that it charged no gas gets one transaction, and then the keeper raises an alert', async () => {
    hideEnclaves();
    lyingNode.lies.set('ExecuteTransaction', noGas);
    const { rounds, gas } = await createKeeper([await startEnclave()]);
    const [first, ...laterRounds] = await rounds(MANY_ROUNDS);
    expect(first).toMatchObject({ done: ['done'], codes: [] });
    for (const { done, codes } of laterRounds) expect([done, codes]).toEqual([[], ['NODE_CONTRADICTS']]);
    expect(lyingNode.signed).toEqual([{ budget: BUDGET, price: 1000n }]);
    expect(gas.spent()).toBe(BUDGET);
  });

  test('and claims each time that another keeper was faster gets one transaction, and then the keeper raises an alert', async () => {
    const url = await startEnclave();
    await fixture.once([url]);
    hideEnclaves();
    const { rounds, gas } = await createKeeper([url]);
    const [first, ...laterRounds] = await rounds(MANY_ROUNDS);
    expect(first).toMatchObject({ done: ['theirs'], codes: [] });
    for (const { done, codes } of laterRounds) expect([done, codes]).toEqual([[], ['NODE_CONTRADICTS']]);
    expect([lyingNode.signed.length, gas.spent()]).toEqual([1, BUDGET]);
  });

  test('gets no more than gas_a_day, however often an enclave restarts', async () => {
    hideEnclaves();
    lyingNode.lies.set('ExecuteTransaction', noGas);
    const urls: string[] = [];
    const { rounds, gas } = await createKeeper(urls, {
      enclaves: ['https://one.example'],
      gas_a_day: 150_000_000,
    });
    const outcomes = [];
    for (let starts = 0; starts < 5; starts += 1) {
      urls[0] = await startEnclave();
      outcomes.push(...(await rounds(2)).flatMap(({ done, codes }) => [...done, ...codes]));
    }
    expect(outcomes).toEqual([
      'done',
      'NODE_CONTRADICTS',
      'done',
      'NODE_CONTRADICTS',
      'done',
      'NODE_CONTRADICTS',
      ...Array(4).fill('GAS_A_DAY'),
    ]);
    expect([lyingNode.signedMist, gas.spent(), gas.left()]).toEqual([150_000_000n, 150_000_000n, 0n]);
  });
});

test('a node that drops transactions, and claims that they were executed, gets one transaction', async () => {
  lyingNode.swallows = true;
  const { rounds } = await createKeeper([await startEnclave()]);
  const [first, ...laterRounds] = await rounds(5);
  expect(first).toMatchObject({ done: ['done'], codes: [] });
  for (const { done, codes } of laterRounds) expect([done, codes]).toEqual([[], ['NODE_CONTRADICTS']]);
  expect([lyingNode.signed.length, await fixture.ids()]).toEqual([1, []]);
});

test('a node that claims that each transaction was refused gets no more than gas_a_day', async () => {
  fixture.chain.node.faults.set('ExecuteTransaction', { status: 'INVALID_ARGUMENT', message: 'no' });
  const { rounds, gas } = await createKeeper([await startEnclave()]);
  const codes = (await rounds(MANY_ROUNDS)).flatMap((round) => round.codes);
  expect(codes).toEqual([...Array(5).fill('ACTION_FAILED'), ...Array(2).fill('GAS_A_DAY')]);
  expect([lyingNode.signed.length, lyingNode.signedMist, gas.left()]).toEqual([5, 250_000_000n, 0n]);
});

test('an honest node gets one transaction for each start, on any day with at most 5 starts', async () => {
  const urls = [await startEnclave(), await startEnclave()];
  const { rounds } = await createKeeper(urls);
  for (let starts = 0; starts < 3; starts += 1) {
    urls[0] = await startEnclave();
    for (const { codes } of await rounds(2))
      expect(codes.filter((code) => code !== 'ENCLAVE_SILENT')).toEqual([]);
  }
  expect([lyingNode.signed.length, (await fixture.ids()).length]).toEqual([4, 4]);
});

test('an honest node is asked for the whole list of registrations only after a change', async () => {
  const { calls } = fixture.chain.node;
  const { rounds } = await createKeeper([await startEnclave(), await startEnclave()]);
  expect((await rounds(1))[0]?.done).toEqual(['done', 'done']);
  await rounds(2);
  calls.length = 0;
  expect(await rounds(5)).toMatchObject(Array(5).fill({ done: [], codes: [], accepted: 2 }));
  expect(calls).not.toContain('ListDynamicFields');
});

describe('a keeper with two nodes', () => {
  /** Both positions of the lying node. The keeper sends its transactions to the first node. */
  const ORDERS = [
    ['the first node', (url: string) => [lyingNode.url, url]],
    ['the second node', (url: string) => [url, lyingNode.url]],
  ] as const;
  const createNodes = (order: (url: string) => string[]) => ({ node: order(fixture.chain.node.url) });
  const host = () => new URL(lyingNode.url).host;

  test.each(ORDERS)('registers while %s shows the same state', async (_which, order) => {
    const [old, restarted] = [await startEnclave(), await startEnclave()];
    await fixture.chain.register(fixture.configId, fixture.capId, old);
    await fixture.rotateTo(old);
    const { sent } = fixture;
    const { rounds } = await createKeeper([old, restarted], createNodes(order));
    expect(await rounds(2)).toMatchObject([
      { done: ['done', 'done'], codes: [], accepted: 1 },
      { done: [], codes: [], accepted: 2 },
    ]);
    expect(fixture.sent).toBe(sent + 2);
  });

  test.each(ORDERS)('signs nothing if %s hides registrations', async (_which, order) => {
    const url = await startEnclave();
    await fixture.once([url]);
    hideEnclaves();
    const { sent } = fixture;
    const { rounds, gas } = await createKeeper([url], createNodes(order));
    for (const { done, alerts } of await rounds(3)) {
      expect(done).toEqual([]);
      expect(alerts).toMatchObject([
        {
          code: 'NODES_DISAGREE',
          subject: url,
          message: expect.stringMatching(new RegExp(`${host()}: not registered`)),
        },
      ]);
    }
    expect([fixture.sent, gas.spent()]).toEqual([sent, 0n]);
  });

  test.each(ORDERS)('signs nothing if %s shows another config', async (_which, order) => {
    const [url, next] = [await startEnclave(), await startEnclave()];
    const recorded: Uint8Array[] = [];
    lyingNode.lies.set('BatchGetObjects', (answer) => {
      recorded.push(answer.slice());
      return answer;
    });
    await fixture.once([url], { content: createNodes(() => [lyingNode.url]), args: ['--dry-run'] });
    await fixture.rotateTo(next);
    lyingNode.lies.set('BatchGetObjects', outdated(fixture.configId, recorded[0]));
    const { sent } = fixture;
    const { rounds } = await createKeeper([url, next], createNodes(order));
    for (const { done, alerts } of await rounds(2)) {
      expect(done).toEqual([]);
      expect(alerts).toMatchObject([
        {
          code: 'NODES_DISAGREE',
          subject: fixture.configId,
          message: expect.stringMatching(new RegExp(`${host()}: 0`)),
        },
      ]);
    }
    // Once the lying node shows the same config, the keeper makes the change.
    lyingNode.lies.clear();
    expect((await rounds(1))[0]).toMatchObject({ done: ['done'], codes: [] });
    expect(fixture.sent).toBe(sent + 1);
  });

  test.each(ORDERS)('signs nothing while %s is silent, and continues to watch', async (_which, order) => {
    const [registered, restarted] = [await startEnclave(), await startEnclave()];
    await fixture.once([registered]);
    const { sent } = fixture;
    lyingNode.silence = 'reset';
    const urls = [registered, restarted, 'http://127.0.0.1:1'];
    const { rounds, gas } = await createKeeper(urls, createNodes(order));
    for (const { done, alerts, accepted } of await rounds(2)) {
      expect([done, accepted]).toEqual([[], 1]);
      expect(alerts).toMatchObject([
        { code: 'NODE_UNREADABLE', subject: host() },
        { code: 'ENCLAVE_UNREACHABLE', subject: 'http://127.0.0.1:1' },
      ]);
    }
    expect([fixture.sent, gas.spent()]).toEqual([sent, 0n]);
    lyingNode.silence = undefined;
    expect((await rounds(1))[0]?.done).toEqual(['done']);
  });

  test('reports one alert if both nodes are silent', async () => {
    lyingNode.silence = 'reset';
    fixture.chain.node.faults.set('BatchGetObjects', 'reset');
    const { rounds } = await createKeeper([await startEnclave()], createNodes(ORDERS[0][1]));
    expect((await rounds(1))[0]?.codes).toEqual(['CONFIG_UNREADABLE']);
  });
});
