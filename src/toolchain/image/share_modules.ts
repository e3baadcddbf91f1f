/**
 * Links the packages that are installed in a repository into a copy of it. The repository's own packages come
 * from the copy.
 */
import { lstatSync, mkdirSync, readdirSync, readlinkSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';

/**
 * @param root the repository with the installed packages
 * @param copy folder of the copy. Its new `node_modules` has npm's links to workspaces, unchanged, and a link
 *   to every package that npm installed
 */
export function shareModules(root: string, copy: string): void {
  mkdirSync(join(copy, 'node_modules'));
  for (const name of readdirSync(join(root, 'node_modules'))) {
    const installedPath = join(root, 'node_modules', name);
    const isWorkspace = lstatSync(installedPath).isSymbolicLink();
    symlinkSync(isWorkspace ? readlinkSync(installedPath) : installedPath, join(copy, 'node_modules', name));
  }
}
