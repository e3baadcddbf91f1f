import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { buildContainer } from '../../../../src/toolchain/image/container.ts';

const path = process.env['PATH'];
let dir: string;
let printed: unknown[];

/** Makes a program that records its calls. @param options.buildx whether docker has buildx */
function install(name: string, { fails = false, buildx = true } = {}): void {
  const source = `#!/bin/sh
[ "$1 $2" = "buildx version" ] && ${buildx ? 'exit 0' : 'exit 1'}
[ "$1" = --version ] && exit 0
echo "${name} $*" >> ${dir}/calls
for arg; do [ "$last" = --iidfile ] && echo the-id > "$arg"; last=$arg; done
${fails ? 'exit 7' : 'exit 0'}
`;
  writeFileSync(join(dir, name), source);
  chmodSync(join(dir, name), 0o755);
}

/** Makes unshare, which runs the command after `--`, or fails. */
function installUnshare({ fails = false } = {}): void {
  const source = `#!/bin/sh
echo "unshare $*" >> ${dir}/calls
${
  fails
    ? 'exit 1'
    : `shift 2
case $1 in true) exit 0 ;; esac
exec "$@"`
}
`;
  writeFileSync(join(dir, 'unshare'), source);
  chmodSync(join(dir, 'unshare'), 0o755);
}

/** Returns the calls that built or removed something. */
const calls = () => allCalls().filter((call) => !call.startsWith('unshare'));
const allCalls = () => readFileSync(join(dir, 'calls'), 'utf8').trim().split('\n');
const build = (fresh = false) =>
  buildContainer({ file: 'Containerfile', context: 'ctx', args: { A: 'b' }, output: dir, fresh });

beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'container-'));
  process.env['PATH'] = dir;
  vi.spyOn(process, 'getuid').mockReturnValue(0);
  installUnshare();
  printed = [];
  vi.spyOn(console, 'error').mockImplementation((text) => void printed.push(text));
});
afterEach(() => {
  process.env['PATH'] = path;
  vi.restoreAllMocks();
  rmSync(dir, { recursive: true });
});

describe('the container build', () => {
  test('prefers buildah to podman, and podman to docker, and prints which program it uses', () => {
    install('docker');
    build();
    install('podman');
    build();
    install('buildah');
    build();
    expect(calls().map((call) => call.split(' ')[0])).toEqual(['docker', 'podman', 'buildah']);
    expect(printed).toEqual([
      'Building with docker, which was never tested for this.',
      'Building with podman.',
      'Building with buildah.',
    ]);
  });

  test('prints that podman was never tested for images in its own storage', () => {
    install('podman');
    buildContainer({ file: 'Containerfile', context: 'ctx', args: {}, output: { image: 'x' } });
    expect(printed).toEqual(['Building with podman, which was never tested for this.']);
  });

  test('calls podman with the options of buildah', () => {
    install('podman');
    build();
    build(true);
    const common = `--file Containerfile --output type=local,dest=${dir} --build-arg A=b ctx`;
    const head = `podman build --isolation chroot --timestamp 0 --iidfile ${dir}/image-id`;
    expect(calls()).toEqual([
      `${head} --layers ${common}`,
      `${head} --no-cache ${common}`,
      'podman rmi the-id',
    ]);
  });

  test('uses the cache of earlier builds, unless a fresh build is requested', () => {
    install('buildah');
    build();
    build(true);
    const common = `--file Containerfile --output type=local,dest=${dir} --build-arg A=b ctx`;
    const head = `buildah build --isolation chroot --timestamp 0 --iidfile ${dir}/image-id`;
    expect(calls()).toEqual([
      `${head} --layers ${common}`,
      `${head} --no-cache ${common}`,
      'buildah rmi the-id',
    ]);
  });

  test.each([
    ['root', 0, ['unshare --net -- true', 'unshare --net -- buildah build']],
    [
      'a user',
      1000,
      ['buildah unshare unshare --net -- true', 'buildah unshare unshare --net -- buildah build'],
    ],
  ])('gives buildah no network if it is run by %s', (_who, user, expected) => {
    vi.spyOn(process, 'getuid').mockReturnValue(user);
    install('buildah');
    build();
    expect(allCalls().filter((call) => expected.some((start) => call.startsWith(start)))).toHaveLength(2);
  });

  test("gives docker no network, by docker's own option", () => {
    install('docker');
    build();
    expect(calls()).toEqual([expect.stringContaining(' --network=none ')]);
  });

  test('refuses to build if the program would have a network', () => {
    installUnshare({ fails: true });
    install('buildah');
    expect(build).toThrow(
      expect.objectContaining({ code: 'NO_BUILDER', message: expect.stringContaining('without a network') }),
    );
    expect(calls()).toEqual([]);
  });

  test('uses docker only with buildx', () => {
    install('docker', { buildx: false });
    expect(() => build()).toThrow(expect.objectContaining({ code: 'NO_BUILDER' }));
  });

  test('names the programs to install if none is installed', () => {
    expect(() => build()).toThrow(
      expect.objectContaining({
        code: 'NO_BUILDER',
        message: expect.stringContaining('apt-get install buildah (or podman, or docker with buildx)'),
      }),
    );
  });

  test('stops when the program fails', () => {
    install('buildah', { fails: true });
    expect(() => build()).toThrow(expect.objectContaining({ code: 'COMMAND_FAILED' }));
  });
});
