/** The pages share one brand. The example dapp has copies of it, since it is a project of its own. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';

const ROOT = join(import.meta.dirname, '..');
const read = (path: string) => readFileSync(join(ROOT, path), 'utf8');
const BRAND = 'src/console/styles/brand.css';

test.each([
  ['colours', 'examples/dapp/src/brand.css', BRAND],
  ['mark', 'examples/dapp/public/icon.svg', 'src/console/icon.svg'],
])('the dapp has the %s of the console', (_, copy, original) => {
  expect(read(copy)).toBe(read(original));
});

test('the wallet takes colours and mark from the console, and the documentation its accent', () => {
  expect(read('examples/wallet/styles/index.css')).toContain('src/console/styles/common.css');
  expect(read('src/console/styles/common.css')).toContain('@import "./brand.css"');
  const [, light, dark] = /--brand: light-dark\((#\w+), (#\w+)\)/.exec(read(BRAND)) ?? [];
  const site = read('scripts/docs/site.css');
  expect(site).toContain(`--light-color-link: ${light};`);
  expect(site).toContain(`--dark-color-link: ${dark};`);
  expect(JSON.parse(read('scripts/docs/typedoc.json'))).toMatchObject({
    customCss: 'site.css',
    favicon: '../../src/console/icon.svg',
  });
});
