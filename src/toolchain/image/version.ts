/**
 * Finds the version of a bundle. This module also runs inside the image's build, and so imports only modules
 * that exist there.
 */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { ImageError } from 'sui-enclave-cli/image/errors';

/**
 * Returns the application's version, or the framework's if the application has no package.json with a
 * version.
 */
export function readImageVersion(framework: string, app: string): string {
  for (const folder of [app, join(framework, 'src/server')]) {
    const file = join(folder, 'package.json');
    const { version } = existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')) : {};
    if (typeof version === 'string') return version;
  }
  throw new ImageError('LOCK_INVALID', `neither ${app} nor the framework has a package.json with a version`);
}
