/**
 * Audits a hostile repository in a process that strace watches. The audit runs only git, and writes only to
 * its own folder.
 */
import { spawn, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createdFiles, ROOT, weatherFiles } from '../../src/toolchain/audit/applications.ts';
import type { Files, TestRepository } from '../../src/toolchain/audit/git_server.ts';
import { type Application, World } from './world.ts';

const hasStrace = spawnSync('strace', ['-V']).status === 0;

const WEATHER: Application = { files: weatherFiles(), folder: 'src/apps/weather', module: 'weather' };

let world: World;
let temporary: string;
beforeAll(async () => {
  world = await World.start();
  temporary = mkdtempSync(join(tmpdir(), 'audit-strace-'));
});
afterAll(() => {
  world.close();
  rmSync(temporary, { recursive: true });
});

interface WatchedRun {
  readonly exit: number | null;
  readonly out: string;
  readonly err: string;
  /** Names of the programs that were started. */
  readonly programs: string[];
  /** Paths outside the audit's folder that were opened for writing, made, removed or renamed. */
  readonly written: string[];
  /** Ports of this machine to which something connected. */
  readonly ports: number[];
}

const CALLS =
  'execve,execveat,open,openat,openat2,creat,mkdir,mkdirat,rename,renameat,renameat2,unlink,unlinkat,rmdir,symlink,symlinkat,link,linkat,truncate,chmod,fchmodat,connect';

