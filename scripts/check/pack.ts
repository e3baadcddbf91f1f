/**
 * `npm run package`: the library as `out/sui-enclave-<version>.tgz`, for `npm install`. Its manifest is that of its
 * folder, but for what only the tree needs: there, `exports` names sources, and modules that only other packages of
 * this repository import. CHANNEL is `stable`, or `experimental` by default.
 */
import { execFileSync } from 'node:child_process';
import { copyFileSync, globSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { ConfigError, quantity } from '../../src/library/errors.ts';
import { command, type Result, runAsProcess } from '../../src/commands/command.ts';
import { type Channel, checkChannel } from '../../src/commands/image/measurements.ts';

const ROOT = new URL('../../', import.meta.url).pathname;
/** The output folder of tsconfig.lib.json. */
const FOLDER = join(ROOT, 'build/package');
const OUT = join(ROOT, 'out');

const ENTRIES: Readonly<Record<string, string>> = {
  attestation: 'verifies attestation documents',
  client: 'calls an enclave and trusts only what it proves',
  sui: 'reads and manages registered enclaves on Sui, submits what they sign',
  zklogin: "a wallet's zkLogin, from the login to the signature",
};

/** What is packed of the package.json of a folder. */
interface Manifest {
  readonly name: string;
  readonly version: string;
  readonly description: string;
  readonly license: string;
  readonly type: string;
  readonly sideEffects: boolean;
  readonly dependencies: Readonly<Record<string, string>>;
  /**
   * Nearly every dapp has these already. A second copy would have its own `Transaction` and client classes, which
   * TypeScript and `instanceof` distinguish from the first. Before 2.29, the client of `@mysten/sui` leaves
   * the messages of nodes encoded, and the errors of `sui-enclave/sui` are distinguished by them.
   */
  readonly peerDependencies: Readonly<Record<string, string>>;
}

/** The Node versions that `@mysten/sui` requires. */
const NODE = '>=22';

/** The commit that is packed. */
export interface Source {
  /** Null outside a git repository. */
  readonly commit: string | null;
  /** Tags of that commit. */
  readonly tags: readonly string[];
}

/**
 * The version of the package: that of package.json, as it is in the channel `stable`.
 *
 * @throws ConfigError, if the commit can't be named, or is not the tag of a stable version
 */
export function versionOf(version: string, channel: Channel, { commit, tags }: Source): string {
  if (channel === 'stable') {
    if (tags.includes(`v${version}`)) return version;
    throw new ConfigError(`CHANNEL=stable packs version ${version} at its tag only: v${version}`);
  }
  if (commit === null) {
    throw new ConfigError('CHANNEL=experimental names the commit in the version: run it in a git repository');
  }
  // An identifier of digits alone has no leading zero (Semantic Versioning 2.0.0, item 9).
  const short = commit.slice(0, 12);
  return `${version}-experimental.${/^0\d+$/.test(short) ? commit : short}`;
}

function readSource(): Source {
  try {
    const git = (...args: string[]) =>
      execFileSync('git', args, { cwd: ROOT, encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }).trim();
    return { commit: git('rev-parse', 'HEAD'), tags: git('tag', '--points-at', 'HEAD').split('\n') };
  } catch {
    return { commit: null, tags: [] };
  }
}

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

function readManifest(): Manifest {
  return JSON.parse(readFileSync(join(ROOT, 'src/library/package.json'), 'utf8'));
}

function manifest(own: Manifest, version: string, channel: Channel): object {
  const { name, description, license, type, sideEffects, dependencies, peerDependencies } = own;
  const imported = importedPackages().filter((each) => !Object.hasOwn(peerDependencies, each));
  const unknown = imported.find((each) => dependencies[each] === undefined);
  if (unknown !== undefined) {
    throw new Error(`${unknown} is imported, but the library's package.json does not depend on it`);
  }
  return {
    name,
    version,
    description,
    license,
    type,
    sideEffects,
    engines: { node: NODE },
    publishConfig: { tag: channel },
    exports: {
      '.': { types: './index.d.ts', default: './index.js' },
      ...Object.fromEntries(
        Object.keys(ENTRIES).map((entry) => [
          `./${entry}`,
          { types: `./${entry}/index.d.ts`, default: `./${entry}/index.js` },
        ]),
      ),
    },
    dependencies: Object.fromEntries(imported.map((each) => [each, dependencies[each]])),
    peerDependencies,
  };
}

function readme({ peerDependencies }: Manifest, version: string): string {
  const minimum = NODE.replace('>=', '');
  return `# sui-enclave

The library for what runs outside the enclave, in browsers and in Node ${minimum} or newer.

\`\`\`sh
npm install ./sui-enclave-${version}.tgz ${Object.keys(peerDependencies).reverse().join(' ')}
\`\`\`

\`@mysten/sui\` and \`@mysten/bcs\` are peer dependencies: your project's own copies are used.

\`\`\`ts
import { bcs } from '@mysten/bcs';
import { EnclaveClient, parsePcrs, signedType, text, u64 } from 'sui-enclave/client';

// The type that the application signs, with its intent and its fields in order.
const WeatherResponse = signedType(0, bcs.struct('WeatherResponse', { location: text, temperature: u64 }));

const client = new EnclaveClient('https://weather.example', {
  policy: { images: [parsePcrs(pcrsText)] }, // out/nitro.pcrs of the image that you built or audited
});
const asked = { location: 'San Francisco' };
const { data } = await client.processData(asked, WeatherResponse, { expect: asked });
data.temperature; // attested and signed
\`\`\`

| import | does |
| --- | --- |
${Object.entries(ENTRIES)
  .map(([entry, does]) => `| [\`sui-enclave/${entry}\`](${entry}/README.md) | ${does} |`)
  .join('\n')}
`;
}

/** `import 'sui-enclave'`: each entry is loaded by its own name, so that a page gets only what it uses. */
function writeRootEntry(): void {
  const entries = Object.keys(ENTRIES).map((entry) => `sui-enclave/${entry}`);
  const message = `import one of the entries of sui-enclave instead: ${entries.join(', ')}`;
  writeFileSync(join(FOLDER, 'index.js'), `throw new Error(${JSON.stringify(message)});\n`);
  writeFileSync(join(FOLDER, 'index.d.ts'), `/** Throws: ${message}. */\nexport {};\n`);
}

function pack(channel: Channel): Result {
  const own = readManifest();
  const version = versionOf(own.version, channel, readSource());
  rmSync(FOLDER, { recursive: true, force: true });
  const tsc = join(ROOT, 'node_modules/typescript/bin/tsc');
  execFileSync(process.execPath, [tsc, '-p', 'tsconfig.lib.json'], { cwd: ROOT, stdio: ['ignore', 2, 2] });
  for (const entry of Object.keys(ENTRIES)) {
    copyFileSync(join(ROOT, 'src/library', entry, 'README.md'), join(FOLDER, entry, 'README.md'));
  }
  copyFileSync(join(ROOT, 'LICENSE'), join(FOLDER, 'LICENSE'));
  writeRootEntry();
  writeFileSync(join(FOLDER, 'README.md'), readme(own, version));
  writeFileSync(
    join(FOLDER, 'package.json'),
    `${JSON.stringify(manifest(own, version, channel), null, 2)}\n`,
  );
  mkdirSync(OUT, { recursive: true });
  const packed = execFileSync('npm', ['pack', '--json', '--pack-destination', OUT], {
    cwd: FOLDER,
    encoding: 'utf8',
  });
  const [{ filename, entryCount, size }] = JSON.parse(packed);
  const file = `out/${filename}`;
  return {
    json: { file, version, channel, files: entryCount, bytes: size },
    text: `${file}: ${quantity(entryCount, 'file')}, ${quantity(size, 'byte')} (${channel})`,
  };
}

export const main = command({
  usage: `usage: npm run package

Packs the library as out/sui-enclave-<version>.tgz. CHANNEL=stable needs an unchanged tree at the tag of the version;
CHANNEL=experimental, the default, adds the commit to the version.

exit codes: 0 packed; 1 refused or failed; 2 invalid command line`,
  options: {},
  run: (_given, { env }) => pack(checkChannel(ROOT, env['CHANNEL'] ?? 'experimental', ['src/library'])),
});

if (import.meta.main) await runAsProcess(main);
