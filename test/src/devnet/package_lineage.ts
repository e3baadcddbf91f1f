/** Publishes and upgrades packages on the model of a Sui node. */
import { Transaction } from '@mysten/sui/transactions';
import { normalizeSuiAddress } from '@mysten/sui/utils';
import { dumpMovePackage, initMovePackageBuilder } from '@zktx.io/sui-move-builder/full';
import { Chain, type Executed } from '../../../src/cli/sui/chain.ts';
import { readModule } from '../../../src/devnet/bytecode/module_bytecode.ts';
import { packageDigest } from '../../../src/devnet/bytecode/package_digest.ts';
import { publishPackage, upgradePackage } from '../../../src/library/sui/index.ts';
import { chooseFramework } from '../../../src/toolchain/move/packages.ts';
import type { ChainFixture } from '../cli/sui/chain_fixture.ts';
import { weatherModules } from './weather_package.ts';

const FRAMEWORK = ['0x1', '0x2'].map((id) => normalizeSuiAddress(id));

/** A package in its latest version. */
export interface Lineage {
  readonly packageId: string;
  readonly upgradeCap: string;
  /** Objects that the last publication or upgrade created. */
  readonly created: Executed['created'];
}

/** Returns the modules of `move/enclave`, for a package that contains them itself. */
export async function enclaveModules(): Promise<readonly Uint8Array[]> {
  return (await weatherModules()).filter((module) => readModule(module).name !== 'weather');
}

/**
 * Compiles one module of the address `own`. If it names the address `enclave`, its package must contain
 * `move/enclave` too.
 */
export async function compileModule(source: string): Promise<readonly Uint8Array[]> {
  await initMovePackageBuilder();
  const dependency = source.includes('enclave::enclave::')
    ? '\n[dependencies]\nenclave = { local = "../enclave" }\n'
    : '';
  const files = {
    'Move.toml': `[package]
name = "own"
edition = "2024"
${dependency}
[addresses]
own = "0x0"
`,
    'sources/own.move': source,
  };
  const { fetcher } = chooseFramework({});
  const options = { network: 'devnet', silenceWarnings: true, withUnpublishedDependencies: true } as const;
  const compiled = await dumpMovePackage({ files, fetcher, ...options });
  if ('error' in compiled) throw new Error(compiled.error);
  return compiled.modules.map((module) => Uint8Array.from(Buffer.from(module, 'base64')));
}

/** Sends a transaction of the fixture's admin. */
export async function send(fixture: ChainFixture, build: (tx: Transaction) => void): Promise<Executed> {
  const chain = new Chain({ 'rpc-url': fixture.node.url }, { SUI_PRIVATE_KEY: fixture.admin.getSecretKey() });
  const tx = new Transaction();
  build(tx);
  const executions: Executed[] = [];
  await chain.submit(tx, {
    title: '',
    fields: {},
    report(executed) {
      executions.push(executed);
      return {};
    },
  });
  const [executed] = executions;
  if (executed === undefined) throw new Error('nothing was sent');
  return executed;
}

export async function publishLineage(
  fixture: ChainFixture,
  modules: readonly Uint8Array[],
): Promise<Lineage> {
  const { packageId = '', created } = await send(fixture, (tx) =>
    publishPackage(tx, { ...createBytecode(modules), owner: fixture.address }),
  );
  const upgradeCap = created.find(({ type }) => type.endsWith('::package::UpgradeCap'))?.id ?? '';
  return { packageId, upgradeCap, created };
}

export async function upgradeLineage(
  fixture: ChainFixture,
  { packageId: before, upgradeCap }: Lineage,
  modules: readonly Uint8Array[],
): Promise<Lineage> {
  const { packageId = '', created } = await send(fixture, (tx) =>
    upgradePackage(tx, {
      ...createBytecode(modules),
      upgradeCapId: upgradeCap,
      packageId: before,
      digest: packageDigest(modules, FRAMEWORK),
      policy: 0,
    }),
  );
  return { packageId, upgradeCap, created };
}

function createBytecode(modules: readonly Uint8Array[]) {
  return {
    modules: modules.map((module) => Buffer.from(module).toString('base64')),
    dependencies: FRAMEWORK,
  };
}
