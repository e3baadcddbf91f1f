import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { rolldown } from 'rolldown';
import { expect, test } from 'vitest';

/** Returns the modules of the project that an entry loads, and the packages that these modules import. */
function collectImports(entry: URL, modules = new Set<string>(), packages = new Set<string>()) {
  if (modules.has(entry.href)) return { modules, packages };
  modules.add(entry.href);
  const source = readFileSync(entry, 'utf8');
  for (const [, specifier = ''] of source.matchAll(/^(?:import|export)\b[^;]*?\bfrom '([^']+)';/gms)) {
    if (specifier.startsWith('.')) collectImports(new URL(specifier, entry), modules, packages);
    else packages.add(specifier);
  }
  expect(source).not.toMatch(/\b(process|Buffer|require)\b[.(]/);
  expect(source).not.toMatch(/\bimport\(/);
  return { modules, packages };
}

test('sui-enclave/sui imports nothing that a browser lacks', () => {
  const { modules, packages } = collectImports(
    new URL('../../../../src/library/sui/index.ts', import.meta.url),
  );
  expect([...modules].some((href) => href.endsWith('/src/library/attestation/image.ts'))).toBe(true);
  expect([...packages].sort()).toEqual([
    '@mysten/bcs',
    '@mysten/sui/bcs',
    '@mysten/sui/client',
    '@mysten/sui/transactions',
    '@mysten/sui/utils',
  ]);
});

test('sui-enclave/sui can be bundled for a browser: its dependencies do not use modules of Node', async () => {
  const warnings: string[] = [];
  const bundle = await rolldown({
    input: fileURLToPath(new URL('../../../../src/library/sui/index.ts', import.meta.url)),
    platform: 'browser',
    onLog: (_, { message }) => warnings.push(message),
  });
  const { output } = await bundle.generate({ format: 'esm' });
  await bundle.close();
  expect(output.flatMap((chunk) => (chunk.type === 'chunk' ? chunk.imports : []))).toEqual([]);
  expect(warnings).toEqual([]);
});

test('a bundle contains only what the page imports: with a reader, it has neither builders nor the extension', async () => {
  const entry = fileURLToPath(new URL('../../../../src/library/sui/index.ts', import.meta.url));
  const createBundle = async (name: string) => {
    const bundle = await rolldown({
      input: 'app',
      platform: 'browser',
      treeshake: { moduleSideEffects: false },
      external: /^@mysten/,
      plugins: [
        {
          name: 'app',
          resolveId: (id) => (id === 'app' ? id : null),
          load: (id) => (id === 'app' ? `import { ${name} } from '${entry}';\nuse(${name});` : null),
        },
      ],
    });
    const { output } = await bundle.generate({ format: 'esm' });
    await bundle.close();
    return output.flatMap((chunk) => (chunk.type === 'chunk' ? [chunk.code] : [])).join('');
  };
  const reader = await createBundle('readConfig');
  expect(reader).toContain('async function readConfig');
  for (const absent of ['update_pcrs', 'PcrsUpdated', 'class SuiEnclaveExtension']) {
    expect(reader).not.toContain(absent);
  }
  expect(await createBundle('updatePcrs')).not.toContain('async function readConfig');
  const extension = await createBundle('suiEnclave');
  for (const present of ['update_pcrs', 'PcrsUpdated']) expect(extension).toContain(present);
});
