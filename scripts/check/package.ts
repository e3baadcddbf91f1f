/**
 * `make test-package`: makes the packages, installs the library into an empty project beside the oldest and
 * the pinned `@mysten/sui`, and uses it from plain JavaScript, from TypeScript and from a page in Chromium.
 * The size of the page's bundle, which is the size of the client, must stay below `MAX_BUNDLE_SIZE`. Then the
 * other modules test the rest: `package/examples.ts` the examples, `package/server.ts` the server,
 * `package/cli.ts` the program, `package/toolchain.ts` its toolchain, `package/author.ts` a repository of an
 * author, and `package/registry.ts` all of them from a fake registry.
 */

import {
  copyFileSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { rolldown } from 'rolldown';
import { quantity } from '../../src/library/wording.ts';
import { authorSteps } from './package/author.ts';
import { cliSteps } from './package/cli.ts';
import { exampleSteps } from './package/examples.ts';
import { manifestSteps } from './package/manifests.ts';
import { registrySteps } from './package/registry.ts';
import { serverSteps } from './package/server.ts';
import {
  checkDependencies,
  expectEqual,
  installedVersion,
  launchBrowser,
  listDuplicates,
  ROOT,
  readPublished,
  run,
  type Steps,
  unpack,
} from './package/support.ts';
import { toolchainSteps } from './package/toolchain.ts';
import { README_FILE } from './package/wallet_page.ts';

const FIXTURES = join(ROOT, 'test/e2e/package');
const VECTOR = join(ROOT, 'test/vectors/nautilus-weather.hex');
const ROOT_SHA256 = '641a0321a3e244efe456463195d606317ed7cdcc3c1756e09893f3c68f79bb5b';
const PCR0 =
  'cbe1afb6ed0ff89f10295af0b802247ec5670da8f886e71a4226373b032c322f4e42c9c98288e7211682b258684505a2';
const PCR2 =
  '21b9efbc184807662e966d34f390821309eeac6802309798826296bf3e8bec7c10edb30948c90ba67310f7b964fc500a';
const PCRS = `${PCR0} PCR0\n${PCR0} PCR1\n${PCR2} PCR2\n`;
/** Maximum size of the page's bundle, minified and gzipped, in bytes. */
const MAX_BUNDLE_SIZE = 120_000;

const ENTRIES = ['attestation', 'client', 'react', 'release', 'sui', 'wallet', 'zklogin'];
/** Parts of an entry that have no README of their own. */
const PARTS = ['wallet/redirect'];

const { version } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'));
/** Paths of the tarballs by package, which the first step sets. */
const tarballs = new Map<string, string>();
const findTarball = (name: string) => tarballs.get(name) ?? '';
const work = mkdtempSync(join(tmpdir(), 'sui-enclave-package-'));
/** Folder with the files of the library's tarball. */
const libraryFolder = join(work, 'package');
const project = join(work, 'app');

/** Returns the lowest version that a peer range such as ^1.2.3 allows. */
function lowestVersion(range: string): string {
  return range.replace(/^\^/, '');
}

/**
 * Writes each snippet of the installed READMEs that has imports to a file. Snippets without imports are
 * fragments. Snippets that are files of a page are built in `package/wallet_page.ts`.
 */
function writeSnippets(): string[] {
  return ['', ...ENTRIES].flatMap((entry) => {
    const readme = readFileSync(join(project, 'node_modules/sui-enclave', entry, 'README.md'), 'utf8');
    const snippets = readme.replace(README_FILE, '');
    return [...snippets.matchAll(/^```(tsx?)\n(import .*?)^```$/gms)].map(([, type, code = ''], index) => {
      const name = `readme_${entry}_${index + 1}.${type}`;
      writeFileSync(join(project, name), code);
      return name;
    });
  });
}

async function install(suiVersion: string, reactVersion: string): Promise<string> {
  rmSync(project, { recursive: true, force: true });
  mkdirSync(project);
  const empty = { name: 'app', type: 'module', private: true };
  writeFileSync(join(project, 'package.json'), JSON.stringify(empty));
  const specifiers = [findTarball('sui-enclave'), `@mysten/sui@${suiVersion}`, `react@${reactVersion}`];
  for (const name of ['@mysten/wallet-standard', '@types/react'])
    specifiers.push(`${name}@${installedVersion(name)}`);
  await run('npm', ['install', '--no-audit', '--no-fund', ...specifiers], { cwd: project });
  // The suffix .txt hides code from this project's compiler, because it imports the installed package.
  for (const name of readdirSync(FIXTURES)) {
    copyFileSync(join(FIXTURES, name), join(project, name.replace(/\.txt$/, '')));
  }
  writeFileSync(join(project, 'weather.pcrs'), PCRS);
  expectEqual(listDuplicates(project), []);
  const { stdout } = await run('du', ['-sm', 'node_modules'], { cwd: project });
  return `no package twice, ${stdout.split('\t')[0]} MB in node_modules`;
}

async function useFromJavaScript(): Promise<string> {
  const { stdout } = await run(process.execPath, ['app.mjs', VECTOR, 'weather.pcrs'], { cwd: project });
  expectEqual(JSON.parse(stdout), {
    module: 'i-06e4b98c6549ff803-enc0196373b195fb723',
    accepted: true,
    refused: 'CERTIFICATE_EXPIRED',
    encoded: ['CLIENT_UNREACHABLE', 'encoding'],
    client: 'function',
    sui: ['function', 'function'],
    wallet: ['function', 'function'],
    zklogin: ['function', 'function'],
    react: 'function',
  });
  return 'from each of its entries';
}

/** Checks that a bare `import 'sui-enclave'` fails, and that its error names the entries to import. */
async function importRoot(): Promise<string> {
  const code = `import('sui-enclave').then(() => 'loaded', (error) => error.message).then(console.log)`;
  const { stdout } = await run(process.execPath, ['--input-type=module', '-e', code], { cwd: project });
  expectEqual(
    stdout.trim(),
    `import one of the entries of sui-enclave instead: ${ENTRIES.map((entry) => `sui-enclave/${entry}`).join(', ')}`,
  );
  return 'it names all entries';
}

async function useFromTypeScript(): Promise<string> {
  const snippets = writeSnippets();
  if (snippets.length <= ENTRIES.length) throw new Error('a README has no snippet');
  const tsc = join(ROOT, 'node_modules/typescript/bin/tsc');
  const options = [
    '--strict',
    '--noEmit',
    '--jsx',
    'react-jsx',
    '--target',
    'es2022',
    '--lib',
    'es2022,dom',
    '--types',
    '',
  ];
  for (const module of ['nodenext', 'preserve']) {
    const files = ['app.ts', 'given.d.ts', ...snippets];
    await run(process.execPath, [tsc, ...options, '--module', module, ...files], { cwd: project });
  }
  return `compiles ${quantity(snippets.length, 'snippet')}; by the rules of Node and of bundlers, libraries checked as well`;
}

/** The steps in order. Each needs the results of the steps before it. */
const steps: Steps = {
  async 'make package ships compiled JavaScript with declarations, and no source'() {
    const { stdout } = await run(process.execPath, [join(ROOT, 'scripts/check/pack.ts'), '--json']);
    const { channel, packages } = JSON.parse(stdout);
    for (const { name, file } of packages) tarballs.set(name, join(ROOT, file));
    await unpack(findTarball('sui-enclave'), work);
    const paths = globSync('**/*.*', { cwd: libraryFolder });
    const unexpectedPaths = paths.filter((path) => !/(\.js|\.d\.ts|^package\.json|README\.md)$/.test(path));
    expectEqual(unexpectedPaths, []);
    const { version: packed, exports } = readPublished(libraryFolder);
    expectEqual(Object.keys(exports), ['.', ...[...ENTRIES, ...PARTS].map((entry) => `./${entry}`)]);
    expectEqual(packed.startsWith(`${version}-experimental.`), channel === 'experimental');
    return `${quantity(paths.length, 'file')}, ${quantity(statSync(findTarball('sui-enclave')).size, 'byte')} packed`;
  },

  ...manifestSteps(work, tarballs),

  async 'its manifest lists what it imports, at the versions pinned here, and nothing else'() {
    const { peerDependencies, peerDependenciesMeta } = readPublished(libraryFolder);
    const optionalPeers = [
      '@mysten/wallet-standard',
      '@sigstore/bundle',
      '@sigstore/protobuf-specs',
      '@sigstore/verify',
      'react',
    ];
    expectEqual(Object.keys(peerDependencies), ['@mysten/bcs', '@mysten/sui', ...optionalPeers]);
    const optional = Object.fromEntries(optionalPeers.map((name) => [name, { optional: true }]));
    expectEqual(peerDependenciesMeta, optional);
    const count = await checkDependencies(libraryFolder, [
      ...ENTRIES.map((entry) => `${entry}/index.js`),
      ...PARTS.map((part) => `${part}.js`),
    ]);
    return quantity(count, 'package');
  },

  async 'its README names the same Node, file and peers as its manifest'() {
    const readme = readFileSync(join(libraryFolder, 'README.md'), 'utf8');
    const { version: packed, engines, peerDependencies, peerDependenciesMeta } = readPublished(libraryFolder);
    const [, node] = /Node (\d+) or newer/.exec(readme) ?? [];
    expectEqual(engines, { node: `>=${node}` });
    const [, file, peers = ''] = /^npm install (\S+) (.*)$/m.exec(readme) ?? [];
    expectEqual(file, `./sui-enclave-${packed}.tgz`);
    const requiredPeers = Object.keys(peerDependencies).filter(
      (name) => !peerDependenciesMeta?.[name]?.optional,
    );
    expectEqual(peers.split(' ').sort(), requiredPeers);
    const rootReadme = readFileSync(join(ROOT, 'README.md'), 'utf8');
    if (!rootReadme.includes(`for Node ${node} or newer`) || !rootReadme.includes(peers)) {
      throw new Error(`README.md names another Node or other peers than ${node} and ${peers}`);
    }
    return `Node ${node}, ${peers}`;
  },

  async 'it installs beside the lowest @mysten/sui and React that it allows'() {
    const { peerDependencies } = readPublished(libraryFolder);
    return await install(
      lowestVersion(peerDependencies['@mysten/sui'] ?? ''),
      lowestVersion(peerDependencies['react'] ?? ''),
    );
  },
  'plain JavaScript verifies a real document with it, beside the lowest peers': useFromJavaScript,
  'TypeScript accepts its types and the snippets of its READMEs, beside the lowest peers': useFromTypeScript,
  'it installs beside the @mysten/sui and React that are pinned here': () =>
    install(installedVersion('@mysten/sui'), installedVersion('react')),
  'plain JavaScript verifies a real document with it': useFromJavaScript,
  'an import of the package without an entry fails, and names the entries': importRoot,
  'TypeScript accepts its types and the snippets of its READMEs, and refuses what they forbid':
    useFromTypeScript,

  async 'its bundle for browsers is small, and needs no modules of Node'() {
    const bundle = await rolldown({
      input: join(project, 'page.js'),
      platform: 'browser',
      cwd: project,
      logLevel: 'silent',
    });
    const { output } = await bundle.write({
      file: join(project, 'bundle.js'),
      format: 'iife',
      // `forConfig` imports `@mysten/sui` dynamically.
      codeSplitting: false,
      minify: true,
    });
    const [chunk, ...moreOutput] = output;
    expectEqual(moreOutput.length, 0);
    expectEqual(chunk.imports, []);
    const size = gzipSync(chunk.code, { level: 9 }).length;
    if (size > MAX_BUNDLE_SIZE) throw new Error(`${quantity(size, 'byte')}, over ${MAX_BUNDLE_SIZE}`);
    return `${quantity(size, 'byte')} minified and gzipped, of ${MAX_BUNDLE_SIZE}`;
  },

  async 'only its entry for React loads React, and only its entry for the wallet loads the Wallet Standard'() {
    for (const entry of ENTRIES) {
      const imported = new Set<string>();
      const bundle = await rolldown({
        input: join(libraryFolder, entry, 'index.js'),
        platform: 'browser',
        logLevel: 'silent',
        external(specifier) {
          imported.add(specifier);
          return !/^[./#]/.test(specifier);
        },
      });
      await bundle.generate();
      await bundle.close();
      const peers = ['react', '@mysten/wallet-standard'].map((name) => imported.has(name));
      expectEqual([entry, ...peers], [entry, entry === 'react', entry === 'wallet']);
    }
    return 'no other entry loads either';
  },

  async 'a page in Chromium verifies a real document with it'() {
    const browser = await launchBrowser();
    try {
      const page = await browser.newPage();
      await page.addScriptTag({ content: readFileSync(join(project, 'bundle.js'), 'utf8') });
      const call = `checkPackage(${JSON.stringify(readFileSync(VECTOR, 'utf8').trim())}, ${JSON.stringify(PCRS)})`;
      expectEqual(await page.evaluate(call), { rootSha256: ROOT_SHA256, callCode: 'CLIENT_UNREACHABLE' });
      // A blank page has no secure context, so the library worked without crypto.subtle.
      return `crypto.subtle is ${await page.evaluate('typeof crypto.subtle')}`;
    } finally {
      await browser.close();
    }
  },

  ...exampleSteps(work, () => findTarball('sui-enclave')),
  ...serverSteps(work, () => findTarball('sui-enclave-server')),
  ...cliSteps(work, () => findTarball('sui-enclave-cli')),
  ...toolchainSteps(work, findTarball),
  ...authorSteps(work, findTarball),
  ...registrySteps(work, tarballs),
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
// Servers of a failed step would keep this process running. They end when it exits.
process.exit(failed === 0 ? 0 : 1);
