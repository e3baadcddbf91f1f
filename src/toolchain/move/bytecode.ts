/** Compiles a package of `move/` for publishing, with its unpublished local dependencies. */
import { dumpMovePackage, initMovePackageBuilder } from '@zktx.io/sui-move-builder/full';
import type { Bytecode } from 'sui-enclave-cli/sui/bytecode_file';
import { SuiCommandError } from 'sui-enclave-cli/sui/errors';
import { compilerError, type Framework, packageAtPath, sourcesForDependents } from './packages.ts';

/** Networks that Move packages are built for. Each has its own addresses and framework. */
export const BUILD_NETWORKS = ['mainnet', 'testnet', 'devnet'] as const;
export type BuildNetwork = (typeof BUILD_NETWORKS)[number];

/**
 * Compiles a package together with its local dependencies. Dependencies that are published on the
 * network are linked. All others become part of the package.
 *
 * @param options.again whether to compile a package that is published already, as if it were not
 * @throws SuiCommandError: MOVE, with the compiler's message or warnings; ALREADY_PUBLISHED;
 *   FRAMEWORK_UNREACHABLE
 */
export async function compileForPublishing(
  name: string,
  framework: Framework,
  network: BuildNetwork,
  { again }: { readonly again: boolean },
): Promise<Bytecode> {
  await initMovePackageBuilder();
  const compiled = new Map<string, readonly string[]>();
  const dependencies = new Set<string>();
  await compile(name);
  return {
    packages: [...compiled.keys()],
    modules: [...compiled.values()].flat(),
    dependencies: [...dependencies],
  };

  async function compile(packageName: string): Promise<void> {
    const files = sourcesForDependents(packageName);
    // If this file existed, the compiler would give the modules the address of the published package.
    if (again && packageName === name) delete files['Published.toml'];
    if (isPublished(files, network)) {
      if (packageName === name) {
        throw new SuiCommandError(
          'ALREADY_PUBLISHED',
          `move/${name} is published on ${network}, according to its Published.toml: upgrade it, or remove the section [published.${network}] to publish it again`,
        );
      }
      return;
    }
    for (const dependency of localDependencies(files)) {
      if (!compiled.has(dependency)) await compile(dependency);
    }
    const output = await dumpMovePackage({
      files,
      fetcher: framework.fetcher,
      network,
      lintFlag: 'all',
      ansiColor: false,
      withUnpublishedDependencies: true,
    });
    if ('error' in output) throw compilerError(packageName, output.error, framework);
    if (output.warnings)
      throw new SuiCommandError('MOVE', `move/${packageName} compiles with warnings:\n${output.warnings}`);
    compiled.set(packageName, output.modules);
    for (const id of output.dependencies) dependencies.add(id);
  }
}

function isPublished(files: Readonly<Record<string, string>>, network: BuildNetwork): boolean {
  return new RegExp(`^\\s*\\[\\s*published\\.${network}\\s*\\]`, 'm').test(files['Published.toml'] ?? '');
}

/** Returns the names of local dependencies. Skips unknown paths, since the compiler refuses them. */
function localDependencies(files: Readonly<Record<string, string>>): string[] {
  const paths = (files['Move.toml'] ?? '').matchAll(/\blocal\s*=\s*["']([^"']+)["']/g);
  return [...paths].flatMap(([, path = '']) => packageAtPath(path) ?? []);
}
