/** Checks that a page which verifies releases by key loads little code, and nothing of Sigstore. */
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';
import { type OutputChunk, rolldown } from 'rolldown';
import { expect, test } from 'vitest';

const LIBRARY = fileURLToPath(new URL('../../../../src/library/', import.meta.url));
/** Maximum size of the code that is added to the client's, minified and gzipped, in bytes. */
const MAX_SIZE = 10_000;

async function bundle(entries: readonly string[]) {
  const build = await rolldown({
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
  const { output } = await build.generate({ format: 'esm', minify: true });
  await build.close();
  const chunks = output.filter((chunk): chunk is OutputChunk => chunk.type === 'chunk');
  return {
    size: gzipSync(chunks.map(({ code }) => code).join('\n'), { level: 9 }).length,
    modules: chunks.flatMap(({ moduleIds }) => moduleIds),
  };
}

test('a page that verifies releases loads at most 10 KB in addition to the client, and nothing of Sigstore', async () => {
  const [client, clientAndRelease] = [await bundle(['client']), await bundle(['client', 'release'])];
  expect(clientAndRelease.modules.filter((id) => /@sigstore|keyless_node/.test(id))).toEqual([]);
  expect(clientAndRelease.modules).toContain(`${LIBRARY}release/keyless.ts`);
  expect(clientAndRelease.size - client.size).toBeGreaterThan(1000);
  expect(clientAndRelease.size - client.size).toBeLessThanOrEqual(MAX_SIZE);
});
