/** Collects the licences of everything in an image: in full for `out/licenses.txt`, as a list for NOTICE. */
import { readdirSync, readFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { ImageError } from 'sui-enclave-cli/image/errors';
import { dataArchive, readTarFile } from './deb.ts';
import type { LockedFile } from './lock.ts';

/** Matches the folder of the package that contains a module. It may be within another package's folder. */
const PACKAGE = /^.*\/node_modules\/(?:@[^/]+\/)?[^/]+(?=\/)/;
/** Folders of the packages that are compiled into the addon, and whose modules are thus not in the bundle. */
export const COMPILED_IN: readonly string[] = ['node_modules/node-addon-api'];
const LICENSE_FILE = /^(licen[cs]e|copying|notice)/i;

/**
 * Programs and libraries of Debian in an image, each with its licence and the package that contains the text
 * of the licence.
 */
export const SYSTEM = [
  { name: 'Linux', package: 'linux-source-6.12', license: 'GPL-2.0-only', texts: 'linux-libc-dev' },
  { name: 'glibc', package: 'libc6', license: 'LGPL-2.1-or-later', texts: 'libc6' },
  {
    name: 'libstdc++',
    package: 'libstdc++6',
    license: 'GPL-3.0-or-later WITH GCC-exception-3.1',
    texts: 'gcc-14-base',
  },
  {
    name: 'libgcc',
    package: 'libgcc-s1',
    license: 'GPL-3.0-or-later WITH GCC-exception-3.1',
    texts: 'gcc-14-base',
  },
] as const;

export interface PackageLicense {
  readonly name: string;
  readonly version: string;
  /** Licence as an SPDX expression. */
  readonly license: string;
  /** Texts of the package's licence files. */
  readonly texts: readonly string[];
}

/**
 * Returns the folders of the packages in a bundle, from the root.
 *
 * @param modules the paths of the modules in the bundle
 */
export function packageFolders(root: string, modules: readonly string[]): string[] {
  const folders = modules.flatMap((path) => PACKAGE.exec(path)?.[0] ?? []);
  return [...new Set(folders)].map((folder) => relative(root, folder)).sort();
}

/**
 * Reads the licences of a server's packages, since its bundle has no comments.
 *
 * @param folders of the packages
 * @throws ImageError: ARCHIVE_INVALID if a package names no licence
 */
export function packageLicenses(folders: readonly string[]): PackageLicense[] {
  return folders.map(readLicense).sort((a, b) => (formatTitle(a) < formatTitle(b) ? -1 : 1));
}

/** @param folder of the package */
export function readLicense(folder: string): PackageLicense {
  const { name, version, license } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
  if (typeof license !== 'string') throw new ImageError('ARCHIVE_INVALID', `${name} names no licence`);
  const files = readdirSync(folder, { withFileTypes: true }).filter(
    (file) => file.isFile() && LICENSE_FILE.test(file.name),
  );
  return {
    name,
    version,
    license,
    texts: files.map((file) => readFileSync(join(folder, file.name), 'utf8').trim()),
  };
}

/** @returns the name, version, licence and text of each package */
export function formatLicenses(packages: readonly PackageLicense[]): string {
  const entries = packages.map(
    (packageLicense) =>
      `--- ${formatTitle(packageLicense)} ---\n\n${packageLicense.texts.map((text) => `${text}\n`).join('\n')}`,
  );
  return `The server contains code of these packages: of node-addon-api in its addon, and of all others in its bundle.\n\n${entries.join('\n')}`;
}

/**
 * Formats the licences of the programs and libraries that the image contains in addition to the bundle.
 *
 * @param deb returns the archive of a Debian package
 */
export function systemLicenses(
  node: PackageLicense,
  debian: readonly LockedFile[],
  deb: (file: LockedFile) => Buffer,
): string {
  const entries = SYSTEM.map((program) => {
    const [{ version }, texts] = [lockedFile(debian, program.package), lockedFile(debian, program.texts)];
    const text = readTarFile(dataArchive(deb(texts)), `./usr/share/doc/${program.texts}/copyright`);
    return `--- ${program.name} ${version}: ${program.license} ---\n\n${text.toString('utf8').trim()}\n`;
  });
  const nodeText = `--- Node ${node.version}: ${node.license} ---\n\n${node.texts.join('\n\n')}\n`;
  return `The image contains these programs and libraries in addition to the server.\n\n${[nodeText, ...entries].join('\n')}`;
}

export function lockedFile(debian: readonly LockedFile[], name: string): LockedFile {
  const lockedDeb = debian.find((file) => file.name === name);
  if (lockedDeb) return lockedDeb;
  throw new ImageError('LOCK_INVALID', `the lock of Debian's packages has no ${name}, which is in the image`);
}

export function formatTitle({ name, version, license }: PackageLicense): string {
  return `${name} ${version}: ${license}`;
}
