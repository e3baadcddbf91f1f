/** Checks that the packages of this repository have one version, at which they depend on each other. */
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

type Versions = Readonly<Record<string, string>>;

/** The part of a package.json that names versions. */
export interface Versioned {
  readonly name?: string;
  readonly version?: string;
  readonly dependencies?: Versions;
  readonly devDependencies?: Versions;
  readonly optionalDependencies?: Versions;
  readonly peerDependencies?: Versions;
}

/** The fields of a package.json that name other packages. */
export const DEPENDENCY_FIELDS = [
  'dependencies',
  'devDependencies',
  'optionalDependencies',
  'peerDependencies',
] as const;

/** Reads the package.json files of the repository and of its workspaces, by their paths. */
export function readManifests(root: string): ReadonlyMap<string, Versioned> {
  const paths = ['package.json', ...globSync('src/{*,apps/*}/package.json', { cwd: root }).sort()];
  return new Map(paths.map((path) => [path, JSON.parse(readFileSync(join(root, path), 'utf8'))]));
}

/**
 * Returns a line for each package whose version is not `version`, and a line for each dependency between
 * these packages that does not name exactly `version`.
 */
export function listMismatches(version: string, manifests: readonly Versioned[]): string[] {
  const names = new Set(manifests.map(({ name }) => name));
  return manifests.flatMap((manifest) => {
    const { name } = manifest;
    const dependencies = DEPENDENCY_FIELDS.flatMap((field) => Object.entries(manifest[field] ?? {}));
    return [
      ...(manifest.version === version ? [] : [`${name} has version ${manifest.version}, not ${version}`]),
      ...dependencies
        .filter(([dependency, range]) => names.has(dependency) && range !== version)
        .map(([dependency, range]) => `${name} depends on ${dependency} ${range}, not ${version}`),
    ];
  });
}
