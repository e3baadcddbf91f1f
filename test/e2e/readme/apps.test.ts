/**
 * Follows src/apps/README.md to the letter: writes its application in a copy of the repository, and runs the
 * page's commands there.
 */
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { makeEnvironment, makeSettings } from '../../../src/cli/image/settings.ts';
import { parseManifest } from '../../../src/server/application/manifest.ts';
import { bundle } from '../../../src/toolchain/image/bundle.ts';
import { shareModules } from '../../../src/toolchain/image/share_modules.ts';
import { readFiles } from '../../page_files.ts';

const ROOT = fileURLToPath(new URL('../../..', import.meta.url));
const README = readFileSync(join(ROOT, 'src/apps/README.md'), 'utf8');
const COPIED = [
  'src',
  'scripts',
  'enclave',
  'move/enclave',
  'package.json',
  'tsconfig.json',
  'biome.json',
  'vitest.config.ts',
  '.gitignore',
];

/** Path and content of each file that the page shows. */
const files = readFiles(README);
const code = [...files.keys()].filter((path) => path.endsWith('.ts'));

let dir: string;

beforeAll(async () => {
  dir = mkdtempSync(join(tmpdir(), 'sui-enclave-app-'));
  for (const path of COPIED) cpSync(join(ROOT, path), join(dir, path), { recursive: true });
  shareModules(ROOT, dir);
  for (const [path, text] of files) {
    mkdirSync(dirname(join(dir, path)), { recursive: true });
    writeFileSync(join(dir, path), text);
  }
  for (const name of ['gen', 'schema']) {
    const { code, output } = await run(process.execPath, 'src/cli/main.ts', name, 'price');
    expect(code, output).toBe(0);
  }
});
afterAll(() => rmSync(dir, { recursive: true }));

/** Runs a program in the copy. Of this test's environment, it gets only `PATH`. */
function run(program: string, ...args: string[]): Promise<{ code: number; output: string }> {
  return runWith({}, program, ...args);
}

function runWith(
  env: Record<string, string>,
  program: string,
  ...args: string[]
): Promise<{ code: number; output: string }> {
  const options = { cwd: dir, env: { PATH: `${ROOT}/node_modules/.bin:${process.env['PATH']}`, ...env } };
  return new Promise((resolve) => {
    execFile(program, args, options, (error, stdout, stderr) =>
      resolve({ code: error ? 1 : 0, output: stdout + stderr }),
    );
  });
}

