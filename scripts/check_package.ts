/**
 * `npm run test:package`: packs the project as `npm publish` would, installs the packed file into an empty
 * project, and uses it from plain JavaScript, from TypeScript and from a page in Chromium. The page's bundle
 * is the client's size: it must stay under `MAX_BUNDLE_SIZE`.
 */
import { execFile } from 'node:child_process';
import {
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { gzipSync } from 'node:zlib';
import { chromium } from 'playwright';
import { rolldown } from 'rolldown';

const run = promisify(execFile);

const ROOT = new URL('../', import.meta.url).pathname;
const FIXTURES = join(ROOT, 'test/package');
const VECTOR = join(ROOT, 'test/vectors/nautilus-weather.hex');
const ROOT_SHA256 = '641a0321a3e244efe456463195d606317ed7cdcc3c1756e09893f3c68f79bb5b';
const PCR0 =
  'cbe1afb6ed0ff89f10295af0b802247ec5670da8f886e71a4226373b032c322f4e42c9c98288e7211682b258684505a2';
const PCR2 =
  '21b9efbc184807662e966d34f390821309eeac6802309798826296bf3e8bec7c10edb30948c90ba67310f7b964fc500a';
const PCRS = `${PCR0} PCR0\n${PCR0} PCR1\n${PCR2} PCR2\n`;
/** Minified and gzipped, in bytes. */
const MAX_BUNDLE_SIZE = 120_000;

const work = mkdtempSync(join(tmpdir(), 'sui-enclave-package-'));
const project = join(work, 'app');

function expectEqual(found: unknown, expected: unknown): void {
  const [a, b] = [JSON.stringify(found), JSON.stringify(expected)];
  if (a !== b) throw new Error(`found ${a}, expected ${b}`);
}

/** Steps, in their order: each needs what the one before it left. */
const steps: Record<string, () => Promise<string>> = {
  async 'npm pack ships compiled JavaScript with declarations, and no source'() {
    const { stdout } = await run('npm', ['pack', '--json', '--pack-destination', work], { cwd: ROOT });
    // What the build prints comes first.
    const [{ files, size }] = JSON.parse(stdout.slice(stdout.indexOf('[\n')));
    const paths: string[] = files.map(({ path }: { path: string }) => path);
    const foreign = paths.filter(
      (path) => !/^(dist\/.*\.(js|d\.ts)|package\.json|README\.md|LICENSE)$/.test(path),
    );
    expectEqual(foreign, []);
    for (const entry of ['attestation', 'client', 'sui', 'zklogin']) {
      for (const kind of ['js', 'd.ts']) {
        if (!paths.includes(`dist/${entry}/index.${kind}`))
          throw new Error(`dist/${entry}/index.${kind} is missing`);
      }
    }
    return `${paths.length} files, ${size} bytes packed`;
  },

  async 'it installs into an empty project'() {
    mkdirSync(project);
    writeFileSync(
      join(project, 'package.json'),
      JSON.stringify({ name: 'app', type: 'module', private: true }),
    );
    const tarball = readdirSync(work).find((name) => name.endsWith('.tgz'));
    await run('npm', ['install', '--no-audit', '--no-fund', join(work, tarball ?? '')], { cwd: project });
    // A .txt keeps what imports the installed package away from this project's own compiler.
    for (const name of readdirSync(FIXTURES)) {
      copyFileSync(join(FIXTURES, name), join(project, name.replace(/\.txt$/, '')));
    }
    writeFileSync(join(project, 'weather.pcrs'), PCRS);
    const { stdout } = await run('du', ['-sm', 'node_modules'], { cwd: project });
    return `${stdout.split('\t')[0]} MB in node_modules`;
  },

  async 'plain JavaScript verifies a real document with it'() {
    const { stdout } = await run(process.execPath, ['app.mjs', VECTOR, 'weather.pcrs'], { cwd: project });
    expectEqual(JSON.parse(stdout), {
      module: 'i-06e4b98c6549ff803-enc0196373b195fb723',
      accepted: true,
      refused: 'CERTIFICATE_EXPIRED',
      client: 'function',
      sui: ['function', 'function'],
      zklogin: ['function', 'function'],
    });
    return 'from sui-enclave/attestation, sui-enclave/client, sui-enclave/sui and sui-enclave/zklogin';
  },

  async 'TypeScript takes its types, and refuses what they forbid'() {
    for (const module of ['nodenext', 'preserve']) {
      const options = ['--strict', '--noEmit', '--target', 'es2022', '--lib', 'es2022,dom', '--types', ''];
      await run(
        process.execPath,
        [join(ROOT, 'node_modules/typescript/bin/tsc'), ...options, '--module', module, 'app.ts'],
        {
          cwd: project,
        },
      );
    }
    return 'with the resolution of Node and of bundlers, libraries checked as well';
  },

  async 'its bundle for browsers is small, and needs nothing of Node'() {
    const bundle = await rolldown({
      input: join(project, 'page.js'),
      platform: 'browser',
      cwd: project,
      logLevel: 'silent',
    });
    const { output } = await bundle.write({ file: join(project, 'bundle.js'), format: 'iife', minify: true });
    const [chunk, ...others] = output;
    expectEqual(others.length, 0);
    expectEqual(chunk.imports, []);
    const size = gzipSync(chunk.code, { level: 9 }).length;
    if (size > MAX_BUNDLE_SIZE) throw new Error(`${size} bytes, over ${MAX_BUNDLE_SIZE}`);
    return `${size} bytes minified and gzipped, of ${MAX_BUNDLE_SIZE}`;
  },

  async 'a page in Chromium verifies a real document with it'() {
    const browser = await chromium.launch({
      executablePath: process.env['CHROMIUM'] ?? '/usr/bin/chromium',
      args: process.getuid?.() === 0 ? ['--no-sandbox'] : [],
    });
    try {
      const page = await browser.newPage();
      await page.addScriptTag({ content: readFileSync(join(project, 'bundle.js'), 'utf8') });
      const call = `checkPackage(${JSON.stringify(readFileSync(VECTOR, 'utf8').trim())}, ${JSON.stringify(PCRS)})`;
      expectEqual(await page.evaluate(call), { rootSha256: ROOT_SHA256, asked: 'CLIENT_UNREACHABLE' });
      // A blank page has no secure context: the library worked without crypto.subtle.
      return `crypto.subtle is ${await page.evaluate('typeof crypto.subtle')}`;
    } finally {
      await browser.close();
    }
  },
};

let passed = 0;
let failed = 0;
try {
  for (const [name, step] of Object.entries(steps)) {
    if (failed > 0) break;
    try {
      console.log(`ok      ${name}: ${await step()}`);
      passed++;
    } catch (error) {
      console.error(`FAILED  ${name}\n`, error);
      failed++;
    }
  }
} finally {
  rmSync(work, { recursive: true });
}
console.log(`${passed} passed, ${failed} failed`);
process.exitCode = failed === 0 ? 0 : 1;
