/**
 * Finds the package versions that the code of a call runs with, by the rules of `linkage/analysis.rs` and
 * `resolution.rs` in Sui's execution layer. For a package that is being published, finds the versions of
 * its dependencies, by the rules of `build_linkage_table` in `move_package.rs`.
 */
import { normalizeSuiAddress } from '@mysten/sui/utils';
import { CommandFailure, Refusal } from '../failures.ts';
import {
  findLinkage,
  isSystem,
  loadModules,
  originalOf,
  type Package,
  type Packages,
  versionOf,
} from '../packages.ts';

/** Ids of the packages whose code runs, by original id. */
export type Linkage = ReadonlyMap<string, string>;

interface Constraint {
  readonly id: string;
  readonly version: number;
  readonly isExact: boolean;
}

class Resolution {
  readonly #packages: Packages;
  readonly #command: number;
  readonly #constraints = new Map<string, Constraint>();

  constructor(packages: Packages, command: number) {
    this.#packages = packages;
    this.#command = command;
  }

  /**
   * Adds a package: in exactly this version if `isExact` is true, otherwise in this version or a newer one.
   *
   * @throws CommandFailure: INVALID_LINKAGE
   */
  add(id: string, isExact: boolean): void {
    const original = originalOf(this.#packages, id);
    const constraint = { id, version: versionOf(this.#packages, id), isExact };
    const existing = this.#constraints.get(original);
    this.#constraints.set(original, existing ? this.#unify(existing, constraint) : constraint);
  }

  /**
   * Combines two constraints. An exact version must equal every other exact version. It must not be older
   * than any minimum version.
   */
  #unify(left: Constraint, right: Constraint): Constraint {
    const [newer, older] = left.version > right.version ? [left, right] : [right, left];
    if (newer.id === older.id) return newer.isExact ? newer : older;
    if (older.isExact) throw new CommandFailure(this.#command, 'INVALID_LINKAGE', 'InvalidLinkage');
    return newer;
  }

  get linkage(): Linkage {
    return new Map([...this.#constraints].map(([original, { id }]) => [original, id]));
  }
}

/** Function call whose linkage is computed. */
interface Root {
  readonly id: string;
  /**
   * Whether the function is an entry function that is not public. Such a function runs with the versions with
   * which its package was published.
   */
  readonly isPrivate: boolean;
  /** Ids of the packages that introduced the types in its type arguments. */
  readonly typePackages: Iterable<string>;
  readonly command: number;
}

/**
 * Finds the packages for a call. The called package runs in exactly the version that the call names. The
 * packages of type arguments may be newer, and so may its dependencies unless the function is private.
 */
export function findCallLinkage(packages: Packages, { id, isPrivate, typePackages, command }: Root): Linkage {
  const resolution = new Resolution(packages, command);
  for (const { id: dependency } of findLinkage(packages, id).values()) resolution.add(dependency, isPrivate);
  resolution.add(id, true);
  for (const typePackage of typePackages) {
    for (const { id: dependency } of findLinkage(packages, typePackage).values())
      resolution.add(dependency, false);
    resolution.add(typePackage, false);
  }
  return resolution.linkage;
}

/**
 * Returns the packages that a package runs with while it is being published.
 *
 * @throws CommandFailure: INVALID_LINKAGE, PUBLISH_UPGRADE_MISSING_DEPENDENCY,
 *   PUBLISH_UPGRADE_DEPENDENCY_DOWNGRADE; Refusal for a missing dependency; RangeError for bytes that are not
 *   a module
 */
export function findPublicationLinkage(packages: Packages, published: Package, command: number): Linkage {
  const dependencies = published.dependencies.map((dependency) => normalizeSuiAddress(dependency));
  const resolution = new Resolution(packages, command);
  for (const id of dependencies) {
    if (!packages.has(id) && !isSystem(id)) {
      throw new Refusal('INVALID_ARGUMENT', `Dependent package not found on-chain: ${id}`);
    }
    resolution.add(id, true);
  }
  const { linkage } = resolution;
  const missingDependency = () =>
    new CommandFailure(command, 'PUBLISH_UPGRADE_MISSING_DEPENDENCY', 'PublishUpgradeMissingDependency');
  const directDependencies = [...loadModules(published).values()].flatMap(
    ({ moduleInterface }) => moduleInterface.dependencies,
  );
  for (const original of new Set(directDependencies)) {
    if (original === published.original) continue;
    const id = linkage.get(original);
    if (id === undefined) throw missingDependency();
    for (const [indirectDependency, { version }] of findLinkage(packages, id)) {
      const linkedId = linkage.get(indirectDependency);
      if (linkedId === undefined) throw missingDependency();
      if (versionOf(packages, linkedId) < version) {
        const description = 'PublishUpgradeDependencyDowngrade';
        throw new CommandFailure(command, 'PUBLISH_UPGRADE_DEPENDENCY_DOWNGRADE', description);
      }
    }
  }
  return linkage;
}
