/** Tests that commands which send secrets refuse a config that a deployment file or the chain calls open. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { SuiGrpcClient } from '@mysten/sui/grpc';
import { Transaction } from '@mysten/sui/transactions';
import { fromBase58 } from '@mysten/sui/utils';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { ROLLOUT_MEMORY } from '../../../../src/cli/places.ts';
import {
  type ConfigOptions,
  checkConfigOptions,
  requireNoOpenConfig,
} from '../../../../src/cli/provision/open_config.ts';
import { openMemory } from '../../../../src/cli/rollout/memory.ts';
import {
  applicationType,
  buildTransaction,
  createEnclaveConfig,
  parsePcrs,
  sendTransaction,
} from '../../../../src/library/sui/index.ts';
import { newProvisioner, nsm, startVault, VALUES } from '../../server/provisioner.ts';
import { callScript } from '../run.ts';
import { ChainFixture, PACKAGE } from '../sui/chain_fixture.ts';

let fixture: ChainFixture;
let folder: string;
let openId: string;
let closedId: string;
let chainId: string;
beforeAll(async () => {
  fixture = await ChainFixture.start();
  const capId = fixture.publish();
  closedId = await fixture.config(capId);
  openId = await createOpenConfig(capId);
  const client = new SuiGrpcClient({ network: 'custom', baseUrl: fixture.node.url });
  const { chainIdentifier } = await client.core.getChainIdentifier();
  chainId = Buffer.from(fromBase58(chainIdentifier)).subarray(0, 4).toString('hex');
});
afterAll(() => fixture.close());
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'open-config-'));
  return () => rmSync(folder, { recursive: true });
});

async function createOpenConfig(capId: string): Promise<string> {
  const client = new SuiGrpcClient({ network: 'custom', baseUrl: fixture.node.url });
  const tx = new Transaction();
  createEnclaveConfig(tx, {
    enclavePackage: PACKAGE,
    application: applicationType(PACKAGE, 'weather', 'WEATHER'),
    capId,
    name: 'open',
    image: parsePcrs(fixture.nsm.pcrsFile()),
    isOpen: true,
  });
  tx.setSender(fixture.address);
  const bytes = await buildTransaction(client, tx);
  const { signature } = await fixture.admin.signTransaction(bytes);
  const include = { effects: true, objectTypes: true } as const;
  const { effects, objectTypes } = await sendTransaction(client, {
    transaction: bytes,
    signatures: [signature],
    include,
  });
  const ids = effects.changedObjects.map(({ objectId }) => objectId);
  return ids.find((id) => objectTypes[id]?.includes('::enclave::EnclaveConfig<')) ?? '';
}

type Config = { readonly id: string; readonly isOpen?: boolean };

/** Writes the deployment file of a network, with these applications. */
function deploy(network: string, applications: Readonly<Record<string, Config>>): void {
  const entries = Object.entries(applications).map(([name, config]) => [
    name,
    {
      package: PACKAGE,
      original: PACKAGE,
      module: 'weather',
      witness: 'WEATHER',
      config: { name, version: 0, ...config },
      registrars: [],
      enclaves: [],
    },
  ]);
  const content = { network, chain: chainId, applications: Object.fromEntries(entries) };
  writeFileSync(join(folder, `${network}.json`), JSON.stringify(content));
}

function check(options: Partial<ConfigOptions> = {}): Promise<void> {
  const defaults = { network: undefined, app: undefined, config: undefined, 'rpc-url': undefined };
  return requireNoOpenConfig({ ...defaults, ...options }, { DEPLOYMENTS: folder });
}

const onChain = () => ({ network: 'localnet', 'rpc-url': fixture.node.url }) as const;

test('files that rollouts keep beside the deployment files name no application', async () => {
  deploy('testnet', { weather: { id: closedId } });
  const memory = openMemory(join(folder, `testnet.weather${ROLLOUT_MEMORY}`), '1'.repeat(64));
  memory.remember({ switching: 1 });
  await check();
  await check({ app: 'weather' });
});

