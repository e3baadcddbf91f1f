/**
 * Measures the time from a process's start to its first answer, for the image's bundle and for the sources.
 * Compares both with a bare server of Node.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { manifestIn } from '../../../src/server/application/load_application.ts';
import { formatManifest } from '../../../src/server/application/manifest.ts';
import { bundle } from '../../../src/toolchain/image/bundle.ts';
import { median } from './measure.ts';
import type { Comparison } from './table.ts';

const ROOT = fileURLToPath(new URL('../../..', import.meta.url));
const APP = 'src/apps/weather';
const TURNS = 5;

/** Source of a bare server, in JavaScript: stripping types would take a third of the floor's time. */
const BARE = `import { createServer } from 'node:http';
const server = createServer((_request, response) => response.end('Pong!'));
server.listen(0, '127.0.0.1', () => console.log(JSON.stringify({ url: 'http://127.0.0.1:' + server.address().port })));
`;

export async function benchStart(): Promise<Comparison[]> {
  const folder = mkdtempSync(join(tmpdir(), 'bench-start-'));
  try {
    const bare = join(folder, 'bare.mjs');
    writeFileSync(bare, BARE);
    const scripts = { bare, bundle: await writeBundle(folder), sources: join(ROOT, 'src/server/main.ts') };
    const turns: Record<keyof typeof scripts, number>[] = [];
    for (let turn = 0; turn < TURNS; turn++) {
      const [bare, bundle, sources] = [
        await timeStart(scripts.bare),
        await timeStart(scripts.bundle),
        await timeStart(scripts.sources),
      ];
      turns.push({ bare, bundle, sources });
    }
    return [
      {
        ...compare("start to first answer, the image's bundle", 'bundle', turns),
        target: { of: 'ratio', bound: 'at most', value: 1.6 },
      },
      compare('start to first answer, the sources', 'sources', turns),
    ];
  } finally {
    rmSync(folder, { recursive: true });
  }
}

function compare<Name extends string>(
  name: string,
  ours: Name,
  turns: readonly Record<Name | 'bare', number>[],
): Comparison {
  return {
    name,
    floorName: 'bare server',
    unit: 'ms',
    ours: median(turns.map((turn) => turn[ours])),
    floor: median(turns.map(({ bare }) => bare)),
    ratio: median(turns.map((turn) => turn[ours] / turn.bare)),
  };
}

/**
 * Bundles the server as for the image, but with the path of its manifest in this folder. @returns the script
 */
async function writeBundle(folder: string): Promise<string> {
  await bundle(ROOT, 'bench', APP, folder);
  const manifest = join(folder, 'app.json');
  writeFileSync(manifest, formatManifest(manifestIn(join(ROOT, APP))));
  const script = join(folder, 'server.js');
  const code = readFileSync(script, 'utf8');
  if (!code.includes('/app/app.json')) throw new Error("the bundle does not read the image's /app/app.json");
  writeFileSync(script, code.replaceAll('/app/app.json', manifest));
  return script;
}

/**
 * Measures the milliseconds until `GET /` is answered. As soon as the process listens, it prints a line of
 * JSON with its `url`.
 */
async function timeStart(script: string): Promise<number> {
  const start = performance.now();
  const child = spawn(process.execPath, [script], {
    env: { PATH: process.env['PATH'], APP: 'weather', API_KEY: 'none', PORT: '0' },
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  try {
    const listening = new Promise<string>((resolve) => {
      createInterface(child.stdout).on('line', (line) => {
        const { url } = JSON.parse(line) as { url?: string };
        if (url !== undefined) resolve(url);
      });
    });
    const ended = once(child, 'exit').then(([code]) => {
      throw new Error(`${script} ended with ${code} before it listened`);
    });
    ended.catch(() => {});
    const response = await fetch(await Promise.race([listening, ended]));
    await response.text();
    return performance.now() - start;
  } finally {
    const ended = once(child, 'exit');
    child.kill('SIGKILL');
    await ended;
  }
}
