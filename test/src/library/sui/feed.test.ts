/** Tests feeds on the model of a Sui node, which executes `move/feed` and the contract of its page. */

import { stripTypeScriptTypes } from 'node:module';
import { bcs } from '@mysten/sui/bcs';
import { SuiGrpcClient } from '@mysten/sui/grpc';
import { Transaction } from '@mysten/sui/transactions';
import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import * as sui from '../../../../src/library/sui/index.ts';
import { FEED_README } from '../../../move/feed_reader.ts';
import { script } from '../../cli/sui/run_script.ts';
import { FeedChain, RULES } from './feed_fixture.ts';

// The first test of the file waits for the compiler.
vi.setConfig({ hookTimeout: 120_000, testTimeout: 60_000 });

let chain: FeedChain;
let feedId: string;
beforeAll(async () => {
  chain = await FeedChain.start();
});
afterAll(() => chain.close());
beforeEach(async () => {
  feedId = await chain.createFeed();
});

const ids = () => chain.signers.map(({ configId }) => configId);
/** Creates a feed of all three configs. */
const createWide = (threshold = 3) => chain.createFeed({ configIds: ids(), threshold });
const readLast = async (id = feedId) => (await sui.readFeed(chain.client, id)).last;
const createAbort = (abort: string) => ({ code: 'SUI_MOVE_ABORT', abort });

describe('a feed on chain', () => {
  test('has the rules that createFeed gave it, and no value', async () => {
    const { feedPackage, application } = chain;
    expect(await sui.readFeed(chain.client, feedId)).toEqual({
      id: feedId,
      feedPackage,
      application,
      last: null,
      rules: {
        intent: 3,
        symbol: 'SUI/USD',
        decimals: 6,
        minValue: 1_000n,
        maxValue: 10_000_000n,
        maxAgeMs: 60_000n,
        minIntervalMs: 5_000n,
        minMoveBps: 50n,
        heartbeatMs: 30_000n,
        threshold: 1n,
        configIds: ids().slice(0, 1),
      },
    });
    const { suiEnclave } = chain.client.$extend(sui.suiEnclave());
    expect(await suiEnclave.readFeed(feedId)).toMatchObject({ id: feedId });
  });

  test('accepts a signed value from any address', async () => {
    const { configId, enclaveId } = chain.signer(0);
    await chain.update(feedId, chain.quote(0, 1_500_000n));
    const signed = { configId, configVersion: 0n, enclaveId, value: 1_500_000n };
    const timestampMs = BigInt(chain.now);
    expect(await readLast()).toEqual({
      value: 1_500_000n,
      timestampMs,
      signed: [{ ...signed, timestampMs }],
    });
  });

  test('stores the median of the values of three configs, with the oldest of their times', async () => {
    const wideId = await createWide();
    const oldest = chain.now - 2_000;
    await chain.update(
      wideId,
      chain.quote(2, 9_000_000n),
      chain.quote(0, 1_000n, oldest),
      chain.quote(1, 1_200_000n),
    );
    expect(await readLast(wideId)).toMatchObject({ value: 1_200_000n, timestampMs: BigInt(oldest) });
  });

  test('accepts two values of different times in one transaction', async () => {
    const quotes = [chain.quote(0, 1_500_000n, chain.now - 5_000), chain.quote(0, 1_600_000n)];
    await chain.send((tx) => {
      for (const quote of quotes) sui.updateFeed(tx, { ...chain.call, feedId, quotes: [quote] });
    }, chain.stranger);
    expect(await readLast()).toMatchObject({ value: 1_600_000n, timestampMs: BigInt(chain.now) });
  });

  test('is not an enclave, and an enclave is not a feed', async () => {
    const wrongType = { code: 'SUI_OBJECT_TYPE', message: expect.stringContaining('a feed::Feed<…>') };
    await expect(sui.readFeed(chain.client, chain.signer(0).enclaveId)).rejects.toMatchObject(wrongType);
    await expect(sui.readEnclave(chain.client, feedId)).rejects.toMatchObject({ code: 'SUI_OBJECT_TYPE' });
  });
});

