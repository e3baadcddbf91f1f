/**
 * Runs a config and its enclave through all their states, command by command, with the refusals of each
 * state.
 */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { ChainFixture, ofApplication, ofConfig, TESTNET_CHAIN } from '../src/cli/sui/chain_fixture.ts';
import { scriptProcess } from '../src/cli/sui/run_script.ts';
import { startWeather } from '../src/server/support.ts';

let fixture: ChainFixture;
beforeAll(async () => {
  fixture = await ChainFixture.start(scriptProcess);
});
afterAll(() => fixture.close());

const ID = expect.stringMatching(/^0x[0-9a-f]{64}$/);

test('a config and its enclave pass through every state, from publishing move/ to the next image', async () => {
  const { node, nsm } = fixture;
  node.chainId = TESTNET_CHAIN;
  const { server } = await startWeather({ nsm });
  const root = ['--root', fixture.file('root.pem')];

  // Publish.
  const key = { SUI_PRIVATE_KEY: fixture.admin.getSecretKey(), SUI_FRAMEWORK_DIR: fixture.framework() };
  const networkArgs = ['--network', 'testnet', '--rpc-url', node.url];
  const publishing = await scriptProcess(
    'publish',
    ['weather', ...networkArgs, '--published', fixture.file('Published.toml'), '--json'],
    key,
  );
  expect(publishing.exit, publishing.out + publishing.err).toBe(0);
  const published = publishing.json();
  const packageId = published['package'] as string;
  expect(published).toMatchObject({
    status: 'done',
    package: ID,
    upgradeCap: ID,
    enclaveCaps: [{ id: ID, type: `${packageId}::enclave::EnclaveCap<${packageId}::weather::WEATHER>` }],
    modules: 6,
  });
  expect(
    node.executor.published[0]?.map((module) =>
      /pcrs|enclave|source|weather/.test(Buffer.from(module).toString('latin1')),
    ),
  ).toEqual(Array(6).fill(true));

  // Create a config. The command finds its capability by the owner of the capability.
  const app = [packageId, 'weather', 'WEATHER'] as const;
  const config = await fixture.done(
    'create_config',
    ...ofApplication(packageId, packageId, 'weather', 'WEATHER'),
    'weather',
    '--pcrs',
    fixture.file('dev.pcrs'),
  );
  const configId = config['config'] as string;
  expect(config).toMatchObject({ status: 'done', config: ID, configVersion: 0, name: 'weather' });

  // Register an enclave. The second time, nothing is sent.
  const registerArgs = [packageId, packageId, configId, server.url, 'weather', 'WEATHER', ...root];
  const registered = await fixture.done('register_enclave', ...registerArgs);
  const enclaveId = registered['enclave'] as string;
  expect(registered).toMatchObject({ status: 'done', enclave: ID, configVersion: '0', config: configId });
  expect(node.ledger.objects.has(enclaveId)).toBe(true);
  const sent = node.ledger.executed.length;
  expect(await fixture.done('register_enclave', ...registerArgs)).toMatchObject({
    status: 'unchanged',
    enclave: enclaveId,
  });
  expect(node.ledger.executed).toHaveLength(sent);

  // Submit a reading: first the command requests it and verifies it, then the test requests it.
  const minted = await fixture.done(
    'update_weather',
    ...app,
    enclaveId,
    '--from-url',
    server.url,
    '--location',
    'San Francisco',
    ...root,
  );
  expect(minted).toMatchObject({ status: 'done', nft: ID, location: 'San Francisco' });
  expect(node.ledger.objects.get(minted['nft'] as string)?.owner).toEqual({
    kind: 'address',
    address: fixture.address,
  });
  const answer = (await (await server.post('/process_data', { payload: { location: 'Zürich' } })).json()) as {
    response: { timestamp_ms: number; data: { location: string; temperature: number } };
    signature: string;
  };
  const { timestamp_ms, data } = answer.response;
  const byHand = await fixture.done(
    'update_weather',
    ...app,
    enclaveId,
    answer.signature,
    String(timestamp_ms),
    data.location,
    String(data.temperature),
  );
  expect(byHand).toMatchObject({ status: 'done', nft: ID, location: 'Zürich' });

  // Print the status.
  expect(await fixture.done('status', '--config', configId, server.url, ...root)).toMatchObject({
    config: { id: configId, configVersion: '0', application: `${packageId}::weather::WEATHER` },
    enclaves: [{ id: enclaveId, configVersion: '0', stale: false }],
    destroyed: [],
    answering: [{ trusted: true, registration: 'registered', enclave: enclaveId }],
  });

  // Rotate: the enclave of the former image becomes stale, and its signatures are refused with an
  // explanation.
  expect(
    await fixture.done('update_pcrs', ...ofConfig(configId, packageId), '--pcrs', fixture.file('dev.pcrs')),
  ).toMatchObject({ status: 'unchanged' });
  expect(
    await fixture.done('update_pcrs', ...ofConfig(configId, packageId), '--pcrs', fixture.file('other.pcrs')),
  ).toMatchObject({ status: 'done', configVersion: '1' });
  const stale = await fixture.run(
    'update_weather',
    ...app,
    enclaveId,
    answer.signature,
    String(timestamp_ms),
    data.location,
    String(data.temperature),
  );
  expect(stale.exit).toBe(1);
  expect(stale.json()).toMatchObject({
    status: 'failed',
    code: 'SUI_MOVE_ABORT',
    error: expect.stringContaining('the enclave is stale'),
  });
  const laterStatus = await fixture.run('status', '--config', configId, server.url, ...root);
  expect(laterStatus.exit).toBe(1);
  expect(laterStatus.json()).toMatchObject({
    enclaves: [{ stale: true }],
    answering: [{ trusted: false, code: 'POLICY_PCRS' }],
  });
  const refused = await fixture.run('register_enclave', ...registerArgs);
  expect(refused.exit).toBe(1);
  expect(refused.json()).toMatchObject({ code: 'POLICY_PCRS' });

  // Destroy: anyone may destroy a stale enclave, here without the capability.
  const destroyed = await fixture.done('destroy_enclave', '--enclave-package', packageId, enclaveId);
  expect(destroyed).not.toHaveProperty('capability');
  expect(node.ledger.objects.has(enclaveId)).toBe(false);
  expect(await fixture.done('status', '--config', configId)).toMatchObject({
    enclaves: [],
    destroyed: [enclaveId],
  });
}, 120_000);
