/** `.ci/run` installs what a machine lacks. */
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { beforeEach, expect, onTestFinished, test } from 'vitest';

const SCRIPT = readFileSync(fileURLToPath(new URL('../.ci/run', import.meta.url)), 'utf8');
const FUNCTIONS = ['have', 'find_all'].map((name) => {
  const [text = ''] = new RegExp(`^${name}\\(\\) \\{\\n[^]*?^\\}$`, 'm').exec(SCRIPT) ?? [];
  return text;
});

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'ci-test-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  mkdirSync(join(folder, 'bin'));
});

const addProgram = (name: string, text = '') =>
  writeFileSync(join(folder, 'bin', name), `#!/bin/bash\n${text}\n`, { mode: 0o755 });

/** Runs `have` on a machine where only the fakes are installed. */
function have(...args: string[]) {
  const script = [...FUNCTIONS, 'have "$@"'].join('\n');
  const { status, stdout } = spawnSync('/bin/bash', ['-euc', script, 'bash', ...args], {
    encoding: 'utf8',
    env: { PATH: join(folder, 'bin') },
  });
  return { isInstalled: status === 0, calls: stdout.trimEnd().split('\n').filter(Boolean) };
}

const APT = ['apt-get update -qq', 'apt-get install -qq -y buildah xz-utils'];

test('installs nothing if the machine has every program and file', () => {
  addProgram('buildah');
  addProgram('xz');
  expect(have('buildah xz', 'buildah', 'xz-utils')).toEqual({ isInstalled: true, calls: [] });
  expect(have(`xz ${folder}/bin`, 'buildah', 'xz-utils')).toEqual({ isInstalled: true, calls: [] });
});

test('installs the packages if any program or file is missing', () => {
  addProgram('buildah');
  const xz = join(folder, 'bin/xz');
  addProgram('apt-get', `echo "apt-get $*"; [ "$1" = update ] || { echo >${xz}; /bin/chmod +x ${xz}; }`);
  expect(have('buildah xz', 'buildah', 'xz-utils')).toEqual({ isInstalled: true, calls: APT });
  expect(have(`buildah ${folder}/header.h`, 'buildah', 'xz-utils')).toEqual({
    isInstalled: false,
    calls: APT,
  });
});

test('fails if a program is missing after the installation, or if the installation fails', () => {
  addProgram('apt-get', 'echo "apt-get $*"');
  expect(have('buildah xz', 'buildah', 'xz-utils')).toEqual({ isInstalled: false, calls: APT });
  addProgram('apt-get', 'exit 100');
  expect(have('buildah xz', 'buildah', 'xz-utils')).toEqual({ isInstalled: false, calls: [] });
});
