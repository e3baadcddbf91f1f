/**
 * Compiles a package of `move/` for a network. The commands publish and upgrade use the bytecode at once, or
 * read it from a file.
 */
import { join } from 'node:path';
import { UsageError } from 'sui-enclave-cli/command';
import type { Compiled } from 'sui-enclave-cli/sui/bytecode_file';
import type { Network } from 'sui-enclave-cli/sui/network';
import { findProject } from '../project.ts';
import { BUILD_NETWORKS, compileForPublishing } from './bytecode.ts';
import { chooseFramework, packageNames } from './packages.ts';

/** @throws UsageError if move/ has no such package */
function checkPackage(name: string): void {
  const names = packageNames();
  if (names.includes(name)) return;
  throw new UsageError(
    `there is no package ${JSON.stringify(name)} in move/, which has ${names.join(', ') || 'no packages'}`,
  );
}

/**
 * Checks the arguments of a compilation before it starts.
 *
 * @throws UsageError if move/ has no such package
 * @throws ConfigError if the framework that the environment names can't be used
 */
export function checkCompilation(name: string, env: Readonly<Record<string, string | undefined>>): void {
  checkPackage(name);
  chooseFramework(env);
}

/**
 * @param options.again whether to compile a package that is published already
 * @throws SuiCommandError: MOVE, ALREADY_PUBLISHED, FRAMEWORK_UNREACHABLE
 */
export async function compilePackage(
  name: string,
  env: Readonly<Record<string, string | undefined>>,
  network: Network,
  options: { readonly again: boolean },
): Promise<Compiled> {
  checkPackage(name);
  const framework = chooseFramework(env);
  // A local network runs the latest framework, as devnet does.
  const buildNetwork = BUILD_NETWORKS.find((candidate) => candidate === network) ?? 'devnet';
  const bytecode = await compileForPublishing(name, framework, buildNetwork, options);
  return {
    ...bytecode,
    network,
    framework: framework.description,
    isStub: framework.isStub,
    published: join(findProject().root, 'move', name, 'Published.toml'),
  };
}
