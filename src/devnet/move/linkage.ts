/**
 * Finds the version of each package with which the code of a call runs: `linkage/analysis.rs` and
 * `resolution.rs` of Sui's execution layer, and `build_linkage_table` of `move_package.rs` for what a package
 * is published with.
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

/** Ids of the packages whose code runs, by their original ids. */
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

  /** @throws CommandFailure: INVALID_LINKAGE */
  add(id: string, isExact: boolean): void {
    const original = originalOf(this.#packages, id);
    const next = { id, version: versionOf(this.#packages, id), isExact };
    const before = this.#constraints.get(original);
    this.#constraints.set(original, before === undefined ? next : this.#unify(before, next));
  }

  /** An exact version must be that of every other exact constraint, and at least that of the others. */
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

/** A call of a function. */
interface Root {
  readonly id: string;
  /**
   * Whether it is an entry function that is not public: such a one runs with what its package was published
   * with.
   */
  readonly isPrivate: boolean;
  /** The ids of the packages that introduced the types of its type arguments. */
  readonly typePackages: Iterable<string>;
  readonly command: number;
}

/** The called package is exact; what is below it, and the packages of type arguments, may be newer. */
export function callLinkage(packages: Packages, { id, isPrivate, typePackages, command }: Root): Linkage {
  const resolution = new Resolution(packages, command);
  for (const { id: below } of findLinkage(packages, id).values()) resolution.add(below, isPrivate);
  resolution.add(id, true);
  for (const typePackage of typePackages) {
    for (const { id: below } of findLinkage(packages, typePackage).values()) resolution.add(below, false);
    resolution.add(typePackage, false);
  }
  return resolution.linkage;
}

/**
 * Returns the packages with which a package runs while it is published.
 *
 * @throws CommandFailure: INVALID_LINKAGE, PUBLISH_UPGRADE_MISSING_DEPENDENCY,
 *   PUBLISH_UPGRADE_DEPENDENCY_DOWNGRADE; Refusal for a dependency that is not there; RangeError for what is
 *   not a module
 */
export function publicationLinkage(packages: Packages, some: Package, command: number): Linkage {
  const dependencies = some.dependencies.map((dependency) => normalizeSuiAddress(dependency));
  const resolution = new Resolution(packages, command);
  for (const id of dependencies) {
    if (!packages.has(id) && !isSystem(id)) {
      throw new Refusal('INVALID_ARGUMENT', `Dependent package not found on-chain: ${id}`);
    }
    resolution.add(id, true);
  }
  const { linkage } = resolution;
  const missing = () =>
    new CommandFailure(command, 'PUBLISH_UPGRADE_MISSING_DEPENDENCY', 'PublishUpgradeMissingDependency');
  const immediate = [...loadModules(some).values()].flatMap(({ face }) => face.dependencies);
  for (const original of new Set(immediate)) {
    if (original === some.original) continue;
    const id = linkage.get(original);
    if (id === undefined) throw missing();
    for (const [below, { version }] of findLinkage(packages, id)) {
      const linked = linkage.get(below);
      if (linked === undefined) throw missing();
      if (versionOf(packages, linked) < version) {
        const description = 'PublishUpgradeDependencyDowngrade';
        throw new CommandFailure(command, 'PUBLISH_UPGRADE_DEPENDENCY_DOWNGRADE', description);
      }
    }
  }
  return linkage;
}
