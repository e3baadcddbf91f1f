/**
 * Finds the version of a bundle. This also runs inside the image's build, which has only the modules that it
 * needs.
 */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { ImageError } from 'sui-enclave-cli/image/errors';

/** Returns the application's version; without one, the framework's. */
export function readImageVersion(framework: string, app: string): string {
  for (const folder of [app, join(framework, 'src/server')]) {
    const file = join(folder, 'package.json');
    const { version } = existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')) : {};
    if (typeof version === 'string') return version;
  }
  throw new ImageError('LOCK_INVALID', `${app} has no version`);
}
