/**
 * Finds and builds the dapp's page: the clone's example, or the folder `page` of a repository that has one.
 */
import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { ConfigError } from 'sui-enclave/errors';
import type { ApplicationFolder, Project } from '../../project.ts';

export interface DappPage {
  /** Folder of the built files. */
  readonly built: string;
  /** Folder of the page's sources, if `play` builds the page. In a clone, `make play` builds it. */
  readonly source?: string;
}

/** @returns undefined if there is no page for the application */
export function findDappPage(
  { root, isClone }: Project,
  { name, folder }: ApplicationFolder,
): DappPage | undefined {
  if (isClone) {
    const built = join(root, 'examples/dapp/dist');
    return name === 'weather' && existsSync(join(built, 'index.html')) ? { built } : undefined;
  }
  const source = join(folder, 'page');
  return existsSync(join(source, 'index.html')) ? { built: join(source, 'dist'), source } : undefined;
}

/** Builds the page of a repository. @throws ConfigError with the output of the build */
export async function buildDappPage(root: string): Promise<void> {
  await promisify(execFile)('npm', ['run', '--silent', 'build:page'], { cwd: root }).catch((error) => {
    throw new ConfigError(`npm run build:page failed: ${`${error.stdout}${error.stderr}`.trim()}`);
  });
}
