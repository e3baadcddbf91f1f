/** Tests publish and upgrade against a loopback node, and the content of Published.toml. */
import { existsSync, readFileSync } from 'node:fs';
import { fromBase58, normalizeStructTag, toBase58 } from '@mysten/sui/utils';
import { dumpMovePackage } from '@zktx.io/sui-move-builder/full';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { Chain } from '../../../../src/cli/sui/chain.ts';
import { findLinkedEnclave, sortCreatedObjects } from '../../../../src/cli/sui/publish.ts';
import { upgradeCapIn, withPublication } from '../../../../src/cli/sui/published.ts';
import { chooseFramework } from '../../../../src/toolchain/move/packages.ts';
import {
  compileModule,
  enclaveModules,
  publishLineage,
  upgradeLineage,
} from '../../devnet/package_lineage.ts';
import { ChainFixture, TESTNET_CHAIN } from './chain_fixture.ts';
import { script } from './run_script.ts';

let fixture: ChainFixture;
let publishedPath: string;
beforeEach(async () => {
  fixture = await ChainFixture.start();
  fixture.node.chainId = TESTNET_CHAIN;
  publishedPath = fixture.file('Published.toml');
});
afterEach(() => fixture.close());

async function run(name: string, ...args: string[]) {
  const env = {
    SUI_PRIVATE_KEY: fixture.admin.getSecretKey(),
    SUI_FRAMEWORK_DIR: fixture.framework(),
    DEPLOYMENTS: fixture.file('deployments'),
  };
  const nodeOptions = [
    '--network',
    'testnet',
    '--rpc-url',
    fixture.node.url,
    '--published',
    publishedPath,
    '--json',
  ];
  return await script(name, ['weather', ...args, ...nodeOptions], env);
}

/** Replaces the modules of a package on the node. */
function putModules(id: string, modules: readonly Uint8Array[]): void {
  const { packages } = fixture.node.ledger;
  packages.set(id, { original: id, dependencies: [], modules });
}

async function publish(...args: string[]): Promise<Record<string, unknown>> {
  const { exit, out, err, json } = await run('publish', ...args);
  expect(exit, out + err).toBe(0);
  return json();
}

describe('publish', () => {
  test('sorts the created objects into capabilities and the objects of init', () => {
    const [cap, upgradeCap, board] = [
      { id: '0x1', type: '0x9::enclave::EnclaveCap<0x9::tides::TIDES>' },
      { id: '0x2', type: '0x2::package::UpgradeCap' },
      { id: '0x3', type: '0x9::tides::Board' },
    ];
    expect(sortCreatedObjects([cap, upgradeCap, board])).toEqual({
      upgradeCap: '0x2',
      enclaveCaps: [cap],
      objects: [board],
    });
  });

  test('finds the version of move/enclave that the package links to, which may be later than that of its types', {
    timeout: 60_000,
  }, async () => {
    const enclave = await publishLineage(fixture, await enclaveModules());
    const { packageId } = await upgradeLineage(fixture, enclave, await enclaveModules());
    const app = await publishLineage(fixture, await compileModule('module own::app;'));
    const chain = new Chain({ 'rpc-url': fixture.node.url }, {});
    const dependencies = ['0x1', '0x2', app.packageId, packageId];
    expect(await findLinkedEnclave(chain, dependencies)).toBe(packageId);
    expect(await findLinkedEnclave(chain, dependencies.slice(0, 3))).toBeUndefined();
  });

  test('records the package in Published.toml, which the compiler and the Sui CLI read', async () => {
    const { package: id, upgradeCap, notes } = await publish();
    expect(readFileSync(publishedPath, 'utf8')).toContain(`[published.testnet]
chain-id = "4c78adac"
published-at = "${id}"
original-id = "${id}"
version = 1
build-config = { flavor = "sui", edition = "2024" }
upgrade-capability = "${upgradeCap}"
`);
    expect(notes).toContainEqual(expect.stringContaining('commit that file'));
  });

  test('with --immutable leaves no capability to upgrade the package', async () => {
    const { upgradeCap, immutable } = await publish('--immutable');
    expect([upgradeCap, immutable]).toEqual([null, true]);
    const type = normalizeStructTag('0x2::package::UpgradeCap');
    expect(fixture.node.ledger.owned(fixture.address).map((object) => object.type)).not.toContain(type);
    expect(readFileSync(publishedPath, 'utf8')).not.toContain('upgrade-capability');
  });

  test("sends nothing if the node's chain is not that of --network, not even with --again", async () => {
    fixture.node.chainId = toBase58(new Uint8Array(32).fill(1));
    for (const args of [[], ['--again'], ['--again', '--immutable']]) {
      const { exit, json } = await run('publish', ...args);
      expect(exit).toBe(2);
      expect(json()).toMatchObject({
        code: 'DEPLOYMENT',
        error: expect.stringContaining(
          'the chain of testnet is 4c78adac, but the chain of the node is 01010101',
        ),
      });
    }
    expect(fixture.node.calls).not.toContain('ExecuteTransaction');
    expect(existsSync(publishedPath)).toBe(false);
  });

  test('succeeds even if the package can not be recorded', async () => {
    publishedPath = fixture.file('no/such/folder/Published.toml');
    const { status, notes, package: id } = await publish();
    expect(status).toBe('done');
    expect(id).toMatch(/^0x/);
    expect(notes).toContainEqual(expect.stringContaining('was not written: ENOENT'));
  });
});

