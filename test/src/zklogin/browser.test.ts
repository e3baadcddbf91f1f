/** `sui-enclave/zklogin` is for pages: neither it nor its dependencies need anything of Node. */
import { readFileSync } from 'node:fs';
import { rolldown } from 'rolldown';
import { expect, test } from 'vitest';

const ENTRY = new URL('../../../src/zklogin/index.ts', import.meta.url);

test('it bundles for a browser', async () => {
  const warnings: string[] = [];
  const bundle = await rolldown({
    input: ENTRY.pathname,
    platform: 'browser',
    onLog: (_, { message }) => warnings.push(message),
  });
  const { output } = await bundle.generate({ format: 'esm' });
  await bundle.close();
  const chunks = output.flatMap((chunk) => (chunk.type === 'chunk' ? [chunk] : []));
  expect(chunks.flatMap(({ imports }) => imports)).toEqual([]);
  expect(warnings).toEqual([]);
  const own = chunks.flatMap(({ moduleIds }) => moduleIds).filter((id) => !id.includes('/node_modules/'));
  expect(own.some((id) => id.endsWith('/src/zklogin/session.ts'))).toBe(true);
  for (const id of own.filter((id) => id.startsWith('/'))) {
    expect(readFileSync(id, 'utf8')).not.toMatch(/\b(process|Buffer|require)\b[.(]/);
  }
});
