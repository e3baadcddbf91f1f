/** Packs the published library. Each of its entries is a folder with a README. */
import { copyFileSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { runCompiler } from './compile.ts';
import { rewriteLinks } from './repository.ts';
import {
  formatInstall,
  type Manifest,
  makeTarball,
  type Publication,
  ROOT,
  readManifest,
  type Tarball,
} from './tarball.ts';

const DIRECTORY = 'src/library';
/** The output folder of tsconfig.lib.json. */
const FOLDER = join(ROOT, 'build/package');

const ENTRIES: Readonly<Record<string, string>> = {
  attestation: 'verifies attestation documents',
  client: 'calls an enclave and trusts only what it proves',
  react: 'hooks for React, which no other entry needs: an attested enclave, a login',
  release: 'verifies who vouches for an image, and that it is not withdrawn',
  sui: 'reads and manages registered enclaves on Sui, submits what they sign',
  wallet: "zkLogin in a dapp's connect button, as a wallet of the Wallet Standard",
  zklogin: "a wallet's zkLogin, from the login to the signature",
};

/**
 * Path of a copy of the tarball whose name has no version: the examples' manifests and lockfiles use it.
 */
const FOR_EXAMPLES = 'out/sui-enclave.tgz';

/** The Node versions that `@mysten/sui` requires. */
const NODE = '>=22';

/**
 * Packs only the public entries. In the tree, `exports` also has modules for other packages of this
 * repository.
 */
export function packLibrary(publication: Publication): Tarball {
  const manifest = readManifest('library');
  // Nearly every dapp has the peers already. A second copy would have its own `Transaction` and client
  // classes, which TypeScript and `instanceof` distinguish from the first. Before version 2.29, the client of
  // `@mysten/sui` does not decode the messages of nodes, by which `sui-enclave/sui` distinguishes errors.
  const { peerDependencies = {}, peerDependenciesMeta = {} } = manifest;
  rmSync(FOLDER, { recursive: true, force: true });
  runCompiler('tsconfig.lib.json');
  compileForNode();
  writePages(publication);
  writeRootEntry();
  writeFileSync(join(FOLDER, 'README.md'), readme(manifest, publication));
  const entries = {
    '.': './index',
    ...Object.fromEntries(Object.keys(ENTRIES).map((entry) => [`./${entry}`, `./${entry}/index`])),
    // This entry is for the page at redirectUri, which loads nothing else.
    './wallet/redirect': './wallet/redirect',
  };
  const tarball = makeTarball({
    folder: FOLDER,
    manifest,
    directory: DIRECTORY,
    publication,
    node: NODE,
    entries,
    peerDependencies,
    peerDependenciesMeta,
    imports: compiledImports(manifest),
  });
  copyFileSync(join(ROOT, tarball.file), join(ROOT, FOR_EXAMPLES));
  return tarball;
}

/** Writes the README of each entry, with links that work outside of the repository. */
function writePages({ repository }: Publication): void {
  const pages = Object.keys(ENTRIES).map((entry) => join(entry, 'README.md'));
  const packed = pages.map((page) => join(DIRECTORY, page));
  for (const page of pages) {
    const path = join(DIRECTORY, page);
    const markdown = readFileSync(join(ROOT, path), 'utf8');
    writeFileSync(join(FOLDER, page), rewriteLinks({ path, markdown, packed }, repository));
  }
}

/** Compiles the modules that only Node loads, and that therefore may use Node's types. */
function compileForNode(): void {
  const project = `${FOLDER}.node.tsconfig.json`;
  const compilerOptions = { types: ['node'], rootDir: join(ROOT, 'src/library'), outDir: FOLDER };
  const files = ['platform_fetch_node.ts', 'release/keyless_node.ts'].map((name) =>
    join(ROOT, 'src/library', name),
  );
  writeFileSync(
    project,
    JSON.stringify({ extends: join(ROOT, 'tsconfig.lib.json'), compilerOptions, files }),
  );
  runCompiler(project);
}

function compiledImports({ imports = {} }: Manifest): Manifest['imports'] {
  return Object.fromEntries(
    Object.entries(imports).map(([name, modules]) => [
      name,
      Object.fromEntries(
        Object.entries(modules).map(([condition, path]) => [condition, path.replace(/\.ts$/, '.js')]),
      ),
    ]),
  );
}

function readme(
  { name, peerDependencies = {}, peerDependenciesMeta = {} }: Manifest,
  publication: Publication,
): string {
  const minimum = NODE.replace('>=', '');
  const requiredPeers = Object.keys(peerDependencies).filter((name) => !peerDependenciesMeta[name]?.optional);
  return `# sui-enclave

The library for what runs outside the enclave, in browsers and in Node ${minimum} or newer.

\`\`\`sh
${formatInstall(publication, [name], requiredPeers.reverse())}
\`\`\`

\`@mysten/sui\` and \`@mysten/bcs\` are peer dependencies: your project's own copies are used. So are React, which only \`sui-enclave/react\` needs, and \`@mysten/wallet-standard\`, which only \`sui-enclave/wallet\` needs. \`sui-enclave/release\` needs \`@sigstore/bundle\`, \`@sigstore/protobuf-specs\` and \`@sigstore/verify\` for releases that are signed without a key.

\`\`\`ts
import { bcs } from '@mysten/bcs';
import { EnclaveClient, parsePcrs, signedType, text, u64 } from 'sui-enclave/client';

// The type that the application signs, with its intent and its fields in order.
const WeatherResponse = signedType(0, bcs.struct('WeatherResponse', { location: text, temperature: u64 }));

const client = new EnclaveClient('https://weather.example', {
  policy: { images: [parsePcrs(pcrsText)] }, // out/nitro.pcrs of the image that you built or audited
});
const payload = { location: 'San Francisco' };
const { data } = await client.processData(payload, WeatherResponse, { expect: payload });
data.temperature; // attested and signed
\`\`\`

| import | does |
| --- | --- |
${Object.entries(ENTRIES)
  .map(([entry, purpose]) => `| [\`sui-enclave/${entry}\`](${entry}/README.md) | ${purpose} |`)
  .join('\n')}
`;
}

/**
 * Writes the entry for `import 'sui-enclave'`. It exports nothing: pages load each entry by name, and get
 * only what they use.
 */
function writeRootEntry(): void {
  const entries = Object.keys(ENTRIES).map((entry) => `sui-enclave/${entry}`);
  const message = `import one of the entries of sui-enclave instead: ${entries.join(', ')}`;
  writeFileSync(join(FOLDER, 'index.js'), `throw new Error(${JSON.stringify(message)});\n`);
  writeFileSync(join(FOLDER, 'index.d.ts'), `/** Throws: ${message}. */\nexport {};\n`);
}
