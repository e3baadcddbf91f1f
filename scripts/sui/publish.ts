/** `npm run publish`: publishes a package of `move/`, with those it depends on that are not published. */
import { Transaction } from '@mysten/sui/transactions';
import { EnclaveError } from '../../src/errors.ts';
import { publishPackage } from '../../src/sui/transactions.ts';
import { BUILD_NETWORKS, compileForPublishing } from './bytecode.ts';
import type { Chain } from './chain.ts';
import { type Command, runCommand, usage } from './command.ts';
import { frameworkOf, packageNames } from './move_packages.ts';
import { NoNetworkError } from './network.ts';

/** The bytecode was compiled against something that only looks like Sui's framework. */
class StandInFrameworkError extends EnclaveError {
  readonly code = 'STAND_IN_FRAMEWORK';

  constructor() {
    super(
      "it was compiled against the stand-in of the tests, which only declares what Sui's framework has: set FRAMEWORK=fetch, or SUI_FRAMEWORK_DIR to a copy of crates/sui-framework/packages of Sui",
    );
  }
}

/** A local network runs the framework of the day, as devnet does. */
function buildNetwork({ network }: Chain) {
  if (network === undefined) throw new NoNetworkError();
  return BUILD_NETWORKS.find((name) => name === network) ?? 'devnet';
}

const command: Command = {
  name: 'publish',
  purpose:
    "Compiles a package of move/ and publishes it, together with those it depends on that are not published: as one\npackage on the chain. The sender gets the capability to upgrade it, and the EnclaveCap of its application. Set\nFRAMEWORK=fetch to have Sui's framework fetched, or SUI_FRAMEWORK_DIR to a copy of it. It is compiled for the\nnetwork of --network, which is needed beside --rpc-url too.",
  positionals: ['package'],
  options: {},
  plan: ({ args }) => [
    `compile move/${args['package']} on ${frameworkOf(process.env).description}`,
    'end here if that is a stand-in',
    'publish the modules, and transfer the UpgradeCap to the sender',
  ],
  async run({ args: { package: name = '' } }, chain) {
    const known = packageNames();
    if (!known.includes(name)) {
      throw usage(
        command,
        `there is no package ${JSON.stringify(name)} in move/; there are ${known.join(', ')}`,
      );
    }
    const framework = frameworkOf(process.env);
    const { packages, modules, dependencies } = await compileForPublishing(
      name,
      framework,
      buildNetwork(chain),
    );
    const bytes = modules.reduce((sum, module) => sum + Buffer.from(module, 'base64').length, 0);
    chain.notes.push(
      `Compiled ${packages.map((member) => `move/${member}`).join(' and ')}: ${modules.length} modules, ${bytes} bytes.`,
    );
    if (framework.isStandIn) throw new StandInFrameworkError();
    const tx = new Transaction();
    publishPackage(tx, { modules, dependencies, owner: chain.sender });
    return await chain.submit(tx, {
      title: `publish ${packages.map((member) => `move/${member}`).join(' and ')}`,
      fields: { framework: framework.description, modules: modules.length, bytes, dependencies },
      report: ({ packageId, created }) => ({
        package: packageId,
        upgradeCap: created.find(({ type }) => type.endsWith('::package::UpgradeCap'))?.id,
        enclaveCaps: created.filter(({ type }) => type.includes('::enclave::EnclaveCap<')),
      }),
    });
  },
};

await runCommand(command);
