/** Reads the events of a config as the console does. An upgrade of its package has added an event. */
import { SuiGrpcClient } from '@mysten/sui/grpc';
import { expect, onTestFinished, test } from 'vitest';
import { readHistory } from '../../../src/console/chain/read.ts';
import { ChainFixture } from '../cli/sui/chain_fixture.ts';
import { compileModule, publishLineage, send, upgradeLineage } from '../devnet/package_lineage.ts';

const ENCLAVE = `module own::enclave;
public struct APP has drop {}
public struct ConfigRetired<phantom T> has copy, drop { config_id: ID }
public fun retire(config_id: ID) { sui::event::emit(ConfigRetired<APP> { config_id }) }
`;
const ENCLAVE_2 = `${ENCLAVE}
public struct ConfigMigrated<phantom T> has copy, drop { config_id: ID, package_version: u64 }
public fun migrate(config_id: ID) {
    sui::event::emit(ConfigMigrated<APP> { config_id, package_version: 2 })
}
`;

test('the history has the events of all versions, the latest first', { timeout: 60_000 }, async () => {
  const fixture = await ChainFixture.start();
  onTestFinished(() => fixture.close());
  const firstLineage = await publishLineage(fixture, await compileModule(ENCLAVE));
  const id = `0x${'c'.repeat(64)}`;
  const config = {
    id,
    enclavePackage: firstLineage.packageId,
    application: `${firstLineage.packageId}::enclave::APP`,
  };
  const emit = (packageId: string, name: string) =>
    send(fixture, (tx) => {
      tx.moveCall({ target: `${packageId}::enclave::${name}`, arguments: [tx.pure.id(id)] });
    });
  const client = new SuiGrpcClient({ network: 'custom', baseUrl: fixture.node.url });
  const { signal } = new AbortController();
  const names = async () => (await readHistory(client, config, signal))?.map(({ name }) => name);
  await emit(firstLineage.packageId, 'retire');
  expect(await names()).toEqual(['ConfigRetired']);
  const secondLineage = await upgradeLineage(fixture, firstLineage, await compileModule(ENCLAVE_2));
  await emit(secondLineage.packageId, 'migrate');
  await emit(secondLineage.packageId, 'retire');
  await emit(secondLineage.packageId, 'migrate');
  const inOrder = ['ConfigMigrated', 'ConfigRetired', 'ConfigMigrated', 'ConfigRetired'];
  expect(await names()).toEqual(inOrder);
});
