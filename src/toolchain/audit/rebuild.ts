/**
 * Builds the image of a commit again with the auditor's framework, and compares it with the image that the
 * config names.
 */
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdirSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { isConfigError } from 'sui-enclave/errors';
import type { EnclaveConfig } from 'sui-enclave/sui/objects';
import type { Source } from 'sui-enclave/sui/structs';
import type { Environment } from 'sui-enclave-cli/command_line';
import { measureImage } from 'sui-enclave-cli/image/eif/measure';
import { readEif } from 'sui-enclave-cli/image/eif/read';
import { ImageError } from 'sui-enclave-cli/image/errors';
import { printable } from 'sui-enclave-cli/printable';
import { isSameImage } from 'sui-enclave-cli/sui/image_to_allow';
import { LOCK } from '../image/build.ts';
import { compareEifs } from '../image/compare.ts';
import { findBuilder } from '../image/container.ts';
import { hashPackages } from '../image/context.ts';
import { readInputs } from '../image/inputs.ts';
import { CHANNELS, type Channel, createMeasurements } from '../image/measurements.ts';
import { findMirrors, OFFLINE } from '../image/mirrors.ts';
import type { NpmRegistry } from '../image/npm_registry.ts';
import { buildApart } from './build_process.ts';
import { AuditError } from './errors.ts';
import type { AuditedSource } from './source.ts';

export interface RebuildOptions {
  /** Folder for intermediate files. */
  readonly work: string;
  /** Cache of packages, by their digests. */
  readonly cache: string;
  /** The archive of the packages of an earlier build. */
  readonly inputs: string | undefined;
  readonly env: Environment;
  /** Gets each line that the builder prints. */
  readonly log: (line: string) => void;
}

/** Files that the build produced. */
export interface Rebuilt {
  readonly eif: Buffer;
  /** The relay for the parent instance. No register measures it, but the record of the build names it. */
  readonly relay: Buffer;
}

/** Builds the image of a source. @throws AuditError, ImageError, ConfigError */
export type Rebuild = (source: AuditedSource, options: RebuildOptions) => Promise<Rebuilt>;

export const rebuild: Rebuild = async (source, { work, cache, inputs, env, log }) => {
  findBuilder();
  if (inputs !== undefined) readInputs(resolve(inputs), cache);
  const mirrors = inputs === undefined ? findMirrors({ ...env }) : OFFLINE;
  const registry = createNpmRegistry(work, env);
  const dir = join(work, 'image');
  mkdirSync(dir);
  try {
    // The trial start is left out, since it would run the author's code.
    const build = { cache, mirrors, dir, registry, withoutTrial: true };
    const output = await buildApart(source, source.inputs, build, log);
    return { eif: readFileSync(join(output, 'image.eif')), relay: readFileSync(join(output, 'relay')) };
  } catch (error) {
    throw toAuditError(error);
  }
};

/**
 * Returns the registry from which packages of an author's lock file are fetched: the one in the settings of
 * the auditor's npm. None of the other settings is used.
 */
export function createNpmRegistry(work: string, env: Environment): NpmRegistry {
  const folder = join(work, 'npm');
  mkdirSync(folder);
  const url = execFileSync('npm', ['config', 'get', 'registry'], {
    cwd: folder,
    encoding: 'utf8',
    env: { ...env },
    stdio: ['ignore', 'pipe', 'ignore'],
  }).trim();
  return { url, folder };
}

function toAuditError(error: unknown): unknown {
  if (isConfigError(error)) return new AuditError('SOURCE_INVALID', printable(error.message, 400));
  if (!(error instanceof ImageError)) return error;
  const { code, message } = error;
  if (code === 'PACKAGE_CHANGED') return new AuditError(code, printable(message, 400), { cause: error });
  if (code === 'INPUTS_GONE' || code === 'NO_MIRROR') {
    const text = `the image could not be built again: ${message}`;
    return new AuditError('NOT_FULLY_CHECKED', text, { cause: error });
  }
  // The builder has printed the cause on standard error.
  if (code === 'NO_BUILDER') return error;
  return new AuditError('BUILD_FAILED', printable(message, 400), { cause: error });
}

/** Compares the image with the one that the config names, register by register. @throws AuditError */
export function compareRegisters({ eif }: Rebuilt, { image }: Pick<EnclaveConfig, 'image'>): void {
  const builtImage = measureImage(readEif(eif));
  if (isSameImage(builtImage, image)) return;
  const lines = (['pcr0', 'pcr1', 'pcr2'] as const)
    .filter((name) => builtImage[name] !== image[name])
    .map(
      (name) => `${name.toUpperCase()} is ${builtImage[name]} from the sources, and ${image[name]} on chain`,
    );
  throw new AuditError(
    builtImage.pcr1 === image.pcr1 ? 'APPLICATION_DIFFERS' : 'REGISTERS_DIFFER',
    lines.join('\n'),
  );
}

/**
 * Compares the record of the build that the config names with the record of this build.
 *
 * @returns the channel of the build
 * @throws AuditError: MEASUREMENTS_DIFFER
 */
export function compareMeasurements(
  { eif, relay }: Rebuilt,
  audited: AuditedSource,
  source: Source,
): Channel {
  const lock = join(audited.framework, LOCK);
  const packages = hashPackages(audited.inputs.packages);
  const { commit, folder, measurementsSha256 } = source;
  for (const channel of Object.keys(CHANNELS) as Channel[]) {
    const measurements = createMeasurements(
      audited,
      { channel, lock, packages, eif, relay },
      { folder, commit, isUnchanged: true, hasCommittedLock: audited.isApart ? null : true },
    );
    const text = `${JSON.stringify(measurements, null, 2)}\n`;
    if (createHash('sha256').update(text).digest('hex') === measurementsSha256) return channel;
  }
  throw new AuditError(
    'MEASUREMENTS_DIFFER',
    `the build of ${commit} has a measurements.json that differs from the one that the config names (SHA-256 ${measurementsSha256})`,
  );
}

/** Lists the files in which the auditor's image differs from the image of the sources, one per line. */
export function listDifferences({ eif }: Rebuilt, localImage: Buffer): string[] {
  try {
    return compareEifs(eif, localImage).map((line) => printable(line, 300));
  } catch (error) {
    // The file may be the admin's: whatever is wrong with it, the registers differ.
    return [`the local image can't be read: ${printable((error as Error).message)}`];
  }
}
