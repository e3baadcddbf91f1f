/** Creates the content of `out/measurements.json`: the sources of an image, and its measurements. */

import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Image } from 'sui-enclave/attestation';
import { ConfigError } from 'sui-enclave/errors';
import { measureImage } from 'sui-enclave-cli/image/eif/measure';
import { readEif } from 'sui-enclave-cli/image/eif/read';
import { readVersion } from 'sui-enclave-cli/release';
import { manifestIn } from 'sui-enclave-server/load_application';
import * as v from 'valibot';
import { readLock } from './context.ts';
import type { NodeBinary } from './node_binary.ts';
import { type BuildSource, findFolder } from './source.ts';

export const CHANNELS = {
  stable: 'A tagged release, built from an unchanged tree: everyone who builds the tag gets these registers.',
  experimental: 'Any other build: the next commit may change the registers, and nothing should rely on them.',
} as const;
export type Channel = keyof typeof CHANNELS;

/** Command line option of the commands that build and pack. */
export const CHANNEL_OPTION = {
  channel: {
    value: '<channel>',
    help: 'stable for a tagged release, experimental for any other build',
    schema: v.picklist(['stable', 'experimental'], 'must be stable or experimental'),
    default: 'experimental',
    variable: 'CHANNEL',
  },
} as const;

export interface ImageBuild {
  readonly channel: Channel;
  /** Path of the lock file of the Debian packages that the image was built from. */
  readonly lock: string;
  /** The digest of the npm packages in the image. */
  readonly packages: string;
  readonly eif: Buffer;
  /** The program for the parent instance, which no register measures. */
  readonly relay: Uint8Array;
  /** The Node of the image, if it is not the pinned one. */
  readonly node?: Pick<NodeBinary, 'version' | 'sha256'>;
}

export function makeMeasurements(source: BuildSource, build: ImageBuild): object {
  const { root, isApart } = source;
  return createMeasurements(source, build, {
    ...readOrigin(source),
    // The lock file of an installed framework changes only with its version.
    hasCommittedLock: isApart ? null : isUnchanged(root, build.lock),
  });
}

function readOrigin(source: BuildSource): Omit<BuildOrigin, 'hasCommittedLock'> {
  const { root } = source;
  return {
    folder: findFolder(source),
    commit: git(root, 'rev-parse', 'HEAD'),
    isUnchanged: isUnchanged(root, '.') && !hasIgnoredFiles(source),
  };
}

/**
 * Returns whether git ignores one of the application's `files`, such as a result of another build. The commit
 * then does not determine the image.
 */
function hasIgnoredFiles({ app }: BuildSource): boolean {
  const { files = [] } = manifestIn(app);
  const ignored = files.length > 0 && git(app, 'status', '--porcelain', '--ignored', '--', ...files);
  return ignored !== false && ignored !== '';
}

/** Values of a record without a build. Its registers are those of an emulated enclave. */
const DEVELOPMENT = {
  channel: 'development',
  promise:
    'No image: these are the registers of an emulated enclave, which anyone can attest. Nothing may rely on them.',
} as const;

/**
 * Makes the record that `sui-enclave dev` writes for an emulated enclave. With this record,
 * developers can try the steps that otherwise require the build of an image.
 */
export function makeDevelopmentMeasurements(source: BuildSource, registers: Image): object {
  return createDevelopmentMeasurements(source, registers, readOrigin(source));
}

export function createDevelopmentMeasurements(
  { name, isApart, app }: Pick<BuildSource, 'name' | 'isApart' | 'app'>,
  registers: Image,
  { folder, commit, isUnchanged: isSame }: Omit<BuildOrigin, 'hasCommittedLock'>,
): object {
  return {
    application: name,
    folder,
    framework_version: readVersion(),
    framework_integrity: isApart ? readIntegrity(app) : null,
    secrets: manifestIn(app).secrets,
    commit,
    unchanged_tree: isSame,
    ...DEVELOPMENT,
    registers,
  };
}

/** Facts about the repository of a build. */
export interface BuildOrigin {
  /** Folder of the application, from the root of the repository. */
  readonly folder: string;
  readonly commit: string | null;
  readonly isUnchanged: boolean | null;
  readonly hasCommittedLock: boolean | null;
}

/** Creates the measurements. The same image, commit and channel always give the same measurements. */
export function createMeasurements(
  { name, isApart, app }: Pick<BuildSource, 'name' | 'isApart' | 'app'>,
  { channel, lock, packages, eif, relay, node }: ImageBuild,
  { folder, commit, isUnchanged: isSame, hasCommittedLock }: BuildOrigin,
): object {
  const { kernel, ramdisks } = readEif(eif);
  const [boot, application] = ramdisks as [Uint8Array, Uint8Array];
  return {
    application: name,
    folder,
    framework_version: readVersion(),
    // The value comes from the application's lock file. In a clone it is null, since the clone's commit is
    // the framework's.
    framework_integrity: isApart ? readIntegrity(app) : null,
    // Only the names of the secrets are recorded. An image that needs secrets should have no open config.
    secrets: manifestIn(app).secrets,
    commit,
    unchanged_tree: isSame,
    committed_lock: hasCommittedLock,
    channel,
    promise: CHANNELS[channel],
    ...(node && { node_version: node.version }),
    registers: measureImage(readEif(eif)),
    sha256: {
      eif: sha256(eif),
      kernel: sha256(kernel),
      boot_ramdisk: sha256(boot),
      application_ramdisk: sha256(application),
      debian_lock: sha256(readFileSync(lock)),
      npm_packages: packages,
      relay: sha256(relay),
      ...(node && { node: node.sha256 }),
      ...(isApart && { package_lock: sha256(readFileSync(join(app, 'package-lock.json'))) }),
    },
  };
}

/** Reads the integrity of the installed commands from an application's lock file. */
function readIntegrity(app: string): string | null {
  const { packages } = readLock(app);
  return packages['node_modules/sui-enclave-toolchain']?.integrity ?? null;
}

/** @throws ConfigError if the channel is `stable`, and the tree has changes or no tag of a version */
export function checkChannel(root: string, channel: Channel, sources: readonly string[]): void {
  if (channel !== 'stable') return;
  const tags = git(root, 'tag', '--points-at', 'HEAD') ?? '';
  if (!/^v\d+\.\d+\.\d+$/m.test(tags)) {
    throw new ConfigError(
      'CHANNEL=stable needs a commit with a tag such as v1.2.3: the current commit has no such tag',
    );
  }
  const changes = git(root, 'status', '--porcelain');
  if (changes !== '') throw new ConfigError(`CHANNEL=stable needs a tree without changes:\n${changes}`);
  // The image gets the sources as they are on the disk, including files that git ignores.
  const ignored = git(root, 'status', '--porcelain', '--ignored', '--', ...sources);
  if (ignored !== '') {
    throw new ConfigError(`CHANNEL=stable needs sources of the image without ignored files:\n${ignored}`);
  }
}

/** Runs git; returns null outside a git repository, such as in an archive of a release. */
function git(root: string, ...args: string[]): string | null {
  try {
    return execFileSync('git', args, {
      cwd: root,
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'ignore'],
    }).trim();
  } catch {
    return null;
  }
}

/** Returns whether a path is unchanged since it was committed; null if that can't be determined. */
export function isUnchanged(root: string, path: string): boolean | null {
  const changes = git(root, 'status', '--porcelain', '--', path);
  return changes === null ? null : changes === '';
}

function sha256(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex');
}
