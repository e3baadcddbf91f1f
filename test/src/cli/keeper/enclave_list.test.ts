/**
 * Tests the changes after which a keeper lists every registration again. Without them, it reads only the
 * enclaves that it knows.
 */
import { afterEach, beforeEach, expect, onTestFinished, test } from 'vitest';
import { EnclaveList } from '../../../../src/cli/keeper/enclave_list.ts';
import { connect } from '../../../../src/cli/sui/network.ts';
import { startServer } from '../../server/support.ts';
import { KeeperFixture } from './keeper_fixture.ts';

const HOUR = 3_600_000;
const { signal } = new AbortController();

let fixture: KeeperFixture;
let now: number;
let list: EnclaveList;
beforeEach(async () => {
  now = 0;
  fixture = await KeeperFixture.start();
  list = new EnclaveList(() => now);
});
afterEach(() => fixture.close());

const register = async () => {
  const server = await startServer({ nsm: fixture.chain.nsm });
  onTestFinished(() => server.close());
  return await fixture.chain.register(fixture.configId, fixture.capId, server.url);
};

/** Reads the list, as a round does. @returns its ids, and whether all registrations were listed */
async function read(version?: string) {
  const { client } = connect(undefined, fixture.chain.node.url);
  const { object } = await client.core.getObject({ objectId: fixture.configId });
  const config = await fixture.config();
  const { calls } = fixture.chain.node;
  calls.length = 0;
  const { enclaves, destroyed } = await list.read(client, config, version ?? object.version, signal);
  const requests = calls.length;
  return {
    ids: enclaves.map(({ id }) => id).sort(),
    destroyed: [...destroyed].sort(),
    isListed: calls.includes('ListDynamicFields'),
    requests,
  };
}

test('the registrations of an unchanged config are listed twice, and each later round costs one request', async () => {
  const ids = [await register(), await register(), await register()].sort();
  expect(await read()).toMatchObject({ ids, isListed: true });
  expect(await read()).toMatchObject({ ids, isListed: true });
  for (let round = 0; round < 3; round += 1) {
    expect(await read()).toMatchObject({ ids, isListed: false, requests: 1 });
  }
});

test('after a registration, all registrations are listed twice again, since lists may lag', async () => {
  const first = await register();
  for (const isListed of [true, true, false]) expect(await read()).toMatchObject({ ids: [first], isListed });
  const ids = [first, await register()].sort();
  for (const isListed of [true, true, false]) expect(await read()).toMatchObject({ ids, isListed });
});

test('a destroyed enclave is noticed before the registrations are listed again', async () => {
  const [first, second] = [await register(), await register()];
  await read();
  await read();
  await fixture.chain.destroy(first, fixture.configId, fixture.capId);
  const expected = { ids: [second], destroyed: [first] };
  for (const isListed of [false, true, true, false])
    expect(await read()).toMatchObject({ ...expected, isListed });
});

test('an enclave that a node hides in one round is in the list of the next round', async () => {
  const ids = [await register()];
  await read();
  await read();
  const { ledger } = fixture.chain.node;
  const { client } = connect(undefined, fixture.chain.node.url);
  const config = await fixture.config();
  const { object } = await client.core.getObject({ objectId: fixture.configId });
  const [id = ''] = ids;
  const enclave = ledger.objects.get(id);
  if (enclave === undefined) throw new Error('there is no enclave');
  ledger.objects.delete(id);
  expect(await list.read(client, config, object.version, signal)).toEqual({ enclaves: [], destroyed: ids });
  ledger.objects.set(id, enclave);
  expect(await read()).toMatchObject({ ids, destroyed: [], isListed: true });
});

test('all registrations are listed again after an hour, after forget, and if the node has no versions', async () => {
  const ids = [await register()];
  await read();
  await read();
  now = HOUR - 1;
  expect(await read()).toMatchObject({ ids, isListed: false });
  // The registrations were last listed in the second round, at the time 0.
  now = HOUR;
  expect(await read()).toMatchObject({ ids, isListed: true });
  expect(await read()).toMatchObject({ ids, isListed: false });
  list.forget();
  for (const isListed of [true, true, false]) expect(await read()).toMatchObject({ ids, isListed });
  for (let round = 0; round < 3; round += 1) expect(await read('')).toMatchObject({ ids, isListed: true });
});

test('all registrations are listed again after a failure', async () => {
  const ids = [await register()];
  await read();
  await read();
  const { client } = connect(undefined, fixture.chain.node.url);
  const config = await fixture.config();
  const { object } = await client.core.getObject({ objectId: fixture.configId });
  fixture.chain.node.faults.set('BatchGetObjects', 'reset');
  await expect(list.read(client, config, object.version, signal)).rejects.toMatchObject({
    code: 'SUI_NODE_UNREACHABLE',
  });
  fixture.chain.node.faults.clear();
  expect(await read()).toMatchObject({ ids, isListed: true });
});
