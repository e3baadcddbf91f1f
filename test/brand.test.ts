/**
 * The pages share one brand. The example dapp has copies of its files, since the dapp is a project of its
 * own.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';

const ROOT = join(import.meta.dirname, '..');
const read = (path: string) => readFileSync(join(ROOT, path), 'utf8');
const BRAND = 'src/console/styles/brand.css';

test.each([
  ['colours', 'examples/dapp/src/brand.css', BRAND],
  ['mark', 'examples/dapp/public/icon.svg', 'src/console/icon.svg'],
])('the dapp has the %s of the console', (_, copy, original) => {
  expect(read(copy)).toBe(read(original));
});

test("the wallet imports the console's styles, and the documentation has the console's accent and mark", () => {
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

describe.each([
  ['light', 1],
  ['dark', 2],
] as const)('in the %s theme', (_, group) => {
  const colour = (name: string) =>
    new RegExp(`--${name}: light-dark\\((#\\w+), (#\\w+)\\)`).exec(read(BRAND))?.[group] ?? '';
  /** Computes the relative luminance of WCAG 2.1. */
  function luminance(hex: string): number {
    const [red = 0, green = 0, blue = 0] = [1, 3, 5].map((start) => {
      const part = Number.parseInt(hex.slice(start, start + 2), 16) / 255;
      return part <= 0.03928 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
  }
  function contrast(first: string, second: string): number {
    const [dark = 0, light = 0] = [first, second]
      .map((name) => luminance(colour(name)))
      .sort((a, b) => a - b);
    return (light + 0.05) / (dark + 0.05);
  }

  test('a primary button stands out from the page, and from a disabled button', () => {
    expect(contrast('brand', 'on-brand')).toBeGreaterThan(4.5);
    for (const background of ['paper', 'ground', 'tint']) {
      expect(contrast('brand', background), background).toBeGreaterThan(4.5);
    }
  });

  test.each(['good', 'doubt', 'bad'])('the colour of a verdict, %s, is legible', (name) => {
    for (const background of ['paper', `${name}-tint`]) {
      expect(contrast(name, background), background).toBeGreaterThan(4.5);
    }
  });
});
