import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { listDeadLinks } from '../../../../scripts/check/package/manifests.ts';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'package-'));
  mkdirSync(join(folder, 'client'));
  writeFileSync(join(folder, 'client/README.md'), '');
  writeFileSync(join(folder, 'README.md'), '');
});
afterEach(() => rmSync(folder, { recursive: true }));

test.each([
  '[text](CHANGELOG.md)',
  '[text](client/ERRORS.md#codes)',
  '[text]( <CHANGELOG.md> "title")',
  '[text](../../README.md)',
  '[`code`](/README.md/more)',
  '![image](mark.svg)',
  '[text][reference]\n\n[reference]: CHANGELOG.md',
  '<a href="CHANGELOG.md">text</a>',
  "<img src='mark.svg'>",
])('%j is a dead link', (markdown) => {
  writeFileSync(join(folder, 'README.md'), markdown);
  expect(listDeadLinks(folder)).toHaveLength(1);
});

test.each([
  '[text](client/README.md#codes)',
  '[text](client)',
  '[text](#codes)',
  '[text](https://example.com/CHANGELOG.md)',
  '`[text](CHANGELOG.md)`',
  '```md\n[text](CHANGELOG.md)\n```',
])('%j is not a dead link', (markdown) => {
  writeFileSync(join(folder, 'README.md'), markdown);
  expect(listDeadLinks(folder)).toEqual([]);
});

test('a link is relative to its page', () => {
  writeFileSync(join(folder, 'client/README.md'), '[text](client/README.md) and [text](../README.md)');
  expect(listDeadLinks(folder)).toEqual(['client/README.md links to client/README.md']);
});