describe('an update is refused', () => {
  const START = 1_500_000n;
  beforeEach(async () => {
    await chain.update(feedId, chain.quote(0, START));
  });

  test('if the same value is written again, even at the heartbeat', async () => {
    const replayed = chain.quote(0, START);
    chain.now += 30_000;
    await expect(chain.update(feedId, replayed)).rejects.toMatchObject(createAbort('feed::ENotNewer'));
  });

  test('if it is older than the last value', async () => {
    const older = chain.quote(0, 2n * START, chain.now - 1);
    await expect(chain.update(feedId, older)).rejects.toMatchObject(createAbort('feed::ENotNewer'));
  });

  test('within the minimum interval, however far the value has moved', async () => {
    chain.now += 4_999;
    await expect(chain.update(feedId, chain.quote(0, 2n * START))).rejects.toMatchObject(
      createAbort('feed::ETooSoon'),
    );
  });

  test('before the heartbeat, if the value has not moved as far as it must', async () => {
    chain.now += 29_999;
    for (const value of [START, START + 7_499n, START - 7_499n]) {
      await expect(chain.update(feedId, chain.quote(0, value))).rejects.toMatchObject(
        createAbort('feed::ENotDue'),
      );
    }
    await chain.update(feedId, chain.quote(0, START - 7_500n));
    chain.now += 30_000;
    await chain.update(feedId, chain.quote(0, START - 7_500n));
    expect(await readLast()).toMatchObject({ value: START - 7_500n, timestampMs: BigInt(chain.now) });
  });

  test.each([
    ['older than the maximum age', -60_001, 'enclave::ETooOld'],
    ['ahead of the clock', 10_001, 'feed::EAheadOfClock'],
  ])('if it is %s', async (_, offsetMs, abort) => {
    chain.now += 200_000;
    const quote = chain.quote(0, 2n * START, chain.now + offsetMs);
    await expect(chain.update(feedId, quote)).rejects.toMatchObject(createAbort(abort));
  });

  test.each([999n, 10_000_001n, 2n ** 64n - 1n])('if the value is out of bounds: %s', async (value) => {
    chain.now += 5_000;
    await expect(chain.update(feedId, chain.quote(0, value))).rejects.toMatchObject(
      createAbort('feed::EOutOfBounds'),
    );
  });

  test('if the enclave signed another symbol, value or time', async () => {
    chain.now += 5_000;
    const quote = chain.quote(0, 2n * START);
    const { data, timestampMs } = quote.answer;
    const changed = [
      chain.quote(0, 2n * START, chain.now, { symbol: 'USD/SUI' }),
      { ...quote, answer: { ...quote.answer, data: { ...data, value: 2n * START + 1n } } },
      { ...quote, answer: { ...quote.answer, timestampMs: timestampMs + 1 } },
    ];
    for (const forged of changed) {
      await expect(chain.update(feedId, forged)).rejects.toMatchObject(
        createAbort('enclave::EInvalidSignature'),
      );
    }
  });

  test('if the config is not listed, or is passed with an enclave of another config', async () => {
    chain.now += 5_000;
    const quote = chain.quote(1, 2n * START);
    await expect(chain.update(feedId, quote)).rejects.toMatchObject(createAbort('feed::EConfigNotListed'));
    const { configId } = chain.signer(0);
    const mismatched = chain.update(feedId, { ...quote, configId });
    await expect(mismatched).rejects.toMatchObject(createAbort('enclave::EWrongConfig'));
  });

  test('if its round is not finished in the same transaction', async () => {
    const unfinished = chain.send((tx) => {
      const target = `${chain.feedPackage}::feed::begin`;
      tx.moveCall({ target, typeArguments: [chain.application], arguments: [tx.object(feedId)] });
    }, chain.stranger);
    await expect(unfinished).rejects.toMatchObject({
      code: 'SUI_EXECUTION',
      message: expect.stringContaining('UnusedValueWithoutDrop'),
    });
  });

  test('with too few values, or with two values of one config, even from two of its enclaves', async () => {
    const wideId = await createWide(2);
    const two = [chain.quote(0, 1_000_000n), chain.quote(0, 2_000_000n)] as const;
    await expect(chain.update(wideId, two[0])).rejects.toMatchObject(createAbort('feed::ETooFewValues'));
    await expect(chain.update(wideId, ...two)).rejects.toMatchObject(createAbort('feed::EConfigRepeated'));
    const key = new Uint8Array(32).fill(10);
    const { configId } = chain.signer(0);
    chain.signers.push({ key, configId, enclaveId: await chain.register(configId, key) });
    const second = chain.quote(chain.signers.length - 1, 2_000_000n);
    chain.signers.pop();
    await expect(chain.update(wideId, two[0], second)).rejects.toMatchObject(
      createAbort('feed::EConfigRepeated'),
    );
  });
});

