/**
 * Applications that the tests audit: weather, in a clone of this repository, and one that
 * `create-sui-enclave` writes, in a repository of its own.
 */
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { applicationFiles, derivedFiles, repositoryFiles } from '../../../../src/create/template.ts';
import { type OwnFramework, ownFramework } from '../../../../src/toolchain/audit/source.ts';
import type { Files } from './git_server.ts';

export const ROOT = fileURLToPath(new URL('../../../../', import.meta.url));

const createIntegrity = (letter: string) => `sha512-${letter.repeat(86)}==`;

/** The packages of the framework, as an installed program knows them. */
export const FRAMEWORK: OwnFramework = {
  ...ownFramework(),
  packages: { 'sui-enclave': createIntegrity('A'), 'sui-enclave-server': createIntegrity('B') },
};

export type Packages = Record<string, Record<string, unknown>>;

/**
 * Returns the files that `create-sui-enclave` writes. Their lock file names the framework's packages by their
 * digests.
 */
export function createdFiles(name = 'price', change: (packages: Packages) => void = () => undefined): Files {
  const { packages: locked }: { packages: Packages } = JSON.parse(
    readFileSync(join(ROOT, 'package-lock.json'), 'utf8'),
  );
  const { version } = FRAMEWORK;
  const sharedPackages = ['@mysten/bcs', '@mysten/utils', '@scure/base', 'valibot'];
  const dependencies = {
    '@mysten/bcs': locked['node_modules/@mysten/bcs']?.['version'],
    'sui-enclave-server': version,
    valibot: locked['node_modules/valibot']?.['version'],
  };
  const manifest = { name, version: '0.1.0', private: true, type: 'module', dependencies };
  const server = {
    version,
    integrity: createIntegrity('B'),
    peerDependencies: { valibot: '1.5.0', '@mysten/bcs': '2.1.2' },
  };
  const packages: Packages = {
    '': { ...manifest },
    'node_modules/sui-enclave': { version, integrity: createIntegrity('A'), dev: true },
    'node_modules/sui-enclave-cli': { version, integrity: createIntegrity('C'), dev: true },
    'node_modules/sui-enclave-server': server,
    ...Object.fromEntries(
      sharedPackages.flatMap((packageName) => {
        const entry = locked[`node_modules/${packageName}`];
        return entry === undefined ? [] : [[`node_modules/${packageName}`, { ...entry }]];
      }),
    ),
  };
  change(packages);
  const json = (value: object) => `${JSON.stringify(value, null, 2)}\n`;
  return {
    ...Object.fromEntries([
      ...applicationFiles('oracle', name),
      ...derivedFiles('oracle', name),
      ...repositoryFiles(name),
    ]),
    'package.json': json(manifest),
    'package-lock.json': json({ name, lockfileVersion: 3, requires: true, packages }),
  };
}

let clone: Files | undefined;

/** Returns the files of this repository, as a commit of its current state would contain them. */
export function clonedFiles(): Files {
  clone ??= Object.fromEntries(
    execFileSync('git', ['ls-files', '-z', '--cached', '--others', '--exclude-standard', '--deduplicate'], {
      cwd: ROOT,
      encoding: 'utf8',
    })
      .split('\0')
      .filter((path) => path !== '')
      .map((path) => [path, readFileSync(join(ROOT, path))]),
  );
  return clone;
}

/** Returns the files from which an image of weather and its contract are made. */
export function weatherFiles(): Files {
  const copiedPaths =
    /^(?:Containerfile$|package(?:-lock)?\.json$|enclave\/|move\/\w+\/(?:Move\.toml|sources\/)|src\/(?:apps\/weather|library|server|service|cli\/image|toolchain\/image)\/|src\/toolchain\/package\.json$|src\/cli\/(?:package\.json|command\.ts|command_line\.ts|places\.ts|printable\.ts|read_file\.ts|suggestion\.ts|values\.ts)$)/;
  return Object.fromEntries(Object.entries(clonedFiles()).filter(([path]) => copiedPaths.test(path)));
}
