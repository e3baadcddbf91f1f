/** Compares the packages on chain with what the sources compile to here, byte for byte but for the packages' own ids. */
import { normalizeSuiAddress } from '@mysten/sui/utils';
import { quantity } from 'sui-enclave/errors';
import type { EnclaveConfig } from 'sui-enclave/sui/objects';
import { readModule } from 'sui-enclave-move-bytecode/module_bytecode';
import { withoutSelfAddress } from 'sui-enclave-move-bytecode/self_address';
import type { Environment } from '../command_line.ts';
import { printable } from '../printable.ts';
import type { Chain } from '../sui/chain.ts';
import { frameworkOf } from '../sui/move_packages.ts';
import { isModelChain } from '../sui/network.ts';
import { Compiler, type Modules } from './compile.ts';
import { type AuditCode, AuditError } from './errors.ts';

/** A package on chain. */
interface OnChain {
  readonly original: string;
  /** The latest version. */
  readonly latest: string;
  /** All versions, the oldest first: each can be called for ever. */
  readonly versions: readonly string[];
  readonly modules: Modules;
}

/** What was compared with what, for a package. */
export interface ComparedPackage {
  readonly name: 'enclave' | 'application';
  /** The id of the version that was compared. */
  readonly id: string;
  readonly modules: readonly string[];
  /** What the sources were compiled against, for people. */
  readonly framework: string;
  readonly fault: AuditError | null;
}

export interface ComparedPackages {
  readonly packages: readonly ComparedPackage[];
  /** Versions of the application's package that are older than the compared one. */
  readonly older: readonly string[];
}

/**
 * @param movePackages folders of the application's Move packages; undefined: the sources are not there
 * @throws SuiError
 */
export async function comparePackages(
  config: Pick<EnclaveConfig, 'enclavePackage' | 'application'>,
  movePackages: ReadonlyMap<string, string>,
  chain: Chain,
  env: Environment,
): Promise<ComparedPackages> {
  const [original = '', module = ''] = config.application.split('::');
  const framework = frameworkOf(env);
  const enclave = await readOnChain(chain, config.enclavePackage);
  const application = original === enclave.original ? enclave : await readOnChain(chain, original);
  const isApart = application !== enclave;
  // Against the stub, a difference says nothing, unless the chain runs the stub itself.
  const isDecisive = !framework.isStub || isModelChain(await chain.identifier());
  const compiler = new Compiler(framework, chain, movePackages, isApart ? enclave.original : undefined);
  const compare = async (
    name: ComparedPackage['name'],
    on: OnChain,
    compile: () => Promise<Modules>,
  ): Promise<ComparedPackage> => {
    const common = { name, id: on.latest, framework: framework.description };
    try {
      const compiled = await compile();
      checkSame(compiled, on, isDecisive);
      return { ...common, modules: [...compiled.keys()].sort(), fault: null };
    } catch (error) {
      if (!(error instanceof AuditError)) throw error;
      return { ...common, modules: [], fault: error };
    }
  };
  const packages = [
    await compare('enclave', enclave, () => compiler.enclave()),
    await compare('application', application, () => compiler.application(module)),
  ];
  const all = packages.some(({ fault }) => fault !== null)
    ? packages
    : packages.map((one) => withoutMore(one, one.name === 'enclave' ? enclave : application, packages));
  return { packages: all, older: application.versions.slice(0, -1) };
}

/** A package with a module that no sources have differs. One package may hold the modules of both. */
function withoutMore(one: ComparedPackage, on: OnChain, all: readonly ComparedPackage[]): ComparedPackage {
  const known = all.filter(({ id }) => id === on.latest).flatMap(({ modules }) => modules);
  const other = [...on.modules.keys()].find((name) => !known.includes(name));
  if (other === undefined) return one;
  const message = `the package ${on.latest} has a module ${printable(other)}, which the sources do not have`;
  return { ...one, fault: new AuditError('BYTECODE_DIFFERS', message) };
}

/** @throws AuditError: BYTECODE_DIFFERS; NOT_FULLY_CHECKED, if the difference may be one of the framework */
function checkSame(compiled: Modules, on: OnChain, isDecisive: boolean): void {
  for (const [name, bytes] of compiled) {
    const found = on.modules.get(name);
    if (found !== undefined && Buffer.compare(found, bytes) === 0) continue;
    const what = found === undefined ? `has no module ${name}` : `has another module ${name}`;
    const code: AuditCode = isDecisive ? 'BYTECODE_DIFFERS' : 'NOT_FULLY_CHECKED';
    const advice = isDecisive
      ? ''
      : ". It was compiled against a stub of Sui's framework: set FRAMEWORK=fetch, or SUI_FRAMEWORK_DIR, to know whether it differs";
    throw new AuditError(code, `the package ${on.latest} ${what} than the sources compile to${advice}`);
  }
}

/** @throws SuiError, RangeError */
async function readPackage(chain: Chain, original: string): Promise<OnChain> {
  const versions = await chain.packageVersions(original);
  const latest = versions.at(-1) ?? original;
  const found = await chain.package(latest);
  const modules = found.modules.map((bytes): [string, Uint8Array] => {
    const { address, module } = withoutSelfAddress(bytes);
    const isOwn = [normalizeSuiAddress('0x0'), normalizeSuiAddress(original)].includes(address);
    // As it is, it equals nothing that is compiled here.
    return [readModule(bytes).name, isOwn ? module : bytes];
  });
  return { original, latest, versions, modules: new Map(modules) };
}

/** @throws SuiError; AuditError: NOT_FULLY_CHECKED, if its modules are of a format that is not known here */
async function readOnChain(chain: Chain, original: string): Promise<OnChain> {
  try {
    return await readPackage(chain, original);
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    throw new AuditError(
      'NOT_FULLY_CHECKED',
      `the package ${original} can't be read: ${printable(error.message)}`,
    );
  }
}

/** For a row of the table. */
export function describeModules({ modules, framework }: ComparedPackage): string {
  return `${quantity(modules.length, 'module')} (${modules.join(', ')}), compiled against ${framework}`;
}