function startDev(
  env: Record<string, string>,
  program = 'src/toolchain/dev/main.ts',
): { child: ChildProcess; output: () => string } {
  const child = spawn(process.execPath, [program], { cwd: dir, env: { APP: 'price', PORT: '0', ...env } });
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

test('the page shows every file of its application', () => {
  expect([...files.keys()]).toEqual([
    'src/apps/price/app.yaml',
    'src/apps/price/server.env',
    'src/apps/price/types.ts',
    'src/apps/price/app.ts',
    'src/apps/price/stand_in.ts',
    'src/apps/price/test/app.test.ts',
    'move/price/Move.toml',
    'move/price/sources/price.move',
    'move/price/tests/price_tests.move',
  ]);
});

describe('the application of the page', () => {
  test('compiles, and is formatted like all code here', async () => {
    const config = { extends: './tsconfig.json', include: [], files: code };
    writeFileSync(join(dir, 'tsconfig.price.json'), JSON.stringify(config));
    expect(await run('tsc', '-p', 'tsconfig.price.json')).toEqual({ code: 0, output: '' });
    const checked = await run('biome', 'check', '--error-on-warnings', ...code);
    expect(checked.code, checked.output).toBe(0);
  }, 60_000);

  test('passes its own test', async () => {
    const { code, output } = await run('vitest', 'run', 'src/apps/price');
    expect(code, output).toBe(0);
    expect(output).toMatch(/4 passed/);
  }, 60_000);

  test('has a Move module that passes its test', async () => {
    const { code, output } = await run(process.execPath, 'scripts/check/move.ts', 'price');
    expect(code, output).toBe(0);
    expect(output).toMatch(/Test result: OK\. Total tests: 6/);
    expect(output).not.toMatch(/warning/);
  }, 60_000);

  test('answers the request that make dev prints, and does not use the real key', async () => {
    const { output } = startDev({ PRICE_API_KEY: 'my-real-key' });
    await expect.poll(output).toMatch(/Ctrl-C ends it/);
    expect(output()).toMatch(/runs against fakes of api\.feed\.example\.$/m);
    const [, url = '', body = ''] =
      /curl -s (\S+) -H 'Content-Type: application\/json' -d '(.*)'/.exec(output()) ?? [];
    const headers = { 'content-type': 'application/json' };
    const answer = await fetch(url, { method: 'POST', headers, body });
    expect(await answer.json()).toMatchObject({ response: { data: { pair: 'SUI-USD', cents: 123 } } });
    expect(output()).not.toMatch(/my-real-key|San Francisco/);
  });

  test('is restarted by make dev on the same port when a file changes, even after a failed start', async () => {
    const file = join(dir, 'src/apps/price/app.ts');
    const source = files.get('src/apps/price/app.ts') ?? '';
    onTestFinished(() => writeFileSync(file, source));
    const { output, child } = startDev({});
    const starts = () => [...output().matchAll(/curl -s (\S+)\/process_data/g)].map(([, url]) => url ?? '');
    await expect.poll(starts).toHaveLength(1);
    const [url = ''] = starts();
    writeFileSync(file, source.replace("path: '/latest'", "path: '/newest'"));
    await expect.poll(starts).toEqual([url, url]);
    expect(output()).toContain('src/apps/price/app.ts has changed: restarting.');
    expect((await fetch(`${url}/newest?pair=SUI-USD`)).status).toBe(200);
    expect((await fetch(`${url}/latest?pair=SUI-USD`)).status).toBe(404);

    writeFileSync(file, 'this is not a program');
    await expect.poll(output).toMatch(/The server ended \(exit code 1\)/);
    writeFileSync(file, source);
    await expect.poll(starts).toEqual([url, url, url]);
    expect((await fetch(`${url}/latest?pair=SUI-USD`)).status).toBe(200);

    child.kill('SIGTERM');
    expect(await once(child, 'close')).toEqual([0, null]);
    await expect(fetch(url)).rejects.toThrow('fetch failed');
  });

  test('gets the settings of its server.env in make dev, unless the environment overrides them', async () => {
    const file = join(dir, 'src/apps/price/server.env');
    onTestFinished(() => writeFileSync(file, files.get('src/apps/price/server.env') ?? ''));
    writeFileSync(file, 'PRICE_MAX_AGE_SECONDS=0\n');
    const refused = startDev({});
    expect(await once(refused.child, 'close')).toEqual([1, null]);
    expect(refused.output()).toBe(
      'sui-enclave dev: PRICE_MAX_AGE_SECONDS must be an integer from 1 to 3600\n',
    );
    const overridden = startDev({ PRICE_MAX_AGE_SECONDS: '5' });
    await expect.poll(overridden.output).toMatch(/Ctrl-C ends it/);
    writeFileSync(file, 'PRICE_API_KEY=hunter2\n');
    const secret = startDev({});
    expect(await once(secret.child, 'close')).toEqual([1, null]);
    expect(secret.output()).toMatch(/^sui-enclave dev: server\.env: PRICE_API_KEY must not be here/);
  });

  test('calls its real hosts if it has no fakes, and make dev prints that', async () => {
    const file = join(dir, 'src/apps/price/stand_in.ts');
    onTestFinished(() => writeFileSync(file, files.get('src/apps/price/stand_in.ts') ?? ''));
    rmSync(file);
    const withoutFakes = startDev({});
    expect(await once(withoutFakes.child, 'close')).toEqual([1, null]);
    expect(withoutFakes.output()).toMatch(/The application calls its real hosts: api\.feed\.example\./);
    expect(withoutFakes.output()).toMatch(/sui-enclave dev: PRICE_API_KEY must be set in the environment/);
    const { output } = startDev({ PRICE_API_KEY: 'my-real-key' });
    await expect.poll(output).toMatch(/Ctrl-C ends it/);
    expect(output()).not.toMatch(/my-real-key|curl/);
  });

  test('has a contract that runs on make dev-sui: it is published, called by submit and upgraded, and refuses a stale enclave', async () => {
    const sui = startDev({ FAUCET_PORT: '0' }, 'src/toolchain/dev/sui/main.ts');
    await expect.poll(sui.output).toMatch(/Ctrl-C ends it/);
    const [node = ''] = /http:\/\/127\.0\.0\.1:\d+/.exec(sui.output()) ?? [];
    const enclave = startDev({ ATTEST: 'emulated' });
    await expect.poll(enclave.output).toMatch(/Ctrl-C ends it/);
    const [, url = ''] = /curl -s (\S+)\/process_data/.exec(enclave.output()) ?? [];
    const key = { SUI_PRIVATE_KEY: readFileSync(join(dir, 'out/dev-sui.key'), 'utf8').trim() };
    const runCommand = async (name: string, ...args: string[]) => {
      const networkArguments = ['--network', 'localnet', '--rpc-url', node];
      return await runWith(key, process.execPath, `src/cli/sui/${name}.ts`, ...args, ...networkArguments);
    };
    const expectDone = async (name: string, ...args: string[]) => {
      const { code, output } = await runCommand(name, ...args);
      expect(code, `${name}: ${output}`).toBe(0);
    };
    const root = ['--root', 'out/dev-root.pem'];
    const submit = ['price::new', '--url', url, '--body', '{"payload":{"pair":"SUI-USD"}}', ...root];
    await expectDone('publish', 'price');
    await expectDone('create_config', 'price', '--pcrs', 'out/dev-price.pcrs');
    await expectDone('register_enclave', url, ...root);
    await expectDone('submit', ...submit);
    const source = join(dir, 'move/price/sources/price.move');
    const stricter = readFileSync(source, 'utf8').replace(
      'MAX_AGE_MS: u64 = 60 * 1000',
      'MAX_AGE_MS: u64 = 0',
    );
    writeFileSync(source, stricter);
    onTestFinished(() => writeFileSync(source, files.get('move/price/sources/price.move') ?? ''));
    await expectDone('upgrade', 'price');
    const { code, output } = await runCommand('submit', ...submit);
    expect([code, output]).toEqual([1, expect.stringMatching(/ETooOld/)]);
  }, 240_000);

  test('is built into an image with its settings and without its fake', async () => {
    const stage = join(dir, 'stage');
    await bundle(dir, '1.2.3', 'src/apps/price', stage);
    const source = readFileSync(join(stage, 'server.js'), 'utf8');
    expect(source).toMatch(/api\.feed\.example/);
    expect(source).not.toMatch(/key-of-the-fake/);
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

describe('npx --offline sui-enclave new_app market_news', () => {
  const NAME = 'market_news';
  let writtenPaths: string[];
  let output: string;
  beforeAll(async () => {
    // Removes the page's own application from the copy, since a clone does not contain it.
    for (const path of ['src/apps/price', 'move/price']) rmSync(join(dir, path), { recursive: true });
    const newApp = await run(process.execPath, 'src/toolchain/dev/new_app.ts', NAME);
    expect(newApp.code, newApp.output).toBe(0);
    output = newApp.output;
    writtenPaths = output.split('\n').filter((line) => line.includes('/') && existsSync(join(dir, line)));
  });

  test('writes every file of the page under the new name, the files of gen and schema, and no others', () => {
    const paths = [...files.keys()].map((path) => path.replaceAll('price', NAME));
    const derived = [
      ...['client.ts', 'signed.go', 'signed.py', 'vectors.json'].map(
        (path) => `src/apps/${NAME}/generated/${path}`,
      ),
      `src/apps/${NAME}/schema.json`,
      ...['sources/signed.move', 'tests/signed_vectors.move'].map((path) => `move/${NAME}/${path}`),
    ];
    expect(writtenPaths.toSorted()).toEqual([...paths, ...derived].sort());
    for (const path of writtenPaths) {
      const text = readFileSync(join(dir, path), 'utf8');
      expect(text, path).not.toMatch(/price/i);
    }
    expect(output).toContain(`make dev APP=${NAME}`);
  });

  test('writes files that compile, are formatted, and pass their tests, including those in Move', async () => {
    const code = writtenPaths.filter((path) => path.endsWith('.ts'));
    const config = { extends: './tsconfig.json', include: [], files: code };
    writeFileSync(join(dir, 'tsconfig.new.json'), JSON.stringify(config));
    expect(await run('tsc', '-p', 'tsconfig.new.json')).toEqual({ code: 0, output: '' });
    const checked = await run('biome', 'check', '--error-on-warnings', ...code);
    expect(checked.code, checked.output).toBe(0);
    const testRun = await run('vitest', 'run', `src/apps/${NAME}`);
    expect(testRun.code, testRun.output).toBe(0);
    expect(testRun.output).toMatch(/4 passed/);
    const moveRun = await run(process.execPath, 'scripts/check/move.ts', NAME);
    expect(moveRun.code, moveRun.output).toBe(0);
    expect(moveRun.output).toMatch(/Test result: OK\. Total tests: 6/);
  }, 120_000);

  test('refuses a name that exists already', async () => {
    const secondRun = await run(process.execPath, 'src/toolchain/dev/new_app.ts', NAME);
    expect(secondRun).toEqual({
      code: 1,
      output: expect.stringMatching(/exists already: choose another name/),
    });
  });
});
