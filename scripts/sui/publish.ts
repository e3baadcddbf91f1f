/** `npm run publish`: publishes a package of `move/`, with its unpublished dependencies. */
import { runAsProcess } from '../command.ts';
import { PUBLISHED_OPTION, publishedPath, type SuiCommand, suiCommand } from './command.ts';

const spec: SuiCommand = {
  name: 'publish',
  purpose:
    "Compiles a package of move/ and publishes it, together with its unpublished dependencies, as one package on the\nchain. The sender gets the capability to upgrade it, and the EnclaveCap of its application. Set\nFRAMEWORK=fetch to have Sui's framework fetched, or SUI_FRAMEWORK_DIR to a copy of it. It is compiled for the\nnetwork of --network, which --rpc-url needs too.",
  positionals: ['package'],
  options: PUBLISHED_OPTION,
  flags: { immutable: 'destroy the capability to upgrade it: nobody can ever change the package' },
  async plan({ args, env, flags }) {
    const { frameworkOf } = await import('./move_packages.ts');
    return [
      `compile move/${args['package']} on ${frameworkOf(env).description}`,
      'end here if that is a stand-in, unless the node is that of make dev-sui',
      flags.has('immutable')
        ? 'publish the modules, and make the package immutable'
        : 'publish the modules, and transfer the UpgradeCap to the sender',
    ];
  },
  async run({ args: { package: name = '' }, options, env, flags }, chain) {
    const { Transaction } = await import('@mysten/sui/transactions');
    const { publishPackage } = await import('../../src/sui/transactions.ts');
    const { compile } = await import('./compile.ts');
    const { notePublication } = await import('./published.ts');
    const { modules, dependencies, title, framework, bytes } = await compile(spec, name, env, chain, {
      again: false,
    });
    const isImmutable = flags.has('immutable');
    const tx = new Transaction();
    publishPackage(tx, { modules, dependencies, owner: isImmutable ? null : await chain.sender() });
    const outcome = await chain.submit(tx, {
      title: `publish ${title}${isImmutable ? ', for ever as it is' : ''}`,
      fields: { framework, modules: modules.length, bytes, dependencies, immutable: isImmutable },
      report: ({ packageId, created }) => ({
        package: packageId,
        upgradeCap: created.find(({ type }) => type.endsWith('::package::UpgradeCap'))?.id ?? null,
        enclaveCaps: created.filter(({ type }) => type.includes('::enclave::EnclaveCap<')),
      }),
    });
    const { package: publishedAt, upgradeCap } = outcome.fields;
    if (outcome.status === 'done' && typeof publishedAt === 'string') {
      await notePublication(chain, publishedPath(name, options), {
        publishedAt,
        originalId: publishedAt,
        version: 1n,
        upgradeCap: typeof upgradeCap === 'string' ? upgradeCap : null,
      });
    }
    return outcome;
  },
};

export const main = suiCommand(spec);

if (import.meta.main) await runAsProcess(main);