/** The value of a feed, and its time. */
interface Last {
  readonly value: bigint;
  readonly timestampMs: bigint;
}

interface Draw {
  readonly signer: number;
  readonly value: bigint;
  readonly timestampMs: number;
}

/**
 * Returns the value that these quotes must give the feed, or the name of the abort. It implements the page's
 * rules a second time.
 */
function predictUpdate(last: Last | null, quotes: readonly Draw[], threshold: number): Last | string {
  for (const [index, { signer, value, timestampMs }] of quotes.entries()) {
    const before = quotes.slice(0, index);
    if (before.some((quote) => quote.signer === signer)) return 'feed::EConfigRepeated';
    if (value < 1_000n || value > 10_000_000n) return 'feed::EOutOfBounds';
    if (timestampMs > chain.now + 10_000) return 'feed::EAheadOfClock';
    if (timestampMs < chain.now - 60_000) return 'enclave::ETooOld';
  }
  if (quotes.length < threshold) return 'feed::ETooFewValues';
  const sorted = quotes.map(({ value }) => value).sort((left, right) => Number(left - right));
  const upper = sorted[Math.floor(sorted.length / 2)] ?? 0n;
  const lower = sorted[Math.ceil(sorted.length / 2) - 1] ?? 0n;
  const value = (lower + upper) / 2n;
  const timestampMs = BigInt(Math.min(...quotes.map((quote) => quote.timestampMs)));
  if (last === null) return { value, timestampMs };
  const elapsedMs = timestampMs - last.timestampMs;
  if (elapsedMs <= 0n) return 'feed::ENotNewer';
  if (elapsedMs < 5_000n) return 'feed::ETooSoon';
  const difference = value > last.value ? value - last.value : last.value - value;
  const hasMoved = difference * 10_000n >= last.value * 50n;
  return elapsedMs >= 30_000n || hasMoved ? { value, timestampMs } : 'feed::ENotDue';
}

describe('random quotes', () => {
  const STEPS = 20;

  /** Returns a generator of integers below a limit (xorshift). The same seed repeats a run. */
  function createRandom(seed: number) {
    let state = seed | 1;
    return (limit: number): number => {
      state ^= state << 13;
      state ^= state >>> 17;
      state ^= state << 5;
      return (state >>> 0) % limit;
    };
  }

  test.each([1, 2, 3])(
    'are written or refused as the page says, with a threshold of %i',
    async (threshold) => {
      const seed = Math.floor(Math.random() * 2 ** 31);
      const random = createRandom(seed);
      const pick = <Value>(...values: readonly Value[]) => values[random(values.length)] as Value;
      const wideId = await createWide(threshold);
      let last: Last | null = null;
      for (let step = 0; step < STEPS; step += 1) {
        chain.now += pick(0, 1, 4_999, 5_000, 29_999, 30_000, 60_001);
        const base = last?.value ?? 1_000_000n;
        const least = (base * 50n + 9_999n) / 10_000n;
        const draws = Array.from({ length: threshold - (random(8) === 0 ? 1 : 0) }, (_, index) => ({
          signer: random(10) === 0 ? 0 : index,
          value: pick(base, base, base + least, base - least, base + least - 1n, base + 1n, base * 2n, 999n),
          timestampMs: chain.now + pick(0, 0, 0, 0, -1, -5_000, 10_000, 10_001, -60_000, -60_001),
        }));
        const quotes = draws.map(({ signer, value, timestampMs }) => chain.quote(signer, value, timestampMs));
        const expected: Last | string = predictUpdate(last, draws, threshold);
        const hint = `seed ${seed}, step ${step}`;
        if (quotes.length === 0) continue;
        if (typeof expected === 'string') {
          await expect(chain.update(wideId, ...quotes), hint).rejects.toMatchObject(createAbort(expected));
        } else {
          await chain.update(wideId, ...quotes);
          last = expected;
        }
        const stored = await readLast(wideId);
        expect(stored && { value: stored.value, timestampMs: stored.timestampMs }, hint).toEqual(last);
      }
    },
  );
});

