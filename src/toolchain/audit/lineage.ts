/** Reads the versions of a package on chain, and the packages that they run with, from a Sui node. */
import { bcs } from '@mysten/sui/bcs';
import type { GrpcTypes } from '@mysten/sui/grpc';
import { normalizeSuiAddress } from '@mysten/sui/utils';
import { NodeRefusedError, SuiError } from 'sui-enclave/sui/errors';
import type { EnclaveConfig } from 'sui-enclave/sui/objects';
import { quantity } from 'sui-enclave/wording';
import { printable } from 'sui-enclave-cli/printable';
import { type Chain, fromNode } from 'sui-enclave-cli/sui/chain';
import { readModule } from 'sui-enclave-devnet/bytecode/module_bytecode';
import { withoutSelfAddress } from 'sui-enclave-devnet/bytecode/self_address';
import type { Modules } from './compile.ts';
import { AuditError } from './errors.ts';

/** A version of a package. */
export interface PackageVersion {
  readonly id: string;
  /** Number of the version, from 1. */
  readonly version: number;
  /** The id of version 1. Code refers to every version by this id. */
  readonly original: string;
  readonly modules: Modules;
  /**
   * Lowest version of each other package that this version runs with, by original id. Excludes Sui's
   * framework.
   */
  readonly linkage: ReadonlyMap<string, LinkedPackage>;
}

export interface LinkedPackage {
  readonly id: string;
  readonly version: number;
}

/** All versions with one original id, the oldest first. Each version can be called forever. */
export type Lineage = readonly [PackageVersion, ...PackageVersion[]];

export interface Dependency {
  readonly lineage: Lineage;
  /** The first version that can run. */
  readonly from: number;
}

/** The packages that decide what an application accepts. */
export interface Contracts {
  readonly enclave: Lineage;
  readonly application: Lineage;
  /** The other packages that the application may run with. */
  readonly dependencies: readonly Dependency[];
  /** Reason why the dependencies are not known; null if they are. */
  readonly fault: AuditError | null;
}

/** @throws as `Lineages.of` does */
export async function readContracts(
  { enclavePackage, application: type }: Pick<EnclaveConfig, 'enclavePackage' | 'application'>,
  chain: Chain,
): Promise<Contracts> {
  const lineages = new Lineages(chain);
  const enclave = await lineages.of(enclavePackage);
  const application = await lineages.of(type.split('::')[0] ?? '');
  const originals = [enclave, application].map(([{ original }]) => original);
  try {
    const allDependencies = await lineages.dependencies(application);
    const dependencies = allDependencies.filter(
      ({ lineage: [{ original }] }) => !originals.includes(original),
    );
    return { enclave, application, dependencies, fault: null };
  } catch (error) {
    if (!(error instanceof AuditError)) throw error;
    return { enclave, application, dependencies: [], fault: error };
  }
}

/**
 * The packages of Sui's framework, which validators alone upgrade: std, sui, sui_system, bridge, deepbook.
 */
const FRAMEWORK = new Set(['0x1', '0x2', '0x3', '0xb', '0xdee9'].map((id) => normalizeSuiAddress(id)));

/** Maximum number of versions of all packages that an audit reads. */
const MAX_VERSIONS = 1000;

const PackageObject = bcs.enum('Data', {
  Move: null,
  Package: bcs.struct('MovePackage', {
    id: bcs.Address,
    version: bcs.u64(),
    modules: bcs.map(bcs.string(), bcs.byteVector()),
  }),
});

const unchecked = (why: string) => new AuditError('NOT_FULLY_CHECKED', why);

/** Reads each lineage once. */
export class Lineages {
  readonly #chain: Chain;
  readonly #read = new Map<string, Promise<Lineage>>();
  #versions = 0;

  constructor(chain: Chain) {
    this.#chain = chain;
  }

  /**
   * Returns all versions of a package.
   *
   * @param id of any version. The address of a type is the id of the version that introduced the type
   * @throws AuditError: NOT_FULLY_CHECKED, if the node does not list all versions, or contradicts itself;
   * SuiError
   */
  async of(id: string): Promise<Lineage> {
    const { originalId } = await this.#describe(id);
    const original = normalizeSuiAddress(originalId ?? id);
    const reading = this.#read.get(original) ?? this.#readAll(original);
    this.#read.set(original, reading);
    const lineage = await reading;
    if (lineage.some((version) => version.id === normalizeSuiAddress(id))) return lineage;
    throw unchecked(`the node does not list ${id} among the versions of ${original}`);
  }

