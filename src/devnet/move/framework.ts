/** The stub of Sui's framework, as bytecode. */
import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { dumpMovePackage, initMovePackageBuilder } from '@zktx.io/sui-move-builder/full';
import type { Package } from '../packages.ts';

const STUB = new URL('../move_framework/', import.meta.url);
const MANIFEST =
  '[package]\nname = "framework"\nedition = "2024"\nimplicit-dependencies = false\n\n[addresses]\nstd = "0x1"\nsui = "0x2"\n';

let compiled: Promise<readonly Uint8Array[]> | undefined;

/** The modules of the standard library and of the framework. Compiles them the first time, for a second. */
export function frameworkModules(): Promise<readonly Uint8Array[]> {
  compiled ??= compile();
  return compiled;
}

let stub: Package | undefined;

/** The standard library and the framework, as one package. */
export async function frameworkPackage(): Promise<Package> {
  stub ??= { original: '', modules: await frameworkModules(), dependencies: [] };
  return stub;
}

async function compile(): Promise<Uint8Array[]> {
  await initMovePackageBuilder();
  const files = {
    ...sources('move-stdlib/sources/', 'sources/std/'),
    ...sources('sui-framework/sources/', 'sources/sui/'),
    'Move.toml': MANIFEST,
  };
  const result = await dumpMovePackage({
    files,
    network: 'testnet',
    ansiColor: false,
    silenceWarnings: true,
  });
  if ('error' in result) throw new Error(`the stub of Sui's framework does not compile: ${result.error}`);
  return result.modules.map((module) => Buffer.from(module, 'base64'));
}

function sources(path: string, prefix: string): Record<string, string> {
  const folder = new URL(path, STUB);
  const names = readdirSync(fileURLToPath(folder)).sort();
  return Object.fromEntries(
    names.map((name) => [prefix + name, readFileSync(new URL(name, folder), 'utf8')]),
  );
}
