/** A copy of the repository with the packages of the original: its own packages must be those of the copy. */
import { lstatSync, mkdirSync, readdirSync, readlinkSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';

/**
 * @param root the repository, whose packages are installed
 * @param copy gets `node_modules`: npm's links to workspaces as they are, and a link to each other package
 */
export function shareModules(root: string, copy: string): void {
  mkdirSync(join(copy, 'node_modules'));
  for (const name of readdirSync(join(root, 'node_modules'))) {
    const installed = join(root, 'node_modules', name);
    const isWorkspace = lstatSync(installed).isSymbolicLink();
    symlinkSync(isWorkspace ? readlinkSync(installed) : installed, join(copy, 'node_modules', name));
  }
}
