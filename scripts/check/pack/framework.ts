/**
 * Packs the sources of images for the published commands. `framework/` has the same sources as a clone, so
 * that both build the same images.
 */
import { createHash } from 'node:crypto';
import { cpSync, globSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { imageSources, type NpmLock, neededByImage, readLock } from '../../../src/toolchain/image/context.ts';
import { ROOT, type Tarball } from './tarball.ts';

/**
 * Files besides the sources: the recipe, and the lock file of the packages that `verify-build` adds to a
 * base.
 */
const FILES = ['Containerfile', 'test/src/toolchain/image/clock.lock.json'];

/**
 * Writes the sources to `framework` in a package.
 *
 * @param folder of the package
 * @param tarballs packages whose integrity is recorded in the folder, in the format of lock files
 */
export function layFramework(folder: string, tarballs: readonly Tarball[]): void {
  const target = join(folder, 'framework');
  const lock = readLock(ROOT);
  const needed = neededByImage(ROOT, undefined, lock);
  const sources = imageSources(needed, undefined);
  for (const path of [...sources, ...FILES].flatMap(listFiles)) {
    mkdirSync(dirname(join(target, path)), { recursive: true });
    cpSync(join(ROOT, path), join(target, path));
  }
  const paths = [...needed.modules, ...needed.workspaces, ...Object.keys(needed.links)].sort();
  const packages: Record<string, NpmLock['packages'][string]> = {};
  for (const path of paths) packages[path] = lock.packages[path] ?? {};
  const integrity = (file: string) =>
    `sha512-${createHash('sha512')
      .update(readFileSync(join(ROOT, file)))
      .digest('base64')}`;
  const integrities = Object.fromEntries(tarballs.map(({ name, file }) => [name, integrity(file)]));
  writeFileSync(join(target, 'packages.json'), `${JSON.stringify(integrities, null, 1)}\n`);
  writeFileSync(join(target, 'package-lock.json'), `${JSON.stringify({ packages }, null, 1)}\n`);
}

/** Lists a file, or all files in a folder except for installed packages. */
function listFiles(path: string): string[] {
  const inside = globSync(`${path}/**`, { cwd: ROOT, exclude: ['**/node_modules/**'] });
  return inside.filter((file) => statSync(join(ROOT, file)).isFile());
}
