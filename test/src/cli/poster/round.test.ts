/** The rounds of a poster, against the model of a Sui node and fake enclaves. No test waits. */
import { chmodSync, readFileSync } from 'node:fs';
import { bcs } from '@mysten/sui/bcs';
import { fromBase64 } from '@mysten/sui/utils';
import { describe, expect, test, vi } from 'vitest';
import type { FakeEnclave } from '../../library/client/fake_enclave.ts';
import { PACKAGE } from '../sui/chain_fixture.ts';
import { BUDGET, MINUTE, PosterFixture, readPosterFiles, type TestPoster } from './poster_fixture.ts';

// The first test of a process compiles the contract.
vi.setConfig({ testTimeout: 120_000 });

const EXPECTED = { expected_aborts: ['board::ENotNewer', 'board::ETooSoon'] };
const GAS = 1_000_000_000n;

/** Returns the coins of the transactions in flight, from the file. */
function readCoins({ path }: TestPoster): string[] {
  const { pending } = JSON.parse(readFileSync(`${path}.transactions.json`, 'utf8'));
  return pending.map(({ transaction }: { transaction: string }) => {
    const { gasData } = bcs.TransactionData.parse(fromBase64(transaction)).V1;
    return gasData.payment?.[0]?.objectId ?? '';
  });
}

