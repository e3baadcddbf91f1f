/**
 * `sui-enclave create_config`: creates the config that says which image an application's enclaves may run.
 */

import { Transaction } from '@mysten/sui/transactions';
import type { Image } from 'sui-enclave/attestation';
import { readConfig } from 'sui-enclave/sui/objects';
import { readApplicationType } from 'sui-enclave/sui/packages';
import { createEnclaveConfig, newCapFromPublisher } from 'sui-enclave/sui/transactions';
import { runAsProcess, UsageError } from '../command.ts';
import type { Options } from '../command_line.ts';
import { RELEASE_OPTIONS, type SignerRecord } from '../releases/read_release.ts';
import { objectId, text } from '../values.ts';
import { awaitListing, capabilitiesIn, findCapability } from './capabilities.ts';
import type { Chain, Executed } from './chain.ts';
import { type Input, suiCommand } from './command.ts';
import type { Application } from './deployments.ts';
import { SuiCommandError } from './errors.ts';
import { checkNeedsNoSecrets, imageToAllow, isSameImage } from './image_to_allow.ts';
import { EXPERIMENTAL_FLAG, PCRS_OPTION, SOURCE_OPTION } from './options.ts';
import type { Outcome } from './outcome.ts';

const ARGUMENTS = { name: { schema: text } };
const IDS = ['enclavePackage', 'appPackage', 'module', 'witness'] as const;
type ConfigInvocation = Pick<
  Input<typeof ARGUMENTS, Options, (typeof IDS)[number]>,
  'args' | 'ids' | 'deployments'
>;

/** Identifiers of an application on chain and in the deployment file. */
interface ApplicationIds {
  /** The type `T`, by the id of the version that introduced it. */
  readonly application: string;
  /** Id of the first version of its package. */
  readonly original: string;
}

/**
 * Returns the entry of the deployment file for the application.
 *
 * @throws SuiCommandError: DEPLOYMENT if the entry is for another chain
 */
async function readEntry(
  { deployments, ids: { module, witness } }: ConfigInvocation,
  chain: Chain,
  { original }: ApplicationIds,
): Promise<Application | undefined> {
  const entry = [...(deployments?.read()?.applications.values() ?? [])].find(
    (app) => app.original === original && app.module === module && app.witness === witness,
  );
  if (entry !== undefined) await deployments?.checkChain(chain);
  return entry;
}

/**
 * Returns the outcome if the deployment file already has a config for the application; undefined if it has
 * none, or one that is retired.
 *
 * @throws SuiCommandError: DEPLOYMENT if that config is open and the requested one is not, or the other way
 *   round
 */
async function findExisting(
  { deployments }: ConfigInvocation,
  chain: Chain,
  entry: Application | undefined,
  { application }: ApplicationIds,
  { image, isOpen }: { readonly image: Image; readonly isOpen: boolean },
): Promise<Outcome | undefined> {
  if (deployments === undefined || entry?.config === undefined) return undefined;
  const config = await readConfig(chain.client, entry.config.id);
  if (config.isRetired) return undefined;
  if (config.isOpen !== isOpen) {
    throw new SuiCommandError(
      'DEPLOYMENT',
      `${deployments.path} has the config ${config.id}, which is ${config.isOpen ? 'open' : 'not open'}, and this can't change: ${config.isOpen ? 'give --open to keep it' : 'leave out --open to keep it'}, or create another config with --again. Nothing was sent`,
    );
  }
  const same = isSameImage(config.image, image);
  return {
    status: 'unchanged',
    title: `${deployments.path} has a config for ${application}${same ? '' : ', which allows another image'}: nothing to do. ${same ? '' : 'Allow the new image by rotate or update_pcrs. '}Create another config with --again.`,
    fields: {
      config: config.id,
      name: config.name,
      configVersion: config.configVersion,
      capability: config.capabilityId,
      isOpen: config.isOpen,
      ...config.image,
    },
  };
}

/**
 * Writes the application's entry in the deployment file, or a new entry for a package that was published
 * elsewhere.
 */
