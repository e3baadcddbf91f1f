/** Tests the check at the end of `make docs` on small sites. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { checkSite, main } from '../../../scripts/docs/check_site.ts';
import { call } from '../../src/cli/run.ts';

let site: string;
beforeEach(() => {
  site = mkdtempSync(join(tmpdir(), 'site-'));
  onTestFinished(() => rmSync(site, { recursive: true }));
});

function write(files: Readonly<Record<string, string>>): void {
  for (const [path, content] of Object.entries(files)) {
    mkdirSync(dirname(join(site, path)), { recursive: true });
    writeFileSync(join(site, path), content);
  }
}

/** A page in a folder, and a file, for the links of another page. */
const TARGET = {
  'pages/Target.html': '<h2 class="x" id="a-heading">A heading</h2><p id="it&#39;s">',
  'media/key.ts': '',
};

describe('a link', () => {
  test.each([
    ['pages/Target.html'],
    ['./pages/Target.html#a-heading'],
    ['pages/Target.html#it&#39;s'],
    ['pages/Target.html#'],
    ['#here'],
    ['#'],
    [''],
    ['media/key.ts'],
    ['media/key.ts#L12'],
    ['./'],
    ['https://example.com/#anything'],
    ['mailto:someone@example.com'],
  ])('to %j is good', (href) => {
    write({
      ...TARGET,
      'index.html': `<p id="here"><a class="external" href="${href}" target="_blank">x</a>`,
    });
    expect(checkSite(site).faults).toEqual([]);
  });

  test.each([
    ['pages/Missing.html', 'there is no such file'],
    ['../README.md', 'there is no such file'],
    ['pages/', 'there is no such file'],
    ['/pages/Target.html', 'there is no such file'],
    ['pages/Target.html#no-heading', 'the page has no such anchor'],
    ['#no-heading', 'the page has no such anchor'],
  ])('to %j is dead', (href, fault) => {
    write({ ...TARGET, 'index.html': `<p>text</p><a href="${href}">x</a>` });
    expect(checkSite(site).faults).toEqual([`index.html: ${href}: ${fault}`]);
  });

  test('is relative to its page', () => {
    write({
      'index.html': '',
      'pages/A.html': '<a href="../index.html">x</a><a href="index.html">y</a>',
    });
    expect(checkSite(site)).toEqual({
      pages: 2,
      links: 2,
      faults: ['pages/A.html: index.html: there is no such file'],
    });
  });

  test('in a code block is text', () => {
    write({ 'index.html': '<pre><code>&lt;a href=&quot;missing.html&quot;&gt;</code></pre>' });
    expect(checkSite(site)).toEqual({ pages: 1, links: 0, faults: [] });
  });
});

test.each([
  ['<script defer src="https://cdn.example/x.js"></script>'],
  ['<link rel="stylesheet" href="https://cdn.example/x.css"/>'],
  ['<link rel="stylesheet" href="//cdn.example/x.css"/>'],
  ['<img alt="x" src="https://cdn.example/x.png">'],
])('%s is refused, since a site must work offline', (element) => {
  write({ 'index.html': element });
  const [fault, ...furtherFaults] = checkSite(site).faults;
  expect(furtherFaults).toEqual([]);
  expect(fault).toMatch(/^index\.html: .*(loads a file from cdn\.example|there is no such file)$/);
});

test.each([
  ['without a fault', { 'index.html': '<a href="#">x</a>' }, 0, { pages: 1, links: 1 }],
  ['with a dead link', { 'index.html': '<a href="x.html">x</a>' }, 1, { code: 'SITE_FAULTS' }],
  ['without a page', { 'assets/style.css': '' }, 1, { code: 'SITE_EMPTY' }],
])('the command reports a site %s', async (_, files, status, json) => {
  write(files);
  const run = await call(main, [site, '--json']);
  expect(run.status).toBe(status);
  expect(JSON.parse(run.stdout)).toMatchObject(json);
});