describe('a value', () => {
  test('is posted if it is the newest, and is posted only once', async () => {
    const fixture = await PosterFixture.start();
    const [older, newer] = [await fixture.enclave(), await fixture.enclave()];
    older.timestampMs -= 1000n;
    const poster = await fixture.poster([older, newer]);
    const { done, alerts, values, inFlight, hasFailed } = await poster.round();
    expect(done).toMatchObject([{ result: 'posted', url: newer.url, timestampMs: newer.timestampMs }]);
    expect([alerts, values, inFlight, hasFailed]).toEqual([[], 2, 0, false]);
    expect(fixture.board()).toEqual({ timestampMs: newer.timestampMs, writes: 1 });

    const { sent } = fixture;
    expect(await poster.outcome()).toEqual([[], []]);
    expect(fixture.sent).toBe(sent);

    fixture.pass(MINUTE, older);
    expect(await poster.outcome()).toEqual([['posted'], []]);
    expect(fixture.board()).toEqual({ timestampMs: older.timestampMs, writes: 2 });
  });

  test('that the contract would refuse costs nothing, and causes an alert unless its abort is expected', async () => {
    const fixture = await PosterFixture.start();
    const enclave = await fixture.enclave();
    const poster = await fixture.poster([enclave]);
    const quiet = await fixture.poster([enclave], { content: EXPECTED });
    expect(await poster.outcome()).toEqual([['posted'], []]);
    fixture.pass(MINUTE / 2, enclave);
    const { sent } = fixture;
    const { done, alerts } = await poster.round();
    expect([done, alerts]).toEqual([
      [],
      [
        {
          code: 'WOULD_FAIL',
          subject: enclave.url,
          message: expect.stringMatching(/^SUI_MOVE_ABORT: .*board::ETooSoon/),
        },
      ],
    ]);
    expect(await quiet.outcome()).toEqual([[], []]);
    expect([fixture.sent, poster.spent(), quiet.spent()]).toEqual([sent, BUDGET, 0n]);
  });

  test('of an enclave that was just destroyed gives way to the next value', async () => {
    const fixture = await PosterFixture.start();
    const [destroyed, honest] = [await fixture.enclave({ isRegistered: false }), await fixture.enclave()];
    const id = await fixture.register(destroyed);
    const poster = await fixture.poster([destroyed, honest]);
    await poster.round();
    // For a minute, the client still takes the destroyed enclave for registered.
    fixture.pass(MINUTE / 2);
    await fixture.chain.destroy(id, fixture.configId, fixture.capId);
    honest.timestampMs += BigInt(MINUTE);
    destroyed.timestampMs += BigInt(MINUTE) + 1n;
    const { done, alerts } = await poster.round();
    expect(done).toMatchObject([{ result: 'posted', url: honest.url }]);
    expect(alerts).toMatchObject([{ code: 'WOULD_FAIL', subject: destroyed.url }]);
  });

  test('is requested and posted with the ids of the deployment file and the types of schema.json', async () => {
    const fixture = await PosterFixture.start();
    const enclave = await fixture.enclave();
    const key = fixture.createKey(GAS);
    const content = { ...fixture.writeDeployment(), function: 'weather::update_weather' };
    const poster = await fixture.poster([enclave], { key, content });
    expect(await poster.outcome()).toEqual([['posted'], []]);
    const owned = fixture.chain.node.ledger.owned(key.toSuiAddress()).map(({ type }) => type);
    expect(owned).toContain(`${PACKAGE}::weather::WeatherNFT`);
    await expect(
      fixture.poster([enclave], { content: { ...content, function: 'dice::roll' } }),
    ).rejects.toMatchObject({ code: 'DEPLOYMENT' });
    await expect(
      fixture.poster([enclave], { content: { ...content, body: undefined } }),
    ).rejects.toMatchObject({ code: 'POSTER_FILE', exit: 2 });
  });

  test('is no longer awaited once the poster is stopped, and nothing is signed', async () => {
    const fixture = await PosterFixture.start();
    const [silent, honest] = [await fixture.enclave(), await fixture.enclave()];
    const stop = new AbortController();
    silent.lie = () => {
      stop.abort();
      return new Promise(() => {});
    };
    const poster = await fixture.poster([silent, honest]);
    const { sent } = fixture;
    const { done, hasFailed } = await poster.round(stop.signal);
    expect([done, hasFailed, poster.spent(), fixture.sent]).toEqual([[], false, 0n, sent]);
  });

  test('is only simulated in a dry run, which writes no file', async () => {
    const fixture = await PosterFixture.start();
    const enclave = await fixture.enclave();
    const { sent } = fixture;
    const { exit, stdout, files } = await fixture.run([enclave], ['--dry-run', '--json']);
    expect([exit, JSON.parse(stdout)]).toMatchObject([
      0,
      { status: 'dry-run', done: [{ result: 'simulated', url: enclave.url }], alerts: [], values: 1 },
    ]);
    expect([files, fixture.sent]).toEqual([[], sent]);
  });

  test('is posted by the command, which prints no key and writes two files', async () => {
    const fixture = await PosterFixture.start();
    const enclave = await fixture.enclave();
    const { exit, stdout, files } = await fixture.run([enclave], ['--once']);
    expect([exit, stdout]).toEqual([
      0,
      expect.stringMatching(/\nposted: \w{40,44}, the value of .* from http/),
    ]);
    expect(files).toHaveLength(2);
    expect(fixture.board().writes).toBe(1);
  });
});

