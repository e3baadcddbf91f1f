/**
 * Compiles the package of `move/weather`, which contains `move/enclave`, once for all tests of a process.
 */
import { compileForPublishing } from '../../../src/toolchain/move/bytecode.ts';
import { chooseFramework } from '../../../src/toolchain/move/packages.ts';

let compiled: Promise<readonly Uint8Array[]> | undefined;

export function weatherModules(): Promise<readonly Uint8Array[]> {
  compiled ??= compileForPublishing('weather', chooseFramework({}), 'devnet', { again: true }).then(
    ({ modules }) => modules.map((module) => Buffer.from(module, 'base64')),
  );
  return compiled;
}
