import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { rolldown } from 'rolldown';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { placeModules } from '../../../../src/toolchain/image/module_places.ts';

let root: string;

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'places-'));
});
afterEach(() => rmSync(root, { recursive: true }));

/** Returns the export `value` of the bundle of src/apps/x. */
async function bundleAndRun(files: Readonly<Record<string, string>>): Promise<unknown> {
  for (const [path, content] of Object.entries(files)) {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), content);
  }
  const bundler = await rolldown({
    input: join(root, 'src/apps/x/app.ts'),
    platform: 'node',
    plugins: [placeModules(join(root, 'src/apps/x'))],
  });
  const { output } = await bundler.generate({ format: 'cjs', codeSplitting: false });
  const exports: { value?: unknown } = {};
  new Function('exports', 'require', '__filename', '__dirname', output[0].code)(
    exports,
    process.getBuiltinModule('node:module').createRequire(import.meta.url),
    '/app/server.js',
    '/app',
  );
  return exports.value;
}

test('import.meta of each module of an application names its own path below /app', async () => {
  const value = await bundleAndRun({
    'src/apps/x/app.ts': `
      import { place } from './routes/pages.ts';
      const é: string = '😀 import.meta.url';
      const { dirname }: ImportMeta = import.meta;
      export const value = [é, dirname, import.meta.filename, new URL('./public/', import . meta.url).href, place];`,
    'src/apps/x/routes/pages.ts':
      'import { join } from "node:path"; export const place = join(import.meta.dirname, "../public");',
  });
  expect(value).toEqual(['😀 import.meta.url', '/app', '/app/app.ts', 'file:///app/public/', '/app/public']);
});

test("import.meta is not replaced in modules of packages or outside of the application's folder", async () => {
  const value = await bundleAndRun({
    'src/apps/x/app.ts': `
      import { place } from '../../other.ts';
      import { place as installed } from './node_modules/p/index.js';
      export const value = [place, installed];`,
    'src/other.ts': 'export const place = import.meta.dirname;',
    'src/apps/x/node_modules/p/index.js': 'export const place = import.meta.dirname;',
  });
  expect(value).toEqual(['/app', '/app']);
});
