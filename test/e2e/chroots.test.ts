/**
 * Packages and releases of one commit have the same bytes when they are made in two chroots that differ in
 * path, user, umask and time zone. (`make verify-build` checks this for the image.) Needs root, to enter a
 * chroot.
 */
import { execFile, execFileSync, spawnSync } from 'node:child_process';
import { generateKeyPairSync } from 'node:crypto';
import {
  chmodSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { homedir, tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, onTestFinished, test } from 'vitest';
import { REPOSITORY, writeBuild } from '../src/cli/releases/release_fixture.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const CACHE = process.env['npm_config_cache'] ?? join(homedir(), '.npm');
const canEnter =
  process.getuid?.() === 0 && spawnSync('unshare', ['--mount', 'true'], { stdio: 'ignore' }).status === 0;

/** Mounts what programs need, and runs make.sh in $TREE as the user $ID. */
const ENTER = `set -euo pipefail
for name in usr bin sbin lib lib64 etc; do
  if [ -L "/$name" ]; then cp -a "/$name" "$CHROOT/$name"
  elif [ -d "/$name" ]; then mkdir "$CHROOT/$name"; mount --bind "/$name" "$CHROOT/$name"; fi
done
mkdir "$CHROOT/proc" "$CHROOT/dev" "$CHROOT/tmp"
mount --rbind /proc "$CHROOT/proc"
mount --rbind /dev "$CHROOT/dev"
mount -t tmpfs -o mode=1777 tmpfs "$CHROOT/tmp"
mkdir "$CHROOT$TREE/node_modules"
mount --bind "$MODULES" "$CHROOT$TREE/node_modules"
exec chroot --userspec="$ID:$ID" "$CHROOT" /usr/bin/env -i \\
  HOME=/tmp PATH="$TREE/node_modules/.bin:/usr/bin:/bin" TZ="$ZONE" npm_config_cache=/npm npm_config_offline=true \\
  GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=safe.directory GIT_CONFIG_VALUE_0='*' \\
  bash -euc 'cd "$0"; umask "$1"; bash -eu make.sh >/dev/null' "$TREE" "$UMASK"
`;

const MAKE = `node scripts/check/pack.ts
node src/cli/main.ts release sign v1.2.0 --repository ${REPOSITORY} --key release/key.pem --log release/log.json \\
  --out release/out --schema release/schema.json --bytecode release/price.bytecode.json
`;

/** Makes packages once with a network, since npm in a chroot has only what is in its cache. */
async function fillCache(): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'cache-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  execFileSync('git', ['clone', '--quiet', '--no-hardlinks', ROOT, folder]);
  symlinkSync(join(ROOT, 'node_modules'), join(folder, 'node_modules'));
  await promisify(execFile)('node', ['scripts/check/pack.ts'], { cwd: folder });
}

interface Surroundings {
  /** Path of the tree in the chroot. */
  readonly tree: string;
  readonly id: number;
  readonly umask: string;
  readonly zone: string;
}

/** Makes packages and a release, and returns their bytes by name. */
async function make(key: string | Buffer, { tree, id, umask, zone }: Surroundings) {
  const chroot = mkdtempSync(join(tmpdir(), 'chroot-'));
  onTestFinished(() => rmSync(chroot, { recursive: true }));
  chmodSync(chroot, 0o755);
  const folder = join(chroot, tree);
  execFileSync('git', ['clone', '--quiet', '--no-hardlinks', ROOT, folder]);
  mkdirSync(join(folder, 'release'));
  writeBuild(join(folder, 'release'));
  writeFileSync(join(folder, 'release/key.pem'), key, { mode: 0o600 });
  writeFileSync(join(folder, 'make.sh'), MAKE);
  // Links take no time, but not every file system has them.
  const { status } = spawnSync('cp', ['-al', CACHE, join(chroot, 'npm')], { stdio: 'ignore' });
  if (status !== 0) execFileSync('cp', ['-a', CACHE, join(chroot, 'npm')]);
  execFileSync('find', [join(chroot, 'npm'), '-type', 'd', '-exec', 'chown', `${id}:${id}`, '{}', '+']);
  execFileSync('chown', ['-R', `${id}:${id}`, folder]);
  const env = {
    PATH: process.env['PATH'],
    CHROOT: chroot,
    TREE: tree,
    MODULES: join(ROOT, 'node_modules'),
    ID: String(id),
    UMASK: umask,
    ZONE: zone,
  };
  await promisify(execFile)('unshare', ['--mount', 'bash', '-c', ENTER], { env });
  const packages = globSync('out/*.tgz', { cwd: folder }).sort();
  for (const file of packages) expect(statSync(join(folder, file)).uid).toBe(id);
  const files = [...packages, 'release/out/release.json'];
  return new Map(files.map((file) => [basename(file), readFileSync(join(folder, file))]));
}

test.skipIf(!canEnter)(
  'packages and a release have the same bytes in a chroot of another user at another path',
  async () => {
    const key = generateKeyPairSync('ed25519').privateKey.export({ format: 'pem', type: 'pkcs8' });
    await fillCache();
    const [first, second] = await Promise.all([
      make(key, { tree: '/srv/tree', id: 1201, umask: '022', zone: 'UTC' }),
      make(key, { tree: '/home/somebody/a/longer path', id: 2402, umask: '077', zone: 'Pacific/Kiritimati' }),
    ]);
    expect([...first.keys()]).toContain('release.json');
    expect([...first.keys()].filter((name) => name.endsWith('.tgz')).length).toBeGreaterThanOrEqual(5);
    expect([...second.keys()]).toEqual([...first.keys()]);
    const differing = [...first].filter(([name, bytes]) => !second.get(name)?.equals(bytes));
    expect(differing.map(([name]) => name)).toEqual([]);
  },
);
