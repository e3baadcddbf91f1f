/** Checks that the site that `make docs` writes contains every page of the repository. */
import { globSync, readFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { describePage } from '../../../scripts/docs/pages.ts';

const ROOT = fileURLToPath(new URL('../../..', import.meta.url));
const FOLDER = join(ROOT, 'scripts/docs');
const options = JSON.parse(readFileSync(join(FOLDER, 'typedoc.json'), 'utf8')) as {
  readme: string;
  projectDocuments: string[];
  groupOrder: string[];
  searchGroupBoosts: Record<string, number>;
};
const sitePages = [options.readme, ...options.projectDocuments].map((path) =>
  relative(ROOT, join(FOLDER, path)),
);

test('TypeDoc makes a page of every Markdown file', () => {
  const files = globSync(['*.md', '{src,examples,scripts,deploy,enclave,move,test}/**/*.md'], {
    cwd: ROOT,
    exclude: ['**/node_modules/**'],
  });
  expect(sitePages.toSorted()).toEqual(files.sort());
});

test('every page has a title of its own, and a group with a place in the navigation', () => {
  const pages = sitePages.map((path) => describePage(path, readFileSync(join(ROOT, path), 'utf8')));
  expect(new Set(pages.map(({ title }) => title)).size).toBe(pages.length);
  for (const { group } of pages) expect(options.groupOrder).toContain(group);
});

test('guides come before symbols, in the navigation and in the search', () => {
  const guides = options.groupOrder.slice(0, options.groupOrder.indexOf('API reference'));
  expect(guides.length).toBeGreaterThan(1);
  expect(Object.keys(options.searchGroupBoosts).sort()).toEqual(guides.toSorted());
  expect(Math.min(...Object.values(options.searchGroupBoosts))).toBeGreaterThan(10);
});

test('the site begins with a page of its own, which links to the guides', () => {
  expect(options.readme).toBe('HOME.md');
  const links = [...readFileSync(join(FOLDER, options.readme), 'utf8').matchAll(/\]\(([^)#]+)/g)];
  const guides = new Set(links.map(([, path = '']) => relative(ROOT, join(FOLDER, path))));
  for (const guide of ['scripts/docs/START.md', 'src/apps/README.md', 'src/library/client/README.md']) {
    expect(guides).toContain(guide);
  }
});

test.each([
  ['README.md', '# sui-enclave\n\n## Status\n', { title: 'sui-enclave', group: 'The project' }],
  ['src/library/sui/README.md', '# `sui-enclave/sui`\n', { title: 'sui-enclave/sui', group: 'The library' }],
  [
    'src/server/README.md',
    'Text.\n\n# The server\n',
    { title: 'The server', group: 'Applications and enclaves' },
  ],
])('%s is described by its heading and folder', (path, markdown, expected) => {
  expect(describePage(path, markdown)).toEqual(expected);
});

test('a page without a heading is refused', () => {
  expect(() => describePage('src/x/README.md', '## Below\n')).toThrow('src/x/README.md has no heading');
});
