/** Files that the hosts of deploy/aws/stack.yaml fetch from a bucket, by version and SHA-256. */
import { createHash } from 'node:crypto';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Image } from 'sui-enclave/attestation';
import type { Config } from 'sui-enclave-server/config';
import type { Manifest } from 'sui-enclave-server/manifest';
import { type Environment, UsageError } from '../command.ts';
import { readRegularFile } from '../read_file.ts';
import { loadImage, readConfig, readManifest, requireRegisters } from './image.ts';
import { run } from './programs.ts';

export interface HostFile {
  /** The file's name, in the folder and in the bucket. */
  readonly name: string;
  readonly path: string;
  readonly version: string;
  readonly sha256: string;
  readonly bytes: number;
}

export interface HostFiles {
  readonly node: HostFile;
  readonly program: HostFile;
  readonly image: HostFile;
  /** The keeper's settings, if the folder has any. */
  readonly keeper: HostFile | undefined;
}

/** Facts about the image that decide the parameters of a stack. */
export interface StackImage {
  readonly registers: Image;
  readonly bytes: number;
  readonly manifest: Manifest;
  readonly config: Config;
}

/** Members of the image's archive. */
const MEMBERS = ['nitro.eif', 'nitro.pcrs', 'relay'];

/**
 * Reads a folder with one each of `node-VERSION.tar.gz`, `program-VERSION.tar.gz` and
 * `image-VERSION.tar.gz`, and at most one `keeper-VERSION.yaml`.
 *
 * @throws UsageError, if a file is missing, or if there are several files of a kind
 */
export function readHostFiles(folder: string): HostFiles {
  const names = listFolder(folder);
  const find = (kind: string, extension: string): HostFile | undefined => {
    const pattern = new RegExp(`^${kind}-([0-9A-Za-z][0-9A-Za-z.-]{0,63})\\.${extension}$`);
    const matches = names.flatMap((name) => {
      const [, version] = pattern.exec(name) ?? [];
      return version === undefined ? [] : [{ name, version }];
    });
    const [match] = matches;
    if (matches.length > 1) {
      const list = matches.map(({ name }) => name).join(', ');
      throw new UsageError(`${folder} has several files of a kind, ${list}: keep only one of them`);
    }
    return match && readHostFile(folder, match.name, match.version);
  };
  const findArchive = (kind: string): HostFile => {
    const file = find(kind, 'tar.gz');
    if (file === undefined) throw new UsageError(`${folder} has no ${kind}-VERSION.tar.gz: make it first`);
    return file;
  };
  return {
    node: findArchive('node'),
    program: findArchive('program'),
    image: findArchive('image'),
    keeper: find('keeper', 'yaml'),
  };
}

function listFolder(folder: string): string[] {
  try {
    return readdirSync(folder).sort();
  } catch (error) {
    throw new UsageError(`${folder} can't be read (${(error as NodeJS.ErrnoException).code})`);
  }
}

function readHostFile(folder: string, name: string, version: string): HostFile {
  const path = join(folder, name);
  let content: Buffer;
  try {
    content = readRegularFile(path);
  } catch (error) {
    throw new UsageError(`${path} can't be read (${(error as NodeJS.ErrnoException).code})`);
  }
  const sha256 = createHash('sha256').update(content).digest('hex');
  return { name, path, version, sha256, bytes: content.length };
}

/**
 * Unpacks the image's archive, and measures the image.
 *
 * @throws UsageError, if the archive lacks a file, or if its nitro.pcrs lacks the registers of the EIF;
 *   ImageError: EIF_INVALID
 */
export function readStackImage(env: Environment, { path }: HostFile): StackImage {
  const folder = mkdtempSync(join(tmpdir(), 'sui-enclave-image-'));
  try {
    const args = ['-xz', '-f', '-', '-C', folder, ...MEMBERS];
    const { status } = run(env, 'tar', args, { file: path });
    if (status !== 0) {
      throw new UsageError(
        `${path} must be a tar archive, packed by gzip, with ${MEMBERS.join(', ')} at its top: tar -C out -czf ${path} ${MEMBERS.join(' ')}`,
      );
    }
    const { eif, bytes, registers } = loadImage(join(folder, 'nitro.eif'));
    requireRegisters(join(folder, 'nitro.eif'), registers);
    return { registers, bytes, manifest: readManifest(eif), config: readConfig(eif) };
  } finally {
    rmSync(folder, { recursive: true });
  }
}