/** Runs `sui-enclave audit` under strace. */
async function watch(configId: string, options: readonly string[]): Promise<WatchedRun> {
  const log = join(world.root, 'strace.log');
  const runFolder = join(temporary, `run-${readdirSync(temporary).length}`);
  mkdirSync(runFolder);
  const argv = [join(ROOT, 'src/cli/main.ts'), 'audit', configId, '--rpc-url', world.node.url, ...options];
  const child = spawn(
    'strace',
    ['-f', '--seccomp-bpf', '-qq', '-s', '400', '-e', `trace=${CALLS}`, '-o', log, process.execPath, ...argv],
    {
      cwd: world.root,
      env: {
        PATH: process.env['PATH'] ?? '',
        HOME: world.root,
        TMPDIR: runFolder,
        NODE_DISABLE_COMPILE_CACHE: '1',
        GIT_SSL_CAINFO: world.git.authority,
      },
    },
  );
  const ended = new Promise<number | null>((resolve) => {
    child.once('close', resolve);
  });
  const [out, err, exit] = await Promise.all([text(child.stdout), text(child.stderr), ended]);
  // The audit leaves no file behind.
  expect(readdirSync(runFolder)).toEqual([]);
  const lines = readFileSync(log, 'utf8')
    .split('\n')
    .filter((line) => / = \d+| connect\(/.test(line));
  const programs = lines.flatMap((line) => / execve(?:at)?\("([^"]+)"/.exec(line)?.[1] ?? []);
  const writes = lines.filter(
    (line) =>
      !/ (?:execve|execveat|connect)\(/.test(line) &&
      (!/ open/.test(line) || /O_WRONLY|O_RDWR|O_CREAT/.test(line)),
  );
  const paths = writes.flatMap((line) =>
    [...line.matchAll(/"((?:[^"\\]|\\.)*)"/g)].map(([, path = '']) => path),
  );
  const isAllowed = (path: string) =>
    path.startsWith(`${runFolder}/`) ||
    path === '/dev/null' ||
    path === '/dev/tty' ||
    path.startsWith('/proc/self/');
  // git works in its own folder, and names files relative to it.
  const isRelative = (path: string) => !path.startsWith('/') && !path.split('/').includes('..');
  const ports = lines.flatMap((line) => {
    const [, port] = / connect\(.*sin_port=htons\((\d+)\), sin_addr=inet_addr\("127\./.exec(line) ?? [];
    return port === undefined ? [] : [Number(port)];
  });
  return {
    exit,
    out,
    err,
    ports,
    programs: [...new Set(programs.map((path) => basename(path)))].sort(),
    written: paths.filter((path) => !isAllowed(path) && !isRelative(path)),
  };
}

const PROGRAMS = ['git', 'git-remote-https', 'node', 'sh'];

function expectHarmless({ programs, written, out, err }: WatchedRun): void {
  expect(programs.filter((name) => !PROGRAMS.includes(name))).toEqual([]);
  expect(written).toEqual([]);
  expect(existsSync(join(world.root, 'pwned'))).toBe(false);
  // The output has no character that controls a terminal.
  // biome-ignore lint/suspicious/noControlCharactersInRegex: the test looks for these characters
  expect(/[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e]/.test(out + err)).toBe(false);
}

describe.runIf(hasStrace)('an audit of a repository', () => {
  /** Returns weather's files and harmful files. */
  function createHostileFiles(repository: TestRepository): Files {
    const pwn = `touch ${join(world.root, 'pwned')}`;
    const manifest = JSON.parse(String(WEATHER.files['package.json']));
    return {
      ...WEATHER.files,
      '.npmrc': `git=${pwn}\nscript-shell=/bin/sh\nignore-scripts=false\nnode-options=--require ./evil.cjs\n`,
      '.gitattributes': '* filter=evil text eol=crlf export-subst\n',
      '.gitmodules': `[submodule "m"]\n\tpath = m\n\turl = ext::sh -c ${pwn}\n`,
      '.config/git/config': `[core]\n\tfsmonitor = ${pwn}\n`,
      'hooks/post-checkout': `#!/bin/sh\n${pwn}\n`,
      'evil.cjs': `require('node:child_process').execSync(${JSON.stringify(pwn)});\n`,
      'rolldown.config.js': 'import "./evil.cjs";\n',
      'tsconfig.json': '{"extends": "/etc/passwd"}\n',
      'src/apps/weather/Containerfile': `FROM scratch\nRUN ${pwn}\n`,
      'src/apps/weather/.containerignore': 'app.ts\n',
      'package.json': JSON.stringify({
        ...manifest,
        scripts: Object.fromEntries(
          ['preinstall', 'install', 'postinstall', 'prepare', 'pack', 'prepack'].map((name) => [name, pwn]),
        ),
      }),
      'src/apps/weather/name\u0085with\u202econtrols.ts': 'export {};\n',
      m: { mode: '160000', id: '1'.repeat(40) },
      'link/passwd': { mode: '120000', id: repository.blob('../../../../etc/passwd') },
    };
  }

  test('with scripts, settings, hooks, a submodule and links out of the tree stops at the links', async () => {
    const hostileRepository = world.repository();
    const commit = hostileRepository.writeCommit(createHostileFiles(hostileRepository));
    const deployed = await world.deploy(WEATHER, hostileRepository, commit);
    const run = await watch(deployed.configId, [
      '--source',
      world.git.formatUrl(hostileRepository),
      '--quick',
    ]);
    expectHarmless(run);
    expect(run.out).toMatch(/^DIFFERS \(SOURCE_UNSAFE\): /);
    expect(run.exit).toBe(1);
  });

  test('with scripts, settings and hooks reads the sources of the image, and runs nothing of the repository', async () => {
    const hostileRepository = world.repository();
    const { m: _module, 'link/passwd': _link, ...files } = createHostileFiles(hostileRepository);
    const commit = hostileRepository.writeCommit(files);
    const deployed = await world.deploy(WEATHER, hostileRepository, commit);
    const run = await watch(deployed.configId, [
      '--source',
      world.git.formatUrl(hostileRepository),
      '--quick',
    ]);
    expectHarmless(run);
    expect(run.out, run.err).toMatch(/^NOT_FULLY_CHECKED: nothing differs/);
    expect(run.exit).toBe(3);
    expect(run.out).toContain(`same         the package ${deployed.enclavePackage}`);
    expect(run.programs).toEqual(PROGRAMS);
  });

  test('whose address on chain is a command or a machine of this network connects to no Git host', async () => {
    const hostileRepository = world.repository();
    const commit = hostileRepository.writeCommit(WEATHER.files);
    const before = world.git.requests.length;
    for (const url of [
      `ext::sh -c touch% ${join(world.root, 'pwned')}`,
      `ssh://-oProxyCommand=touch ${join(world.root, 'pwned')}/x`,
      '--upload-pack=touch pwned',
      world.git.formatUrl(hostileRepository),
    ]) {
      const deployed = await world.deploy(WEATHER, hostileRepository, commit, { source: { url } });
      const run = await watch(deployed.configId, ['--quick']);
      expectHarmless(run);
      expect(run.out).toMatch(/^DIFFERS \(SOURCE_REFUSED\): /);
      // The audit connected only to the node of Sui.
      expect([...new Set(run.ports)]).toEqual([Number(new URL(world.node.url).port)]);
    }
    expect(world.git.requests.length).toBe(before);
  });

  test('with a file of 300 MB or a million files stops before it has downloaded them', async () => {
    const largeFile = world.repository();
    // A commit with 300 MB of zeros is a few hundred KB when it is sent; the limit is 200 MB.
    const zeros = largeFile.writeCommit({ ...createdFiles(), 'zeros.bin': Buffer.alloc(300_000_000) });
    const manyFiles = world.repository();
    let tree = manyFiles.writeTree({ a: 'x' });
    for (let depth = 0; depth < 6; depth += 1) {
      tree = manyFiles.tree([...'0123456789'].map((name) => ['40000', name, tree] as const));
    }
    for (const [hostileRepository, commit] of [
      [largeFile, zeros],
      [manyFiles, manyFiles.commit(tree)],
    ] as const) {
      const deployed = await world.deploy(WEATHER, hostileRepository, commit);
      const run = await watch(deployed.configId, ['--source', hostileRepository.folder, '--quick']);
      expectHarmless(run);
      expect(run.out).toMatch(/^DIFFERS \(SOURCE_TOO_LARGE\): /);
    }
  });

  test.each<[string, Files, RegExp]>([
    [
      'tags of YAML',
      { 'src/apps/weather/app.yaml': '!\u001b[2J\nendpoints: []\nsecrets: []\n' },
      /SOURCE_INVALID/,
    ],
    ['settings', { 'src/apps/weather/server.env': '\u001b[2J\u009b=1\n' }, /SOURCE_INVALID/],
    [
      'names of packages',
      { 'package-lock.json': '{"lockfileVersion":3,"packages":{"\\u001b[2J":{}}}' },
      /LOCK_/,
    ],
    [
      'sources of Move, and their paths',
      {
        'move/weather/sources/weather.move': 'module weather::weather; fun \u001b[2J\u202e() {}',
        'move/weather/sources/\u0085\u202e.move': 'module weather::\u009b;',
      },
      /NOT_FULLY_CHECKED/,
    ],
  ])('with escapes in %s prints none of them', async (_name, changes, code) => {
    const hostileRepository = world.repository();
    const commit = hostileRepository.writeCommit({ ...WEATHER.files, ...changes });
    const deployed = await world.deploy(WEATHER, hostileRepository, commit);
    const run = await watch(deployed.configId, ['--source', hostileRepository.folder, '--quick']);
    expectHarmless(run);
    expect(run.out).toMatch(code);
  });

  test('with escapes in every text that an admin can write prints none of them', async () => {
    const hostileRepository = world.repository();
    const commit = hostileRepository.writeCommit(WEATHER.files);
    const name = '\u001b]0;AGREES\u0007\u001b[2J\u202eAGREES: all';
    const deployed = await world.deploy(WEATHER, hostileRepository, commit, {
      name,
      source: { frameworkVersion: '$(touch pwned)' },
    });
    const run = await watch(deployed.configId, ['--source', hostileRepository.folder, '--quick']);
    expectHarmless(run);
    expect(run.out).toMatch(/^DIFFERS \(FRAMEWORK_VERSION\): /);
  });
});
