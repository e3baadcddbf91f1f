/**
 * An hour of the application template `feed`: three enclaves of one config sign the price of three sources,
 * and two posters write it on the model of a Sui node, while all of these fail in turn.
 */
import { expect, test, vi } from 'vitest';
import { PosterPair, Signer } from './feed_hour_actors.ts';
import * as faults from './feed_hour_faults.ts';
import { PERIODS_IN_STEP, REPLACEMENT, START, STEPS } from './feed_hour_faults.ts';
import { Host, PERIOD, PriceFixture, type Quote, type Update } from './price_fixture.ts';

vi.setConfig({ testTimeout: 300_000 });

const STEP = PERIODS_IN_STEP * PERIOD;
/** The rules of `price::open`. */
const RULES = { minIntervalMs: 10_000n, heartbeatMs: 60_000n, minMoveBps: 50n };
/**
 * Alerts that would mean that a poster used a coin twice, lost a transaction, or was wrong about its call or
 * its files, or that a transaction failed although the other poster had not written first.
 */
const NEVER = [
  'COIN_MOVED',
  'EXPIRED',
  'NODE_CONTRADICTS',
  'NOT_RECORDED',
  'CALL_UNUSABLE',
  'POST_FAILED',
  'CLOCK_DIFFERS',
  'NO_GAS_COIN',
  'GAS_PRICE',
];
const CAUSED = [
  'SEND_FAILED',
  'VALUE_REFUSED',
  'NODE_UNUSABLE',
  'ENCLAVE_UNREACHABLE',
  'NO_VALUE',
  'GAS_AN_HOUR',
];

test('a poster finds the fields of a quote in the structs of the package', async () => {
  const fixture = await PriceFixture.start(START);
  const host = await Host.start();
  const enclave = await fixture.enclave(() => ({ dollars: '1.25', timeMs: fixture.time.now }));
  host.enclave = enclave;
  const enclaveId = await fixture.register(enclave);
  fixture.pass(PERIOD);
  await enclave.passTime(PERIOD);
  const poster = await fixture.poster([host], { key: fixture.createKey(1_000_000_000n) });
  expect(await poster.outcome()).toEqual([['posted'], []]);
  const timestampMs = BigInt(fixture.time.now);
  expect(fixture.updates).toEqual([{ value: 1_250_000n, timestampMs, enclaveIds: [enclaveId] }]);
});

/** Returns whether the feed's rules let a quote follow this update. */
function isDue(last: Quote | undefined, { value, timestampMs }: Quote): boolean {
  if (last === undefined) return true;
  const elapsedMs = timestampMs - last.timestampMs;
  const moved = value > last.value ? value - last.value : last.value - value;
  const hasMoved = moved * 10_000n >= last.value * RULES.minMoveBps;
  return elapsedMs >= RULES.minIntervalMs && (elapsedMs >= RULES.heartbeatMs || hasMoved);
}

/** Returns the quote that a poster takes: the newest, or the first of several that are equally new. */
function chooseNewest(quotes: readonly (Quote | undefined)[]): Quote | undefined {
  return quotes.reduce((newest, quote) =>
    newest === undefined || (quote !== undefined && quote.timestampMs > newest.timestampMs) ? quote : newest,
  );
}

/** Has the enclaves sign in each period of a step. Replaces one of them in the steps of `REPLACEMENT`. */
async function sign(fixture: PriceFixture, signers: readonly Signer[], step: number): Promise<void> {
  const first = step * PERIODS_IN_STEP + 1;
  const replaced = signers[REPLACEMENT.enclave];
  if (step === REPLACEMENT.end) await replaced?.stop();
  if (step === REPLACEMENT.start) await replaced?.start(first - 1);
  if (step === REPLACEMENT.registration) await replaced?.register();
  for (let period = first; period < first + PERIODS_IN_STEP; period += 1) {
    fixture.pass(PERIOD);
    await Promise.all(signers.map((signer) => signer.passPeriod(period)));
  }
  for (const signer of signers) signer.setHost(step);
}

/** The state before the rounds of a step. */
interface StateBefore {
  readonly last: Update | undefined;
  /** The newest quote that the posters get. */
  readonly newest: Quote | undefined;
  /** Whether the newest quote is of this step. */
  readonly isFresh: boolean;
  readonly inFlight: number;
  readonly obstacle: 'posters' | 'node' | undefined;
}

/**
 * Compares what was written in a step with what could be written.
 *
 * A poster posts the newest quote that it gets, if the node executes transactions and the rules of the feed
 * allow the quote. After the step, the rules no longer allow it: it was written, or another quote of almost
 * the same time or value was written. A transaction that the node did not accept is sent again in the next
 * round, before that round's quote. A step may therefore also write a quote of an earlier step, even if
 * nothing new can be posted. If a node executes a transaction but does not answer, only the poster learns of
 * it later.
 */
