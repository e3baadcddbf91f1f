import { dumpMovePackage, initMovePackageBuilder } from '@zktx.io/sui-move-builder/full';
import { chooseFramework } from '../../../../src/toolchain/move/packages.ts';

/**
 * Compiles variants of the module `dice` in one build, since most of a build is spent on the framework. Each
 * variant is compiled at an address of its own. In the bytecode, 0x0 then replaces that address, as in an
 * unpublished module.
 *
 * @param sources each begins with `module dice::`
 */
export async function compileVariants(sources: readonly string[]): Promise<Uint8Array[]> {
  await initMovePackageBuilder();
  const addresses = sources.map((_, index) => `d1ce${String(index).padStart(60, '0')}`);
  const addressLines = addresses.map((address, index) => `variant${index} = "0x${address}"\n`).join('');
  const files = {
    'Move.toml': `[package]\nname = "dice"\nedition = "2024"\n\n[addresses]\n${addressLines}`,
    ...Object.fromEntries(
      sources.map((source, index) => [
        `sources/variant${index}.move`,
        source.replace(/^module dice::/, `module variant${index}::`),
      ]),
    ),
  };
  const { fetcher } = chooseFramework({});
  const compiled = await dumpMovePackage({ files, fetcher, network: 'testnet', silenceWarnings: true });
  if ('error' in compiled) throw new Error(compiled.error);
  const modules = compiled.modules.map((module) => Buffer.from(module, 'base64'));
  return addresses.map((hex) => {
    const address = Buffer.from(hex, 'hex');
    const module = modules.find((bytes) => bytes.includes(address));
    if (module === undefined) throw new Error(`nothing was compiled for ${hex}`);
    module.fill(0, module.indexOf(address), module.indexOf(address) + address.length);
    if (module.includes(address)) throw new Error(`${hex} occurs twice`);
    return new Uint8Array(module);
  });
}
