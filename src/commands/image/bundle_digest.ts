/** `sui-enclave bundle_digest`: the SHA-256 of each application's bundle, to see whether a change reaches the image. */
import { createHash } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { command, runAsProcess } from '../command.ts';
import { CLONE, IS_CLONE } from '../places.ts';
import { path } from '../values.ts';
import { layContext } from './build.ts';
import { bundle } from './bundle.ts';
import { applicationIn, imageInputs } from './context.ts';
import { findMirrors } from './mirrors.ts';
import { findSource } from './source.ts';

const APPS = ['weather', 'salt'];

/** SHA-256 in hexadecimal. The version is the same for all, since it changes with each release. */
export async function digestOf(root: string, appDir: string): Promise<string> {
  const stage = mkdtempSync(join(tmpdir(), 'bundle-digest-'));
  try {
    await bundle(root, '0.0.0', appDir, stage);
    return createHash('sha256')
      .update(readFileSync(join(stage, 'server.js')))
      .digest('hex');
  } finally {
    rmSync(stage, { recursive: true });
  }
}

/** Of the application of a repository of its own, with the packages that the lock files name. */
async function digestOfOwn(cache: string): Promise<[name: string, digest: string]> {
  const source = findSource(undefined);
  const dir = mkdtempSync(join(tmpdir(), 'bundle-digest-'));
  try {
    const context = join(dir, 'context');
    layContext(source, imageInputs(source, false), { cache, mirrors: findMirrors({}, () => ''), context });
    return [source.name, await digestOf(context, applicationIn(source))];
  } finally {
    rmSync(dir, { recursive: true });
  }
}

export const main = command({
  name: 'bundle_digest',
  purpose: `Prints the SHA-256 of the server's bundle with each application: the code of an image, without its settings, Node and
the rest of its system. A change of comments, or a file that moves, leaves it as it was. Needs no container.`,
  arguments: {},
  options: {
    cache: {
      value: '<folder>',
      help: 'of packages, for an application in a repository of its own',
      schema: path,
      default: 'build/packages',
    },
  },
  async run({ options }, { io }) {
    const digests = new Map<string, string>();
    if (IS_CLONE) for (const app of APPS) digests.set(app, await digestOf(CLONE, `src/apps/${app}`));
    else digests.set(...(await digestOfOwn(resolve(options.cache))));
    for (const [app, digest] of digests) io.log(`${digest} ${app}`);
    return { json: Object.fromEntries(digests) };
  },
});

if (import.meta.main) await runAsProcess(main);
