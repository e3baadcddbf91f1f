/** `sui-enclave bundle_digest`: the SHA-256 of each application's bundle, to see whether a change reaches the image. */
import { createHash } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { command, runAsProcess } from '../command.ts';
import { bundle } from './bundle.ts';

const ROOT = fileURLToPath(new URL('../../..', import.meta.url));
const APPS = ['weather', 'salt'];

/** SHA-256 in hexadecimal. The version is the same for all, since it changes with each release. */
export async function digestOf(root: string, app: string): Promise<string> {
  const stage = mkdtempSync(join(tmpdir(), 'bundle-digest-'));
  try {
    await bundle(root, '0.0.0', `src/apps/${app}`, stage);
    return createHash('sha256')
      .update(readFileSync(join(stage, 'server.js')))
      .digest('hex');
  } finally {
    rmSync(stage, { recursive: true });
  }
}

export const main = command({
  name: 'bundle_digest',
  purpose: `Prints the SHA-256 of the server's bundle with each application: the code of an image, without its settings, Node and
the rest of its system. A change of comments, or a file that moves, leaves it as it was. Needs no container.`,
  arguments: {},
  options: {},
  async run(_, { io }) {
    const digests: Record<string, string> = {};
    for (const app of APPS) {
      const digest = await digestOf(ROOT, app);
      digests[app] = digest;
      io.log(`${digest} ${app}`);
    }
    return { json: digests };
  },
});

if (import.meta.main) await runAsProcess(main);