describe('the contract of the page', () => {
  async function readWorth(deskId: string, id: string, configIds: readonly string[]): Promise<bigint> {
    const tx = new Transaction();
    chain.addWorthCall(tx, deskId, id, configIds);
    tx.setSender(chain.stranger.toSuiAddress());
    const include = { commandResults: true } as const;
    const transaction = await sui.buildTransaction(chain.client, tx);
    const { commandResults } = await chain.client.core.simulateTransaction({ transaction, include });
    const [returned] = commandResults[0]?.returnValues ?? [];
    return BigInt(bcs.u64().parse(returned?.bcs ?? new Uint8Array()));
  }

  test('reads the feed that it pinned, and refuses a lax feed of the same capability', async () => {
    const deskId = await chain.openDesk(feedId);
    const laxId = await chain.createFeed({ minValue: 1, maxValue: 2n ** 64n - 1n, minMoveBps: 0 });
    await chain.update(feedId, chain.quote(0, 1_500_000n));
    await chain.update(laxId, chain.quote(0, 9_999_999n));
    const configIds = ids().slice(0, 1);
    expect(await readWorth(deskId, feedId, configIds)).toBe(3_000_000n);
    await expect(readWorth(deskId, laxId, configIds)).rejects.toMatchObject(
      createAbort('dollars::EOtherFeed'),
    );
  });

  test('refuses a lax feed of a stranger who published the same packages', async () => {
    const deskId = await chain.openDesk(feedId);
    const strangerChain = await FeedChain.start(chain);
    const laxId = await strangerChain.createFeed({ minValue: 1, maxValue: 2n ** 64n - 1n });
    await strangerChain.update(laxId, strangerChain.quote(0, 9_999_999n));
    await expect(readWorth(deskId, laxId, ids().slice(0, 1))).rejects.toMatchObject({
      code: 'SUI_EXECUTION',
    });
    // The stranger's capability can't create a feed of this application.
    const stolen = chain.send((tx) => {
      const rules = { ...RULES, configIds: ids() };
      sui.createFeed(tx, { ...chain.call, capId: strangerChain.capId, rules });
    });
    await expect(stolen).rejects.toMatchObject({ code: 'SUI_EXECUTION' });
  });

  test('refuses to read before the first update, and after the maximum age', async () => {
    const deskId = await chain.openDesk(feedId);
    const configIds = ids().slice(0, 1);
    await expect(readWorth(deskId, feedId, configIds)).rejects.toMatchObject(createAbort('feed::ENoValue'));
    await chain.update(feedId, chain.quote(0, 1_500_000n));
    chain.now += 60_000;
    expect(await readWorth(deskId, feedId, configIds)).toBe(3_000_000n);
    chain.now += 1;
    await expect(readWorth(deskId, feedId, configIds)).rejects.toMatchObject(createAbort('feed::ETooOld'));
  });

  test('refuses a value once a config is retired or its image replaced, but not when an enclave is destroyed', async () => {
    const freshChain = await FeedChain.start(chain);
    const three = freshChain.signers.map(({ configId }) => configId);
    const wideId = await freshChain.createFeed({ configIds: three, threshold: 3 });
    const deskId = await freshChain.openDesk(wideId);
    const read = () => {
      const tx = new Transaction();
      freshChain.addWorthCall(tx, deskId, wideId, three);
      tx.setSender(freshChain.stranger.toSuiAddress());
      return sui.buildTransaction(freshChain.client, tx);
    };
    const update = () =>
      freshChain.update(wideId, ...[0, 1, 2].map((signer) => freshChain.quote(signer, 1_500_000n)));
    await update();
    const { enclaveId, configId } = freshChain.signer(0);
    await freshChain.send((tx) => sui.destroyEnclave(tx, { ...freshChain.admin, configId, enclaveId }));
    await read();
    const image = { ...sui.parsePcrs(freshChain.fixture.nsm.pcrsFile()), pcr0: '7'.repeat(96) };
    const replaced = { ...freshChain.admin, configId: freshChain.signer(1).configId, image };
    await freshChain.send((tx) => sui.beginOverlap(tx, { ...replaced, untilMs: freshChain.now + 1_000 }));
    await read();
    freshChain.now += 1_000;
    await expect(read()).rejects.toMatchObject(createAbort('feed::EVersionNotAccepted'));
    const retired = { ...freshChain.admin, configId: freshChain.signer(0).configId };
    await freshChain.send((tx) => sui.retireConfig(tx, retired));
    await expect(read()).rejects.toMatchObject(createAbort('feed::EConfigRetired'));
  });
});

