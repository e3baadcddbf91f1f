/** Checks that the bytecode of the stub of Sui's framework is the compiler's output for its sources. */
import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { dumpMovePackage, initMovePackageBuilder } from '@zktx.io/sui-move-builder/full';
import { expect, test } from 'vitest';

const DEVNET = new URL('../../../../src/devnet/', import.meta.url);
const MANIFEST =
  '[package]\nname = "framework"\nedition = "2024"\nimplicit-dependencies = false\n\n[addresses]\nstd = "0x1"\nsui = "0x2"\n';

function sources(path: string, prefix: string): Record<string, string> {
  const folder = new URL(`move_framework/${path}`, DEVNET);
  return Object.fromEntries(
    readdirSync(folder)
      .sort()
      .map((name) => [prefix + name, readFileSync(new URL(name, folder), 'utf8')]),
  );
}

test('src/devnet/move/framework_modules.ts is up to date', async () => {
  await initMovePackageBuilder();
  const files = {
    ...sources('move-stdlib/sources/', 'sources/std/'),
    ...sources('sui-framework/sources/', 'sources/sui/'),
    'Move.toml': MANIFEST,
  };
  const compiled = await dumpMovePackage({
    files,
    network: 'testnet',
    ansiColor: false,
    silenceWarnings: true,
  });
  if ('error' in compiled) throw new Error(compiled.error);
  // Each line has at most 100 characters. A decoder of Base64 skips the newlines.
  const wrap = (module: string) => module.match(/.{1,100}/g)?.join('\n') ?? '';
  const modules = compiled.modules.map((module) => `  \`\n${wrap(module)}\n\`,\n`).join('');
  const header =
    '/** Generated: `npm test -- test/src/devnet/move/framework.test.ts -u`. Each is a module in Base64. */';
  const text = `${header}\nexport const FRAMEWORK_MODULES: readonly string[] = [\n${modules}];\n`;
  const path = fileURLToPath(new URL('move/framework_modules.ts', DEVNET));
  await expect(text).toMatchFileSnapshot(path);
});
