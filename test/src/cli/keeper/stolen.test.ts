/**
 * Tests SECURITY.md's statements about a stolen keeper: its thief can register genuine enclaves of the
 * present image, and can do nothing else.
 */
import { writeFileSync } from 'node:fs';
import { Transaction } from '@mysten/sui/transactions';
import { fromHex } from '@mysten/sui/utils';
import { expect, onTestFinished, test } from 'vitest';
import { Chain } from '../../../../src/cli/sui/chain.ts';
import { connect } from '../../../../src/cli/sui/network.ts';
import { iterateEvents, readConfig, registerEnclaveAsRegistrar } from '../../../../src/library/sui/index.ts';
import { startServer } from '../../server/support.ts';
import { ofConfig, PACKAGE } from '../sui/chain_fixture.ts';
import { script } from '../sui/run_script.ts';
import { KeeperFixture } from './keeper_fixture.ts';

test('a stolen keeper can only register genuine enclaves of the present image, until it is revoked', async () => {
  const fixture = await KeeperFixture.start();
  onTestFinished(() => fixture.close());
  const { chain, configId, capId, operator } = fixture;
  const { client } = connect(undefined, chain.node.url);
  const application = `${PACKAGE}::weather::WEATHER`;
  const env = { SUI_PRIVATE_KEY: operator.key.getSecretKey() };
  const ourServer = await startServer({ nsm: chain.nsm });
  const ownEnclave = await chain.register(configId, capId, ourServer.url);
  const files = ['--root', chain.file('root.pem'), '--pcrs'];
  writeFileSync(chain.file('dice.pcrs'), chain.createNsm('dice').pcrsFile());

  /** Registers the enclave at a URL as a thief would, without the checks of this project. */
  async function register(url: string): Promise<void> {
    const { attestation } = (await (await fetch(`${url}/get_attestation`)).json()) as { attestation: string };
    const tx = new Transaction();
    const { registrar: registrarId } = operator;
    const call = { enclavePackage: PACKAGE, application, configId, registrarId };
    registerEnclaveAsRegistrar(tx, { ...call, attestation: fromHex(attestation) });
    await new Chain({ 'rpc-url': chain.node.url }, env).submit(tx, { title: '', fields: {} });
  }

  // On a host of the thief, the same image is as genuine as on our host.
  const thiefServer = await startServer({ nsm: chain.nsm });
  await register(thiefServer.url);
  expect(await fixture.ids()).toHaveLength(2);

  // The chain refuses another image.
  const otherImageServer = await startServer({ nsm: chain.createNsm('other') });
  await expect(register(otherImageServer.url)).rejects.toMatchObject({ abort: 'enclave::EInvalidPCRs' });

  // The key can change nothing else: the node refuses objects that another address owns.
  const sentBefore = fixture.sent;
  for (const [name = '', ...args] of [
    ['destroy_enclave', '--enclave-package', PACKAGE, ownEnclave],
    ['update_pcrs', ...ofConfig(configId), '--pcrs', chain.file('other.pcrs')],
    ['update_config', ...ofConfig(configId), '--name', 'mine'],
    ['rotate', ...ofConfig(configId), thiefServer.url, '--again', ...files, chain.file('dev.pcrs')],
    ['retire_config', ...ofConfig(configId), '--yes'],
    ['add_registrar', ...ofConfig(configId), operator.key.toSuiAddress()],
    ['revoke_registrar', ...ofConfig(configId), operator.registrar],
  ]) {
    const { exit, json } = await script(name, [...args, '--rpc-url', chain.node.url, '--json'], env);
    expect([exit, json()], name).toMatchObject([
      1,
      { status: 'failed', error: expect.stringContaining('is owned by') },
    ]);
  }
  expect(fixture.sent).toBe(sentBefore);

  // The admin's response: revoke the registrar, and destroy the enclaves that it registered.
  await chain.done('revoke_registrar', ...ofConfig(configId), operator.registrar);
  const next = await startServer({ nsm: chain.nsm });
  await expect(register(next.url)).rejects.toMatchObject({ abort: 'enclave::ENotRegistrar' });
  expect((await readConfig(client, configId)).registrars).toEqual([]);
  for await (const { data } of iterateEvents(client, {
    enclavePackage: PACKAGE,
    name: 'EnclaveRegistered',
  })) {
    if (data.registeredBy === operator.registrar) await chain.destroy(data.enclaveId, configId, capId);
  }
  expect(await fixture.ids()).toEqual([ownEnclave]);
});
