/**
 * `create-sui-enclave <folder>`: writes an application for an enclave as a repository of its own. It asks nothing, starts
 * nothing and needs no network.
 */
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync } from 'node:fs';
import { basename, join, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { nameProblem } from './names.ts';
import {
  applicationFiles,
  derivedFiles,
  type Files,
  repositoryFiles,
  TEMPLATE_NAMES,
  writeFiles,
} from './template.ts';

const HELP = `usage: create-sui-enclave <folder> [--template <name>] [--from <folder>]

Writes an application for an enclave into a new folder, as a repository of its own: its code and tests, fakes of the hosts
that it calls, its contract, a lockfile, and what CI runs. The application has the name of the folder, with _ for -.

  --template <name>  ${TEMPLATE_NAMES.join(' or ')} (default: oracle)
  --from <folder>    install the packages of sui-enclave from the tarballs in this folder, not from a registry
  --json             print the result, or the error, as JSON
  --help             print this

exit codes: 0 written; 1 refused; 2 invalid command line`;

/** What packing puts beside this module: the manifest and the lockfile of a new repository. */
export interface Pinned {
  readonly manifest: Manifest;
  readonly lock: Lock;
  /** Files of the packages of sui-enclave, by their names. */
  readonly tarballs: Readonly<Record<string, string>>;
}

type Versions = Record<string, string>;

interface Manifest {
  name: string;
  dependencies: Versions;
  devDependencies: Versions;
}

interface Lock {
  name: string;
  packages: Record<string, Locked>;
}

interface Locked {
  name?: string;
  version?: string;
  resolved?: string;
  integrity?: string;
  dependencies?: Versions;
  devDependencies?: Versions;
}

/** Refused, with the exit code. */
class Refused extends Error {
  readonly code: string;
  readonly exit: number;

  constructor(code: string, exit: number, message: string) {
    super(message);
    this.code = code;
    this.exit = exit;
  }
}

/** Makes every dependency on a package of sui-enclave one on its file. @throws Refused */
function installFrom({ manifest, lock, tarballs }: Pinned, from: string, folder: string): void {
  const root = lock.packages[''] ?? {};
  for (const [name, file] of Object.entries(tarballs)) {
    const tarball = join(resolve(from), file);
    if (!existsSync(tarball)) throw new Refused('FILE', 1, `--from ${from}: there is no ${file}`);
    const specifier = `file:${relative(folder, tarball)}`;
    for (const versions of [manifest, root].flatMap((item) => [item.dependencies, item.devDependencies])) {
      if (versions?.[name] !== undefined) versions[name] = specifier;
    }
    const locked = lock.packages[`node_modules/${name}`];
    if (locked === undefined) continue;
    const integrity = `sha512-${createHash('sha512').update(readFileSync(tarball)).digest('base64')}`;
    if (locked.integrity !== integrity) {
      throw new Refused('FILE', 1, `${file} is not the one that was packed with this program`);
    }
    locked.resolved = specifier;
  }
}

const json = (value: object) => `${JSON.stringify(value, null, 2)}\n`;

/** @returns the name of the application, and the paths that it wrote. @throws Refused */
function create(
  pinned: Pinned,
  folder: string,
  template: string,
  from: string | undefined,
): { name: string; files: string[] } {
  const known = TEMPLATE_NAMES.find((item) => item === template);
  if (known === undefined) throw new Refused('USAGE', 2, `--template must be ${TEMPLATE_NAMES.join(' or ')}`);
  const name = basename(folder).replaceAll('-', '_');
  const problem = nameProblem(name);
  if (problem !== undefined) throw new Refused('USAGE', 2, `<folder>: the name ${name} ${problem}`);
  if (existsSync(folder) && readdirSync(folder).some((entry) => entry !== '.git')) {
    throw new Refused('EXISTS', 1, `${folder} is not empty: choose another name`);
  }
  const { manifest, lock } = pinned;
  manifest.name = basename(folder);
  lock.name = manifest.name;
  if (lock.packages['']) lock.packages[''].name = manifest.name;
  if (from !== undefined) installFrom(pinned, from, folder);
  const files: Files = new Map([
    ...applicationFiles(known, name),
    ...derivedFiles(known, name),
    ...repositoryFiles(name),
    ['package.json', json(manifest)],
    ['package-lock.json', json(lock)],
  ]);
  mkdirSync(folder, { recursive: true });
  writeFiles(folder, files);
  return { name, files: [...files.keys()].sort() };
}

function parse(argv: readonly string[]) {
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
    const [folder, ...more] = positionals;
    if (folder === undefined || more.length > 0) throw new Error('name one folder');
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
 * @param pinned for tests: what packing makes
 * @returns the exit code
 */
export function runProgram(argv: readonly string[] = process.argv.slice(2), pinned = readPinned): number {
  const asJson = argv.includes('--json');
  try {
    const { folder, template, from } = parse(argv);
    if (folder === undefined) {
      console.log(HELP);
      return 0;
    }
    const { name, files } = create(pinned(), folder, template, from);
    const path = relative(process.cwd(), folder) || '.';
    if (asJson) console.log(JSON.stringify({ folder, name, files }, null, 2));
    else {
      console.log(`${path} has the application ${name}.

  cd ${path}
  npm ci
  npx --offline sui-enclave dev     # the server against fakes, with a request to try
  npx --offline sui-enclave test

README.md there says what each file is for.`);
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
