/** A page loads few modules for one hook, and only the hooks' entry loads React. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type OutputChunk, rolldown } from 'rolldown';
import { expect, onTestFinished, test } from 'vitest';

const LIBRARY = fileURLToPath(new URL('../../../../src/library/', import.meta.url));

/**
 * Bundles a page, without its packages. @returns the chunks, with their modules and imports
 */
async function bundle(code: string) {
  const folder = mkdtempSync(join(tmpdir(), 'sui-enclave-react-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const entry = join(folder, 'page.ts');
  writeFileSync(entry, code);
  const external = (specifier: string) => !/^[./]/.test(specifier);
  const build = await rolldown({ input: entry, platform: 'browser', external });
  const { output } = await build.generate({ format: 'esm' });
  await build.close();
  return output.filter((chunk): chunk is OutputChunk => chunk.type === 'chunk');
}

test.each(['attestation', 'client', 'sui', 'zklogin'])(
  'the entry %s loads neither React nor its hooks',
  async (entry) => {
    const chunks = await bundle(`export * from '${LIBRARY}${entry}/index.ts';`);
    const modules = chunks.flatMap(({ moduleIds }) => moduleIds);
    expect(modules).toContain(`${LIBRARY}${entry}/errors.ts`);
    expect(modules.filter((id) => id.startsWith(`${LIBRARY}react/`))).toEqual([]);
    expect(chunks.flatMap(({ imports }) => imports)).not.toContain('react');
  },
);

test('useEnclave loads the client and React, and Sui only for a config', async () => {
  const chunks = await bundle(`export { useEnclave } from '${LIBRARY}react/index.ts';`);
  const [entry] = chunks.filter(({ isEntry }) => isEntry);
  const initialChunks = [entry, ...chunks.filter(({ fileName }) => entry?.imports.includes(fileName))];
  const modules = initialChunks.flatMap((chunk) => chunk?.moduleIds ?? []);
  expect(modules).toContain(`${LIBRARY}client/keys.ts`);
  expect(modules.filter((id) => /\/library\/(sui|zklogin)\//.test(id))).toEqual([]);
  const packages = initialChunks.flatMap((chunk) => chunk?.imports ?? []);
  expect(packages).toContain('react');
  expect(packages.filter((name) => /^@mysten\/sui/.test(name))).toEqual([]);
});