  /**
   * Returns the other packages that versions of an application may run with, except for those of Sui's
   * framework. The minimum version of a package is the one that the application links to. If the application
   * does not link to the package itself, some of its dependencies do: the minimum is then the lowest version
   * that any usable version of these dependencies links to.
   *
   * @throws as `of` does
   */
  async dependencies(application: Lineage): Promise<Dependency[]> {
    const lowest = new Map<string, number>();
    for (const version of application) {
      for (const [original, from] of await this.#findMinimums(version)) {
        lowest.set(original, Math.min(from, lowest.get(original) ?? from));
      }
    }
    return await Promise.all(
      [...lowest].map(async ([original, from]) => ({ lineage: await this.of(original), from })),
    );
  }

  async #findMinimums({ original: root, linkage }: PackageVersion): Promise<ReadonlyMap<string, number>> {
    const minimums = new Map<string, number>();
    const pending: string[] = [];
    const lowerMinimum = async (original: string, linked: LinkedPackage) => {
      const version = (await this.of(original))[linked.version - 1];
      if (version?.id !== linked.id) {
        throw unchecked(
          `the node's linkage tables name ${linked.id} as version ${linked.version} of ${original}`,
        );
      }
      if (linked.version >= (minimums.get(original) ?? Number.POSITIVE_INFINITY)) return;
      minimums.set(original, linked.version);
      pending.push(original);
    };
    for (const [original, linked] of linkage) await lowerMinimum(original, linked);
    for (let next = pending.pop(); next !== undefined; next = pending.pop()) {
      for (const version of (await this.of(next)).slice((minimums.get(next) ?? 1) - 1)) {
        for (const [original, linked] of version.linkage) {
          if (original !== root && !linkage.has(original)) await lowerMinimum(original, linked);
        }
      }
    }
    return minimums;
  }

  async #readAll(original: string): Promise<Lineage> {
    const lineage: PackageVersion[] = [];
    /** Ids of the versions that introduced each type, by `module::Name`. */
    const origins = new Map<string, string>();
    for (const [index, { packageId = '', version }] of (await this.#listVersions(original)).entries()) {
      const id = normalizeSuiAddress(packageId);
      if (version !== BigInt(index + 1) || (index === 0 && id !== original)) {
        throw unchecked(`the node does not list version ${index + 1} of the package ${original}`);
      }
      lineage.push(await this.#readVersion(id, index + 1, original, origins));
    }
    const [first, ...later] = lineage;
    if (first === undefined) throw unchecked(`the node lists no version of the package ${original}`);
    return [first, ...later];
  }

  async #listVersions(packageId: string): Promise<GrpcTypes.PackageVersion[]> {
    const versions: GrpcTypes.PackageVersion[] = [];
    let pageToken: Uint8Array | undefined;
    do {
      const request = { packageId, pageSize: MAX_VERSIONS, ...(pageToken && { pageToken }) };
      const answer = fromNode(this.#chain.client.movePackageService.listPackageVersions(request));
      const { response } = await requireAnswer(answer, `the versions of the package ${packageId}`);
      versions.push(...response.versions);
      this.#versions += Math.max(1, response.versions.length);
      if (this.#versions > MAX_VERSIONS) {
        throw unchecked(`the packages have more than ${quantity(MAX_VERSIONS, 'version')}`);
      }
      pageToken = response.nextPageToken;
    } while (pageToken !== undefined && pageToken.length > 0);
    return versions.sort((a, b) => Number((a.version ?? 0n) - (b.version ?? 0n)));
  }

  async #describe(packageId: string): Promise<GrpcTypes.Package> {
    const answer = fromNode(this.#chain.client.movePackageService.getPackage({ packageId }));
    const { response } = await requireAnswer(answer, `the package ${packageId}`);
    if (response.package === undefined)
      throw unchecked(`the node does not describe the package ${packageId}`);
    return response.package;
  }

  async #readVersion(
    id: string,
    version: number,
    original: string,
    origins: Map<string, string>,
  ): Promise<PackageVersion> {
    const description = await this.#describe(id);
    const name = `version ${version} of the package ${original}`;
    const { originalId = '', storageId = '', version: number } = description;
    if (
      normalizeSuiAddress(storageId) !== id ||
      normalizeSuiAddress(originalId) !== original ||
      number !== BigInt(version)
    ) {
      throw unchecked(`the node does not describe ${id} as ${name}`);
    }
    const modules = new Map<string, Uint8Array>();
    const datatypes: string[] = [];
    const linkedNames = new Set<string>();
    try {
      for (const bytes of await this.#readModules(id, version)) {
        const { address, module } = withoutSelfAddress(bytes);
        const moduleInterface = readModule(bytes);
        if (![normalizeSuiAddress('0x0'), original].includes(address)) {
          throw unchecked(`${name} has a module of the package ${address}`);
        }
        modules.set(moduleInterface.name, module);
        datatypes.push(
          ...[...moduleInterface.datatypes.keys()].map((type) => `${moduleInterface.name}::${type}`),
        );
        for (const dependency of moduleInterface.dependencies) linkedNames.add(dependency);
      }
    } catch (error) {
      if (!(error instanceof RangeError)) throw error;
      throw unchecked(`${name} can't be read: ${printable(error.message)}`);
    }
    for (const type of datatypes) if (!origins.has(type)) origins.set(type, id);
    checkOrigins(name, description, new Map(datatypes.map((type) => [type, origins.get(type)])));
    return { id, version, original, modules, linkage: readLinkage(name, description, linkedNames) };
  }

  /** Reads the bytecode of the modules, which `GetPackage` does not return. */
  async #readModules(objectId: string, version: number): Promise<Uint8Array[]> {
    const answer = fromNode(this.#chain.client.core.getObject({ objectId, include: { objectBcs: true } }));
    const { object } = await requireAnswer(answer, `the package ${objectId}`);
    const content = parsePackage(object.objectBcs);
    if (content === undefined || content.id !== objectId || content.version !== String(version)) {
      throw unchecked(`the node does not return the modules of the package ${objectId}`);
    }
    return [...content.modules.values()];
  }
}

