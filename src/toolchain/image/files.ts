/**
 * Reads the folders that `files` in `app.yaml` lists. An image has them below /app, at the same paths as
 * beside app.yaml.
 */
import { lstatSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { ConfigError } from 'sui-enclave/errors';
import { printable } from 'sui-enclave-cli/printable';
import type { Manifest } from 'sui-enclave-server/manifest';
import { SERVER_FILES } from './lazy_packages.ts';

/** Maximum size of all of an application's files together, in bytes. They take memory of the enclave. */
export const MAX_FILES_BYTES = 20_000_000;
/** Reserved names in /app, which ramdisks.ts writes. Older images have app.yaml there. */
export const RESERVED = [
  'app.json',
  'app.yaml',
  'ca.pem',
  'enclave.conf',
  'nsm.node',
  'schema.json',
  ...SERVER_FILES,
];

/** Files and folders of an author's repository that are never part of an image. */
export const EXCLUDED_NAMES: ReadonlySet<string> = new Set([
  'node_modules',
  'out',
  'build',
  'move',
  'test',
  '.git',
  '.ci',
  '.github',
]);

/**
 * Reads the files of these folders, in the order of their paths.
 *
 * @param app folder with app.yaml
 * @returns content by path, from the folder of app.yaml
 * @throws ConfigError if a folder or file is missing, is a link or a device, has a name that an image can't
 *   have, or is never part of an image; or if all files together have more than 20,000,000 bytes
 */
export function readFiles(app: string, { files = [] }: Pick<Manifest, 'files'>): Map<string, Buffer> {
  const contents = new Map<string, Buffer>();
  let bytes = 0;
  const add = (path: string) => {
    if (!/^[\x21-\x7e]+$/.test(path)) {
      throw refuse(
        path,
        'has a name with a space, a control character or a letter outside of ASCII: rename it',
      );
    }
    const stats = lstatSync(join(app, path));
    if (stats.isDirectory()) {
      for (const name of readdirSync(join(app, path)).sort()) {
        if (name.startsWith('.') && name !== '.well-known') {
          throw refuse(
            `${path}/${name}`,
            'is a hidden file, and an image can have only .well-known of these: remove it',
          );
        }
        add(`${path}/${name}`);
      }
      return;
    }
    if (!stats.isFile())
      throw refuse(path, 'is neither a file nor a folder: replace a link with a copy of its target');
    bytes += stats.size;
    if (bytes > MAX_FILES_BYTES)
      throw new ConfigError(`app.yaml, files: these have more than ${MAX_FILES_BYTES} bytes`);
    contents.set(path, readFileSync(join(app, path)));
  };
  for (const folder of files) {
    const [top = ''] = folder.split('/');
    if (EXCLUDED_NAMES.has(top) || RESERVED.includes(top) || folder.split('/').includes('node_modules')) {
      throw refuse(folder, 'is a reserved name: rename the folder');
    }
    // Each folder of the path is checked, since a link could point outside the application.
    for (const [at] of folder.split('/').entries()) {
      const ancestor = folder
        .split('/')
        .slice(0, at + 1)
        .join('/');
      if (!lstatSync(join(app, ancestor), { throwIfNoEntry: false })?.isDirectory()) {
        throw refuse(ancestor, 'is not a folder of the application');
      }
    }
    add(folder);
  }
  return contents;
}

function refuse(path: string, fault: string): ConfigError {
  return new ConfigError(`app.yaml, files: ${JSON.stringify(printable(path))} ${fault}`);
}