describe('an enclave that lies', () => {
  test.each<[string, (liar: FakeEnclave) => void]>([
    ['with a key that is not registered', (liar) => liar.restart()],
    ['with a value that its key did not sign', (liar) => lie(liar, /13/, '14')],
    ['with a value of another place', (liar) => lie(liar, /Oslo/, 'Rome')],
    ['with a value that is too old', (liar) => delay(liar, -61)],
    ['with a value from the future', (liar) => delay(liar, 2)],
    ['with an answer of another form', (liar) => lie(liar, /.*/s, '{}')],
  ])('%s is refused, and the honest value is posted', async (_, corrupt) => {
    const fixture = await PosterFixture.start();
    const [liar, honest] = [await fixture.enclave(), await fixture.enclave()];
    honest.timestampMs -= 1000n;
    corrupt(liar);
    const poster = await fixture.poster([liar, honest]);
    const { done, alerts, values } = await poster.round();
    expect(done).toMatchObject([{ result: 'posted', url: honest.url }]);
    expect(alerts).toMatchObject([{ code: 'VALUE_REFUSED', subject: liar.url }]);
    expect(values).toBe(1);
  });

  test('leaves nothing to post if no other enclave answers, and costs nothing', async () => {
    const fixture = await PosterFixture.start();
    const [liar, unreachable] = [await fixture.enclave(), await fixture.enclave()];
    liar.restart();
    const poster = await fixture.poster([liar, unreachable]);
    unreachable.close();
    const { sent } = fixture;
    expect(await poster.outcome()).toEqual([[], ['VALUE_REFUSED', 'ENCLAVE_UNREACHABLE', 'NO_VALUE']]);
    expect([fixture.sent, poster.spent()]).toEqual([sent, 0n]);
  });

  test('with values ahead of the clock delays other values by at most a minute', async () => {
    const fixture = await PosterFixture.start();
    const [ahead, honest] = [await fixture.enclave(), await fixture.enclave()];
    ahead.timestampMs += BigInt(MINUTE - 1);
    const poster = await fixture.poster([ahead, honest], { content: EXPECTED });
    expect(await poster.outcome()).toEqual([['posted'], []]);
    fixture.pass(2 * MINUTE, honest);
    expect(await poster.outcome()).toEqual([['posted'], []]);
    expect(fixture.board()).toEqual({ timestampMs: honest.timestampMs, writes: 2 });
  });
});

