import { SuiGrpcClient } from '@mysten/sui/grpc';
import { Transaction } from '@mysten/sui/transactions';
import { afterAll, beforeAll, expect, expectTypeOf, test } from 'vitest';
import * as sui from '../../../../src/library/sui/index.ts';
import { ChainFixture, PACKAGE } from '../../cli/sui/chain_fixture.ts';

const contract = {
  enclavePackage: PACKAGE,
  application: sui.applicationType(PACKAGE, 'weather', 'WEATHER'),
};

let fixture: ChainFixture;
let node: SuiGrpcClient;
let capId: string;
let configId: string;
beforeAll(async () => {
  fixture = await ChainFixture.start();
  node = new SuiGrpcClient({ network: 'custom', baseUrl: fixture.node.url });
  capId = fixture.publish();
  configId = await fixture.config(capId);
});
afterAll(() => fixture.close());

test('$extend(suiEnclave()) adds the readers, bound to the client', async () => {
  const { suiEnclave } = node.$extend(sui.suiEnclave());
  const config = await suiEnclave.readConfig(configId);
  expectTypeOf(config).toEqualTypeOf<sui.EnclaveConfig>();
  expect(config).toEqual(await sui.readConfig(node, configId));
  expect(await suiEnclave.listCapabilities(fixture.address, contract)).toEqual([capId]);
  expect(await suiEnclave.listEnclaves(config)).toEqual({ enclaves: [], destroyed: [], cursor: null });
  expect(await suiEnclave.findRegistration(config, new Uint8Array(32))).toMatchObject({ state: 'free' });
  const named = await suiEnclave.readEvents({ ...contract, name: 'EnclaveConfigCreated' });
  expect(named.events).toMatchObject([{ data: { configId, image: config.image } }]);
  for await (const { name } of suiEnclave.iterateEvents(contract)) expect(name).toBe('EnclaveConfigCreated');
  await expect(suiEnclave.readEnclave(configId)).rejects.toMatchObject({ code: 'SUI_OBJECT_TYPE' });
  await expect(suiEnclave.readRegistrar(configId)).rejects.toMatchObject({ code: 'SUI_OBJECT_TYPE' });
  const aborted = { signal: AbortSignal.abort(new Error('enough')) };
  await expect(suiEnclave.readConfig(configId, aborted)).rejects.toThrow('enough');
});

test('the extension has every builder as a call for Transaction.add', async () => {
  const { suiEnclave } = node.$extend(sui.suiEnclave());
  const { call } = suiEnclave;
  const builders = Object.keys(call);
  const expected = Object.keys(sui).filter((name) =>
    /^(new|create|update|share|register|destroy|retire|revoke|load|begin|finish)/.test(name),
  );
  expect(builders).toEqual(expect.arrayContaining(expected));
  const admin = { ...contract, configId, capId };
  const [added, direct] = [new Transaction(), new Transaction()];
  const registrar = added.add(call.newRegistrarCap(admin));
  added.transferObjects([registrar], fixture.address);
  added.add(call.updateName({ ...admin, name: 'other' }));
  direct.transferObjects([sui.newRegistrarCap(direct, admin)], fixture.address);
  sui.updateName(direct, { ...admin, name: 'other' });
  const build = async (tx: Transaction) => {
    tx.setSender(fixture.address);
    return await tx.build({ client: node });
  };
  expect(await build(added)).toEqual(await build(direct));
  expect(() => added.add(call.updateName({ ...admin, capId: '0x6', name: 'other' }))).toThrow('0x and 64');
});

test('the extension may have another name, and can be used with other extensions', async () => {
  const otherExtension = { name: 'other', register: () => ({ hello: 'world' }) } as const;
  const client = node.$extend(sui.suiEnclave({ name: 'enclaves' }), otherExtension);
  expect(client.other.hello).toBe('world');
  expect(await client.enclaves.readConfig(configId)).toMatchObject({ id: configId });
  // @ts-expect-error: the extension has the other name
  expect(client.suiEnclave).toBeUndefined();
});