async function recordConfig(
  invocation: ConfigInvocation,
  chain: Chain,
  outcome: Outcome,
  { original }: ApplicationIds,
  { isOpen, signer }: { readonly isOpen: boolean; readonly signer: SignerRecord | undefined },
): Promise<void> {
  await invocation.deployments?.record(chain, outcome, (applications) => {
    const { enclavePackage, appPackage, module, witness } = invocation.ids;
    const { name } = invocation.args;
    const entries = [...applications].filter(([, app]) => app.original === original);
    const existing =
      entries.find(([, app]) => app.module === module && app.witness === witness) ??
      entries.find(([, app]) => app.module === undefined);
    const entryName = existing?.[0] ?? invocation.deployments?.app ?? module;
    if (existing === undefined && applications.has(entryName))
      return `it has another application ${entryName}: name this one by --app`;
    const { config, capability } = outcome.fields as { config: string; capability: string };
    const formerEntry: Application = existing?.[1] ?? {
      package: appPackage,
      original,
      registrars: [],
      enclaves: [],
    };
    if (formerEntry.config !== undefined) chain.notes.push(`The former config was ${formerEntry.config.id}.`);
    const createdFields = {
      enclavePackage,
      module,
      witness,
      capability,
      config: { id: config, name, version: 0, ...(isOpen && { isOpen }) },
      ...(signer && { signer }),
    };
    return [[entryName, { ...formerEntry, ...createdFields, registrars: [], enclaves: [] }]];
  });
}

export const main = suiCommand({
  name: 'create_config',
  purpose:
    'Creates and shares a config at version 0, which allows the image of the PCR file. With --publisher, the sender also\ngets a new EnclaveCap for it: use this if the module is on chain already, or claims its Publisher in its init.',
  example: 'main --pcrs out/nitro.pcrs --network testnet',
  ids: IDS,
  arguments: ARGUMENTS,
  options: {
    ...PCRS_OPTION,
    ...SOURCE_OPTION,
    ...RELEASE_OPTIONS,
    cap: {
      value: '<id>',
      help: 'the EnclaveCap to use (default: the one in the deployment file, or else the only one that the sender owns)',
      schema: objectId,
    },
    publisher: {
      value: '<id>',
      help: "make a new EnclaveCap with this Publisher of the application's module",
      schema: objectId,
    },
    open: {
      help: 'let anyone register enclaves of the image, on any host, for as long as the config exists; for an application without secrets',
    },
    ...EXPERIMENTAL_FLAG,
    again: { help: 'create another config even if the deployment file has one' },
  },
  check({ options }) {
    if (options.cap !== undefined && options.publisher !== undefined) {
      throw new UsageError('give --cap or --publisher');
    }
  },
  async run(invocation, chain) {
    const { ids, options } = invocation;
    const { name } = invocation.args;
    const { enclavePackage } = ids;
    const { cap: optionCapId, publisher: publisherId } = options;
    const allowed = await imageToAllow(chain, options);
    const { image, source, signer } = allowed;
    const isOpen = options.open;
    if (isOpen) checkNeedsNoSecrets(allowed);
    const application = await readApplicationType(chain.client, ids.appPackage, ids.module, ids.witness);
    const applicationIds = { application, original: await chain.originalPackage(ids.appPackage) };
    const entry = await readEntry(invocation, chain, applicationIds);
    const existing = options.again
      ? undefined
      : await findExisting(invocation, chain, entry, applicationIds, { image, isOpen });
    if (existing !== undefined) return existing;
    const call = { enclavePackage, application };
    const tx = new Transaction();
    const capId =
      publisherId === undefined
        ? (optionCapId ?? entry?.capability ?? (await findCapability(chain, enclavePackage, application)))
        : newCapFromPublisher(tx, { ...call, publisherId });
    createEnclaveConfig(tx, { ...call, capId, name, image, source, isOpen });
    if (typeof capId !== 'string') tx.transferObjects([capId], chain.sender());
    let createdObjects: Executed['created'] = [];
    const outcome = await chain.submit(tx, {
      title: `create the ${isOpen ? 'open ' : ''}config ${JSON.stringify(name)} for ${application}`,
      fields: {
        name,
        application,
        ...(typeof capId === 'string' ? { capability: capId } : { publisher: publisherId }),
        isOpen,
        ...image,
        ...(source && { source }),
      },
      report({ created }) {
        createdObjects = created;
        return {
          config: created.find(({ type }) => type.includes('::enclave::EnclaveConfig<'))?.id,
          configVersion: 0,
          ...(typeof capId !== 'string' && { capability: capabilitiesIn(created)[0]?.id }),
        };
      },
    });
    await recordConfig(invocation, chain, outcome, applicationIds, { isOpen, signer });
    await awaitListing(chain, createdObjects);
    return outcome;
  },
});

if (import.meta.main) await runAsProcess(main);