describe('a transaction without an answer', () => {
  test('that was executed is not sent again', async () => {
    const fixture = await PosterFixture.start();
    const enclave = await fixture.enclave();
    const poster = await fixture.poster([enclave]);
    fixture.chain.node.faults.set('ExecuteTransaction', 'executes, and does not answer');
    expect(await poster.outcome()).toEqual([['posted'], ['SEND_FAILED']]);
    expect(await poster.outcome()).toEqual([[], []]);
    expect(fixture.board().writes).toBe(1);
  });

  test('is sent again with the same bytes, even by the next process, and signed once', async () => {
    const fixture = await PosterFixture.start();
    const enclave = await fixture.enclave();
    const { faults, ledger } = fixture.chain.node;
    const poster = await fixture.poster([enclave]);
    faults.set('ExecuteTransaction', 'reset');
    const { done, inFlight } = await poster.round();
    expect([done, inFlight]).toMatchObject([[{ result: 'sent' }], 1]);
    const [{ digest } = { digest: '' }] = done;
    expect(await poster.outcome()).toEqual([[], ['SEND_FAILED']]);

    const next = await fixture.poster([enclave], poster);
    faults.clear();
    const report = await next.round();
    expect(report).toMatchObject({ done: [{ result: 'posted', digest }], alerts: [], inFlight: 0 });
    expect([ledger.executed.at(-1), fixture.board().writes, next.spent()]).toEqual([digest, 1, BUDGET]);
    // The next process knows what was posted, too.
    expect(await (await fixture.poster([enclave], next)).outcome()).toEqual([[], []]);
  });

  test('leaves other coins for newer values: at most 4, each in one transaction', async () => {
    const fixture = await PosterFixture.start();
    const enclave = await fixture.enclave();
    const { faults } = fixture.chain.node;
    const key = fixture.createKey(GAS, GAS, GAS, GAS, GAS);
    const poster = await fixture.poster([enclave], { key });
    faults.set('ExecuteTransaction', 'reset');
    for (const count of [1, 2, 3, 4]) {
      const { done, inFlight } = await poster.round();
      expect([done.map(({ result }) => result), inFlight]).toEqual([['sent'], count]);
      fixture.pass(MINUTE, enclave);
    }
    expect(new Set(readCoins(poster)).size).toBe(4);
    expect(await poster.outcome()).toEqual([
      [],
      ['SEND_FAILED', 'SEND_FAILED', 'SEND_FAILED', 'SEND_FAILED', 'COINS_IN_FLIGHT'],
    ]);
    faults.clear();
    expect(await poster.outcome()).toEqual([['posted', 'posted', 'posted', 'posted', 'posted'], []]);
    expect([fixture.board().writes, poster.spent()]).toEqual([5, 5n * BUDGET]);
  });

  test('keeps its coin even if the node lags, so that no other transaction uses that version of the coin', async () => {
    const fixture = await PosterFixture.start();
    const enclave = await fixture.enclave();
    const { node } = fixture.chain;
    const poster = await fixture.poster([enclave]);
    node.lagMs = 3_600_000;
    expect(await poster.outcome()).toEqual([['sent'], []]);
    const { sent } = fixture;
    fixture.pass(MINUTE, enclave);
    expect(await poster.outcome()).toEqual([[], ['SEND_FAILED', 'COINS_IN_FLIGHT']]);
    expect(await (await fixture.poster([enclave], poster)).outcome()).toEqual([
      [],
      ['SEND_FAILED', 'COINS_IN_FLIGHT'],
    ]);
    expect([fixture.sent, poster.spent()]).toEqual([sent, BUDGET]);
  });

  test('ends when another transaction has used its coin', async () => {
    const fixture = await PosterFixture.start();
    const enclave = await fixture.enclave();
    const { node } = fixture.chain;
    const key = fixture.createKey(GAS);
    const poster = await fixture.poster([enclave], { key, content: EXPECTED });
    node.faults.set('ExecuteTransaction', 'reset');
    await poster.round();
    node.faults.clear();
    fixture.pass(MINUTE, enclave);
    const thief = await fixture.poster([enclave], { key });
    expect(await thief.outcome()).toEqual([['posted'], []]);
    const { calls } = node;
    calls.length = 0;
    expect(await poster.outcome()).toEqual([[], ['COINS_IN_FLIGHT']]);
    expect(await poster.outcome()).toEqual([['moved'], ['COIN_MOVED']]);
    // The transaction can no longer be executed.
    expect(calls).not.toContain('ExecuteTransaction');
  });

  test('is posted, and not sent again, if the node shows its use of the coin a round before the transaction', async () => {
    const fixture = await PosterFixture.start();
    const enclave = await fixture.enclave();
    const { faults, calls } = fixture.chain.node;
    const poster = await fixture.poster([enclave]);
    faults.set('GetTransaction', { status: 'NOT_FOUND', message: 'not indexed yet' });
    const { done, alerts, inFlight } = await poster.round();
    expect([done, alerts, inFlight]).toMatchObject([[{ result: 'sent' }], [], 1]);
    expect(fixture.board().writes).toBe(1);
    faults.clear();
    calls.length = 0;
    expect(await poster.outcome()).toEqual([['posted'], []]);
    expect(calls).not.toContain('ExecuteTransaction');
  });

  test('ends only if two rounds in a row show that its coin was used, and not the transaction', async () => {
    const fixture = await PosterFixture.start();
    const enclave = await fixture.enclave();
    const { faults } = fixture.chain.node;
    const poster = await fixture.poster([enclave]);
    faults.set('GetTransaction', { status: 'NOT_FOUND', message: 'not indexed yet' });
    expect(await poster.outcome()).toEqual([['sent'], []]);
    faults.set('GetEpoch', { status: 'UNAVAILABLE', message: 'gone' });
    expect(await poster.outcome()).toEqual([[], ['NODE_UNUSABLE']]);
    faults.delete('GetEpoch');
    expect(await poster.outcome()).toEqual([[], []]);
    expect(await poster.outcome()).toEqual([['moved'], ['COIN_MOVED']]);
  });

  test('expires after the next epoch, and frees its coin', async () => {
    const fixture = await PosterFixture.start();
    const enclave = await fixture.enclave();
    const { node } = fixture.chain;
    const poster = await fixture.poster([enclave]);
    node.faults.set('ExecuteTransaction', 'reset');
    await poster.round();
    node.epoch += 1n;
    expect(await poster.outcome()).toEqual([[], ['SEND_FAILED']]);
    node.epoch += 1n;
    node.faults.clear();
    fixture.pass(MINUTE, enclave);
    expect(await poster.outcome()).toEqual([['expired', 'posted'], ['EXPIRED']]);
    expect(fixture.board()).toEqual({ timestampMs: enclave.timestampMs, writes: 1 });
  });
});

