/**
 * Tests SECURITY.md's statements about a stolen key of a poster: its thief spends the poster's gas and delays
 * values, and can do nothing else.
 */
import { Inputs, Transaction } from '@mysten/sui/transactions';
import { expect, test, vi } from 'vitest';
import { Chain } from '../../../../src/cli/sui/chain.ts';
import { ofConfig, PACKAGE } from '../sui/chain_fixture.ts';
import { script } from '../sui/run_script.ts';
import { MINUTE, PosterFixture, TARGET } from './poster_fixture.ts';

vi.setConfig({ testTimeout: 120_000 });

test("the thief of a poster's key can neither write a forged value nor change what the enclaves may do", async () => {
  const fixture = await PosterFixture.start();
  const { chain, configId, boardId } = fixture;
  const enclave = await fixture.enclave({ isRegistered: false });
  const enclaveId = await fixture.register(enclave);
  const poster = await fixture.poster([enclave]);
  const env = { SUI_PRIVATE_KEY: poster.key.getSecretKey() };

  // A value that no enclave signed, and one that an enclave signed for another time.
  const { body } = { body: { payload: { location: 'Oslo' } } };
  const answer = await fetch(`${enclave.url}/process_data`, { method: 'POST', body: JSON.stringify(body) });
  const { response, signature } = (await answer.json()) as {
    response: { timestamp_ms: string };
    signature: string;
  };
  const write = async (temperature: bigint, timestampMs: bigint) => {
    const tx = new Transaction();
    const shared = chain.node.ledger.objects.get(boardId)?.owner;
    if (shared?.kind !== 'shared') throw new Error('the board is not shared');
    const initialSharedVersion = `${shared.since}`;
    tx.moveCall({
      target: TARGET,
      typeArguments: [`${PACKAGE}::weather::WEATHER`],
      arguments: [
        tx.object(Inputs.SharedObjectRef({ objectId: boardId, mutable: true, initialSharedVersion })),
        tx.pure.string('Oslo'),
        tx.pure.u64(temperature),
        tx.pure.u64(timestampMs),
        tx.pure.vector('u8', Buffer.from(signature, 'hex')),
        tx.object(enclaveId),
        tx.object(configId),
        tx.object.clock(),
      ],
    });
    await new Chain({ 'rpc-url': chain.node.url }, env).submit(tx, { title: '', fields: {} });
  };
  const signedMs = BigInt(response.timestamp_ms);
  const forged = { abort: 'enclave::EInvalidSignature' };
  await expect(write(14n, signedMs)).rejects.toMatchObject(forged);
  await expect(write(13n, signedMs + 1n)).rejects.toMatchObject(forged);

  // The key owns no capability.
  for (const [name = '', ...args] of [
    ['destroy_enclave', '--enclave-package', PACKAGE, enclaveId],
    ['update_pcrs', ...ofConfig(configId), '--pcrs', chain.file('other.pcrs')],
    ['retire_config', ...ofConfig(configId), '--yes'],
    ['add_registrar', ...ofConfig(configId), poster.key.toSuiAddress()],
  ]) {
    const { exit } = await script(name, [...args, '--rpc-url', chain.node.url, '--json'], env);
    expect(exit, name).toBe(1);
  }
  expect(fixture.board().writes).toBe(0);

  // Without its gas, this poster stops. Another poster, with a key of its own, continues to write.
  const tx = new Transaction();
  tx.transferObjects([tx.gas], chain.address);
  await new Chain({ 'rpc-url': chain.node.url }, env).submit(tx, { title: '', fields: {} });
  expect(await poster.outcome()).toEqual([[], ['NO_GAS_COIN']]);
  fixture.pass(MINUTE, enclave);
  expect(await (await fixture.poster([enclave])).outcome()).toEqual([['posted'], []]);
});
