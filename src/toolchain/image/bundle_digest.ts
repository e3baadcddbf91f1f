/**
 * `sui-enclave bundle_digest`: prints the SHA-256 of each application's bundle, which shows whether a change
 * affects the image.
 */
import { createHash } from 'node:crypto';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { command, runAsProcess } from 'sui-enclave-cli/command';
import { IS_CLONE } from 'sui-enclave-cli/places';
import { path } from 'sui-enclave-cli/values';
import { layContext } from './build.ts';
import { bundle } from './bundle.ts';
import { applicationIn, imageInputs } from './context.ts';
import { NO_MIRRORS } from './mirrors.ts';
import { APP_DIR_OPTION, type BuildSource, findSource } from './source.ts';

const APPS = ['weather', 'salt'];

/**
 * Computes the digest of the list of the bundle's files, as sha256sum writes it. All bundles get the same
 * version here, since the real version changes with each release.
 */
export async function computeDigest(root: string, appDir: string): Promise<string> {
  const stage = mkdtempSync(join(tmpdir(), 'bundle-digest-'));
  try {
    await bundle(root, '0.0.0', appDir, stage);
    const lines = readdirSync(stage)
      .sort()
      .map((name) => `${sha256(readFileSync(join(stage, name)))}  ${name}\n`);
    return sha256(lines.join(''));
  } finally {
    rmSync(stage, { recursive: true });
  }
}

const sha256 = (data: string | Buffer) => createHash('sha256').update(data).digest('hex');

/** Computes the digest of the application as in an image: with only the packages of the lock files. */
async function digestInImage(source: BuildSource, cache: string): Promise<string> {
  const dir = mkdtempSync(join(tmpdir(), 'bundle-digest-'));
  try {
    const context = join(dir, 'context');
    await layContext(source, imageInputs(source, false), { cache, mirrors: NO_MIRRORS, context });
    return await computeDigest(context, applicationIn(source));
  } finally {
    rmSync(dir, { recursive: true });
  }
}

export const main = command({
  name: 'bundle_digest',
  purpose: `Prints the SHA-256 of the server's bundle with each application: the code of an image, without its settings, Node and
the rest of its system. It stays the same if only comments change, or a file moves. Needs no container.`,
  arguments: {},
  options: {
    'app-dir': {
      ...APP_DIR_OPTION['app-dir'],
      help: `in a clone, the folder of one application from its root (default: the folders of ${APPS.join(' and ')})`,
    },
    cache: {
      value: '<folder>',
      help: 'the cache of downloaded packages',
      schema: path,
      default: 'build/packages',
    },
  },
  async run({ options }, { io }) {
    const { 'app-dir': appDir, cache } = options;
    const folders = IS_CLONE && appDir === undefined ? APPS.map((app) => `src/apps/${app}`) : [appDir];
    const digests: Record<string, string> = {};
    for (const source of folders.map(findSource)) {
      const digest = await digestInImage(source, resolve(cache));
      digests[source.name] = digest;
      io.log(`${digest} ${source.name}`);
    }
    return { json: digests };
  },
});

if (import.meta.main) await runAsProcess(main);
