/** `sui-enclave publish`: publishes a package of `move/`, with its unpublished dependencies. */

import { Transaction } from '@mysten/sui/transactions';
import { ObjectNotFoundError } from 'sui-enclave/sui/errors';
import { readPackage } from 'sui-enclave/sui/packages';
import { publishPackage } from 'sui-enclave/sui/transactions';
import { runAsProcess } from '../command.ts';
import { text } from '../values.ts';
import { awaitListing, capabilitiesIn } from './capabilities.ts';
import type { Chain, Executed } from './chain.ts';
import { type Input, suiCommand } from './command.ts';
import { BYTECODE_OPTIONS, checkBytecode, loadBytecode } from './compiled.ts';
import { SuiCommandError } from './errors.ts';
import type { Outcome } from './outcome.ts';
import { recordPublication } from './published.ts';

/** Matches the ids of Sui's framework, whose packages are large. */
const FRAMEWORK = /^0x0*[12]$/;
const UPGRADE_CAP = '::package::UpgradeCap';

const ARGUMENTS = { package: { schema: text } };
type PublishInvocation = Pick<Input<typeof ARGUMENTS>, 'args' | 'deployments'>;

/**
 * Returns the outcome if the deployment file already has the package; undefined if it does not.
 *
 * @throws SuiCommandError: DEPLOYMENT if the file is for another chain, or the chain lacks the package
 */
async function findExisting(
  { deployments, args: { package: name } }: PublishInvocation,
  chain: Chain,
): Promise<Outcome | undefined> {
  const entry = deployments?.read()?.applications.get(name);
  if (deployments === undefined || entry === undefined) return undefined;
  await deployments.checkChain(chain);
  await chain.originalPackage(entry.package).catch((error: unknown) => {
    if (!(error instanceof ObjectNotFoundError)) throw error;
    throw new SuiCommandError(
      'DEPLOYMENT',
      `${deployments.path} names the package ${entry.package}, which is not on this network: if the network was reset, publish with --again`,
    );
  });
  return {
    status: 'unchanged',
    title: `${deployments.path} says that move/${name} is published: nothing to do. Upgrade it, or publish with --again.`,
    fields: entry,
  };
}

/**
 * Returns the id of the dependency that has `enclave::enclave`; undefined if none has it. After an upgrade of
 * that package, this id can differ from the one in the type of a capability, which is the id of the version
 * that introduced the type.
 */
export async function findLinkedEnclave(
  chain: Chain,
  dependencies: readonly string[],
): Promise<string | undefined> {
  for (const id of dependencies.filter((dependency) => !FRAMEWORK.test(dependency))) {
    const { typeOrigins } = await readPackage(chain.client, id);
    if (typeOrigins.has('enclave::EnclaveCap')) return id;
  }
  return undefined;
}

/** Writes the package's entry in the deployment file. */
async function recordPackage(
  { deployments, args: { package: name } }: PublishInvocation,
  chain: Chain,
  outcome: Outcome,
  {
    packages,
    linkedEnclave,
    shared,
  }: {
    readonly packages: readonly string[];
    readonly linkedEnclave: string | undefined;
    readonly shared: readonly string[];
  },
): Promise<void> {
  await deployments?.record(chain, outcome, () => {
    const { package: id, upgradeCap, enclaveCaps, objects } = outcome.fields as unknown as Published;
    const sharedObjects = objects.filter((object) => shared.includes(object.id));
    const [capability, secondCapability] = enclaveCaps;
    // The type is 0x…::enclave::EnclaveCap<0x…::module::WITNESS>.
    const [, module, witness] =
      /::enclave::EnclaveCap<0x\w+::(\w+)::(\w+)>$/.exec(capability?.type ?? '') ?? [];
    const enclavePackage = packages.includes('enclave') ? id : linkedEnclave;
    const isApplication = capability !== undefined && secondCapability === undefined && module !== undefined;
    const entry = {
      package: id,
      original: id,
      version: 1,
      upgradeCap,
      ...(enclavePackage !== undefined && { enclavePackage }),
      ...(isApplication && { module, ...(witness !== undefined && { witness }), capability: capability.id }),
      ...(sharedObjects.length > 0 && { objects: sharedObjects.map(({ id, type }) => ({ id, type })) }),
      registrars: [],
      enclaves: [],
    };
    return [[name, entry]];
  });
}

/** Sorts a publication's created objects by kind: capabilities, and the objects that `init` made. */
export function sortCreatedObjects(created: Executed['created']) {
  const enclaveCaps = capabilitiesIn(created);
  return {
    upgradeCap: created.find(({ type }) => type.endsWith(UPGRADE_CAP))?.id ?? null,
    enclaveCaps,
    // The package's `init` created these objects. `submit --object` passes them to functions.
    objects: created.filter((object) => !enclaveCaps.includes(object) && !object.type.endsWith(UPGRADE_CAP)),
  };
}

interface Published {
  readonly package: string;
  readonly upgradeCap: string | null;
  readonly enclaveCaps: Executed['created'];
  readonly objects: Executed['created'];
}

export const main = suiCommand({
  name: 'publish',
  purpose: `Compiles a package of move/ and publishes it, together with its unpublished dependencies, as one package on the
chain. The sender gets the UpgradeCap, the capability to upgrade it, and the EnclaveCap of its application.
Set FRAMEWORK=fetch to fetch Sui's framework from GitHub, or SUI_FRAMEWORK_DIR to the folder of a copy. The package is
compiled for --network, which is required with --rpc-url too.`,
  example: 'weather --network testnet --dry-run',
  ids: [],
  arguments: ARGUMENTS,
  options: {
    ...BYTECODE_OPTIONS,
    again: { help: 'publish the package even if it is recorded as published' },
    immutable: { help: 'destroy the UpgradeCap: the package can never be changed' },
  },
  check: ({ args, env, options }) => checkBytecode(args.package, options, env),
  async run(invocation, chain) {
    const { args, options, env } = invocation;
    const { package: name } = args;
    const { again, immutable: isImmutable } = options;
    const existing = again ? undefined : await findExisting(invocation, chain);
    if (existing !== undefined) return existing;
    const compiled = await loadBytecode(name, options, env, chain);
    const { modules, dependencies, title, framework, bytes } = compiled;
    const linkedEnclave = await findLinkedEnclave(chain, dependencies);
    const tx = new Transaction();
    publishPackage(tx, { modules, dependencies, owner: isImmutable ? null : chain.sender() });
    let shared: readonly string[] = [];
    const outcome = await chain.submit(tx, {
      title: `publish ${title}${isImmutable ? ' as immutable' : ''}`,
      fields: { framework, modules: modules.length, bytes, dependencies, immutable: isImmutable },
      report: (executed) => {
        ({ shared } = executed);
        return { package: executed.packageId, ...sortCreatedObjects(executed.created) };
      },
    });
    const { package: publishedAt, upgradeCap, enclaveCaps } = outcome.fields as Partial<Published>;
    if (outcome.status === 'done' && typeof publishedAt === 'string') {
      await recordPublication(chain, compiled.published, {
        publishedAt,
        originalId: publishedAt,
        version: 1n,
        upgradeCap: typeof upgradeCap === 'string' ? upgradeCap : null,
      });
    }
    await recordPackage(invocation, chain, outcome, { packages: compiled.packages, linkedEnclave, shared });
    if (enclaveCaps !== undefined) await awaitListing(chain, enclaveCaps);
    return outcome;
  },
});

if (import.meta.main) await runAsProcess(main);