test('two posters write once in each period, and the slower poster pays at most for a failure', async () => {
  const fixture = await PosterFixture.start();
  const enclaves = [await fixture.enclave(), await fixture.enclave()];
  const [first, second] = [
    await fixture.poster(enclaves, { content: EXPECTED }),
    await fixture.poster([...enclaves].reverse(), { content: EXPECTED }),
  ];
  for (let period = 1; period <= 5; period += 1) {
    const outcomes = await Promise.all([first.outcome(), second.outcome()]);
    const results = outcomes.flatMap(([ends]) => ends);
    expect(results.filter((end) => end === 'posted')).toHaveLength(1);
    expect(results.filter((end) => end !== 'posted' && end !== 'failed')).toEqual([]);
    expect(outcomes.flatMap(([, codes]) => codes)).toEqual([]);
    expect(fixture.board().writes).toBe(period);
    fixture.pass(MINUTE, ...enclaves);
  }
});

describe('gas', () => {
  test('is bounded in an hour and in a day, also across restarts', async () => {
    const fixture = await PosterFixture.start();
    const enclave = await fixture.enclave();
    const content = { gas_an_hour: Number(2n * BUDGET), gas_a_day: Number(3n * BUDGET) };
    let poster = await fixture.poster([enclave], { content });
    const outcomeAfter = async (ms: number) => {
      fixture.pass(ms, enclave);
      return await poster.outcome();
    };
    expect(await outcomeAfter(0)).toEqual([['posted'], []]);
    expect(await outcomeAfter(MINUTE)).toEqual([['posted'], []]);
    const { sent } = fixture;
    expect(await outcomeAfter(MINUTE)).toEqual([[], ['GAS_AN_HOUR']]);
    poster = await fixture.poster([enclave], { ...poster, content });
    expect(await outcomeAfter(MINUTE)).toEqual([[], ['GAS_AN_HOUR']]);
    expect(fixture.sent).toBe(sent);
    expect(await outcomeAfter(60 * MINUTE)).toEqual([['posted'], []]);
    expect(await outcomeAfter(MINUTE)).toEqual([[], ['GAS_A_DAY']]);
    poster = await fixture.poster([enclave], { ...poster, content });
    expect(await outcomeAfter(MINUTE)).toEqual([[], ['GAS_A_DAY']]);
    expect(poster.spent()).toBe(3n * BUDGET);
  });

  test('is not paid without a record, at a price that is too high, or from a coin that is too small', async () => {
    const fixture = await PosterFixture.start();
    const enclave = await fixture.enclave();
    const { sent } = fixture;
    const costly = await fixture.poster([enclave], { content: { max_gas_price: 999 } });
    expect(await costly.outcome()).toEqual([[], ['GAS_PRICE']]);
    const poor = await fixture.poster([enclave], { key: fixture.createKey(BUDGET - 1n) });
    expect(await poor.outcome()).toEqual([[], ['NO_GAS_COIN']]);
    const forgetful = await fixture.poster([enclave], { folder: 'read-only' });
    const folder = fixture.chain.file('read-only');
    chmodSync(folder, 0o500);
    // Root may write everywhere.
    const codes = process.getuid?.() === 0 ? [] : ['NOT_RECORDED'];
    expect((await forgetful.outcome())[1]).toEqual(codes);
    chmodSync(folder, 0o700);
    if (codes.length > 0) expect(fixture.sent).toBe(sent);
  });
});

