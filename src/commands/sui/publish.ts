/** `npm run publish`: publishes a package of `move/`, with its unpublished dependencies. */
import { runAsProcess } from '../command.ts';
import type { Chain } from './chain.ts';
import { type Input, PUBLISHED_OPTION, publishedPath, type SuiCommand, suiCommand } from './command.ts';
import { SuiCommandError } from './errors.ts';
import type { Outcome } from './outcome.ts';

/** The package's entry in the deployment file, if it is for the node's chain. @throws SuiCommandError: DEPLOYMENT */
async function present({ deployments, args }: Input, chain: Chain): Promise<Outcome | undefined> {
  const { package: name = '' } = args;
  const noted = deployments?.read()?.applications[name];
  if (deployments === undefined || noted === undefined) return undefined;
  await deployments.checkChain(chain);
  const { ObjectNotFoundError } = await import('sui-enclave/sui/errors');
  await chain.originalPackage(noted.package).catch((error: unknown) => {
    if (!(error instanceof ObjectNotFoundError)) throw error;
    throw new SuiCommandError(
      'DEPLOYMENT',
      `${deployments.path} names the package ${noted.package}, which is not on this network: if the network was reset, publish with --again`,
    );
  });
  return {
    status: 'unchanged',
    title: `${deployments.path} says that move/${name} is published: nothing to do. Upgrade it, or publish with --again.`,
    fields: noted,
  };
}

/** Writes the deployment file. */
async function note(
  { deployments, args: { package: name = '' } }: Input,
  chain: Chain,
  outcome: Outcome,
  packages: readonly string[],
): Promise<void> {
  await deployments?.note(chain, outcome, (applications) => {
    const { package: id, upgradeCap, enclaveCaps } = outcome.fields as unknown as Published;
    const [capability, another] = enclaveCaps;
    // The type is 0x…::enclave::EnclaveCap<0x…::module::WITNESS>.
    const [, enclave, module, witness] =
      /^(0x\w+)::enclave::EnclaveCap<0x\w+::(\w+)::(\w+)>$/.exec(capability?.type ?? '') ?? [];
    const enclavePackage = packages.includes('enclave') ? id : (applications['enclave']?.package ?? enclave);
    const isApplication = capability !== undefined && another === undefined && module !== undefined;
    const entry = {
      package: id,
      original: id,
      version: 1,
      upgradeCap,
      ...(enclavePackage !== undefined && { enclavePackage }),
      ...(isApplication && { module, ...(witness !== undefined && { witness }), capability: capability.id }),
      registrars: [],
      enclaves: [],
    };
    return [name, entry];
  });
}

interface Published {
  readonly package: string;
  readonly upgradeCap: string | null;
  readonly enclaveCaps: readonly { readonly id: string; readonly type: string }[];
}

const spec: SuiCommand = {
  name: 'publish',
  purpose:
    "Compiles a package of move/ and publishes it, together with its unpublished dependencies, as one package on the\nchain. The sender gets the capability to upgrade it, and the EnclaveCap of its application. Set\nFRAMEWORK=fetch to have Sui's framework fetched, or SUI_FRAMEWORK_DIR to a copy of it. It is compiled for the\nnetwork of --network, which --rpc-url needs too.",
  positionals: ['package'],
  options: PUBLISHED_OPTION,
  flags: {
    again: 'publish it even if it is noted as published',
    immutable: 'destroy the capability to upgrade it: nobody can ever change the package',
  },
  async plan({ args, env, flags }) {
    const { frameworkOf } = await import('./move_packages.ts');
    const { checkPackage } = await import('./compile.ts');
    await checkPackage(spec, args['package'] ?? '');
    return [
      ...(flags.has('again') ? [] : ['end here if the deployment file has the package']),
      `compile move/${args['package']} on ${frameworkOf(env).description}`,
      'end here if that is a stand-in, unless the node is that of make dev-sui',
      flags.has('immutable')
        ? 'publish the modules, and make the package immutable'
        : 'publish the modules, and transfer the UpgradeCap to the sender',
    ];
  },
  async run(input, chain) {
    const { options, env, flags } = input;
    const { package: name = '' } = input.args;
    const again = flags.has('again');
    const there = again ? undefined : await present(input, chain);
    if (there !== undefined) return there;
    const { Transaction } = await import('@mysten/sui/transactions');
    const { publishPackage } = await import('sui-enclave/sui/transactions');
    const { compile } = await import('./compile.ts');
    const { notePublication } = await import('./published.ts');
    const compiled = await compile(name, env, chain, { again });
    const { modules, dependencies, title, framework, bytes } = compiled;
    const isImmutable = flags.has('immutable');
    const tx = new Transaction();
    publishPackage(tx, { modules, dependencies, owner: isImmutable ? null : await chain.sender() });
    const outcome = await chain.submit(tx, {
      title: `publish ${title}${isImmutable ? ' as immutable' : ''}`,
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
    await note(input, chain, outcome, compiled.packages);
    return outcome;
  },
};

export const main = suiCommand(spec);

if (import.meta.main) await runAsProcess(main);
