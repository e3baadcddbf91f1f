/** The dapp's built page: that of the clone's example, or of a repository that has one in `page`. */
import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { ConfigError } from 'sui-enclave/errors';
import type { ApplicationFolder, Project } from '../../project.ts';

export interface DappPage {
  /** The folder of the built files. */
  readonly built: string;
  /** The folder of its sources, where `play` builds it; `make play` builds the clone's. */
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

/** @throws ConfigError with what the build has printed */
export async function buildDappPage(root: string): Promise<void> {
  await promisify(execFile)('npm', ['run', '--silent', 'build:page'], { cwd: root }).catch((error) => {
    throw new ConfigError(`npm run build:page failed: ${`${error.stdout}${error.stderr}`.trim()}`);
  });
}
