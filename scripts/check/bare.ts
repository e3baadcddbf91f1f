/**
 * `npm run bare`: does what a reader does on a new machine. Makes a bare Debian in a temporary folder, and
 * installs only the packages that CONTRIBUTING.md names. As an ordinary user, clones this repository there,
 * and runs `make dev` with the README's request, `make test`, `make play`, and an application that
 * `create-sui-enclave` writes. Each step runs in namespaces of its own, so none of its processes and mounts
 * outlives it. Servers run in a network that has only loopback.
 */
import { execFileSync, spawnSync } from 'node:child_process';
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { command, type Io, runAsProcess, UsageError } from '../../src/cli/command.ts';
import { CodedError } from '../../src/library/errors.ts';

/** Every code of a BareError, and what it means. */
export const BARE_CODES = {
  STEP_FAILED: 'A step failed: its output ends with the reason.',
} as const;

class BareError extends CodedError<keyof typeof BARE_CODES> {}

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const RELEASE = 'bookworm';
const USER = 'reader';
const HOME = `/home/${USER}`;

export interface Step {
  readonly name: string;
  /** Script that bash runs in the bare Debian. */
  readonly script: string;
  /** Whether the script runs as root. Default: as the ordinary user. */
  readonly asRoot?: boolean;
  /** Whether the script reaches registries. By default, it reaches only loopback. */
  readonly hasNetwork?: boolean;
}

/** Returns the first match on the page: a command that a reader types. @throws UsageError if none matches */
function findCommand(page: string, pattern: RegExp): string {
  const [text] = pattern.exec(page) ?? [];
  if (text === undefined) throw new UsageError(`the pages have no command like ${pattern}`);
  return text.trim();
}

/** Returns a script that starts a server, waits until it prints a line, runs commands and ends the server. */
const serve = (server: string, ready: string, commands: string) => `
: >~/server.log
${server} >~/server.log 2>&1 & server=$!
until grep -q '${ready}' ~/server.log; do
  kill -0 $server || { cat ~/server.log; exit 1; }
  sleep 0.2
done
${commands}
kill $server
wait $server || true`;

/**
 * Returns the steps. @param pages the text of CONTRIBUTING.md and README.md, from which the steps take their
 * commands
 */
