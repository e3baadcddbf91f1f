/** `npm run publish`: publishes a package of `move/`, with its unpublished dependencies. */
import { runAsProcess } from '../command.ts';
import type { BuildNetwork } from './bytecode.ts';
import type { Chain } from './chain.ts';
import { type SuiCommand, suiCommand, usageError } from './command.ts';
import { SuiCommandError } from './errors.ts';

/** A local network runs the latest framework, as devnet does. */
async function buildNetwork({ network }: Chain): Promise<BuildNetwork> {
  const { BUILD_NETWORKS } = await import('./bytecode.ts');
  const { noNetwork } = await import('./network.ts');
  if (network === undefined) throw noNetwork();
  return BUILD_NETWORKS.find((name) => name === network) ?? 'devnet';
}

const spec: SuiCommand = {
  name: 'publish',
  purpose:
    "Compiles a package of move/ and publishes it, together with its unpublished dependencies, as one package on the\nchain. The sender gets the capability to upgrade it, and the EnclaveCap of its application. Set\nFRAMEWORK=fetch to have Sui's framework fetched, or SUI_FRAMEWORK_DIR to a copy of it. It is compiled for the\nnetwork of --network, which --rpc-url needs too.",
  positionals: ['package'],
  options: {},
  async plan({ args, env }) {
    const { frameworkOf } = await import('./move_packages.ts');
    return [
      `compile move/${args['package']} on ${frameworkOf(env).description}`,
      'end here if that is a stand-in',
      'publish the modules, and transfer the UpgradeCap to the sender',
    ];
  },
  async run({ args: { package: name = '' }, env }, chain) {
    const { frameworkOf, packageNames } = await import('./move_packages.ts');
    const known = packageNames();
    if (!known.includes(name)) {
      throw usageError(
        spec,
        `there is no package ${JSON.stringify(name)} in move/; there are ${known.join(', ')}`,
      );
    }
    const { compileForPublishing } = await import('./bytecode.ts');
    const framework = frameworkOf(env);
    const { packages, modules, dependencies } = await compileForPublishing(
      name,
      framework,
      await buildNetwork(chain),
    );
    const bytes = modules.reduce((sum, module) => sum + Buffer.from(module, 'base64').length, 0);
    chain.notes.push(
      `Compiled ${packages.map((packageName) => `move/${packageName}`).join(' and ')}: ${modules.length} modules, ${bytes} bytes.`,
    );
    if (framework.isStandIn) {
      throw new SuiCommandError(
        'STAND_IN_FRAMEWORK',
        "it was compiled against the tests' stand-in, which only declares what Sui's framework has: set FRAMEWORK=fetch, or SUI_FRAMEWORK_DIR to a copy of crates/sui-framework/packages of Sui",
      );
    }
    const { Transaction } = await import('@mysten/sui/transactions');
    const { publishPackage } = await import('../../src/sui/transactions.ts');
    const tx = new Transaction();
    publishPackage(tx, { modules, dependencies, owner: await chain.sender() });
    return await chain.submit(tx, {
      title: `publish ${packages.map((packageName) => `move/${packageName}`).join(' and ')}`,
      fields: { framework: framework.description, modules: modules.length, bytes, dependencies },
      report: ({ packageId, created }) => ({
        package: packageId,
        upgradeCap: created.find(({ type }) => type.endsWith('::package::UpgradeCap'))?.id,
        enclaveCaps: created.filter(({ type }) => type.includes('::enclave::EnclaveCap<')),
      }),
    });
  },
};

export const main = suiCommand(spec);

if (import.meta.main) await runAsProcess(main);
