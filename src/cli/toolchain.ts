/** Loads the toolchain, a separate package with the commands that need a compiler, a bundler or a fake. */
import { readFileSync } from 'node:fs';
import { findPackageJSON } from 'node:module';
import { EnclaveError } from 'sui-enclave/errors';
import { type Environment, EXIT, type Io, type Main } from './command.ts';
import { readVersion } from './release.ts';
import type { Compiled } from './sui/bytecode_file.ts';
import type { Network } from './sui/network.ts';

export interface CommandModule {
  readonly main: Main;
  /**
   * Reserves this process's standard output and standard error for the command before it runs, and limits
   * other output. Commands need this if their libraries may print untrusted text.
   *
   * @param asJson whether standard output gets one JSON document
   * @returns the output that the command must use
   */
  takeOutput?(io: Io, asJson: boolean): Io;
}

export type CommandLoaders = Readonly<Record<string, () => Promise<CommandModule>>>;

/** Compiles packages of `move/`. */
export interface Compiler {
  /** @throws UsageError if there is no such package; ConfigError for a wrong setting of the framework */
  checkCompilation(packageName: string, env: Environment): void;
  /** @param options.again whether the package may be published already */
  compilePackage(
    packageName: string,
    env: Environment,
    network: Network,
    options: { readonly again: boolean },
  ): Promise<Compiled>;
}

/** Addresses of a Sigstore. */
export interface SigstoreUrls {
  /** URL of the certificate authority. */
  readonly fulcio: string;
  /** URL of the transparency log. */
  readonly rekor: string;
}

/**
 * Signs a payload in a run of a workflow.
 *
 * @param type media type of the payload
 * @returns the JSON of a Sigstore bundle v0.3 with a DSSE envelope
 */
export type SignKeyless = (payload: Uint8Array, type: string, urls: SigstoreUrls) => Promise<unknown>;

export interface Toolchain {
  readonly commands: CommandLoaders;
  compiler(): Promise<Compiler>;
  keyless(): Promise<{ readonly signKeyless: SignKeyless }>;
}

/** Name of the toolchain's package. */
export const TOOLCHAIN = 'sui-enclave-toolchain';

/** The toolchain is missing, or has another version. */
export class ToolchainError extends EnclaveError {
  readonly code = 'TOOLCHAIN';
  readonly exit = EXIT.notTried;
}

/**
 * Loads the toolchain of exactly this version. It is looked for beside this file, never in the current
 * folder: a repository that somebody else wrote must not supply code to a program that has keys.
 *
 * @throws ToolchainError
 */
export async function loadToolchain(): Promise<Toolchain> {
  const version = readVersion();
  // The packages are installed from files: no registry has the name yet, and anyone who claimed it there
  // would run code here.
  const files = [TOOLCHAIN, 'sui-enclave-server'].map((name) => `<folder>/${name}-${version}.tgz`);
  const advice = `npm install --save-dev ${files.join(' ')}`;
  const manifest = findManifest();
  if (manifest === undefined) {
    throw new ToolchainError(
      `this command needs the package ${TOOLCHAIN}, which is not installed beside this program: run ${advice}`,
    );
  }
  const installed: string = JSON.parse(readFileSync(manifest, 'utf8')).version;
  if (installed !== version) {
    throw new ToolchainError(
      `${TOOLCHAIN} has version ${installed}, but this program has version ${version}: run ${advice}`,
    );
  }
  return await import(import.meta.resolve(TOOLCHAIN));
}

/** Returns whether a toolchain of any version is installed beside this program. */
export const isToolchainInstalled = (): boolean => findManifest() !== undefined;

/** Returns the path of the toolchain's package.json; undefined without the toolchain. */
function findManifest(): string | undefined {
  try {
    return findPackageJSON(TOOLCHAIN, import.meta.url);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ERR_MODULE_NOT_FOUND') return undefined;
    throw error;
  }
}
