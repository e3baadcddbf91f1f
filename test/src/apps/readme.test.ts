/** Checks the application in src/apps/README.md. test/e2e/readme/apps.test.ts runs it. */
import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { COMMANDS } from '../../../src/cli/commands.ts';
import { filesInClone, repositoryFiles } from '../../../src/create/template.ts';
import * as serverExports from '../../../src/server/index.ts';
import { readFiles } from '../../page_files.ts';

const page = readFileSync(new URL('../../../src/apps/README.md', import.meta.url), 'utf8');
const files = readFiles(page);

test('the page shows every file of the price feed, as new_app writes it', () => {
  expect(Object.fromEntries(files)).toEqual(Object.fromEntries(filesInClone('oracle', 'price')));
});

test('the pages name only commands of the installed program, and new_app', () => {
  const readme = repositoryFiles('my_oracle').get('README.md') ?? '';
  const commandNames = [...`${page}${readme}`.matchAll(/npx --offline sui-enclave ([a-z][\w-]*)/g)].map(
    ([, name = '']) => name,
  );
  const missing = commandNames.filter((name) => COMMANDS[name.replaceAll('-', '_')]?.inClone !== undefined);
  // In a clone, new_app does what create-sui-enclave does elsewhere.
  expect([commandNames.length > 10, [...new Set(missing)]]).toEqual([true, ['new_app']]);
  expect(commandNames.filter((name) => COMMANDS[name.replaceAll('-', '_')] === undefined)).toEqual([]);
});

describe('app.ts of the price feed', () => {
  const lines = (files.get('src/apps/price/app.ts') ?? '').trimEnd().split('\n');

  // Blank lines and comments count.
  test('has at most 35 lines, at most 3 imports, and no line of more than 110 characters', () => {
    expect(lines.length).toBeGreaterThan(20);
    expect(lines.length).toBeLessThanOrEqual(35);
    expect(lines.filter((line) => line.includes(' from ')).length).toBeLessThanOrEqual(3);
    expect(lines.filter((line) => line.length > 110)).toEqual([]);
  });
});

test('the application imports only valibot, one module of the project, and its own files', () => {
  const applicationFiles = [...files].filter(([path]) =>
    /^src\/apps\/price\/(?!stand_in|test).*\.ts$/.test(path),
  );
  const importedModules = applicationFiles.flatMap(([, source]) =>
    [...source.matchAll(/ from '(.*)';$/gm)].map(([, from]) => from),
  );
  expect(new Set(importedModules)).toEqual(new Set(['valibot', 'sui-enclave-server', './types.ts']));
});

test('the table of types lists exactly the types that a field may have', () => {
  const [, section = ''] = /^### Types of fields$(.*?)^#/ms.exec(page) ?? [];
  const listedTypes = [...section.matchAll(/^\| (`.*?) \|/gm)].flatMap(([, cell = '']) =>
    [...cell.matchAll(/`(\w+)/g)].map(([, name]) => name),
  );
  const isType = (value: unknown) =>
    typeof Object(value).move === 'string' && typeof Object(value).parse === 'function';
  const types = Object.entries(serverExports).flatMap(([name, value]) => (isType(value) ? [name] : []));
  expect(listedTypes.sort()).toEqual([...types, 'option', 'struct', 'vector'].sort());
});
