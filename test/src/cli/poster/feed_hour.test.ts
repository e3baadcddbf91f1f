/** A feed of the application template `feed`, kept by posters on the model of a Sui node. */
import { expect, test, vi } from 'vitest';
import { Host, PERIOD, PriceFixture } from './price_fixture.ts';

vi.setConfig({ testTimeout: 300_000 });

const START = Date.UTC(2026, 0, 1);
const GAS = 2_000_000_000n;

test('a poster finds the fields of a quote by the structs of the package', async () => {
  const fixture = await PriceFixture.start(START);
  const host = await Host.start();
  const enclave = await fixture.enclave(() => ({ dollars: '1.25', timeMs: fixture.time.now }));
  host.enclave = enclave;
  const enclaveId = await fixture.register(enclave);
  fixture.pass(PERIOD);
  await enclave.passTime(PERIOD);
  const poster = await fixture.poster([host], { key: fixture.createKey(GAS) });
  expect(await poster.outcome()).toEqual([['posted'], []]);
  const timestampMs = BigInt(fixture.time.now);
  expect(fixture.updates).toEqual([{ value: 1_250_000n, timestampMs, enclaveIds: [enclaveId] }]);
});
