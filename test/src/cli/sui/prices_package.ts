/** Compiles `move/enclave` and `move/feed` together with the module `prices` of `test/fixtures/move`. */
import { readFileSync } from 'node:fs';
import { dumpMovePackage, initMovePackageBuilder } from '@zktx.io/sui-move-builder/full';
import { compileForPublishing } from '../../../../src/toolchain/move/bytecode.ts';
import { chooseFramework } from '../../../../src/toolchain/move/packages.ts';

const PRICES = readFileSync(new URL('../../../fixtures/move/prices.move', import.meta.url), 'utf8');
const MANIFEST = `[package]
name = "app"
edition = "2024"

[dependencies]
enclave = { local = "../enclave" }
feed = { local = "../feed" }

[addresses]
app = "0x0"
`;

/** Returns the bytecode of all their modules, as one package. */
export async function pricesModules(): Promise<readonly Uint8Array[]> {
  const framework = chooseFramework({});
  const { modules } = await compileForPublishing('feed', framework, 'devnet', { again: true });
  await initMovePackageBuilder();
  const prices = await dumpMovePackage({
    files: { 'Move.toml': MANIFEST, 'sources/prices.move': PRICES },
    fetcher: framework.fetcher,
    network: 'devnet',
    ansiColor: false,
    silenceWarnings: true,
    withUnpublishedDependencies: true,
  });
  if ('error' in prices) throw new Error(prices.error);
  return [...modules, ...prices.modules].map((module) => Buffer.from(module, 'base64'));
}