describe('secrets are refused', () => {
  test('if a deployment file of any network has an open config', async () => {
    deploy('testnet', { weather: { id: closedId } });
    await check();
    deploy('mainnet', { quotes: { id: openId, isOpen: true } });
    await expect(check()).rejects.toMatchObject({ code: 'CONFIG_OPEN', exit: 2 });
    await expect(check({ app: 'quotes' })).rejects.toMatchObject({ code: 'CONFIG_OPEN' });
    await check({ app: 'weather' });
  });

  test('if no file has the application of --app, which may be a mistake', async () => {
    await expect(check({ app: 'wether' })).rejects.toMatchObject({ code: 'DEPLOYMENT' });
    deploy('testnet', { weather: { id: closedId } });
    await expect(check({ app: 'wether' })).rejects.toMatchObject({ code: 'DEPLOYMENT' });
  });

  test('if a deployment file can not be read', async () => {
    writeFileSync(join(folder, 'testnet.json'), '{');
    await expect(check()).rejects.toMatchObject({ code: 'DEPLOYMENT' });
    rmSync(join(folder, 'testnet.json'));
    writeFileSync(join(folder, 'mainnet.json'), '{"network":"testnet"}');
    await expect(check()).rejects.toMatchObject({ code: 'DEPLOYMENT' });
    rmSync(join(folder, 'mainnet.json'));
    mkdirSync(join(folder, 'devnet.json'));
    await expect(check()).rejects.toMatchObject({ code: 'DEPLOYMENT' });
  });

  test('if the chain calls the config open, even though the file does not', async () => {
    deploy('localnet', { weather: { id: openId } });
    await check();
    await expect(check(onChain())).rejects.toMatchObject({ code: 'CONFIG_OPEN' });
    deploy('localnet', { weather: { id: closedId } });
    await check(onChain());
    await expect(check({ ...onChain(), config: openId })).rejects.toMatchObject({ code: 'CONFIG_OPEN' });
  });

  test('if the file calls the config open, even though the node does not', async () => {
    deploy('localnet', { weather: { id: closedId, isOpen: true } });
    await expect(check(onChain())).rejects.toMatchObject({ code: 'CONFIG_OPEN' });
  });

  test('if --network is passed, and nothing names the config', async () => {
    await expect(check(onChain())).rejects.toMatchObject({ code: 'DEPLOYMENT' });
    deploy('localnet', { weather: { id: closedId }, quotes: { id: openId } });
    await expect(check(onChain())).rejects.toMatchObject({ code: 'DEPLOYMENT' });
    await check({ ...onChain(), app: 'weather' });
  });

  test('if the node does not answer, has no such object, or serves another chain', async () => {
    deploy('localnet', { weather: { id: closedId } });
    const silent = check({ network: 'localnet', 'rpc-url': 'http://127.0.0.1:1' });
    await expect(silent).rejects.toMatchObject({ code: 'SUI_NODE_UNREACHABLE' });
    const missing = check({ ...onChain(), config: `0x${'9'.repeat(64)}` });
    await expect(missing).rejects.toMatchObject({ code: 'SUI_OBJECT_NOT_FOUND' });
    const clock = check({ ...onChain(), config: `0x${'6'.padStart(64, '0')}` });
    await expect(clock).rejects.toMatchObject({ code: 'SUI_OBJECT_TYPE' });
    chainId = '00000000';
    deploy('localnet', { weather: { id: closedId } });
    await expect(check(onChain())).rejects.toMatchObject({ code: 'DEPLOYMENT' });
  });
});

test('--config and --rpc-url are refused without --network, since they would have no effect', () => {
  const none = { network: undefined, app: undefined, config: undefined, 'rpc-url': undefined };
  expect(() => checkConfigOptions(none)).not.toThrow();
  expect(() => checkConfigOptions({ ...none, config: openId })).toThrow('need --network');
  expect(() => checkConfigOptions({ ...none, 'rpc-url': fixture.node.url })).toThrow('need --network');
});

test('provision sends nothing to an enclave of an application whose config is open', async () => {
  const me = newProvisioner();
  const server = await startVault({ provisioners: [me.hex] });
  const write = (name: string, content: string) => {
    writeFileSync(join(folder, name), content, { mode: 0o600 });
    return join(folder, name);
  };
  const args = [
    server.url,
    '--pcrs',
    write('dev.pcrs', nsm.pcrsFile()),
    '--root',
    write('root.pem', nsm.rootPem()),
    '--key',
    write('me.pem', me.privateKey.export({ type: 'pkcs8', format: 'pem' }).toString()),
    '--secrets',
    write('secrets', JSON.stringify(VALUES)),
  ];
  const env = { DEPLOYMENTS: folder };
  const networkOptions = ['--network', 'localnet', '--rpc-url', fixture.node.url, '--config', openId];
  for (const options of [networkOptions, []]) {
    if (options.length === 0) deploy('testnet', { vault: { id: openId, isOpen: true } });
    const { status, stderr } = await callScript('provision/provision.ts', [...args, ...options], { env });
    expect([status, stderr]).toEqual([2, expect.stringContaining('CONFIG_OPEN')]);
    expect((await server.get('/readyz')).status).toBe(503);
  }
  const silent = ['--network', 'localnet', '--rpc-url', 'http://127.0.0.1:1', '--config', closedId];
  rmSync(join(folder, 'testnet.json'));
  expect((await callScript('provision/provision.ts', [...args, ...silent], { env })).status).toBe(2);
  expect((await server.get('/readyz')).status).toBe(503);
  const closed = ['--network', 'localnet', '--rpc-url', fixture.node.url, '--config', closedId];
  expect((await callScript('provision/provision.ts', [...args, ...closed], { env })).status).toBe(0);
  expect((await server.get('/readyz')).status).toBe(200);
});