describe('the builders', () => {
  test('refuse rules that the contract refuses, before anything is sent', () => {
    const build = (rules: Partial<sui.NewFeedRules>) => () =>
      sui.createFeed(new Transaction(), {
        ...chain.call,
        capId: chain.capId,
        rules: { ...RULES, configIds: ids(), ...rules },
      });
    const [first = ''] = ids();
    const invalid: Partial<sui.NewFeedRules>[] = [
      { intent: 256 },
      { intent: -1 },
      { intent: 1.5 },
      { decimals: 19 },
      { decimals: Number.NaN },
      { symbol: '' },
      { symbol: 'x'.repeat(33) },
      { symbol: 'SUI\u200b/USD' },
      { symbol: 'SUI\n' },
      { minValue: 0 },
      { minValue: 10_000_001 },
      { maxValue: 2n ** 64n },
      { maxValue: 1.5 },
      { minIntervalMs: 30_001 },
      { heartbeatMs: 60_000 },
      { minMoveBps: 10_001 },
      { threshold: 0 },
      { threshold: 4 },
      { configIds: [] },
      { configIds: [first, first] },
      { configIds: ['0x6'] },
      { configIds: Array.from({ length: 17 }, (_, index) => `0x${String(index).padStart(64, '0')}`) },
    ];
    for (const rules of invalid) {
      expect(
        build(rules),
        JSON.stringify(rules, (_, value) => String(value)),
      ).toThrow(expect.objectContaining({ code: 'SUI_VALUE' }));
    }
    for (const rules of [{ minMoveBps: '10000' }, { minIntervalMs: 0n }, { decimals: 0 }, { threshold: 3 }]) {
      expect(build(rules)).not.toThrow();
    }
  });

  test('refuse quotes that no contract accepts', () => {
    const quote = chain.quote(0, 1_500_000n);
    const { answer } = quote;
    const build = (quotes: readonly sui.FeedQuote[]) => () =>
      sui.updateFeed(new Transaction(), { ...chain.call, feedId, quotes });
    const invalid = [
      [],
      Array.from({ length: 17 }, () => quote),
      [{ ...quote, answer: { ...answer, signature: new Uint8Array(63) } }],
      [{ ...quote, answer: { ...answer, data: { value: -1n } } }],
      [{ ...quote, answer: { ...answer, timestampMs: 1.5 } }],
      [{ ...quote, configId: '0x6' }],
    ];
    for (const quotes of invalid) {
      expect(build(quotes)).toThrow(expect.objectContaining({ code: 'SUI_VALUE' }));
    }
  });
});