describe('a node', () => {
  test('that is dead is replaced by the next node of the file', async () => {
    const fixture = await PosterFixture.start();
    const enclave = await fixture.enclave();
    const { url } = fixture.chain.node;
    const content = { node: ['http://127.0.0.1:9', url] };
    const poster = await fixture.poster([enclave], { content });
    const { done, alerts, hasFailed } = await poster.round();
    expect([done, alerts, hasFailed]).toMatchObject([
      [{ result: 'posted' }],
      [{ code: 'NODE_UNUSABLE', subject: '127.0.0.1:9' }],
      false,
    ]);
    fixture.pass(MINUTE, enclave);
    expect(await poster.outcome()).toEqual([['posted'], []]);
  });

  test('that is dead for long and has no replacement delays the signed transactions', async () => {
    const fixture = await PosterFixture.start();
    const enclave = await fixture.enclave();
    const { faults } = fixture.chain.node;
    const poster = await fixture.poster([enclave]);
    faults.set('ExecuteTransaction', 'reset');
    await poster.round();
    faults.set('GetEpoch', { status: 'UNAVAILABLE', message: 'gone' });
    for (const _round of Array.from({ length: 5 })) {
      fixture.pass(MINUTE, enclave);
      const { hasFailed, inFlight, alerts } = await poster.round();
      expect([hasFailed, inFlight, alerts]).toMatchObject([true, 1, [{ code: 'NODE_UNUSABLE' }]]);
    }
    faults.clear();
    expect(await poster.outcome()).toEqual([['posted', 'posted'], []]);
  });

  test.each([-10, 10])('whose clock differs by %i minutes is reported', async (minutes) => {
    const fixture = await PosterFixture.start();
    const enclave = await fixture.enclave();
    fixture.chain.node.executor.now = () => fixture.time.now + minutes * MINUTE;
    const poster = await fixture.poster([enclave]);
    const [, codes] = await poster.outcome();
    expect(codes).toContain('CLOCK_DIFFERS');
  });

  test('with an epoch that no chain reaches gets no transaction', async () => {
    const fixture = await PosterFixture.start();
    const enclave = await fixture.enclave();
    fixture.chain.node.epoch = 2n ** 64n - 1n;
    const poster = await fixture.poster([enclave]);
    expect(await poster.outcome()).toEqual([[], ['NODE_UNUSABLE']]);
    expect(poster.spent()).toBe(0n);
  });

  test('gets no transaction if the function is wrong or an address owns an object, which is reported', async () => {
    const fixture = await PosterFixture.start();
    const enclave = await fixture.enclave();
    const { sent } = fixture;
    const misnamed = await fixture.poster([enclave], { content: { function: `${PACKAGE}::board::read` } });
    const { alerts, hasFailed } = await misnamed.round();
    expect([alerts, hasFailed]).toMatchObject([[{ code: 'CALL_UNUSABLE' }], true]);
    const coin = fixture.chain.node.ledger.give(fixture.chain.address, 1n);
    const owned = await fixture.poster([enclave], { content: { objects: [coin] } });
    expect(await owned.outcome()).toEqual([[], ['WOULD_FAIL']]);
    expect(fixture.sent).toBe(sent);
  });
});

test('the files of a poster contain no key, and belong to their user alone', async () => {
  const fixture = await PosterFixture.start();
  const enclave = await fixture.enclave();
  const poster = await fixture.poster([enclave]);
  fixture.chain.node.faults.set('ExecuteTransaction', 'reset');
  await poster.round();
  const storedText = readPosterFiles(poster);
  expect(storedText).toContain('"pending":[{"transaction":');
  const secret = Buffer.from(fixture.decodeSecret(poster));
  for (const encoding of ['hex', 'base64'] as const) {
    expect(storedText).not.toContain(secret.toString(encoding).replace(/=+$/, '').slice(0, 40));
  }
  expect(storedText).not.toContain('suiprivkey');
});

/** Has an enclave replace a text of its signed answers. */
function lie(enclave: FakeEnclave, pattern: RegExp, text: string): void {
  enclave.lie = (path, reply) =>
    path === '/get_attestation' ? reply : { ...reply, body: reply.body.replace(pattern, text) };
}

/** Changes the time of an enclave's values. */
function delay(enclave: FakeEnclave, minutes: number): void {
  enclave.timestampMs += BigInt(minutes * MINUTE);
}
