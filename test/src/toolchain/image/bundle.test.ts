import { spawn, spawnSync } from 'node:child_process';
import {
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { builtinModules } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { manifestIn } from '../../../../src/server/load_application.ts';
import { formatManifest } from '../../../../src/server/manifest.ts';
import { bundle, readBundled } from '../../../../src/toolchain/image/bundle.ts';
import { digestOf } from '../../../../src/toolchain/image/bundle_digest.ts';
import { readFiles } from '../../../../src/toolchain/image/files.ts';
import { licensesOf, packageFolders, packageLicenses } from '../../../../src/toolchain/image/licenses.ts';
import { shareModules } from '../../../../src/toolchain/image/share_modules.ts';

const ROOT = fileURLToPath(new URL('../../../..', import.meta.url));
let stage: string;
let source: string;
let modules: string[];

/** The app.json of an image. */
const manifestOf = (folder: string) => formatManifest(manifestIn(join(ROOT, folder)));

beforeAll(async () => {
  stage = mkdtempSync(join(tmpdir(), 'bundle-'));
  modules = await bundle(ROOT, '1.2.3', 'src/apps/weather', stage);
  source = readFileSync(join(stage, 'server.js'), 'utf8');
}, 60_000);
afterAll(() => rmSync(stage, { recursive: true }));

describe('the bundle', () => {
  test('is one file, which needs nothing but Node', () => {
    expect(readdirSync(stage)).toEqual(['server.js']);
    const imported = [...source.matchAll(/\brequire\("([^"]+)"\)/g)].map(([, name = '']) => name);
    expect(source).not.toMatch(/^import /m);
    expect(imported.length).toBeGreaterThan(5);
    expect(imported.filter((name) => !builtinModules.includes(name.replace(/^node:/, '')))).toEqual([]);
  });

  test('has nothing of src/server/index.ts that the application does not use', () => {
    const own = modules
      .filter((path) => path.startsWith(`${ROOT}src/`))
      .map((path) => path.slice(ROOT.length));
    expect(own).toContain('src/library/wire/struct.ts');
    expect(
      own.filter((path) => ['src/library/wire/move.ts', 'src/service/get_json.ts'].includes(path)),
    ).toEqual([]);
  });

  test('has no parser of YAML', () => {
    expect(modules.filter((path) => /\/yaml\/|parse_yaml/.test(path))).toEqual([]);
  });

  test('has the application and the version in it, and no fake', () => {
    expect(source).toMatch(/api\.weatherapi\.com/);
    expect(source).toMatch(/version: "1\.2\.3"/);
    expect(source).not.toMatch(/EmulatedNsm|key-of-the-fake/);
  });

  test('starts without the parts of Node that it does not need', () => {
    const exit = "process.on('exit', () => console.log(JSON.stringify(process.moduleLoadList)))";
    const preload = `data:text/javascript,${encodeURIComponent(exit)}`;
    // It ends where it misses the image's /app/app.json.
    const { stdout, stderr } = spawnSync(process.execPath, ['--import', preload, join(stage, 'server.js')], {
      encoding: 'utf8',
    });
    expect(stderr).toMatch(/\/app\/app\.json/);
    const loaded: string[] = JSON.parse(stdout);
    expect(loaded).toContain('NativeModule https');
    expect(loaded.filter((name) => /undici|sqlite/.test(name))).toEqual([]);
  });

  test('has no default application: without APP it does not start, though its app.json is there', () => {
    const manifest = join(stage, 'app.json');
    writeFileSync(manifest, manifestOf('src/apps/weather'));
    const file = join(stage, 'with_manifest.cjs');
    writeFileSync(file, source.replaceAll('/app/app.json', manifest));
    const { status, stderr } = spawnSync(process.execPath, [file], {
      env: { API_KEY: 'x', PORT: '0' },
      encoding: 'utf8',
      timeout: 10_000,
    });
    rmSync(file);
    rmSync(manifest);
    expect(status).toBe(1);
    expect(stderr).toMatch(/^sui-enclave: APP must name the application to run/);
  });

  test('finds the files of an application, wherever its modules are and it is started', async () => {
    const app = join(ROOT, 'test/fixtures/apps/site');
    const folder = mkdtempSync(join(tmpdir(), 'site-'));
    onTestFinished(() => rmSync(folder, { recursive: true }));
    await bundle(ROOT, '1.2.3', 'test/fixtures/apps/site', folder);
    const server = readFileSync(join(folder, 'server.js'), 'utf8');
    // The image's /app is this folder here.
    const files = new Map<string, string | Buffer>([
      ['server.js', server.replaceAll(/(?<=["'/])\/app\//g, `${folder}/`)],
      ['app.json', manifestOf('test/fixtures/apps/site')],
      ...readFiles(app, { files: ['public'] }),
    ]);
    for (const [path, content] of files) {
      mkdirSync(dirname(join(folder, path)), { recursive: true });
      writeFileSync(join(folder, path), content);
    }
    const child = spawn(process.execPath, [join(folder, 'server.js')], {
      cwd: '/',
      env: { APP: 'site', PORT: '0', NSM_REQUIRED: 'false' },
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    onTestFinished(() => void child.kill('SIGKILL'));
    let output = '';
    for await (const chunk of child.stdout) {
      output += chunk;
      if (/"port":\d+|http:\/\/[^"\s]+:\d+/.test(output)) break;
    }
    const url = /http:\/\/[^"\s]+:\d+/.exec(output)?.[0];
    for (const path of ['home', 'static/index.html']) {
      const answer = await fetch(`${url}/site/${path}`);
      expect([answer.status, await answer.text()]).toEqual([200, '<!doctype html><title>Site</title>\n']);
    }
  });

  test('is the same again', async () => {
    await bundle(ROOT, '1.2.3', 'src/apps/weather', stage);
    expect(readFileSync(join(stage, 'server.js'), 'utf8')).toBe(source);
  });

  test('has neither comments nor paths: a file that moves and a comment that changes leave the digest as it was', async () => {
    expect(source).not.toMatch(/^\s*(\/\/|\/\*|\*\/)/m);
    expect(source).not.toMatch(/node_modules|src\/server|signer\.ts/);
    const root = mkdtempSync(join(tmpdir(), 'bundle-root-'));
    try {
      cpSync(join(ROOT, 'src'), join(root, 'src'), {
        recursive: true,
        filter: (path) => !/node_modules|prover/.test(path),
      });
      cpSync(join(ROOT, 'package.json'), join(root, 'package.json'));
      shareModules(ROOT, root);
      const change = (path: string, edit: (text: string) => string) =>
        writeFileSync(join(root, path), edit(readFileSync(join(root, path), 'utf8')));
      renameSync(join(root, 'src/server/signer.ts'), join(root, 'src/server/renamed.ts'));
      for (const path of readdirSync(join(root, 'src'), { recursive: true, encoding: 'utf8' })) {
        if (path.endsWith('.ts')) {
          change(join('src', path), (text) => text.replaceAll('/signer.ts', '/renamed.ts'));
        }
      }
      change('src/server/renamed.ts', (text) => `/** Another comment. */\n// and one more\n${text}`);
      const digest = await digestOf(ROOT, 'src/apps/weather');
      expect(await digestOf(root, 'src/apps/weather')).toBe(digest);
      change('src/server/renamed.ts', (text) => `${text}\nprocess.title = 'changed';\n`);
      expect(await digestOf(root, 'src/apps/weather')).not.toBe(digest);
    } finally {
      rmSync(root, { recursive: true });
    }
  });

  test('has axios without its client for Node, and without code for redirects and proxies', () => {
    const others = /\/(axios\/lib|follow-redirects|form-data|https-proxy-agent|proxy-from-env)\//;
    expect(modules.filter((path) => /\/axios\//.test(path))).toEqual([
      expect.stringMatching(/node_modules\/axios\/dist\/browser\/axios\.cjs$/),
    ]);
    expect(modules.filter((path) => others.test(path))).toEqual([]);
  });

  test('has its licences in a file of their own', () => {
    const folders = packageFolders(ROOT, modules).map((folder) => join(ROOT, folder));
    const licenses = licensesOf(packageLicenses(folders));
    expect(licenses).toMatch(/^--- express 5\.\d+\.\d+: MIT ---\n\n\(The MIT License\)/m);
    expect(licenses).toMatch(/^--- @noble\/curves .*: MIT ---/m);
    expect(licenses).toMatch(/^--- pino .*: MIT ---/m);
    const names = [...licenses.matchAll(/^--- (\S+) /gm)].map(([, name]) => name);
    expect(new Set(names).size).toBe(names.length);
    const bundled = modules.flatMap((path) => /node_modules\/((@[^/]+\/)?[^/]+)/.exec(path)?.[1] ?? []);
    expect(new Set(bundled)).toEqual(new Set(names));
  });

  test('is listed by the folders of its packages, which are among those of the image', () => {
    const paths = ['node_modules/a/index.js', 'node_modules/a/node_modules/@x/y/lib/z.js', 'src/app.ts'];
    const folders = packageFolders(
      '/build/',
      [...paths, ...paths].map((path) => `/build/${path}`),
    );
    expect(folders).toEqual(['node_modules/a', 'node_modules/a/node_modules/@x/y']);
    const file = join(stage, 'bundled.json');
    writeFileSync(file, JSON.stringify(folders));
    onTestFinished(() => rmSync(file));
    const packages = new Map(folders.map((folder) => [folder, {}]));
    expect(readBundled(file, packages)).toEqual(folders);
    packages.delete('node_modules/a');
    expect(() => readBundled(file, packages)).toThrow(
      expect.objectContaining({
        code: 'ARCHIVE_INVALID',
        message: expect.stringMatching(/code of node_modules\/a,/),
      }),
    );
  });
});
