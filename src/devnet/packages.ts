/**
 * Describes the packages of a chain, and the tables that Sui stores with each (`MovePackage` of sui-types).
 */
import { bcs } from '@mysten/sui/bcs';
import { normalizeSuiAddress } from '@mysten/sui/utils';
import { type ModuleInterface, readModule } from './bytecode/module_bytecode.ts';
import { type ModuleCode, readCode } from './bytecode/module_code.ts';

/** A package of the chain. */
export interface Package {
  /** Id of the package's first version. */
  readonly original: string;
  readonly modules: readonly Uint8Array[];
  /** Ids of the packages that this package depends on, as its publication named them. */
  readonly dependencies: readonly string[];
}

/** Packages by id, the oldest first. */
export type Packages = ReadonlyMap<string, Package>;

/** Version of a package that code uses in place of the original one. */
export interface Upgraded {
  readonly id: string;
  readonly version: number;
}

export interface LoadedModule {
  readonly code: ModuleCode;
  readonly moduleInterface: ModuleInterface;
}

export const STANDARD_LIBRARY = normalizeSuiAddress('0x1');
export const FRAMEWORK = normalizeSuiAddress('0x2');
/** Packages that validators upgrade in place. Each has one id and, in this model, one version. */
const SYSTEM = new Set([STANDARD_LIBRARY, FRAMEWORK, ...['0x3', '0xb'].map((id) => normalizeSuiAddress(id))]);

const PackageObject = bcs.enum('Data', {
  Move: null,
  Package: bcs.struct('MovePackage', {
    id: bcs.Address,
    version: bcs.u64(),
    modules: bcs.map(bcs.string(), bcs.byteVector()),
    typeOrigins: bcs.vector(
      bcs.struct('TypeOrigin', { module: bcs.string(), name: bcs.string(), package: bcs.Address }),
    ),
    linkage: bcs.map(
      bcs.Address,
      bcs.struct('UpgradeInfo', { upgradedId: bcs.Address, upgradedVersion: bcs.u64() }),
    ),
  }),
});

/** Modules of packages, by address and name. They stay valid, since a package never changes. */
const moduleCache = new WeakMap<Package, ReadonlyMap<string, LoadedModule>>();

/**
 * Returns the modules of a package by address and name. @throws RangeError for bytes that are not a module
 */
export function loadModules(movePackage: Package): ReadonlyMap<string, LoadedModule> {
  const cached = moduleCache.get(movePackage);
  if (cached !== undefined) return cached;
  const modules = movePackage.modules.map((bytes) => ({
    code: readCode(bytes, movePackage.original),
    moduleInterface: readModule(bytes, movePackage.original),
  }));
  const modulesByName = new Map(modules.map((module) => [module.code.module, module]));
  moduleCache.set(movePackage, modulesByName);
  return modulesByName;
}

export function isSystem(id: string): boolean {
  return SYSTEM.has(id);
}

/** Returns the id of a package's first version. */
export function originalOf(packages: Packages, id: string): string {
  return packages.get(id)?.original ?? id;
}

/** Returns the ids of a package's versions, the oldest first. */
export function listVersions(packages: Packages, original: string): string[] {
  return [...packages].filter(([, movePackage]) => movePackage.original === original).map(([id]) => id);
}

/** Returns the version number of a package, from 1. */
export function versionOf(packages: Packages, id: string): number {
  return isSystem(id) ? 1 : listVersions(packages, originalOf(packages, id)).indexOf(id) + 1;
}

/** Returns the ids of the versions that introduced the datatypes of a package, by `module::Name`. */
export function findTypeOrigins(packages: Packages, id: string): ReadonlyMap<string, string> {
  const versions = listVersions(packages, originalOf(packages, id));
  const origins = new Map<string, string>();
  for (const version of versions.slice(0, versions.indexOf(id) + 1)) {
    const movePackage = packages.get(version);
    for (const { moduleInterface } of movePackage === undefined ? [] : loadModules(movePackage).values()) {
      for (const name of moduleInterface.datatypes.keys()) {
        const type = `${moduleInterface.name}::${name}`;
        if (!origins.has(type)) origins.set(type, version);
      }
    }
  }
  return origins;
}

/**
 * Returns the versions of a package's direct and indirect dependencies, by original id. The package was
 * published with these versions.
 */
export function findLinkage(packages: Packages, id: string): ReadonlyMap<string, Upgraded> {
  const dependencies = packages.get(id)?.dependencies ?? [];
  return new Map(
    dependencies.map((dependency) => {
      const upgraded = normalizeSuiAddress(dependency);
      const version = versionOf(packages, upgraded);
      return [originalOf(packages, upgraded), { id: upgraded, version }] as const;
    }),
  );
}

/** Encodes a package as an object in BCS. */
export function encodePackage(packages: Packages, id: string): Uint8Array {
  const movePackage = packages.get(id);
  const modules = movePackage === undefined ? [] : [...loadModules(movePackage).values()];
  const namedModules = modules.map(
    ({ moduleInterface }, index) => [moduleInterface.name, movePackage?.modules[index] ?? []] as const,
  );
  return PackageObject.serialize({
    Package: {
      id,
      version: versionOf(packages, id),
      modules: new Map(namedModules),
      typeOrigins: [...findTypeOrigins(packages, id)].map(([type, origin]) => {
        const [module = '', name = ''] = type.split('::');
        return { module, name, package: origin };
      }),
      linkage: new Map(
        [...findLinkage(packages, id)].map(([original, upgraded]) => [
          original,
          { upgradedId: upgraded.id, upgradedVersion: upgraded.version },
        ]),
      ),
    },
  }).toBytes();
}
