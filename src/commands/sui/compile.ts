/** The first steps of publish and upgrade: compile a package of `move/` for the network of the command line. */

import { join } from 'node:path';
import { quantity } from 'sui-enclave/errors';
import { SuiError } from 'sui-enclave/sui/errors';
import { type Environment, UsageError } from '../command.ts';
import { typed } from '../places.ts';
import { findProject } from '../project.ts';
import { BUILD_NETWORKS, type BuildNetwork, type Bytecode, compileForPublishing } from './bytecode.ts';
import type { Chain } from './chain.ts';
import { SuiCommandError } from './errors.ts';
import { frameworkOf, packageNames } from './move_packages.ts';
import { isModelChain, noNetwork } from './network.ts';

export interface Compiled extends Bytecode {
  /** The packages, for people. */
  readonly title: string;
  /** The framework, for people. */
  readonly framework: string;
  /** Size of all modules. */
  readonly bytes: number;
}

/** A local network runs the latest framework, as devnet does. */
function buildNetwork({ network }: Chain): BuildNetwork {
  if (network === undefined) throw noNetwork();
  return BUILD_NETWORKS.find((name) => name === network) ?? 'devnet';
}

/** Whether this is the chain of `make dev-sui`, which runs the contracts on the stub itself. */
async function isModel(chain: Chain): Promise<boolean> {
  if (chain.network !== 'localnet') return false;
  try {
    return isModelChain(await chain.identifier());
  } catch (error) {
    if (error instanceof SuiError) return false;
    throw error;
  }
}

/** @throws UsageError when there is no such package in move/ */
export function checkPackage(name: string): void {
  const known = packageNames();
  if (known.includes(name)) return;
  throw new UsageError(
    `there is no package ${JSON.stringify(name)} in move/; there are ${known.join(', ') || 'none'}`,
  );
}

/** The file of `--published`, or the package's own. */
export function publishedPath(name: string, published: string | undefined): string {
  return published ?? join(findProject().root, 'move', name, 'Published.toml');
}

/**
 * @param options.again whether the package may be published already
 * @throws SuiCommandError: MOVE, ALREADY_PUBLISHED, STUB_FRAMEWORK
 */
export async function compile(
  name: string,
  env: Environment,
  chain: Chain,
  options: { readonly again: boolean },
): Promise<Compiled> {
  const framework = frameworkOf(env);
  const bytecode = await compileForPublishing(name, framework, buildNetwork(chain), options);
  const bytes = bytecode.modules.reduce((sum, module) => sum + Buffer.from(module, 'base64').length, 0);
  const title = bytecode.packages.map((packageName) => `move/${packageName}`).join(' and ');
  chain.notes.push(
    `Compiled ${title}: ${quantity(bytecode.modules.length, 'module')}, ${quantity(bytes, 'byte')}.`,
  );
  if (framework.isStub && !(await isModel(chain))) {
    throw new SuiCommandError(
      'STUB_FRAMEWORK',
      `it was compiled against the stub of Sui's framework, which only declares its interface: set FRAMEWORK=fetch, or SUI_FRAMEWORK_DIR to a copy of crates/sui-framework/packages of Sui. Only the node of ${typed('dev-sui')}, if it runs, accepts it`,
    );
  }
  return { ...bytecode, title, framework: framework.description, bytes };
}