function expectWrites(written: readonly Update[], before: StateBefore, step: number): void {
  const { last, newest, inFlight, obstacle } = before;
  const isPossible = newest !== undefined && obstacle === undefined;
  const label = `step ${step}`;
  if (isPossible && isDue(last, newest)) expect(written, label).not.toEqual([]);
  if (isPossible) expect(isDue(written.at(-1) ?? last, newest), label).toBe(false);
  if (inFlight === 0) expect(written.length, label).toBeLessThanOrEqual(isPossible ? 1 : 0);
}

/** Returns why nothing was written in a step; an empty list if no quote was due. */
function listCauses({ last, newest, isFresh, obstacle }: StateBefore): readonly string[] {
  if (newest !== undefined && isFresh && !isDue(last, newest)) return [];
  return [
    ...(obstacle === undefined ? [] : [obstacle]),
    ...(newest === undefined ? ['enclaves'] : []),
    ...(newest !== undefined && !isFresh ? ['sources'] : []),
  ];
}

test('for an hour, a write is missing only if sources, enclaves, the node or the posters failed', async () => {
  const fixture = await PriceFixture.start(START);
  const { updates } = fixture;
  const { node } = fixture.chain;
  const hosts = [await Host.start(), await Host.start(), await Host.start()];
  const signers = hosts.map((host, index) => new Signer(fixture, index, host));
  for (const signer of signers) {
    await signer.start(0);
    await signer.register();
  }
  const posters = new PosterPair(fixture, hosts);
  const gaps: (readonly string[])[] = [];

  for (let step = 0; step < STEPS; step += 1) {
    await sign(fixture, signers, step);
    for (const [method, fault] of faults.listNodeFaults(step)) node.faults.set(method, fault);
    const newest = chooseNewest(signers.map((signer) => signer.findDeliveredQuote(step)));
    const isFresh = newest !== undefined && newest.timestampMs > BigInt(fixture.time.now - STEP);
    const obstacle = posters.findObstacle(step);
    const before = { last: updates.at(-1), newest, isFresh, inFlight: posters.inFlight, obstacle };
    const number = updates.length;
    await posters.round(step);
    node.faults.clear();
    expectWrites(updates.slice(number), before, step);
    if (updates.length === number) gaps.push(listCauses(before));
  }

  // When nothing fails any more, one round is enough.
  for (const signer of signers) signer.setHost(STEPS);
  const newest = chooseNewest(signers.map((signer) => signer.findDeliveredQuote(STEPS)));
  await posters.round(STEPS);
  expect(posters.inFlight).toBe(0);
  expect(newest !== undefined && !isDue(updates.at(-1), newest)).toBe(true);

  expectRules(updates);
  expect(updates.filter((update) => !isSigned(update, signers))).toEqual([]);
  const digests = node.ledger.executed.filter((digest) => digest !== 'gift');
  expect(new Set(digests).size).toBe(digests.length);
  expect([...posters.payments.values()].filter((digestsOfCoin) => digestsOfCoin.size > 1)).toEqual([]);
  for (const { limit, counted, budgets, paid } of posters.countGas()) {
    expect(counted).toBeLessThanOrEqual(limit);
    expect(counted).toBe(budgets);
    expect(paid).toBeLessThanOrEqual(budgets);
  }
  expect([...posters.codes].filter((code) => NEVER.includes(code))).toEqual([]);
  expect([...posters.codes]).toEqual(expect.arrayContaining(CAUSED));
  // Each cause has occurred without the others.
  for (const cause of ['sources', 'enclaves', 'node', 'posters']) expect(gaps).toContainEqual([cause]);
  expect(posters.startsInFlight).toBeGreaterThan(0);
  expect(updates.length).toBeGreaterThan(STEPS / 2);
});

/** Expects that the rules allow each update after the update before, and that no two are of one period. */
function expectRules(updates: readonly Update[]): void {
  for (const [index, update] of updates.entries()) expect(isDue(updates[index - 1], update)).toBe(true);
  const times = updates.map(({ timestampMs }) => timestampMs);
  expect(times).toEqual(times.toSorted((first, second) => Number(first - second)));
  const periods = times.map((time) => Math.ceil((Number(time) - START) / PERIOD));
  expect(new Set(periods).size).toBe(periods.length);
}

/** Returns whether the enclave that an update names has signed its value at its time. */
function isSigned({ value, timestampMs, enclaveIds }: Update, signers: readonly Signer[]): boolean {
  const [enclaveId = ''] = enclaveIds;
  const quotes = signers.flatMap(({ signed }) => signed.get(enclaveId) ?? []);
  return quotes.some((quote) => quote.value === value && quote.timestampMs === timestampMs);
}