describe('upgrade', () => {
  test('replaces the package, whose types keep their ids, and records its new version', async () => {
    const { package: first, upgradeCap } = await publish();
    const upgraded = await run('upgrade');
    expect(upgraded.json()).toMatchObject({
      status: 'done',
      before: first,
      original: first,
      version: '2',
      policy: 'compatible',
      upgradeCap,
    });
    const second = upgraded.json()['package'] as string;
    expect(second).not.toBe(first);
    expect(fixture.node.ledger.packages.get(second)?.original).toBe(first);
    const text = readFileSync(publishedPath, 'utf8');
    expect(text).toContain(`published-at = "${second}"\noriginal-id = "${first}"\nversion = 2\n`);
    expect(text.match(/\[published/g)).toHaveLength(1);
    // Upgrades again, with --upgrade-cap.
    const third = (await run('upgrade', '--upgrade-cap', upgradeCap as string)).json();
    expect(third).toMatchObject({ before: second, original: first, version: '3' });
  });

  test("sends nothing if the node's chain is not that of --network, not even with --upgrade-cap", async () => {
    const { upgradeCap } = await publish();
    const sentCalls = fixture.node.calls.filter((name) => name === 'ExecuteTransaction');
    fixture.node.chainId = toBase58(new Uint8Array(32).fill(1));
    for (const args of [[], ['--upgrade-cap', upgradeCap as string]]) {
      expect((await run('upgrade', ...args)).json()).toMatchObject({ code: 'DEPLOYMENT' });
    }
    expect(fixture.node.calls.filter((name) => name === 'ExecuteTransaction')).toEqual(sentCalls);
  });

  test('is not sent if it would break packages that depend on this package', async () => {
    const { package: id } = await publish();
    const files = {
      'Move.toml': '[package]\nname = "dice"\nedition = "2024"\n',
      'sources/weather.move': 'module dice::weather;\npublic fun forecast(): u64 { 1 }\n',
      'sources/tide.move': 'module dice::tide;\npublic fun height(): u64 { 1 }\n',
    };
    const { fetcher } = chooseFramework({});
    const compiled = await dumpMovePackage({ files, fetcher, network: 'testnet', silenceWarnings: true });
    if ('error' in compiled) throw new Error(compiled.error);
    const otherModules = compiled.modules.map((module) => new Uint8Array(Buffer.from(module, 'base64')));
    putModules(id as string, otherModules);
    const executedCount = fixture.node.ledger.executed.length;
    const { exit, json } = await run('upgrade');
    expect(exit).toBe(1);
    expect(json()).toMatchObject({
      code: 'INCOMPATIBLE',
    });
    const { error } = json();
    expect(error).toContain('the public function weather::forecast is gone');
    expect(error).toContain('the module tide is gone');
    expect(fixture.node.ledger.executed).toHaveLength(executedCount);
    expect(fixture.node.calls.filter((name) => name === 'ExecuteTransaction')).toHaveLength(1);
  });

  test('is refused if the node sends no modules to compare with', async () => {
    const { package: id } = await publish();
    putModules(id as string, []);
    expect((await run('upgrade')).json()).toMatchObject({ code: 'SUI_NODE_ANSWER' });
  });

  test('needs the capability, from the file or by its option', async () => {
    expect((await run('upgrade')).json()).toMatchObject({
      code: 'USAGE',
      error: expect.stringContaining('give --upgrade-cap'),
    });
    const { enclaveCaps } = await publish();
    const [cap] = enclaveCaps as { id: string }[];
    expect((await run('upgrade', '--upgrade-cap', cap?.id ?? '')).json()).toMatchObject({
      code: 'SUI_OBJECT_TYPE',
    });
    expect((await run('upgrade', cap?.id ?? '')).json()).toMatchObject({
      code: 'USAGE',
      error: expect.stringContaining('Give ids by --upgrade-cap'),
    });
  });

  test('is refused if the bytecode was compiled against the stub of the framework', async () => {
    const args = [
      'weather',
      '--upgrade-cap',
      `0x${'c'.repeat(64)}`,
      '--network',
      'testnet',
      '--rpc-url',
      fixture.node.url,
      '--json',
    ];
    const { json } = await script('upgrade', args, { SUI_PRIVATE_KEY: fixture.admin.getSecretKey() });
    expect(json()).toMatchObject({ code: 'STUB_FRAMEWORK' });
  });
});

describe('Published.toml', () => {
  const id = (digit: string) => `0x${digit.repeat(64)}`;
  const publication = {
    chainId: '4c78adac',
    publishedAt: id('a'),
    originalId: id('b'),
    version: 1n,
    upgradeCap: id('c'),
  };

  test('keeps the sections of other networks, and all other content', () => {
    const first = withPublication('', 'testnet', publication);
    const both = withPublication(first, 'mainnet', { ...publication, upgradeCap: id('d') });
    expect(both.startsWith(first.trimEnd())).toBe(true);
    expect(upgradeCapIn(both, 'testnet')).toBe(id('c'));
    expect(upgradeCapIn(both, 'mainnet')).toBe(id('d'));
    const next = withPublication(both, 'testnet', { ...publication, version: 2n, upgradeCap: null });
    expect(upgradeCapIn(next, 'testnet')).toBeUndefined();
    expect(upgradeCapIn(next, 'mainnet')).toBe(id('d'));
    expect(next.match(/\[published\.\w+\]/g)?.sort()).toEqual(['[published.mainnet]', '[published.testnet]']);
    expect(next.match(/^# Ids of this package/gm)).toHaveLength(1);
  });

  test('that the Sui CLI wrote is understood', () => {
    const cli = `# Generated by Move\n\n[published.mainnet]\nchain-id = "35834a8a"\nupgrade-capability = "${id('d')}"\n\n[published.testnet]\nchain-id = "4c78adac"\nupgrade-capability = "${id('e')}"\n`;
    expect(upgradeCapIn(cli, 'mainnet')).toBe(id('d'));
    expect(upgradeCapIn(cli, 'testnet')).toBe(id('e'));
    expect(upgradeCapIn(cli, 'devnet')).toBeUndefined();
    const changed = withPublication(cli, 'mainnet', publication);
    expect(changed.startsWith('# Generated by Move\n')).toBe(true);
    expect(upgradeCapIn(changed, 'mainnet')).toBe(id('c'));
    expect(upgradeCapIn(changed, 'testnet')).toBe(id('e'));
  });

  test("has chain ids that are the first four bytes of the digest of each network's first checkpoint", () => {
    const digests = {
      mainnet: '4btiuiMPvEENsttpZC7CZ53DruC3MAgfznDbASZ7DR6S',
      testnet: '69WiPg3DAQiwdxfncX6wYQ2siKwAe6L9BZthQea3JNMD',
    };
    const source = readFileSync(new URL('../../../../src/cli/sui/network.ts', import.meta.url), 'utf8');
    for (const [network, digest] of Object.entries(digests)) {
      const chainId = Buffer.from(fromBase58(digest).slice(0, 4)).toString('hex');
      expect(source).toContain(`${network}: '${chainId}'`);
    }
  });
});
