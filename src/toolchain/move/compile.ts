/** Compiles a package of `move/` for a network, for publish and upgrade, or for the file that these take. */
import { join } from 'node:path';
import { UsageError } from 'sui-enclave-cli/command';
import type { Compiled } from 'sui-enclave-cli/sui/bytecode_file';
import type { Network } from 'sui-enclave-cli/sui/network';
import { findProject } from '../project.ts';
import { BUILD_NETWORKS, compileForPublishing } from './bytecode.ts';
import { chooseFramework, packageNames } from './packages.ts';

/** @throws UsageError when there is no such package in move/ */
function checkPackage(name: string): void {
  const names = packageNames();
  if (names.includes(name)) return;
  throw new UsageError(
    `there is no package ${JSON.stringify(name)} in move/; there are ${names.join(', ') || 'none'}`,
  );
}

/**
 * @throws UsageError when there is no such package in move/
 * @throws ConfigError when the framework of the environment can't be used
 */
export function checkCompilation(name: string, env: Readonly<Record<string, string | undefined>>): void {
  checkPackage(name);
  chooseFramework(env);
}

/**
 * @param options.again whether the package may be published already
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
