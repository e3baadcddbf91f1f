/**
 * Gives a copy of the repository the installed packages of the original. The repository's own packages come
 * from the copy.
 */
import { lstatSync, mkdirSync, readdirSync, readlinkSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';

/**
 * @param root the repository with the installed packages
 * @param copy gets `node_modules`, with npm's links to workspaces unchanged, and a link to each other package
 */
export function shareModules(root: string, copy: string): void {
  mkdirSync(join(copy, 'node_modules'));
  for (const name of readdirSync(join(root, 'node_modules'))) {
    const installed = join(root, 'node_modules', name);
    const isWorkspace = lstatSync(installed).isSymbolicLink();
    symlinkSync(isWorkspace ? readlinkSync(installed) : installed, join(copy, 'node_modules', name));
  }
}