export function readSteps(pages: string): readonly Step[] {
  const packages = findCommand(pages, /apt install [\w+ -]+/)
    .replace('apt install', '')
    .trim();
  const node = findCommand(pages, /^npm install --global [^#\n]+/m);
  const request = findCommand(pages, /^curl -s http:\/\/127\.0\.0\.1:3000\/process_data [^`]+/m);
  const checkSigned = `| tee ~/answer.json; grep -q '"signature":"[0-9a-f]\\{128\\}"' ~/answer.json`;
  return [
    {
      name: 'install the packages of Debian',
      asRoot: true,
      hasNetwork: true,
      script: `apt-get update -qq && apt-get install -qq -y --no-install-recommends ${packages}`,
    },
    { name: 'install Node', hasNetwork: true, script: `cd; ${node}` },
    { name: 'clone', script: 'cd; git clone -q /var/tmp/repository.bundle sui-enclave' },
    { name: 'install the packages of npm', hasNetwork: true, script: 'make install' },
    {
      name: "make dev, with the README's request",
      script: serve('make dev', 'curl -s http', `${request} ${checkSigned}`),
    },
    { name: 'make test', script: 'make test' },
    {
      name: 'build what make play serves',
      hasNetwork: true,
      script: 'make package examples/dapp/dist/index.html',
    },
    {
      name: 'make play',
      script: serve('make play', '^Dapp: ', 'curl -sf "$(sed -n "s/^Dapp: *//p" ~/server.log)" >/dev/null'),
    },
    {
      name: 'create an application',
      hasNetwork: true,
      script: `cd; npm exec --yes --package="$(ls sui-enclave/out/create-sui-enclave-*.tgz)" -- create-sui-enclave my-oracle --from sui-enclave/out
cd my-oracle; npm cache add ./packages/*.tgz; npm ci`,
    },
    {
      name: 'run the application',
      script: `cd ~/my-oracle; ${serve('npx --offline sui-enclave dev', 'curl -s http', `bash -c "$(grep -m1 -o 'curl -s http.*' ~/server.log)" ${checkSigned}`)}`,
    },
    { name: 'test the application', script: 'cd ~/my-oracle; npx --offline sui-enclave test' },
  ];
}

export const readPages = () =>
  ['CONTRIBUTING.md', 'README.md'].map((name) => readFileSync(join(ROOT, name), 'utf8')).join('\n');

/**
 * Script that runs as root in namespaces of its own: mounts the file systems that programs expect, and
 * becomes the user.
 */
const ENTER = `set -eu
root=$1 user=$2 script=$3; shift 3
mount -t proc proc "$root/proc"
mount -t devpts -o newinstance,ptmxmode=0666,mode=620 devpts "$root/dev/pts"
mount -t tmpfs -o mode=1777 tmpfs "$root/dev/shm"
ip link set lo up
exec chroot --userspec="$user" "$root" env -i "$@" bash -euo pipefail -c "$script"`;

const read = (program: string, ...args: string[]) => execFileSync(program, args, { encoding: 'utf8' }).trim();

/** Runs a program, whose output goes to standard error. @throws BareError if it is missing or fails */
function run(name: string, program: string, ...args: string[]): void {
  const { status, signal, error } = spawnSync(program, args, { stdio: ['ignore', 2, 2] });
  if (status === 0) return;
  const reason = error
    ? `${program} can't be run: ${(error as NodeJS.ErrnoException).code}`
    : `exit code ${status ?? signal}`;
  throw new BareError('STEP_FAILED', `${name}: ${reason}`);
}

/**
 * Returns the mirror of this machine's own Debian, if it has the same release. Otherwise debootstrap uses its
 * default.
 */
function findMirror(): string[] {
  const lines = read(
    'apt-get',
    'indextargets',
    '--format',
    '$(CODENAME) $(SITE)',
    'Created-By: Packages',
  ).split('\n');
  const [, site] = lines.map((line) => line.split(' ')).find(([codename]) => codename === RELEASE) ?? [];
  return site === undefined ? [] : [site];
}

/** Returns a setting of npm on this machine, which may come from a file, the environment or a default. */
function readNpmSetting(name: string): string | undefined {
  const value = read('npm', 'config', 'get', name);
  return ['', 'null', 'undefined'].includes(value) ? undefined : value;
}

interface Machine {
  readonly environment: readonly string[];
  readonly files: readonly string[];
}

/**
 * Copies this machine's configuration for reaching the registries into the new Debian: apt's settings for
 * downloads, the user's npm file with registry and proxies, name servers, and the certificates of trusted
 * authorities.
 *
 * @returns the environment of every step, and the files of this machine that each step needs at the same path
 */
function copyConfiguration(root: string): Machine {
  const files = new Set(['/etc/resolv.conf', '/etc/hosts']);
  writeFileSync(join(root, 'etc/apt/apt.conf.d/99machine'), read('apt-config', 'dump', 'Acquire'), {
    mode: 0o600,
  });
  const userConfig = readNpmSetting('userconfig');
  const lines = userConfig !== undefined && existsSync(userConfig) ? [readFileSync(userConfig, 'utf8')] : [];
  for (const name of ['registry', 'proxy', 'https-proxy', 'cafile']) {
    const value = readNpmSetting(name);
    if (value !== undefined) lines.push(`${name}=${value}`);
    if (value !== undefined && name === 'cafile') files.add(value);
  }
  mkdirSync(join(root, HOME), { recursive: true });
  writeFileSync(join(root, HOME, '.npmrc'), `${lines.join('\n')}\n`, { mode: 0o600 });
  const environment = Object.entries(process.env).flatMap(([name, value = '']) => {
    const isFile = ['NODE_EXTRA_CA_CERTS', 'SSL_CERT_FILE'].includes(name) && existsSync(value);
    if (isFile) files.add(value);
    return isFile || /^(https?|no)_proxy$/i.test(name) ? [`${name}=${value}`] : [];
  });
  return { environment, files: [...files].filter((file) => existsSync(file)) };
}

function enter(root: string, { environment, files }: Machine, step: Step): void {
  // The files are copied before each step: Debian's ca-certificates may write its own list over this
  // machine's.
  for (const file of files) {
    mkdirSync(join(root, dirname(file)), { recursive: true });
    copyFileSync(file, join(root, file));
  }
  const { name, script, asRoot = false, hasNetwork = false } = step;
  const path = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';
  const variables = asRoot
    ? ['HOME=/root', `PATH=${path}`, 'DEBIAN_FRONTEND=noninteractive']
    : [`HOME=${HOME}`, `PATH=${HOME}/.local/bin:${path}`, 'LANG=C.UTF-8'];
  const namespaces = ['--mount', '--pid', '--fork', '--kill-child', ...(hasNetwork ? [] : ['--net'])];
  const program = asRoot ? script : `cd; [ ! -d sui-enclave ] || cd sui-enclave; ${script}`;
  const user = asRoot ? 'root' : USER;
  run(
    name,
    'unshare',
    ...namespaces,
    'sh',
    '-c',
    ENTER,
    'sh',
    root,
    user,
    program,
    ...environment,
    ...variables,
  );
}

/** Runs a step and measures its time. @returns the name and the seconds */
function measure(
  io: Io,
  name: string,
  work: () => void,
): { readonly name: string; readonly seconds: number } {
  io.error(`\n== ${name}`);
  const start = performance.now();
  work();
  const seconds = Math.round((performance.now() - start) / 1000);
  io.error(`== ${name}: ${seconds} s`);
  return { name, seconds };
}

export const main = command({
  name: 'bare',
  program: 'npm run bare --',
  purpose: `Makes a bare Debian 12 in a temporary folder, with only the packages that CONTRIBUTING.md names. Clones the last commit there
as an ordinary user, and runs make dev with the README's request, make test, make play, and an application that
create-sui-enclave writes. Prints the time of each step, and ends at the first step that fails.
Needs root, Debian's packages debootstrap and iproute2, 5 GB of disk in TMPDIR, and the registries of Debian and npm, which it
reaches with this machine's settings of apt and npm.`,
  arguments: {},
  options: { keep: { help: 'keep the folder, so that you can inspect it' } },
  notes: 'exit codes: 0 all steps passed; 1 a step failed; 2 invalid command line, or not root',
  run({ options: { keep } }, { io }) {
    if (process.getuid?.() !== 0)
      throw new UsageError('this command makes namespaces and devices: run it as root, with sudo');
    const steps = readSteps(readPages());
    const folder = mkdtempSync(join(tmpdir(), 'sui-enclave-bare-'));
    const root = join(folder, 'root');
    try {
      const times = [
        measure(io, 'debootstrap', () =>
          run('debootstrap', 'debootstrap', '--variant=minbase', RELEASE, root, ...findMirror()),
        ),
      ];
      const machine = copyConfiguration(root);
      run(
        'clone',
        'git',
        '-C',
        ROOT,
        'bundle',
        'create',
        '--quiet',
        join(root, 'var/tmp/repository.bundle'),
        'HEAD',
      );
      run('user', 'chroot', root, 'useradd', '--shell', '/bin/bash', USER);
      run('user', 'chroot', root, 'chown', '--recursive', `${USER}:`, HOME);
      for (const step of steps) times.push(measure(io, step.name, () => enter(root, machine, step)));
      const commit = read('git', '-C', ROOT, 'rev-parse', 'HEAD');
      const lines = times.map(({ name, seconds }) => `${String(seconds).padStart(5)} s  ${name}`);
      return {
        json: { commit, steps: times },
        text: [`All steps passed, on ${commit}:`, ...lines].join('\n'),
      };
    } finally {
      if (keep) io.error(`The folder stays: ${root}`);
      else rmSync(folder, { recursive: true, force: true });
    }
  },
});

if (import.meta.main) await runAsProcess(main);