function parsePackage(bytes: Uint8Array | undefined) {
  try {
    return PackageObject.parse(bytes ?? new Uint8Array()).Package;
  } catch {
    return undefined;
  }
}

/**
 * @throws AuditError: NOT_FULLY_CHECKED, if the node does not have the object, or does not offer the method
 */
async function requireAnswer<T>(answer: Promise<T>, label: string): Promise<T> {
  return await answer.catch((error: unknown) => {
    const isMissing =
      (error instanceof NodeRefusedError && ['NOT_FOUND', 'UNIMPLEMENTED'].includes(error.status ?? '')) ||
      (error instanceof SuiError && error.code === 'SUI_OBJECT_NOT_FOUND');
    throw isMissing ? unchecked(`the node does not return ${label}`) : error;
  });
}

/** Checks that each type keeps the id of the version that introduced it. */
function checkOrigins(
  name: string,
  { typeOrigins }: GrpcTypes.Package,
  expected: ReadonlyMap<string, string | undefined>,
): void {
  const isSame =
    typeOrigins.length === expected.size &&
    typeOrigins.every(
      ({ moduleName, datatypeName, packageId = '' }) =>
        expected.get(`${moduleName}::${datatypeName}`) === normalizeSuiAddress(packageId),
    );
  if (!isSame) throw unchecked(`the node's table of types of ${name} does not match its versions`);
}

/** @param referencedIds ids of the packages that the bytecode refers to */
function readLinkage(name: string, { linkage }: GrpcTypes.Package, referencedIds: ReadonlySet<string>) {
  const linked = new Map<string, LinkedPackage>();
  for (const { originalId = '', upgradedId = '', upgradedVersion = 0n } of linkage) {
    const version = Number(upgradedVersion);
    if (version < 1) throw unchecked(`the node's linkage table of ${name} names a version ${version}`);
    linked.set(normalizeSuiAddress(originalId), { id: normalizeSuiAddress(upgradedId), version });
  }
  const missingId = [...referencedIds].find((id) => !FRAMEWORK.has(id) && !linked.has(id));
  if (missingId !== undefined) {
    throw unchecked(`${name} refers to the package ${missingId}, which is not in the node's linkage table`);
  }
  return new Map([...linked].filter(([original]) => !FRAMEWORK.has(original)));
}
