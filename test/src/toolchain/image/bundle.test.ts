import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import {
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { builtinModules, createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { manifestIn } from '../../../../src/server/application/load_application.ts';
import { formatManifest } from '../../../../src/server/application/manifest.ts';
import { bundle, readBundled } from '../../../../src/toolchain/image/bundle.ts';
import { computeDigest } from '../../../../src/toolchain/image/bundle_digest.ts';
import { readFiles } from '../../../../src/toolchain/image/files.ts';
import { LAZY_PACKAGES, SERVER_FILES } from '../../../../src/toolchain/image/lazy_packages.ts';
import { formatLicenses, packageFolders, packageLicenses } from '../../../../src/toolchain/image/licenses.ts';
import { shareModules } from '../../../../src/toolchain/image/share_modules.ts';

const ROOT = fileURLToPath(new URL('../../../..', import.meta.url));
const require = createRequire(import.meta.url);
let stage: string;
let source: string;
let modules: string[];

/** Content of app.json in an image. */
const readManifestText = (folder: string) => formatManifest(manifestIn(join(ROOT, folder)));

/** Copies a bundle, with app.json, to a folder that replaces the image's /app. @returns the folder */
function layOut(app: string, bundled: string): string {
  const folder = mkdtempSync(join(tmpdir(), 'laid-out-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  cpSync(bundled, folder, { recursive: true });
  const server = readFileSync(join(folder, 'server.js'), 'utf8');
  writeFileSync(join(folder, 'server.js'), server.replaceAll(/(?<=["'/])\/app\//g, `${folder}/`));
  writeFileSync(join(folder, 'app.json'), readManifestText(app));
  return folder;
}

/**
 * Starts the server in a folder that `layOut` made. @returns the server's address, and a function that ends
 * the server and returns its output
 */
async function start(folder: string, env: Record<string, string>, options: readonly string[] = []) {
  const child = spawn(process.execPath, [...options, join(folder, 'server.js')], {
    cwd: '/',
    env: { PORT: '0', NSM_REQUIRED: 'false', ...env },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  onTestFinished(() => void child.kill('SIGKILL'));
  let output = '';
  const ended = once(child.stdout, 'end');
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    output += text;
  });
  const address = () => /"url":"([^"]+)"/.exec(output)?.[1];
  await expect.poll(address).toBeDefined();
  const end = async () => {
    child.kill();
    await ended;
    return output;
  };
  return { url: String(address()), end };
}

/**
 * Bundles an application of a single module.
 *
 * @returns the folder of the bundle, and the paths of the modules in it
 */
async function bundleModule(code: string) {
  const root = mkdtempSync(join(tmpdir(), 'bundle-root-'));
  onTestFinished(() => rmSync(root, { recursive: true }));
  symlinkSync(join(ROOT, 'src'), join(root, 'src'));
  shareModules(ROOT, root);
  const [app, out] = [join(root, 'app'), join(root, 'out')];
  mkdirSync(app);
  mkdirSync(out);
  writeFileSync(join(app, 'app.ts'), code);
  return { out, paths: await bundle(root, '1.2.3', 'app', out) };
}

beforeAll(async () => {
  stage = mkdtempSync(join(tmpdir(), 'bundle-'));
  modules = await bundle(ROOT, '1.2.3', 'src/apps/weather', stage);
  source = readFileSync(join(stage, 'server.js'), 'utf8');
});
afterAll(() => rmSync(stage, { recursive: true }));

describe('the bundle', () => {
  test('consists of server.js and the packages that it loads late, and imports only modules of Node besides', () => {
    const files = readdirSync(stage);
    expect(files).toEqual([...SERVER_FILES].sort());
    for (const name of files) {
      const code = readFileSync(join(stage, name), 'utf8');
      const imported = [...code.matchAll(/\brequire\((["'`])(.+?)\1\)/g)].map(([, , module = '']) => module);
      expect(code).not.toMatch(/^import |\bimport\(/m);
      if (name === 'server.js') expect(imported.length).toBeGreaterThan(5 + SERVER_FILES.length);
      const missing = imported.filter((module) => !builtinModules.includes(module.replace(/^node:/, '')));
      expect([...new Set(missing)].sort()).toEqual(
        name === 'server.js' ? files.filter((file) => file !== name).map((file) => `./${file}`) : [],
      );
    }
  });

  test('has each package that it loads late as a file with the same exports', () => {
    for (const { module, file } of LAZY_PACKAGES) {
      const [bundled, installed] = [require(join(stage, file)), require(join(ROOT, module))];
      expect(bundled).not.toBe(installed);
      expect([typeof bundled, Reflect.ownKeys(bundled)]).toEqual([
        typeof installed,
        Reflect.ownKeys(installed),
      ]);
    }
  });

  test('contains no module twice, except the entries of late packages, which server.js replaces', () => {
    const repositoryModules = modules.filter((path) => path.startsWith(ROOT));
    const entries = LAZY_PACKAGES.map(({ module }) => join(ROOT, module));
    const duplicates = repositoryModules.filter((path, at) => repositoryModules.indexOf(path) !== at);
    expect(duplicates.sort()).toEqual(entries.sort());
  });

  test('keeps a package in server.js if the application imports one of its dependencies', async () => {
    // qs depends on object-inspect.
    const { out, paths } = await bundleModule(
      "import inspect from 'object-inspect';\nexport default { signs: [], create: () => inspect([]) };\n",
    );
    expect(readdirSync(out)).toEqual([...SERVER_FILES].filter((name) => name !== 'server.qs.js').sort());
    expect(paths.filter((path) => path.endsWith('/object-inspect/index.js'))).toHaveLength(1);
    expect(paths.filter((path) => path.endsWith('/qs/lib/index.js'))).toHaveLength(1);
    expect(readFileSync(join(out, 'server.js'), 'utf8')).not.toContain('./server.qs.js');
  });

  test('lets an application import a package that is loaded late', async () => {
    const { out } = await bundleModule(`import * as iconv from 'iconv-lite';
import mime, { lookup } from 'mime-types';
import qs from 'qs';
mime.types.ours = 'text/x-ours';
const descriptor = Object.getOwnPropertyDescriptor(qs, 'parse');
console.log(JSON.stringify([
  lookup('a.ours'), mime.lookup('a.html'), Object.keys(qs), 'parse' in qs, typeof descriptor.value, descriptor.writable,
  qs.parse('a[b]=1'), iconv.encode('è', 'latin1').toString('hex'), typeof iconv.default.getDecoder,
]));
qs.parse = () => 'ours';
qs.more = 1;
delete qs.formats;
console.log(JSON.stringify([qs.parse('a=1'), Object.keys(qs)]));
export default { signs: [], create: () => ({ endpoints: [] }) };
`);
    expect(readdirSync(out)).toEqual([...SERVER_FILES].sort());
    // The server ends because it finds no /app/app.json, which only an image has.
    const { stdout } = spawnSync(process.execPath, [join(out, 'server.js')], { encoding: 'utf8' });
    const lines = stdout.split('\n').filter((line) => line.startsWith('['));
    const names = ['formats', 'parse', 'stringify'];
    expect(lines.map((line) => JSON.parse(line))).toEqual([
      ['text/x-ours', 'text/html', names, true, 'function', true, { a: { b: '1' } }, 'e8', 'function'],
      ['ours', ['parse', 'stringify', 'more']],
    ]);
  });

  test('contains no part of src/server/index.ts that the application does not use', () => {
    const sources = modules
      .filter((path) => path.startsWith(`${ROOT}src/`))
      .map((path) => path.slice(ROOT.length));
    expect(sources).toContain('src/library/wire/struct.ts');
    expect(
      sources.filter((path) => ['src/library/wire/move.ts', 'src/service/get_json.ts'].includes(path)),
    ).toEqual([]);
  });

  test('has no parser of YAML', () => {
    expect(modules.filter((path) => /\/yaml\/|parse_yaml/.test(path))).toEqual([]);
  });

  test('contains the application and the version, and no fake', () => {
    expect(source).toMatch(/api\.weatherapi\.com/);
    expect(source).toMatch(/version: "1\.2\.3"/);
    expect(source).not.toMatch(/EmulatedNsm|key-of-the-fake/);
  });

  test('starts without the parts of Node that it does not need', () => {
    const exit = "process.on('exit', () => console.log(JSON.stringify(process.moduleLoadList)))";
    const preload = `data:text/javascript,${encodeURIComponent(exit)}`;
    // The server ends because it finds no /app/app.json, which only an image has.
    const { stdout, stderr } = spawnSync(process.execPath, ['--import', preload, join(stage, 'server.js')], {
      encoding: 'utf8',
    });
    expect(stderr).toMatch(/\/app\/app\.json/);
    const loaded: string[] = JSON.parse(stdout);
    expect(loaded).toContain('NativeModule https');
    expect(loaded.filter((name) => /undici|sqlite/.test(name))).toEqual([]);
  });

  test('has no default application: it does not start without APP, even if there is an app.json', () => {
    const manifest = join(stage, 'app.json');
    writeFileSync(manifest, readManifestText('src/apps/weather'));
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

  test('loads axios only at the first request to an upstream', async () => {
    const folder = layOut('src/apps/weather', stage);
    const preload = join(folder, 'preload.cjs');
    // On this machine no server listens at the port of https.
    const loopbackLookup =
      "dns.lookup = (_host, _options, done) => done(null, [{ address: '127.0.0.1', family: 4 }]);";
    const printModules = "process.on('exit', () => console.log(JSON.stringify(Object.keys(require.cache))));";
    writeFileSync(preload, `const dns = require('node:dns');\n${loopbackLookup}\n${printModules}\n`);
    for (const [payload, loaded] of [
      [undefined, ['preload.cjs', 'server.js']],
      ['{"payload":{"location":"Lima"}}', ['preload.cjs', 'server.axios.js', 'server.js']],
    ] as const) {
      const { url, end } = await start(folder, { APP: 'weather', API_KEY: 'none' }, ['--require', preload]);
      expect((await fetch(url)).status).toBe(200);
      if (payload !== undefined) {
        const headers = { 'content-type': 'application/json' };
        const answer = await fetch(`${url}/process_data`, { method: 'POST', headers, body: payload });
        expect([answer.status, await answer.json()]).toEqual([
          502,
          expect.objectContaining({ code: 'WEATHER_UNREACHABLE' }),
        ]);
      }
      const paths: string[] = JSON.parse(/^\[.*\]$/m.exec(await end())?.[0] ?? '');
      expect(paths.map((path) => basename(path)).sort()).toEqual(loaded);
    }
  });

  test('parses the bodies of requests as Express does, in all encodings of Express', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'parsers-'));
    onTestFinished(() => rmSync(folder, { recursive: true }));
    await bundle(ROOT, '1.2.3', 'test/fixtures/apps/parsers', folder);
    const { url } = await start(layOut('test/fixtures/apps/parsers', folder), { APP: 'parsers' });
    const post = async (path: string, type: string, body: string | Buffer<ArrayBuffer>) => {
      const headers = { 'content-type': type };
      const answer = await fetch(`${url}/x/${path}`, { method: 'POST', headers, body });
      return [answer.status, await answer.json()];
    };
    const latin1 = Buffer.from('Genève', 'latin1');
    expect(await post('text', 'text/plain; charset=iso-8859-1', latin1)).toEqual([200, 'Genève']);
    // The text is 日本 in Shift_JIS, for which Node has no decoder.
    const shiftJis = Buffer.from('93fa967b', 'hex');
    expect(await post('text', 'text/plain; charset=shift_jis', shiftJis)).toEqual([200, '日本']);
    expect(await post('text', 'text/plain; charset=unheard-of', latin1)).toEqual([
      415,
      expect.objectContaining({ code: expect.any(String) }),
    ]);
    const utf16 = Buffer.from('{"a":"Genève"}', 'utf16le');
    expect(await post('json', 'application/json; charset=utf-16', utf16)).toEqual([200, { a: 'Genève' }]);
    const form = 'application/x-www-form-urlencoded';
    expect(await post('form', form, 'a[b][]=1&a[b][]=2&c=%C3%A8')).toEqual([
      200,
      { a: { b: ['1', '2'] }, c: 'è' },
    ]);
    const types = await (await fetch(`${url}/x/types`)).json();
    expect(types).toEqual([
      'text/markdown; charset=utf-8',
      'application/wasm',
      'image/avif',
      ['json'],
      'html',
    ]);
  });

  test('finds the files of an application from modules in any folder, and with any current folder', async () => {
    const app = join(ROOT, 'test/fixtures/apps/site');
    const folder = mkdtempSync(join(tmpdir(), 'site-'));
    onTestFinished(() => rmSync(folder, { recursive: true }));
    await bundle(ROOT, '1.2.3', 'test/fixtures/apps/site', folder);
    for (const [path, content] of readFiles(app, { files: ['public'] })) {
      mkdirSync(dirname(join(folder, path)), { recursive: true });
      writeFileSync(join(folder, path), content);
    }
    const { url } = await start(layOut('test/fixtures/apps/site', folder), { APP: 'site' });
    for (const path of ['home', 'static/index.html']) {
      const answer = await fetch(`${url}/site/${path}`);
      expect([answer.status, await answer.text()]).toEqual([200, '<!doctype html><title>Site</title>\n']);
    }
  });

  test('is the same in each build', async () => {
    const read = () => readdirSync(stage).map((name) => [name, readFileSync(join(stage, name), 'utf8')]);
    const files = read();
    expect(files).toHaveLength(SERVER_FILES.length);
    await bundle(ROOT, '1.2.3', 'src/apps/weather', stage);
    expect(read()).toEqual(files);
  });

  test('has neither comments nor paths, so a renamed module or a changed comment does not change its digest', async () => {
    for (const name of SERVER_FILES) {
      const code = readFileSync(join(stage, name), 'utf8');
      expect(code).not.toMatch(/^\s*(\/\/|\/\*|\*\/)/m);
      expect(code).not.toMatch(/node_modules|src\/server|signer\.ts/);
    }
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
      renameSync(join(root, 'src/server/keys/signer.ts'), join(root, 'src/server/keys/renamed.ts'));
      for (const path of readdirSync(join(root, 'src'), { recursive: true, encoding: 'utf8' })) {
        if (path.endsWith('.ts')) {
          change(join('src', path), (text) => text.replaceAll('/signer.ts', '/renamed.ts'));
        }
      }
      change('src/server/keys/renamed.ts', (text) => `/** Another comment. */\n// and one more\n${text}`);
      const digest = await computeDigest(ROOT, 'src/apps/weather');
      expect(await computeDigest(root, 'src/apps/weather')).toBe(digest);
      change('src/server/keys/renamed.ts', (text) => `${text}\nprocess.title = 'changed';\n`);
      expect(await computeDigest(root, 'src/apps/weather')).not.toBe(digest);
    } finally {
      rmSync(root, { recursive: true });
    }
  });

  test('has axios without its client for Node, and without code for redirects and proxies', () => {
    const foreignClients = /\/(axios\/lib|follow-redirects|form-data|https-proxy-agent|proxy-from-env)\//;
    expect(new Set(modules.filter((path) => /\/axios\//.test(path)))).toEqual(
      new Set([join(ROOT, 'node_modules/axios/dist/browser/axios.cjs')]),
    );
    expect(modules.filter((path) => foreignClients.test(path))).toEqual([]);
  });

  test('has each of its packages once in the list of licences', () => {
    const folders = packageFolders(ROOT, modules).map((folder) => join(ROOT, folder));
    const licenses = formatLicenses(packageLicenses(folders));
    expect(licenses).toMatch(/^--- express 5\.\d+\.\d+: MIT ---\n\n\(The MIT License\)/m);
    expect(licenses).toMatch(/^--- @noble\/curves .*: MIT ---/m);
    expect(licenses).toMatch(/^--- pino .*: MIT ---/m);
    const names = [...licenses.matchAll(/^--- (\S+) /gm)].map(([, name]) => name);
    expect(new Set(names).size).toBe(names.length);
    const bundled = modules.flatMap((path) => /node_modules\/((@[^/]+\/)?[^/]+)/.exec(path)?.[1] ?? []);
    expect(new Set(bundled)).toEqual(new Set(names));
  });

  test('is recorded by the folders of its packages, and refused if the image does not have one of them', () => {
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
