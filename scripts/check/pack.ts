/**
 * `npm run package`: the library as `out/sui-enclave-<version>.tgz`, for `npm install`. Its manifest is its own:
 * it needs neither the server's dependencies nor the pinned Node.
 */
import { execFileSync } from 'node:child_process';
import { copyFileSync, globSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

const ROOT = new URL('../../', import.meta.url).pathname;
/** Where tsconfig.lib.json has the compiler write. */
const FOLDER = join(ROOT, 'build/package');
const OUT = join(ROOT, 'out');

const ENTRIES: Readonly<Record<string, string>> = {
  attestation: 'verifies attestation documents',
  client: 'asks an enclave and believes it only as far as it is attested',
  sui: 'reads and manages registered enclaves on Sui, submits what they sign',
  zklogin: "a wallet's zkLogin, from the login to the signature",
};

/**
 * What nearly every dapp has already: a second copy would bring a second class of `Transaction` and of each
 * client, which TypeScript and `instanceof` tell from the first. Before 2.29, the client of `@mysten/sui` leaves
 * the messages of nodes encoded, and the errors of `sui-enclave/sui` are told apart by them.
 */
const PEERS: Readonly<Record<string, string>> = { '@mysten/bcs': '^2.1.1', '@mysten/sui': '^2.29.0' };

/** The packages that the compiled library imports. */
function importedPackages(): string[] {
  const names = new Set<string>();
  for (const path of globSync('**/*.{js,d.ts}', { cwd: FOLDER })) {
    const code = readFileSync(join(FOLDER, path), 'utf8');
    for (const [, name] of code.matchAll(/\b(?:from|import\()\s*["']((?:@[\w-]+\/)?[\w-]+)[/"']/g)) {
      names.add(name as string);
    }
  }
  return [...names].sort();
}

function manifest(): object {
  const root = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'));
  const { name, version, description, license, type, sideEffects } = root;
  const own = importedPackages().filter((imported) => !Object.hasOwn(PEERS, imported));
  const unknown = own.find((imported) => root.dependencies[imported] === undefined);
  if (unknown !== undefined)
    throw new Error(`${unknown} is imported, but package.json does not depend on it`);
  return {
    name,
    version,
    description,
    license,
    type,
    sideEffects,
    engines: { node: '>=22' },
    exports: Object.fromEntries(
      Object.keys(ENTRIES).map((entry) => [
        `./${entry}`,
        { types: `./${entry}/index.d.ts`, default: `./${entry}/index.js` },
      ]),
    ),
    dependencies: Object.fromEntries(own.map((imported) => [imported, root.dependencies[imported]])),
    peerDependencies: PEERS,
  };
}

function readme(): string {
  return `# sui-enclave

The library for what runs outside the enclave, in browsers and in Node.

| import | does |
| --- | --- |
${Object.entries(ENTRIES)
  .map(([entry, does]) => `| [\`sui-enclave/${entry}\`](${entry}/README.md) | ${does} |`)
  .join('\n')}

\`@mysten/sui\` and \`@mysten/bcs\` are peer dependencies: the application's own copies are used.
`;
}

rmSync(FOLDER, { recursive: true, force: true });
execFileSync(process.execPath, [join(ROOT, 'node_modules/typescript/bin/tsc'), '-p', 'tsconfig.lib.json'], {
  cwd: ROOT,
  stdio: 'inherit',
});
for (const entry of Object.keys(ENTRIES)) {
  copyFileSync(join(ROOT, 'src', entry, 'README.md'), join(FOLDER, entry, 'README.md'));
}
copyFileSync(join(ROOT, 'LICENSE'), join(FOLDER, 'LICENSE'));
writeFileSync(join(FOLDER, 'README.md'), readme());
writeFileSync(join(FOLDER, 'package.json'), `${JSON.stringify(manifest(), null, 2)}\n`);
mkdirSync(OUT, { recursive: true });
const [packed] = JSON.parse(
  execFileSync('npm', ['pack', '--json', '--pack-destination', OUT], { cwd: FOLDER, encoding: 'utf8' }),
);
console.log(`out/${packed.filename}: ${packed.entryCount} files, ${packed.size} bytes`);
