/** The application of src/apps/README.md, followed to the letter: in a copy of the repository, by the commands that it names. */
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { bundle } from '../../../scripts/image/bundle.ts';
import { makeEnvironment, makeSettings } from '../../../scripts/image/settings.ts';
import { parseManifest } from '../../../src/app.ts';

const ROOT = fileURLToPath(new URL('../../..', import.meta.url));
const README = readFileSync(join(ROOT, 'src/apps/README.md'), 'utf8');
const COPIED = [
  ...['src', 'scripts', 'enclave', 'move/enclave', 'test/src/support.ts', 'scripts/dev/move_framework'],
  ...['package.json', 'tsconfig.json', 'biome.json', 'vitest.config.ts', '.gitignore'],
];

/** Path and text of each file that the page shows. */
const files = new Map(
  [...README.matchAll(/^`([\w./]+)`\n\n```\w+\n(.*?)^```$/gms)].map(([, path = '', text = '']) => [
    path,
    text,
  ]),
);
const code = [...files.keys()].filter((path) => path.endsWith('.ts'));

let dir: string;

beforeAll(() => {
  dir = mkdtempSync(join(tmpdir(), 'sui-enclave-app-'));
  for (const path of COPIED) cpSync(join(ROOT, path), join(dir, path), { recursive: true });
  symlinkSync(join(ROOT, 'node_modules'), join(dir, 'node_modules'));
  for (const [path, text] of files) {
    mkdirSync(dirname(join(dir, path)), { recursive: true });
    writeFileSync(join(dir, path), text);
  }
});
afterAll(() => rmSync(dir, { recursive: true }));

/** Runs a program of the copy, without anything of this test's own environment. */
function run(program: string, ...args: string[]): Promise<{ code: number; output: string }> {
  const options = { cwd: dir, env: { PATH: `${ROOT}/node_modules/.bin:${process.env['PATH']}` } };
  return new Promise((resolve) => {
    execFile(program, args, options, (error, stdout, stderr) =>
      resolve({ code: error ? 1 : 0, output: stdout + stderr }),
    );
  });
}

function dev(env: Record<string, string>): { child: ChildProcess; output: () => string } {
  const child = spawn(process.execPath, ['scripts/dev/main.ts'], {
    cwd: dir,
    env: { APP: 'price', PORT: '0', ...env },
  });
  onTestFinished(() => {
    child.kill('SIGKILL');
  });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream?.on('data', (chunk) => {
      output += chunk;
    });
  }
  return { child, output: () => output };
}

test('the page shows every file of it', () => {
  expect([...files.keys()]).toEqual([
    'src/apps/price/app.yaml',
    'src/apps/price/server.env',
    'src/apps/price/app.ts',
    'scripts/dev/apps/price.ts',
    'test/src/apps/price/app.test.ts',
    'move/price/Move.toml',
    'move/price/sources/price.move',
    'move/price/tests/price_tests.move',
  ]);
});

describe('the application of the page', () => {
  test('compiles, and is formatted as everything here', async () => {
    const config = { extends: './tsconfig.json', include: [], files: code };
    writeFileSync(join(dir, 'tsconfig.price.json'), JSON.stringify(config));
    expect(await run('tsc', '-p', 'tsconfig.price.json')).toEqual({ code: 0, output: '' });
    const checked = await run('biome', 'check', '--error-on-warnings', ...code);
    expect(checked.code, checked.output).toBe(0);
  }, 60_000);

  test('passes its own test', async () => {
    const { code, output } = await run('vitest', 'run', 'test/src/apps/price');
    expect(code, output).toBe(0);
    expect(output).toMatch(/4 passed/);
  }, 60_000);

  test('has a Move module that passes its test', async () => {
    const { code, output } = await run(process.execPath, 'scripts/check/move.ts', 'price');
    expect(code, output).toBe(0);
    expect(output).toMatch(/Test result: OK\. Total tests: 1/);
    expect(output).not.toMatch(/warning/);
  }, 60_000);

  test('answers the request that make dev prints, with the key of the stand-in alone', async () => {
    const { output } = dev({ PRICE_API_KEY: 'my-real-key' });
    await expect.poll(output, { timeout: 10_000 }).toMatch(/Ctrl-C ends it/);
    expect(output()).toMatch(/runs against stand-ins of api\.prices\.example\. Try,/);
    const [, url = '', body = ''] =
      /curl -s (\S+) -H 'Content-Type: application\/json' -d '(.*)'/.exec(output()) ?? [];
    const headers = { 'content-type': 'application/json' };
    const answer = await fetch(url, { method: 'POST', headers, body });
    expect(await answer.json()).toMatchObject({ response: { data: { pair: 'SUI-USD', cents: 123 } } });
    expect(output()).not.toMatch(/my-real-key|San Francisco/);
  });

  test('gets its server.env in make dev, where the environment does not say otherwise', async () => {
    const file = join(dir, 'src/apps/price/server.env');
    onTestFinished(() => writeFileSync(file, files.get('src/apps/price/server.env') ?? ''));
    writeFileSync(file, 'PRICE_MAX_AGE_SECONDS=0\n');
    const wrong = dev({});
    expect(await once(wrong.child, 'close')).toEqual([1, null]);
    expect(wrong.output()).toBe('make dev: PRICE_MAX_AGE_SECONDS must be an integer from 1 to 3600\n');
    const right = dev({ PRICE_MAX_AGE_SECONDS: '5' });
    await expect.poll(right.output, { timeout: 10_000 }).toMatch(/Ctrl-C ends it/);
    writeFileSync(file, 'PRICE_API_KEY=hunter2\n');
    const secret = dev({});
    expect(await once(secret.child, 'close')).toEqual([1, null]);
    expect(secret.output()).toMatch(/^make dev: server\.env: PRICE_API_KEY must not be here/);
  });

  test('without stand-ins talks to its real hosts, and make dev says so', async () => {
    const file = join(dir, 'scripts/dev/apps/price.ts');
    onTestFinished(() => writeFileSync(file, files.get('scripts/dev/apps/price.ts') ?? ''));
    rmSync(file);
    const without = dev({});
    expect(await once(without.child, 'close')).toEqual([1, null]);
    expect(without.output()).toMatch(/It asks its real hosts: api\.prices\.example\./);
    expect(without.output()).toMatch(/make dev: PRICE_API_KEY must be set in the environment/);
    const { output } = dev({ PRICE_API_KEY: 'my-real-key' });
    await expect.poll(output, { timeout: 10_000 }).toMatch(/Ctrl-C ends it/);
    expect(output()).not.toMatch(/my-real-key|Try,/);
  });

  test('gets into an image with its settings, and without its stand-in', async () => {
    const stage = join(dir, 'stage');
    await bundle(dir, '1.2.3', 'src/apps/price', stage);
    const source = readFileSync(join(stage, 'server.js'), 'utf8');
    expect(source).toMatch(/api\.prices\.example/);
    expect(source).not.toMatch(/stand-in/);
    const manifest = parseManifest(files.get('src/apps/price/app.yaml') ?? '');
    const environment = makeEnvironment(
      'price',
      manifest,
      files.get('src/apps/price/server.env') ?? '',
      false,
    );
    expect(makeSettings(manifest, environment)).toMatch(/^env PRICE_MAX_AGE_SECONDS=30$/m);
  });
});
