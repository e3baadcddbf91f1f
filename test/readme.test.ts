/** The README's tables say what the code says, and its commands exist. */
import { existsSync, globSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { FAILURES } from '../scripts/dev/weather_api.ts';

const root = fileURLToPath(new URL('..', import.meta.url));
const read = (path: string) => readFileSync(root + path, 'utf8');
const readme = read('README.md');
const matches = (text: string, pattern: RegExp) => [
  ...new Set([...text.matchAll(pattern)].map(([, name]) => name as string)),
];

/** The applications that the README documents; others have a page of their own. */
const APPS = 'src/apps/{salt,weather}';

/** The first column of the table below a heading, split into its `names`. */
function names(heading: string): string[] {
  const section = readme.split(new RegExp(`^#+ ${heading}$`, 'm'))[1]?.split(/^#/m)[0] ?? '';
  return section
    .split('\n')
    .filter((line) => line.startsWith('|'))
    .flatMap((line) =>
      matches(
        line
          .split('|')
          .slice(1, heading === 'Errors' ? 3 : 2)
          .join('|'),
        /`([^`]+)`/g,
      ),
    );
}

describe('the README lists', () => {
  test('every environment variable', () => {
    const all = (pattern: string) => globSync(pattern, { cwd: root }).map(read).join('\n');
    const secrets = matches(all(`${APPS}/app.yaml`), /- ([A-Z_]+)$/gm).flatMap((name) => [
      name,
      `${name}_FILE`,
    ]);
    const code = all('src/{*.ts,server/*.ts}') + all(`${APPS}/**/*.ts`);
    const variables = matches(
      code,
      /(?:(?:text|integer|boolean|absolutePath)\(\s*env,\s*'|readRustLog\(env\[')([A-Z_]+)'/g,
    );
    expect(variables).toContain('PORT');
    expect(names('Environment').sort()).toEqual([...variables, ...secrets].sort());
  });

  test('every error that the server answers with, and its status', async () => {
    const files = globSync(['src/{server,nsm}/errors.ts', `${APPS}/errors.ts`], { cwd: root });
    const modules: Record<string, object>[] = await Promise.all(files.map((file) => import(root + file)));
    const tables = modules.flatMap((module) =>
      Object.entries(module).filter(([name]) => name.endsWith('_ERRORS')),
    );
    // The NSM's errors know nothing of HTTP: src/server/http/errors.ts answers each with 503.
    const expected = tables.flatMap(([name, table]) =>
      Object.entries(table as Record<string, { status: number }>).map(([code, { status }]) => [
        code,
        name === 'NSM_ERRORS' ? 503 : status,
      ]),
    );
    expect(tables).toHaveLength(4);
    const rows = [...readme.matchAll(/^\| (\d{3}) \| ([^|]*) \|/gm)].flatMap(([, status, codes = '']) =>
      matches(codes, /`([^`]+)`/g).map((code) => [code, Number(status)]),
    );
    expect(rows.sort()).toEqual(expected.sort());
  });

  test('every failure of the weather stand-in', () => {
    expect(matches(readme, /`(!\w+)`/g).sort()).toEqual(Object.keys(FAILURES).sort());
  });

  test('every dependency', () => {
    const { dependencies, devDependencies, optionalDependencies } = JSON.parse(read('package.json'));
    const all = Object.keys({ ...dependencies, ...devDependencies, ...optionalDependencies });
    expect(names('Dependencies').sort()).toEqual(all.sort());
  });

  test('folders and files that are there', () => {
    for (const path of matches(readme, /(?:`|\()((?:src|test|scripts|move|enclave)\/[\w./]*)/g)) {
      expect(existsSync(root + path), path).toBe(true);
    }
  });

  test('commands that are there', () => {
    const { scripts, version } = JSON.parse(read('package.json'));
    for (const name of matches(readme, /npm run (?:--silent )?([\w:]+)/g))
      expect(scripts).toHaveProperty(name);
    for (const name of matches(readme, /(?:^|`)make ([\w-]+)/gm)) {
      expect(read('Makefile')).toMatch(new RegExp(`^${name}:`, 'm'));
    }
    expect(matches(readme, /sui-enclave-([\d.]+)\.tgz/g)).toEqual([version]);
  });
});
