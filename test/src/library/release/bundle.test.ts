/** To verify a release by key, a page loads little code, and nothing of Sigstore. */
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';
import { type OutputChunk, rolldown } from 'rolldown';
import { expect, test } from 'vitest';

const LIBRARY = fileURLToPath(new URL('../../../../src/library/', import.meta.url));
/** Largest size of the code that the client does not load anyway: minified and gzipped, in bytes. */
const MAX_SIZE = 10_000;

async function bundle(entries: readonly string[]) {
  const built = await rolldown({
    input: 'page',
    platform: 'browser',
    plugins: [
      {
        name: 'page',
        resolveId: (id) => (id === 'page' ? id : null),
        load: (id) =>
          id === 'page'
            ? entries
                .map((entry, index) => `export * as e${index} from '${LIBRARY}${entry}/index.ts';`)
                .join('\n')
            : null,
      },
    ],
  });
  const { output } = await built.generate({ format: 'esm', minify: true });
  await built.close();
  const chunks = output.filter((chunk): chunk is OutputChunk => chunk.type === 'chunk');
  return {
    size: gzipSync(chunks.map(({ code }) => code).join('\n'), { level: 9 }).length,
    modules: chunks.flatMap(({ moduleIds }) => moduleIds),
  };
}

test('a page that reads releases loads at most 10 KB for them beside the client, and nothing of Sigstore', async () => {
  const [client, both] = [await bundle(['client']), await bundle(['client', 'release'])];
  expect(both.modules.filter((id) => /@sigstore|keyless_node/.test(id))).toEqual([]);
  expect(both.modules).toContain(`${LIBRARY}release/keyless.ts`);
  expect(both.size - client.size).toBeGreaterThan(1000);
  expect(both.size - client.size).toBeLessThanOrEqual(MAX_SIZE);
});
