/** Loads the stub of Sui's framework from its bytecode. */
import type { Package } from '../packages.ts';
import { FRAMEWORK_MODULES } from './framework_modules.ts';

let stub: Package | undefined;

/** Returns the standard library and the framework together as one package. */
export function frameworkPackage(): Package {
  stub ??= { original: '', modules: decode(FRAMEWORK_MODULES), dependencies: [] };
  return stub;
}

function decode(modules: readonly string[]): Uint8Array[] {
  return modules.map((module) => Buffer.from(module, 'base64'));
}
