/** The package of `move/weather` with the module `board` of `test/fixtures/move`, compiled once. */
import { readFileSync } from 'node:fs';
import { dumpMovePackage, initMovePackageBuilder } from '@zktx.io/sui-move-builder/full';
import { readModule } from '../../../../src/devnet/bytecode/module_bytecode.ts';
import { chooseFramework, sourcesForDependents } from '../../../../src/toolchain/move/packages.ts';
import { weatherModules } from '../../devnet/weather_package.ts';

const BOARD = readFileSync(new URL('../../../fixtures/move/board.move', import.meta.url), 'utf8');

let compiled: Promise<readonly Uint8Array[]> | undefined;

export function boardModules(): Promise<readonly Uint8Array[]> {
  compiled ??= compile();
  return compiled;
}

async function compile(): Promise<readonly Uint8Array[]> {
  const weather = await weatherModules();
  await initMovePackageBuilder();
  const { 'Published.toml': _published, ...sources } = sourcesForDependents('weather');
  const dump = await dumpMovePackage({
    files: { ...sources, 'sources/board.move': BOARD },
    fetcher: chooseFramework({}).fetcher,
    network: 'devnet',
    ansiColor: false,
    withUnpublishedDependencies: true,
  });
  if ('error' in dump) throw new Error(dump.error);
  const board = dump.modules
    .map((module) => new Uint8Array(Buffer.from(module, 'base64')))
    .find((module) => readModule(module, '0x0').name === 'board');
  if (board === undefined) throw new Error('the compiler made no module board');
  return [...weather, board];
}