test('publish publishes move/feed and move/enclave as one package', async () => {
  const { fixture } = chain;
  const env = {
    SUI_PRIVATE_KEY: fixture.admin.getSecretKey(),
    SUI_FRAMEWORK_DIR: fixture.framework(),
    DEPLOYMENTS: fixture.file('deployments'),
  };
  const node = ['--network', 'localnet', '--rpc-url', fixture.node.url, '--json'];
  const { exit, json } = await script('publish', ['feed', ...node], env);
  expect(exit).toBe(0);
  const { package: packageId } = json();
  const { typeOrigins } = await sui.readPackage(chain.client, String(packageId));
  expect(typeOrigins.get('feed::Feed')).toBe(packageId);
  expect(typeOrigins.get('enclave::EnclaveConfig')).toBe(packageId);
});

test('the snippet of the page creates, updates and reads a feed', async () => {
  const [, snippet = ''] = /^```ts\n(.*?)^```$/ms.exec(FEED_README) ?? [];
  const code = snippet.replace(/^import .*\n/gm, '').replace(/https:[^']*/, chain.fixture.node.url);
  const sent: Transaction[] = [];
  const send = async (tx: Transaction) => {
    await chain.sendBuilt(tx, sent.length === 0 ? chain.fixture.admin : chain.stranger);
    sent.push(tx);
  };
  const call = async () => {
    const { answer, enclaveId } = chain.quote(0, 1_500_000n);
    return { ...answer, enclaveId };
  };
  const scope = {
    ...chain.call,
    capId: chain.capId,
    configId: chain.signer(0).configId,
    feedId,
    client: { call },
    send,
    SuiGrpcClient,
    Transaction,
    createFeed: sui.createFeed,
    updateFeed: sui.updateFeed,
    readFeed: sui.readFeed,
    quoteType: sui.quoteType,
  };
  const body = stripTypeScriptTypes(`async () => {\n${code}\nreturn last;\n}`);
  const last = await new Function(...Object.keys(scope), `return (${body})()`)(...Object.values(scope));
  expect(last).toMatchObject({ value: 1_500_000n, timestampMs: BigInt(chain.now) });
  expect(sent).toHaveLength(2);
});

test('the page has the gas of each call, as this model computes it', async () => {
  const three = ids();
  const rows: Record<string, bigint> = {};
  rows['`create`, with one config'] = (await chain.sendCreation()).cost;
  rows['`create`, with three configs'] = (await chain.sendCreation({ configIds: three, threshold: 3 })).cost;
  rows['first `update`, one value'] = (await chain.update(feedId, chain.quote(0, 1_500_000n))).cost;
  const wideId = await createWide();
  const update = () => chain.update(wideId, ...[0, 1, 2].map((signer) => chain.quote(signer, 1_500_000n)));
  rows['first update of three values: `begin`, three times `add`, `finish`'] = (await update()).cost;
  chain.now += 30_000;
  rows['later `update`, one value'] = (await chain.update(feedId, chain.quote(0, 1_500_000n))).cost;
  rows['later update of three values'] = (await update()).cost;
  const deskId = await chain.openDesk(wideId);
  rows['`begin_check`, three times `check_config`, `read_checked`'] = (
    await chain.send((tx) => chain.addWorthCall(tx, deskId, wideId, three))
  ).cost;
  const costs = Object.entries(rows).map(
    ([call, cost]) => `| ${call} | ${(Number(cost) / 1e9).toFixed(5)} |`,
  );
  const [, table = ''] =
    /^\| call \| cost in SUI \|\n\| --- \| --- \|\n((?:\|.*\n)+)/m.exec(FEED_README) ?? [];
  expect(table.trimEnd().split('\n')).toEqual(costs);
});
