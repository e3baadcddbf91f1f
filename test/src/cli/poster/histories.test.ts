/**
 * Half an hour of two posters and two enclaves, while the node, the enclaves and the posters fail in turn.
 * The clock is the test's, and the order of failures is fixed.
 */
import { expect, test, vi } from 'vitest';
import type { Fault } from '../../../../src/devnet/node.ts';
import { BUDGET, MINUTE, PosterFixture } from './poster_fixture.ts';

vi.setConfig({ testTimeout: 300_000 });

const MINUTES = 30;
const GAS = 1_000_000_000n;
const FAULTS: readonly (readonly [method: string, fault: Fault] | undefined)[] = [
  undefined,
  ['ExecuteTransaction', 'reset'],
  ['ExecuteTransaction', 'executes, and does not answer'],
  undefined,
  ['ExecuteTransaction', 'executes, and says ABORTED'],
  ['GetTransaction', { status: 'UNAVAILABLE', message: 'gone' }],
  ['GetEpoch', 'garbage'],
];
/** Alerts that would mean that a poster used a coin twice, or lost a transaction. */
const NEVER = ['COIN_MOVED', 'EXPIRED', 'NODE_CONTRADICTS', 'NOT_RECORDED', 'CALL_UNUSABLE'];

test('two posters write at most once a minute, keep to the limits of gas, and lose no transaction', async () => {
  const fixture = await PosterFixture.start();
  const { node } = fixture.chain;
  const enclaves = [await fixture.enclave(), await fixture.enclave()];
  const options = {
    expected_aborts: ['board::ENotNewer', 'board::ETooSoon'],
    gas_an_hour: Number(100n * BUDGET),
  };
  const keys = [fixture.createKey(GAS, GAS, GAS, GAS), fixture.createKey(GAS, GAS)];
  const posters = await Promise.all(keys.map((key) => fixture.poster(enclaves, { key, content: options })));
  const codes = new Set<string>();
  let gaps = 0;
  for (let minute = 1; minute <= MINUTES; minute += 1) {
    fixture.pass(MINUTE, ...enclaves);
    const fault = FAULTS[minute % FAULTS.length];
    node.faults.clear();
    if (fault !== undefined) node.faults.set(...fault);
    // Each enclave in turn gives answers that no key signed.
    for (const [index, enclave] of enclaves.entries()) {
      const isLying = minute % 11 === index;
      enclave.lie = (path, reply) =>
        isLying && path !== '/get_attestation' ? { ...reply, body: reply.body.replace('13', '14') } : reply;
    }
    for (const [index, key] of keys.entries()) {
      // Each process ends and starts again once in five minutes.
      if (minute % 5 !== index) continue;
      posters[index] = await fixture.poster(enclaves, { ...posters[index], key, content: options });
    }
    const { writes } = fixture.board();
    const outcomes = await Promise.all(posters.map((poster) => poster.outcome()));
    for (const [, alerts] of outcomes) for (const code of alerts) codes.add(code);
    const written = fixture.board().writes - writes;
    // Values of earlier minutes may be written when the node works again, each a minute newer than the last.
    if (written === 0) gaps += 1;
    expect(fixture.board().writes).toBeLessThanOrEqual(minute);
  }
  node.faults.clear();
  fixture.pass(MINUTE, ...enclaves);
  for (const poster of posters) expect((await poster.round()).inFlight).toBe(0);
  expect(fixture.board().timestampMs).toBe(BigInt(fixture.time.now));
  expect([...codes].filter((code) => NEVER.includes(code))).toEqual([]);
  expect([...codes]).toEqual(expect.arrayContaining(['SEND_FAILED', 'VALUE_REFUSED', 'NODE_UNUSABLE']));
  expect(fixture.board().writes).toBeGreaterThan(MINUTES / 2);
  expect(gaps).toBeLessThan(MINUTES / 2);
  for (const poster of posters) expect(poster.spent()).toBeLessThanOrEqual(100n * BUDGET);
});
