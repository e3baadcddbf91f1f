/**
 * `create-sui-enclave <folder>`: writes an application for an enclave as a repository of its own. It asks no
 * questions, starts no program and needs no network.
 */
import { createHash } from 'node:crypto';
import { constants, copyFileSync, existsSync, mkdirSync, readdirSync, readFileSync } from 'node:fs';
import { basename, dirname, join, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { nameProblem } from './names.ts';
import {
  applicationFiles,
  derivedFiles,
  type Files,
  pageFiles,
  repositoryFiles,
  TEMPLATE_NAMES,
  writeFiles,
} from './template.ts';

const HELP = `usage: create-sui-enclave <folder> [--template <name>] [--from <folder>]

Writes an application for an enclave into a new folder, as a repository of its own: its code and tests, fakes of the hosts
that it calls, its contract, a lockfile, and the programs that CI runs. The application is named after the folder, with _ in place of -.

  --template <name>  oracle, prices of a service (default); feed, the price of three sources, kept on chain; weather, the
                     temperature of a place; dapp, the same with a page that mints it; llm, answers of a language
                     model's API; or empty, which signs nothing yet
  --from <folder>    copy the tarballs of sui-enclave's packages from this folder into the repository, for versions that no registry has
  --json             print the result, or the error, as JSON
  --help             print this

exit codes: 0 written; 1 refused; 2 invalid command line`;

/** The manifest and lockfile of a new repository. Packing writes them beside this module. */
export interface Pinned {
  /** Version of the packages of sui-enclave. */
  readonly version: string;
  readonly manifest: Manifest;
  readonly lock: Lock;
  /** Names of the files of sui-enclave's packages, by package name. */
  readonly tarballs: Readonly<Record<string, string>>;
}

/** Versions by package name, as in a package.json. */
type Versions = Record<string, string>;

interface Manifest {
  name: string;
  scripts?: Record<string, string>;
  dependencies: Versions;
  devDependencies: Versions;
}

interface Lock {
  name: string;
  packages: Record<string, LockedPackage>;
}

interface LockedPackage {
  name?: string;
  version?: string;
  resolved?: string;
  integrity?: string;
  dependencies?: Versions;
  devDependencies?: Versions;
  scripts?: Record<string, string>;
}

/** Error that ends the program with its exit code. */
class Refused extends Error {
  readonly code: string;
  readonly exit: number;

  constructor(code: string, exit: number, message: string) {
    super(message);
    this.code = code;
    this.exit = exit;
  }
}

/** URL of npm's record of the packages that it installed beside this program. */
const INSTALL_RECORD = new URL('../../.package-lock.json', import.meta.url);

/**
 * Returns whether npm installed this program from a file. If so, a registry may lack the packages of its
 * version. Other package managers write no such record.
 */
function isInstalledFromFile(record: URL): boolean {
  if (!existsSync(record)) return false;
  const { packages }: Pick<Lock, 'packages'> = JSON.parse(readFileSync(record, 'utf8'));
  return packages['node_modules/create-sui-enclave']?.resolved?.startsWith('file:') ?? false;
}

/** Folder in which a repository keeps the packages of sui-enclave that no registry has. */
const PACKAGES = 'packages';

/**
 * Formats the address of a package in the lockfile. Without an address, npm would not look in its cache for
 * the package by its SHA-512. No host can have this address (RFC 2606), so nobody can serve another package
 * with that name. A file path is no alternative, since audits would refuse it.
 */
const formatTarballUrl = (name: string, file: string) => `https://${PACKAGES}.invalid/${name}/-/${file}`;

const NPMRC = `# Exact versions only. For the packages in ${PACKAGES}/, the lockfile has addresses that no host has: npm takes these packages
# from its cache, or from your registry once that has the same bytes.
save-exact=true
omit-lockfile-registry-resolved=false
replace-registry-host=always
audit=false
fund=false
`;

/**
 * Finds the tarballs of the packages of sui-enclave that a repository installs, and checks their digests.
 * Writes an address for each package into the lockfile.
 *
 * @returns paths of the tarballs, by their path in the repository. @throws Refused
 */
function addTarballs({ lock, tarballs }: Pinned, from: string): ReadonlyMap<string, string> {
  const files = new Map<string, string>();
  for (const [name, file] of Object.entries(tarballs)) {
    const tarball = join(resolve(from), file);
    if (!existsSync(tarball)) throw new Refused('FILE', 1, `--from ${from}: there is no ${file}`);
    const locked = lock.packages[`node_modules/${name}`];
    if (locked === undefined) continue;
    const integrity = `sha512-${createHash('sha512').update(readFileSync(tarball)).digest('base64')}`;
    if (locked.integrity !== integrity) {
      throw new Refused('FILE', 1, `${file} is not the one that was packed with this program`);
    }
    locked.resolved = formatTarballUrl(name, file);
    files.set(join(PACKAGES, file), tarball);
  }
  return files;
}

/** Adds Vite, which builds a page. The lockfile already has Vite, because vitest needs it. */
function addPage({ manifest, lock }: Pinned): void {
  const version = lock.packages['node_modules/vite']?.version;
  if (version === undefined) throw new Error('the lockfile has no vite');
  for (const declared of [manifest, lock.packages['']]) {
    if (declared === undefined) continue;
    const devDependencies = { ...declared.devDependencies, vite: version };
    declared.devDependencies = Object.fromEntries(
      Object.entries(devDependencies).sort(([a], [b]) => (a < b ? -1 : 1)),
    );
    declared.scripts = { ...declared.scripts, 'build:page': 'vite build page --base ./' };
  }
}

const json = (value: object) => `${JSON.stringify(value, null, 2)}\n`;

/** Writes the new repository. @returns the application's name, and the written paths. @throws Refused */
function create(
  pinned: Pinned,
  folder: string,
  template: string,
  from: string | undefined,
  record: URL,
): { name: string; files: string[] } {
  const templateName = TEMPLATE_NAMES.find((candidate) => candidate === template);
  if (templateName === undefined)
    throw new Refused('USAGE', 2, `--template must be one of ${TEMPLATE_NAMES.join(', ')}`);
  const name = basename(folder).replaceAll('-', '_');
  const problem = nameProblem(name);
  if (problem !== undefined) throw new Refused('USAGE', 2, `<folder>: the name ${name} ${problem}`);
  if (existsSync(folder) && readdirSync(folder).some((entry) => entry !== '.git')) {
    throw new Refused('EXISTS', 1, `${folder} is not empty: choose another name`);
  }
  const { manifest, lock, version } = pinned;
  if (from === undefined && isInstalledFromFile(record)) {
    throw new Refused(
      'UNPUBLISHED',
      1,
      `this program was installed from a file, so a registry may lack the packages of sui-enclave ${version}: pass the folder with their tarballs as --from, such as <clone>/out after "make package"`,
    );
  }
  manifest.name = basename(folder);
  lock.name = manifest.name;
  if (lock.packages['']) lock.packages[''].name = manifest.name;
  const page = pageFiles(templateName, name);
  if (page.size > 0) addPage(pinned);
  const packages = from === undefined ? new Map<string, string>() : addTarballs(pinned, from);
  const files: Files = new Map([
    ...applicationFiles(templateName, name),
    ...page,
    ...derivedFiles(templateName, name),
    ...repositoryFiles(name),
    ...(from === undefined ? [] : [['.npmrc', NPMRC] as const]),
    ['package.json', json(manifest)],
    ['package-lock.json', json(lock)],
  ]);
  mkdirSync(folder, { recursive: true });
  writeFiles(folder, files);
  for (const [path, tarball] of packages) {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    copyFileSync(tarball, join(folder, path), constants.COPYFILE_EXCL);
  }
  return { name, files: [...files.keys(), ...packages.keys()].sort() };
}

function parseCommandLine(argv: readonly string[]) {
  try {
    const { values, positionals } = parseArgs({
      args: [...argv],
      allowPositionals: true,
      options: {
        template: { type: 'string', default: 'oracle' },
        from: { type: 'string' },
        json: { type: 'boolean' },
        help: { type: 'boolean' },
      },
    });
    if (values.help) return { ...values, folder: undefined };
    const [folder, ...surplus] = positionals;
    if (folder === undefined || surplus.length > 0) throw new Error('name one folder');
    return { ...values, folder: resolve(folder) };
  } catch (error) {
    throw new Refused('USAGE', 2, `${(error as Error).message}. See create-sui-enclave --help`);
  }
}

function readPinned(): Pinned {
  return JSON.parse(readFileSync(fileURLToPath(new URL('pinned.json', import.meta.url)), 'utf8'));
}

/**
 * Runs a command line.
 *
 * @param pinned returns the manifest and lockfile that packing wrote; tests pass their own
 * @param record URL of npm's record of the packages that it installed; tests pass their own
 * @returns the exit code
 */
export function runProgram(
  argv: readonly string[] = process.argv.slice(2),
  pinned = readPinned,
  record = INSTALL_RECORD,
): number {
  const asJson = argv.includes('--json');
  try {
    const { folder, template, from } = parseCommandLine(argv);
    if (folder === undefined) {
      console.log(HELP);
      return 0;
    }
    const { name, files } = create(pinned(), folder, template, from, record);
    const path = relative(process.cwd(), folder) || '.';
    if (asJson) console.log(JSON.stringify({ folder, name, files }, null, 2));
    else {
      const add =
        from === undefined
          ? ''
          : `  npm cache add ./${PACKAGES}/*.tgz   # adds them to npm's cache, where npm ci finds them\n`;
      console.log(`${path} has the application ${name}.

  cd ${path}
${add}  npm ci
  npx --offline sui-enclave dev     # the server against fakes, with a request to try
  npx --offline sui-enclave test

Its README.md says what each file is for.`);
    }
    return 0;
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    const { code, message } = error;
    if (asJson) console.log(JSON.stringify({ status: 'failed', code, error: message }, null, 2));
    else console.error(`${code}: ${message}`);
    return error.exit;
  }
}
