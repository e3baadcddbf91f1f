/**
 * Tests each row of the table of Express habits in src/apps/README.md, with an application that is loaded as
 * `make dev` loads it, and with one that is bundled as in an image.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { manifestIn } from '../../../src/server/application/load_application.ts';
import { formatManifest } from '../../../src/server/application/manifest.ts';
import { bundle } from '../../../src/toolchain/image/bundle.ts';
import { COMPILE_CACHE } from '../../compile_cache.ts';
import { HABITS } from './express_habits.ts';

const ROOT = fileURLToPath(new URL('../../..', import.meta.url));
const APP = 'test/fixtures/apps/habits';

let folder: string;

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'habits-'));
  writeFileSync(join(folder, 'a.txt'), 'a file');
});
afterAll(() => rmSync(folder, { recursive: true }));

interface StartedServer {
  readonly url: string;
  readonly child: ChildProcess;
}

async function start(args: readonly string[]): Promise<StartedServer> {
  const child = spawn(process.execPath, args, {
    env: {
      ...COMPILE_CACHE,
      APP: 'habits',
      PORT: '0',
      CORS_ORIGINS: 'https://a.example',
      TRUSTED_PROXIES: '1',
      REQUEST_TIMEOUT_MS: '2000',
      HABITS_FILES: folder,
    },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  let printed = '';
  for await (const chunk of child.stdout.setEncoding('utf8').iterator({ destroyOnReturn: false })) {
    printed += chunk;
    const [, url] = /"url":"([^"]+)"/.exec(printed) ?? [];
    if (url === undefined) continue;
    child.stdout.resume();
    return { url, child };
  }
  throw new Error(`the server has ended: ${printed}`);
}

/** Starts the server as `make dev` does: Node runs the application's TypeScript. */
function startFromSource(): Promise<StartedServer> {
  const source = `
    import { loadFolder } from ${JSON.stringify(join(ROOT, 'src/server/application/load_application.ts'))};
    import { start } from ${JSON.stringify(join(ROOT, 'src/server/start.ts'))};
    await start({ version: '0.0.0', nsmAddon: '/none', load: (name) => loadFolder(${JSON.stringify(join(ROOT, APP))}, name) });
  `;
  return start(['--input-type=module', '--eval', source]);
}

/** Starts the server as in an image, except that its files are in another folder. */
async function startBundle(): Promise<StartedServer> {
  await bundle(ROOT, '0.0.0', APP, folder);
  writeFileSync(join(folder, 'app.json'), formatManifest(manifestIn(join(ROOT, APP))));
  const file = join(folder, 'server.js');
  writeFileSync(file, readFileSync(file, 'utf8').replaceAll('"/app/', `"${folder}/`));
  return start([file]);
}

describe.each([
  ['the server of make dev', startFromSource],
  ["the image's bundle", startBundle],
])('in %s', (_name, startServer) => {
  let server: StartedServer;
  beforeAll(async () => {
    server = await startServer();
  });
  afterAll(async () => {
    server.child.kill();
    await once(server.child, 'exit');
  });

  test.each(HABITS)('$name', async ({ attempt }) => {
    await attempt((path, init) => fetch(server.url + path, init), server.url);
  });
});

test('the table of the page has exactly these rows', () => {
  const page = readFileSync(join(ROOT, 'src/apps/README.md'), 'utf8');
  const [, after = ''] = page.split('\n| habit | here |\n| --- | --- |\n');
  const [table = ''] = after.split('\n\n');
  const rows = table.split('\n').map((row) => row.split(' | ')[0]?.slice(2));
  expect(rows).toEqual(HABITS.map(({ name }) => name));
});
