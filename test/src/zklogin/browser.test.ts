/** `sui-enclave/zklogin` is for pages: neither it nor its dependencies need anything of Node. */
import { readFileSync } from 'node:fs';
import { type OutputChunk, rolldown } from 'rolldown';
import { beforeAll, expect, test } from 'vitest';

const ENTRY = new URL('../../../src/zklogin/index.ts', import.meta.url);

const warnings: string[] = [];
let chunks: OutputChunk[] = [];

beforeAll(async () => {
  const bundle = await rolldown({
    input: ENTRY.pathname,
    platform: 'browser',
    onLog: (_, { message }) => warnings.push(message),
  });
  const { output } = await bundle.generate({ format: 'esm' });
  await bundle.close();
  chunks = output.filter((chunk) => chunk.type === 'chunk');
});

const named = (name: string) => chunks.find(({ fileName }) => fileName === name);

/** The modules that a page loads with a chunk. */
function loadedWith(chunk: OutputChunk | undefined, seen = new Set<OutputChunk>()): string[] {
  if (chunk === undefined || seen.has(chunk)) return [];
  seen.add(chunk);
  return [...chunk.moduleIds, ...chunk.imports.flatMap((name) => loadedWith(named(name), seen))];
}

test('it bundles for a browser', () => {
  const outside = chunks.flatMap(({ imports }) => imports).filter((name) => named(name) === undefined);
  expect(outside).toEqual([]);
  expect(warnings).toEqual([]);
  const own = chunks.flatMap(({ moduleIds }) => moduleIds).filter((id) => !id.includes('/node_modules/'));
  expect(own.some((id) => id.endsWith('/src/zklogin/session.ts'))).toBe(true);
  for (const id of own.filter((id) => id.startsWith('/'))) {
    expect(readFileSync(id, 'utf8')).not.toMatch(/\b(process|Buffer|require)\b[.(]/);
  }
});

test('the client is in a chunk of its own, which a page loads for a sealed request only', () => {
  const isOfClient = (id: string) => /\/src\/(attestation|client|sealing)\//.test(id);
  const entry = chunks.find(({ isEntry }) => isEntry);
  expect(loadedWith(entry).some((id) => id.endsWith('/src/zklogin/services.ts'))).toBe(true);
  expect(loadedWith(entry).filter(isOfClient)).toEqual([]);
  const later = entry?.dynamicImports.flatMap((name) => loadedWith(named(name))) ?? [];
  expect(later.some((id) => id.endsWith('/src/client/client.ts'))).toBe(true);
});
