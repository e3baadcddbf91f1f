/**
 * Gets the bytecode for publish and upgrade from the compiler, or from a file that `compile` wrote on another
 * machine.
 */

import { quantity } from 'sui-enclave/wording';
import * as v from 'valibot';
import { type Environment, readFileArgument, UsageError } from '../command.ts';
import type { OptionValues } from '../command_line.ts';
import { PROGRAM } from '../places.ts';
import { loadToolchain } from '../toolchain.ts';
import { path } from '../values.ts';
import { type Compiled, parseBytecodeFile } from './bytecode_file.ts';
import type { Chain } from './chain.ts';
import { SuiCommandError } from './errors.ts';
import { isModelChain, type Network, noNetwork } from './network.ts';
import { PUBLISHED_OPTION } from './options.ts';

/** Bytecode, and what the commands print about it. */
export interface Publishable extends Compiled {
  /** Names of the packages, as the commands print them, such as `move/enclave and move/weather`. */
  readonly title: string;
  /** Size of all modules in bytes. */
  readonly bytes: number;
}

export const BYTECODE_OPTIONS = {
  bytecode: {
    value: '<file>',
    help: 'take the bytecode from this file, which `compile` wrote: no compiler is necessary here',
    schema: path,
  },
  digest: {
    value: '<sha256>',
    help: 'the SHA-256 of that file in hexadecimal, which `compile` printed',
    schema: v.pipe(v.string(), v.regex(/^[0-9a-f]{64}$/, 'must be 64 lower-case hex characters')),
  },
  ...PUBLISHED_OPTION,
} as const;

type BytecodeOptions = OptionValues<typeof BYTECODE_OPTIONS>;

/** @throws UnreadableFileError; SuiCommandError: BYTECODE_FILE */
async function readBytecodeFile(
  packageName: string,
  { bytecode: file = '', digest = '', published }: BytecodeOptions,
): Promise<Compiled> {
  const content = await readFileArgument(file, '`compile` writes it');
  return { ...parseBytecodeFile(content, { file, packageName, digest }), published };
}

/** Loads the compiler, which is not in this program's package. */
const loadCompiler = async () => await (await loadToolchain()).compiler();

/**
 * Checks the bytecode file. Without a file, checks that the compiler finds the package and its framework.
 * Needs no network.
 *
 * @throws UsageError, ConfigError, UnreadableFileError; SuiCommandError: BYTECODE_FILE
 */
export async function checkBytecode(
  packageName: string,
  options: BytecodeOptions,
  env: Environment,
): Promise<void> {
  if ((options.bytecode === undefined) !== (options.digest === undefined)) {
    throw new UsageError('--bytecode and --digest go together: give both, or neither');
  }
  if (options.bytecode !== undefined) await readBytecodeFile(packageName, options);
  else (await loadCompiler()).checkCompilation(packageName, env);
}

/**
 * Returns the bytecode of a package for the network of the command line.
 *
 * @param options.again whether the package may be published already
 * @throws SuiCommandError: NO_NETWORK, MOVE, ALREADY_PUBLISHED, FRAMEWORK_UNREACHABLE, STUB_FRAMEWORK,
 *   BYTECODE_FILE; SuiError
 */
export async function loadBytecode(
  packageName: string,
  options: BytecodeOptions & { readonly again: boolean },
  env: Environment,
  chain: Chain,
): Promise<Publishable> {
  const { network } = chain;
  if (network === undefined) throw noNetwork();
  const isFile = options.bytecode !== undefined;
  const compiled = isFile
    ? await readForNetwork(packageName, options, network, chain)
    : await (await loadCompiler()).compilePackage(packageName, env, network, options);
  const { modules, packages } = compiled;
  const bytes = modules.reduce((sum, module) => sum + Buffer.from(module, 'base64').length, 0);
  const title = packages.map((moveName) => `move/${moveName}`).join(' and ');
  const verb = isFile ? 'Read' : 'Compiled';
  chain.notes.push(`${verb} ${title}: ${quantity(modules.length, 'module')}, ${quantity(bytes, 'byte')}.`);
  if (compiled.isStub && (isFile || !(await isModel(chain)))) {
    throw new SuiCommandError(
      'STUB_FRAMEWORK',
      `${title} was compiled against the stub of Sui's framework, which only declares its interface: set FRAMEWORK=fetch, or SUI_FRAMEWORK_DIR to a copy of crates/sui-framework/packages of Sui. Only the node of ${PROGRAM} dev-sui accepts such bytecode`,
    );
  }
  return { ...compiled, published: options.published ?? compiled.published, title, bytes };
}

/**
 * Reads the bytecode file for this network. Adds a note with its digest, which another person can compare.
 */
async function readForNetwork(
  packageName: string,
  options: BytecodeOptions,
  network: Network,
  chain: Chain,
): Promise<Compiled> {
  const compiled = await readBytecodeFile(packageName, options);
  if (compiled.network !== network) {
    throw new SuiCommandError(
      'BYTECODE_FILE',
      `${options.bytecode} was compiled for ${compiled.network}, and the network is ${network}: compile it for ${network}`,
    );
  }
  chain.notes.push(
    `${options.bytecode} has the SHA-256 ${options.digest}, and was compiled on ${compiled.framework}.`,
  );
  return compiled;
}

/**
 * Returns whether the node serves the chain of `make dev-sui`, which runs contracts that were compiled
 * against the stub.
 *
 * @throws SuiError if no node answers
 */
async function isModel(chain: Chain): Promise<boolean> {
  const chainId = await chain.identifier();
  return chain.network === 'localnet' && isModelChain(chainId);
}
