/** The code that a transaction can call: the packages of a chain, and Sui's framework. */
import { normalizeSuiAddress } from '@mysten/sui/utils';
import { type Datatype, type ModuleInterface, readModule } from 'sui-enclave-move-bytecode/module_bytecode';
import { type FunctionCode, type ModuleCode, readCode } from 'sui-enclave-move-bytecode/module_code';
import type { Package, Packages } from '../ledger.ts';
import type { Linked } from './machine.ts';
import { Datatypes } from './types.ts';
import { Codec } from './values.ts';

export interface LoadedModule {
  readonly code: ModuleCode;
  readonly face: ModuleInterface;
}

const STANDARD_LIBRARY = normalizeSuiAddress('0x1');
const FRAMEWORK = normalizeSuiAddress('0x2');

/** The modules of packages, by address and name: a package never changes. */
const loaded = new WeakMap<Package, ReadonlyMap<string, LoadedModule>>();

function load(some: Package): ReadonlyMap<string, LoadedModule> {
  const known = loaded.get(some);
  if (known !== undefined) return known;
  const modules = some.modules.map((bytes) => ({
    code: readCode(bytes, some.original),
    face: readModule(bytes, some.original),
  }));
  const named = new Map(modules.map((module) => [module.code.module, module]));
  loaded.set(some, named);
  return named;
}

export class ChainCode {
  readonly #packages: Packages;
  /** The standard library, and Sui's framework. */
  readonly #framework: Package;
  readonly datatypes: Datatypes;
  readonly codec: Codec;

  constructor(packages: Packages, framework: Package) {
    this.#packages = packages;
    this.#framework = framework;
    this.datatypes = new Datatypes((module, name) => this.#datatype(module, name));
    this.codec = new Codec(this.datatypes);
  }

  /** The id under which a package was first published. */
  original(id: string): string {
    const normal = normalizeSuiAddress(id);
    return this.#packages.get(normal)?.original ?? normal;
  }

  has(id: string): boolean {
    return this.#package(normalizeSuiAddress(id)) !== undefined;
  }

  isFramework(id: string): boolean {
    return this.#package(normalizeSuiAddress(id)) === this.#framework;
  }

  /** @param module its name */
  module(id: string, module: string): LoadedModule | undefined {
    const found = this.#package(normalizeSuiAddress(id));
    return found && load(found).get(`${this.original(id)}::${module}`);
  }

  modules(id: string): readonly LoadedModule[] {
    const found = this.#package(normalizeSuiAddress(id));
    return found === undefined ? [] : [...load(found).values()];
  }

  /** @param module its name @throws TypeError if there is no such function */
  function(id: string, module: string, name: string): Linked {
    const found = this.module(id, module);
    return linked(normalizeSuiAddress(id), found, found?.code.functions.get(name), `${module}::${name}`);
  }

  /** The function of a module that code of a package calls. @throws TypeError if there is none */
  link(from: string, module: string, name: string): Linked {
    const [address = '', own = ''] = module.split('::');
    return this.function(this.#linkage(from, address), own, name);
  }

  /** The package that stands for another in the code of this one. */
  #linkage(from: string, original: string): string {
    if (original === this.original(from)) return from;
    const dependencies = this.#packages.get(from)?.dependencies ?? [];
    return dependencies.find((id) => this.original(id) === original) ?? this.#latest(original) ?? original;
  }

  #latest(original: string): string | undefined {
    return [...this.#packages].findLast(([, some]) => some.original === original)?.[0];
  }

  #package(id: string): Package | undefined {
    return id === FRAMEWORK || id === STANDARD_LIBRARY ? this.#framework : this.#packages.get(id);
  }

  #datatype(module: string, name: string): Datatype | undefined {
    const [address = '', own = ''] = module.split('::');
    return this.module(this.#latest(address) ?? address, own)?.face.datatypes.get(name);
  }
}

function linked(
  packageId: string,
  module: LoadedModule | undefined,
  code: FunctionCode | undefined,
  name: string,
): Linked {
  if (module === undefined || code === undefined) throw new TypeError(`${packageId} has no function ${name}`);
  return { packageId, module: module.code, code };
}
