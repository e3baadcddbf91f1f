/**
 * `sui-enclave update_lock`: writes the lock files with the current versions of the wanted packages, and
 * prints the changes. It needs a Debian machine: apt resolves the dependencies and checks the archive's
 * signatures, in a state folder of its own.
 */
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { command, runAsProcess } from 'sui-enclave-cli/command';
import { ImageError } from 'sui-enclave-cli/image/errors';
import { path } from 'sui-enclave-cli/values';
import { diffLocks, type Lock, type LockedFile, readLock, writeLock } from './lock.ts';
import { type Archive, findMirrors, type Mirrors } from './mirrors.ts';

const KEYRING = '/usr/share/keyrings/debian-archive-keyring.gpg';

/** Apt on an empty system, with the present state of one suite on the mirrors. */
class Apt {
  readonly #dir = mkdtempSync(join(tmpdir(), 'update-lock-'));
  readonly #config = join(this.#dir, 'apt.conf');

  constructor(suite: string, { archives }: Mirrors) {
    for (const folder of ['lists/partial', 'archives/partial', 'parts']) {
      mkdirSync(join(this.#dir, folder), { recursive: true });
    }
    const [main, security] = [archives.debian[0], archives['debian-security'][0]];
    if (main === undefined || security === undefined) {
      throw new ImageError(
        'LOCK_INVALID',
        'npx --offline sui-enclave update_lock needs a mirror of debian and a mirror of debian-security',
      );
    }
    const line = (kind: string, uri: string, suiteName: string) =>
      `${kind} [signed-by=${KEYRING}] ${uri} ${suiteName} main\n`;
    writeFileSync(join(this.#dir, 'status'), '');
    writeFileSync(
      join(this.#dir, 'sources.list'),
      ['deb', 'deb-src']
        .flatMap((kind) => [line(kind, main, suite), line(kind, security, `${suite}-security`)])
        .join(''),
    );
    writeFileSync(
      this.#config,
      [
        ['Dir::State', this.#dir],
        ['Dir::State::lists', join(this.#dir, 'lists')],
        ['Dir::State::status', join(this.#dir, 'status')],
        ['Dir::Cache', this.#dir],
        ['Dir::Etc::sourcelist', join(this.#dir, 'sources.list')],
        ['Dir::Etc::sourceparts', join(this.#dir, 'parts')],
        ['Dir::Etc::preferencesparts', join(this.#dir, 'parts')],
        ['Dir::Etc::preferences', '/dev/null'],
        ['APT::Architecture', 'amd64'],
        ['APT::Architectures', 'amd64'],
        ['APT::Install-Recommends', 'false'],
        ['APT::Get::AllowUnauthenticated', 'false'],
        ['Acquire::Languages', 'none'],
        // Only this user may read the folder, so apt must not change to another user.
        ['APT::Sandbox::User', 'root'],
        ['Acquire::ForceHash', 'sha256'],
      ]
        .map(([key, value]) => `${key} "${value}";\n`)
        .join(''),
    );
    this.#run('update', '-qq', '-o', 'APT::Update::Error-Mode=any');
  }

  packages(names: readonly string[]): LockedFile[] {
    return names.length === 0 ? [] : parseUris(this.#run('install', '--print-uris', '-qq', '-y', ...names));
  }

  /** Returns the original tarball of each source package. */
  sources(names: readonly string[]): LockedFile[] {
    return names.flatMap((name) =>
      parseUris(this.#run('source', '--print-uris', '-qq', name)).filter(({ path }) =>
        /\.orig\.tar\.\w+$/.test(path),
      ),
    );
  }

  close(): void {
    rmSync(this.#dir, { recursive: true });
  }

  #run(...args: string[]): string {
    try {
      return execFileSync('apt-get', args, {
        encoding: 'utf8',
        env: { ...process.env, APT_CONFIG: this.#config, LC_ALL: 'C' },
        stdio: ['ignore', 'pipe', 'inherit'],
      });
    } catch {
      throw new ImageError('COMMAND_FAILED', `apt-get ${args[0]} failed: see above`);
    }
  }
}

/** Parses lines of `'<address>' <file> <size> SHA256:<hex>`. */
export function parseUris(text: string): LockedFile[] {
  const files = text
    .trim()
    .split('\n')
    .map((line) => {
      const [, archive, path, file, size, sha256] =
        /^'https?:\/\/[^']*?\/(debian|debian-security)\/(pool\/[^']+)' (\S+) (\d+) SHA256:([0-9a-f]{64})$/.exec(
          line,
        ) ?? [];
      const [, name, version] =
        /^([^_]+)_([^_]+?)(?:_(?:amd64|all)\.deb|\.orig\.tar\.\w+|\.dsc|\.debian\.tar\.\w+)$/.exec(
          decodeURIComponent(file ?? ''),
        ) ?? [];
      if (archive === undefined || name === undefined || version === undefined) {
        throw new ImageError('COMMAND_FAILED', 'apt-get printed a line in an unknown format');
      }
      return {
        name,
        version,
        archive: archive as Archive,
        path: decodeURIComponent(path as string),
        size: Number(size),
        sha256: sha256 as string,
      };
    });
  return files.sort((a, b) => (a.path < b.path ? -1 : 1));
}

export const main = command({
  name: 'update_lock',
  purpose:
    "Writes the current versions of Debian's packages into lock files, and prints the changes. Needs a Debian machine.",
  example: 'debian.lock.json',
  arguments: { lock: { schema: path, repeated: true } },
  options: {},
  run({ args: { lock: paths } }, { env, io }) {
    const oldLocks = paths.map(readLock);
    const firstLock = oldLocks[0] as Lock;
    const locks: { path: string; changes: readonly string[] }[] = [];
    const apt = new Apt(firstLock.suite, findMirrors(env));
    try {
      const archive_time = new Date().toISOString().replace(/[-:]|\.\d+/g, '');
      const firstPackages = apt.packages(firstLock.wanted);
      const lockedSums = new Set(firstPackages.map(({ sha256 }) => sha256));
      for (const [index, path] of paths.entries()) {
        const lock = oldLocks[index] as Lock;
        // A further lock lists only packages that the first lock lacks, since its packages are installed
        // on top of the packages in the image.
        const packages =
          index === 0
            ? firstPackages
            : apt
                .packages([...firstLock.wanted, ...lock.wanted])
                .filter(({ sha256 }) => !lockedSums.has(sha256));
        const newLock = { ...lock, archive_time, packages, sources: apt.sources(lock.wanted_sources) };
        const changes = diffLocks(lock, newLock);
        if (changes.length > 0) writeLock(path, newLock);
        locks.push({ path, changes });
        io.log([`${path}: ${changes.length === 0 ? 'unchanged' : ''}`, ...changes].join('\n  '));
      }
    } finally {
      apt.close();
    }
    return { json: { locks } };
  },
});

if (import.meta.main) await runAsProcess(main);
