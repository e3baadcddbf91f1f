/** `out/licenses.txt`: the licences of the packages in a bundle, whose comments the bundle leaves out. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { ImageError } from './errors.ts';

/** The folder of a module's package, which may be within that of another. */
const PACKAGE = /^.*\/node_modules\/(?:@[^/]+\/)?[^/]+(?=\/)/;
const LICENSE_FILE = /^(licen[cs]e|copying|notice)/i;

/**
 * @param modules the paths of the modules in the bundle
 * @returns for each package its name, version, licence and the text of it, sorted by name
 * @throws ImageError: ARCHIVE_INVALID if a package names no licence
 */
export function licensesOf(modules: readonly string[]): string {
  const folders = new Set(modules.flatMap((path) => PACKAGE.exec(path)?.[0] ?? []));
  const entries = [...folders].map(describePackage).sort();
  return `The server's bundle contains code of these packages.\n\n${entries.join('\n')}`;
}

function describePackage(folder: string): string {
  const { name, version, license } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
  if (typeof license !== 'string') throw new ImageError('ARCHIVE_INVALID', `${name} names no licence`);
  const files = readdirSync(folder, { withFileTypes: true }).filter(
    (file) => file.isFile() && LICENSE_FILE.test(file.name),
  );
  const texts = files.map((file) => readFileSync(join(folder, file.name), 'utf8').trim());
  return `--- ${name} ${version}: ${license} ---\n\n${texts.map((text) => `${text}\n`).join('\n')}`;
}
