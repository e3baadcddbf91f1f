/**
 * Checks which modules a page loads with the wallet's entries, including later chunks, and that the wallet
 * adds nothing to the bundles of other entries.
 */
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';
import { rolldown } from 'rolldown';
import { expect, test } from 'vitest';

const LIBRARY = fileURLToPath(new URL('../../../../src/library/', import.meta.url));

async function createBundle(entry: string): Promise<{ modules: string[]; size: number; foreign: string[] }> {
  const warnings: string[] = [];
  const bundle = await rolldown({
    input: `${LIBRARY}${entry}`,
    platform: 'browser',
    onLog: (_, { message }) => warnings.push(message),
  });
  const { output } = await bundle.generate({ format: 'esm', minify: true });
  await bundle.close();
  expect(warnings).toEqual([]);
  const chunks = output.filter((chunk) => chunk.type === 'chunk');
  const chunkNames = chunks.map(({ fileName }) => fileName);
  const shortenId = (id: string) => id.replace(LIBRARY, '').replace(/^.*\/node_modules\//, '');
  return {
    modules: chunks.flatMap(({ moduleIds }) => moduleIds.map(shortenId)),
    size: chunks.reduce((sum, { code }) => sum + gzipSync(code, { level: 9 }).length, 0),
    foreign: chunks.flatMap(({ imports }) => imports).filter((name) => !chunkNames.includes(name)),
  };
}

test('the redirect page loads less than 1.5 KB, and neither the wallet nor zkLogin', async () => {
  const { modules, size } = await createBundle('wallet/redirect.ts');
  expect(modules.sort()).toEqual(['wallet/handover.ts', 'wallet/redirect.ts']);
  expect(size).toBeLessThan(1500);
});

test('the wallet adds less than 20 KB to zkLogin, and its bundle has neither modules of Node nor command-line packages', async () => {
  const [wallet, zklogin] = [await createBundle('wallet/index.ts'), await createBundle('zklogin/index.ts')];
  expect(wallet.foreign).toEqual([]);
  expect(wallet.size - zklogin.size).toBeLessThan(20_000);
  expect(wallet.modules).toContain('wallet/wallet.ts');
  expect(wallet.modules.filter((id) => /^(@wallet-standard\/errors|chalk|commander)\//.test(id))).toEqual([]);
});

test.each(['attestation', 'client', 'sui', 'zklogin'])(
  'the entry %s loads nothing of the wallet',
  async (entry) => {
    const { modules } = await createBundle(`${entry}/index.ts`);
    expect(modules).toContain(`${entry}/errors.ts`);
    expect(modules.filter((id) => /^wallet\/|wallet-standard/.test(id))).toEqual([]);
  },
);
