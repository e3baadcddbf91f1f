/**
 * Tests that pages can load `sui-enclave/zklogin`: neither the entry nor its dependencies need Node's
 * modules.
 */
import { mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type OutputChunk, rolldown } from 'rolldown';
import { beforeAll, expect, onTestFinished, test } from 'vitest';

const ENTRY = new URL('../../../../src/library/zklogin/index.ts', import.meta.url);

const warnings: string[] = [];
let chunks: OutputChunk[] = [];

beforeAll(async () => {
  const bundle = await rolldown({
    input: fileURLToPath(ENTRY),
    platform: 'browser',
    onLog: (_, { message }) => warnings.push(message),
  });
  const { output } = await bundle.generate({ format: 'esm' });
  await bundle.close();
  chunks = output.filter((chunk) => chunk.type === 'chunk');
});

const findChunk = (name: string) => chunks.find(({ fileName }) => fileName === name);

/** Returns the modules that a page loads with a chunk. */
function listLoadedModules(chunk: OutputChunk | undefined, seen = new Set<OutputChunk>()): string[] {
  if (chunk === undefined || seen.has(chunk)) return [];
  seen.add(chunk);
  return [...chunk.moduleIds, ...chunk.imports.flatMap((name) => listLoadedModules(findChunk(name), seen))];
}

test('sui-enclave/zklogin can be bundled for a browser', () => {
  const outside = chunks.flatMap(({ imports }) => imports).filter((name) => findChunk(name) === undefined);
  expect(outside).toEqual([]);
  expect(warnings).toEqual([]);
  const ownModules = chunks
    .flatMap(({ moduleIds }) => moduleIds)
    .filter((id) => !id.includes('/node_modules/'));
  expect(ownModules.some((id) => id.endsWith('/src/library/zklogin/session.ts'))).toBe(true);
  for (const id of ownModules.filter((id) => id.startsWith('/'))) {
    expect(readFileSync(id, 'utf8')).not.toMatch(/\b(process|Buffer|require)\b[.(]/);
  }
});

test('the client is a separate chunk, which a page loads only for a sealed request', () => {
  const isOfClient = (id: string) => /\/library\/(attestation|client|sealing)\//.test(id);
  const entry = chunks.find(({ isEntry }) => isEntry);
  expect(listLoadedModules(entry).some((id) => id.endsWith('/src/library/zklogin/services.ts'))).toBe(true);
  expect(listLoadedModules(entry).filter(isOfClient)).toEqual([]);
  const dynamicModules = entry?.dynamicImports.flatMap((name) => listLoadedModules(findChunk(name))) ?? [];
  expect(dynamicModules.some((id) => id.endsWith('/src/library/client/client.ts'))).toBe(true);
});

test('a chunk that could not be loaded is reported, and the next call loads it', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'sui-enclave-chunks-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  writeFileSync(join(folder, 'package.json'), '{"type":"module"}');
  for (const { fileName, code } of chunks) writeFileSync(join(folder, fileName), code);
  const entry = chunks.find(({ isEntry }) => isEntry)?.fileName as string;
  const [dynamicChunk] = chunks.find(({ isEntry }) => isEntry)?.dynamicImports ?? [];
  const chunk = join(folder, dynamicChunk as string);
  renameSync(chunk, `${chunk}.gone`);
  const { getSalt }: typeof import('../../../../src/library/zklogin/index.ts') = await import(
    join(folder, entry)
  );
  const image = { pcr0: '11'.repeat(48), pcr1: '22'.repeat(48), pcr2: '33'.repeat(48) };
  const ask = () => getSalt('http://127.0.0.1:1', 'a.b.c', { policy: { images: [image] } });
  await expect(ask()).rejects.toMatchObject({ code: 'ZKLOGIN_LOAD', cause: expect.any(Error) });
  renameSync(`${chunk}.gone`, chunk);
  await expect(ask()).rejects.toMatchObject({ code: 'ZKLOGIN_UNREACHABLE' });
});
