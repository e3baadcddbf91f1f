/** Finds the code that a transaction can call: the packages of a chain, and Sui's framework. */
import { normalizeSuiAddress } from '@mysten/sui/utils';
import type { Datatype } from '../bytecode/module_bytecode.ts';
import type { FunctionCode } from '../bytecode/module_code.ts';
import {
  FRAMEWORK,
  findTypeOrigins,
  isSystem,
  type LoadedModule,
  listVersions,
  loadModules,
  originalOf,
  type Package,
  type Packages,
  STANDARD_LIBRARY,
} from '../packages.ts';
import type { Linkage } from './linkage.ts';
import type { Link, Linked } from './program.ts';
import { Datatypes, format, type MoveType, mapStructs, parseType, type Struct } from './types.ts';
import { Codec } from './values.ts';

/**
 * Code of a chain. Its types name a datatype by the id of the package's first version, as bytecode does. The
 * chain stores and shows types by the id of the version that introduced the datatype (`TypeOrigin` of
 * sui-types). `parse` and `formatType` translate between both forms.
 */
export class ChainCode {
  readonly packages: Packages;
  /** The standard library, and Sui's framework. */
  readonly #framework: Package;
  readonly #origins = new Map<string, ReadonlyMap<string, string>>();
  readonly datatypes: Datatypes;
  readonly codec: Codec;

  constructor(packages: Packages, framework: Package) {
    this.packages = packages;
    this.#framework = framework;
    this.datatypes = new Datatypes((module, name) => this.#datatype(module, name));
    this.codec = new Codec(this.datatypes);
  }

  has(id: string): boolean {
    return this.#package(id) !== undefined;
  }

  isFramework(id: string): boolean {
    return this.#package(id) === this.#framework;
  }

  /** Finds a module. @param id of the package, normalized @param name of the module */
  module(id: string, name: string): LoadedModule | undefined {
    const movePackage = this.#package(id);
    return movePackage && loadModules(movePackage).get(`${originalOf(this.packages, id)}::${name}`);
  }

  /** Finds a function. @param id of the package, normalized @throws TypeError for an unknown function */
  function(id: string, moduleName: string, name: string): Linked {
    const module = this.module(id, moduleName);
    return createLinked(id, module, module?.code.functions.get(name), `${moduleName}::${name}`);
  }

  /** Returns a function that finds called functions in the packages of a linkage. */
  linker(linkage: Linkage): Link {
    const functions = new Map<string, Linked>();
    return (module, name) => {
      const key = `${module}::${name}`;
      const cached = functions.get(key);
      if (cached !== undefined) return cached;
      const [address = '', moduleName = ''] = module.split('::');
      const id = linkage.get(address) ?? (isSystem(address) ? address : undefined);
      if (id === undefined) throw new TypeError(`the linkage has no package for ${address}`);
      const next = this.function(id, moduleName, name);
      functions.set(key, next);
      return next;
    };
  }

  /** Parses a type in the form that the chain shows. */
  parse(text: string): MoveType {
    return mapStructs(parseType(text), (struct) => ({
      ...struct,
      address: originalOf(this.packages, struct.address),
    }));
  }

  /**
   * Parses a type in a transaction, which may name the package by the id of any version that has the type.
   * Returns undefined if the package has no such type.
   */
  parseArgument(text: string): MoveType | undefined {
    let isKnown = true;
    const type = mapStructs(parseType(text), (struct) => {
      const { address, module, name } = struct;
      isKnown &&=
        this.module(address, module)?.moduleInterface.datatypes.has(name) === true &&
        (this.isFramework(address) || this.#originsOf(address).has(`${module}::${name}`));
      return { ...struct, address: originalOf(this.packages, address) };
    });
    return isKnown ? type : undefined;
  }

  /** Formats a type in the form that the chain shows. */
  formatType(type: MoveType): string {
    return format(mapStructs(type, (struct) => ({ ...struct, address: this.#originOf(struct) })));
  }

  /** Returns the ids of the packages that introduced the datatypes of a type. */
  listPackages(type: MoveType): Set<string> {
    const ids = new Set<string>();
    mapStructs(type, (struct) => {
      ids.add(this.#originOf(struct));
      return struct;
    });
    return ids;
  }

  #originOf({ address, module, name }: Struct): string {
    const latest = this.#latest(address);
    return (latest === undefined ? undefined : this.#originsOf(latest).get(`${module}::${name}`)) ?? address;
  }

  #originsOf(id: string): ReadonlyMap<string, string> {
    const origins = this.#origins.get(id) ?? findTypeOrigins(this.packages, id);
    this.#origins.set(id, origins);
    return origins;
  }

  #latest(original: string): string | undefined {
    return listVersions(this.packages, original).at(-1);
  }

  #package(id: string): Package | undefined {
    return id === FRAMEWORK || id === STANDARD_LIBRARY ? this.#framework : this.packages.get(id);
  }

  /**
   * Finds a datatype in the latest version of its package, which has every datatype of all versions.
   */
  #datatype(module: string, name: string): Datatype | undefined {
    const [address = '', moduleName = ''] = module.split('::');
    return this.module(this.#latest(address) ?? address, moduleName)?.moduleInterface.datatypes.get(name);
  }
}

/** Normalizes a package id in a transaction, which may have any form. */
export function normalizePackageId(text: string): string {
  return normalizeSuiAddress(text);
}

function createLinked(
  id: string,
  module: LoadedModule | undefined,
  code: FunctionCode | undefined,
  name: string,
): Linked {
  if (module === undefined || code === undefined) throw new TypeError(`${id} has no function ${name}`);
  return { packageId: id, module: module.code, code };
}
