/** Checks that the tables of settings and errors in the READMEs are as the code generates them. */
import { cpSync, globSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import * as v from 'valibot';
import { describe, expect, onTestFinished, test } from 'vitest';
import {
  errorTable,
  PAGES,
  settingTable,
  withTables,
  writeTables,
} from '../../../scripts/docs/page_tables.ts';
import { integerBetween } from '../../../src/service/settings.ts';

const ROOT = fileURLToPath(new URL('../../..', import.meta.url));
const read = (path: string) => readFileSync(join(ROOT, path), 'utf8');
const splitRows = (table: string) => table.split('\n').slice(2);

describe.each(Object.entries(PAGES))('%s', (path, tables) => {
  test('is as `npm run tables` writes it', () => {
    const page = read(path);
    expect(withTables(page, tables) === page, `${path} is out of date: run npm run tables`).toBe(true);
  });
});

test('only the pages that are out of date are written', () => {
  const root = mkdtempSync(join(tmpdir(), 'tables-'));
  onTestFinished(() => rmSync(root, { recursive: true }));
  for (const path of Object.keys(PAGES)) cpSync(join(ROOT, path), join(root, path));
  writeTables(root);
  const path = 'src/apps/weather/README.md';
  const page = readFileSync(join(root, path), 'utf8');
  writeFileSync(join(root, path), page.replace(/^\| `WEATHER_CACHE_SECONDS`.*\n/m, ''));
  expect(writeTables(root)).toEqual([path]);
  expect(readFileSync(join(root, path), 'utf8')).toBe(page);
  expect(page).toContain('| `WEATHER_CACHE_SECONDS` |');
  expect(writeTables(root)).toEqual([]);
});

test('every table of errors is on a page', async () => {
  const files = globSync(
    'src/{service,server,server/nsm,apps/*,prover,prover/*}/{errors,enclave_errors}.ts',
    {
      cwd: ROOT,
    },
  );
  const modules: object[] = await Promise.all(files.map((file) => import(join(ROOT, file))));
  const tables = modules
    .flatMap((module) => Object.entries(module))
    .filter(([name]) => /_ERRORS$/.test(name));
  expect(tables.length).toBeGreaterThan(0);
  const codesOnPages = Object.values(PAGES)
    .flatMap((table) => Object.values(table))
    .join('\n');
  for (const code of tables.flatMap(([, table]) => Object.keys(table)))
    expect(codesOnPages).toContain(`\`${code}\``);
});

describe('a table of settings', () => {
  const meaning = 'for tests';

  test('has the values that the schema accepts, and the default', () => {
    const table = settingTable({
      A: { schema: integerBetween(1, 9), default: '5', meaning },
      B: { schema: v.string(), optional: true, meaning },
      C: { schema: v.string(), default: '', meaning: 'x | y' },
      D: { schema: v.string(), meaning },
    });
    expect(table.split('\n')).toEqual([
      '| variable | values | default | meaning |',
      '| --- | --- | --- | --- |',
      '| `A` | 1 to 9 | `5` | for tests |',
      '| `B` | | none | for tests |',
      '| `C` | | none | x \\| y |',
      '| `D` | | required | for tests |',
    ]);
  });

  test('has the secrets of app.yaml, each of which needs a meaning', () => {
    const folder = 'src/apps/weather';
    expect(splitRows(settingTable({}, { folder, meanings: { API_KEY: 'a key' } }))).toEqual([
      '| `API_KEY`, `API_KEY_FILE` | | none | a key |',
    ]);
    expect(() => settingTable({}, { folder, meanings: {} })).toThrow('the secret API_KEY has no meaning');
  });
});

describe('a table of errors', () => {
  const ERRORS = {
    LATE: { status: 504, meaning: 'late' },
    BAD: { status: 400, meaning: 'bad' },
    WORSE: { status: 400, meaning: 'worse' },
  } as const;

  test('is ordered by status, with one row for a group', () => {
    expect(splitRows(errorTable(ERRORS))).toEqual([
      '| 400 | `BAD` | bad |',
      '| 400 | `WORSE` | worse |',
      '| 504 | `LATE` | late |',
    ]);
    expect(splitRows(errorTable(ERRORS, [['BAD', 'WORSE']]))).toEqual([
      '| 400 | `BAD`, `WORSE` | bad; worse |',
      '| 504 | `LATE` | late |',
    ]);
  });

  test('has one status in each group', () => {
    expect(() => errorTable(ERRORS, [['LATE', 'BAD']])).toThrow('the same status');
  });
});

describe('a page', () => {
  const place = (name: string, content = '') =>
    `<!-- table: ${name} -->\n${content}<!-- end of the table -->\n`;

  test('keeps what is outside of the markers', () => {
    const page = `# a\n\n${place('errors', 'old\n')}\nb $& \n${place('settings')}`;
    const updatedPage = withTables(page, { settings: 'S', errors: "E $& $'" });
    expect(updatedPage).toBe(
      `# a\n\n${place('errors', "\nE $& $'\n\n")}\nb $& \n${place('settings', '\nS\n\n')}`,
    );
    expect(withTables(updatedPage, { settings: 'S', errors: "E $& $'" })).toBe(updatedPage);
  });

  test.each([
    ['no place for a table', place('errors')],
    ['two places for a table', place('errors') + place('settings') + place('settings')],
    ['a place for an unknown table', place('errors') + place('settings') + place('others')],
  ])('is refused if it has %s', (_, page) => {
    expect(() => withTables(page, { settings: 'S', errors: 'E' })).toThrow(
      expect.objectContaining({ code: 'TABLES' }),
    );
  });
});
