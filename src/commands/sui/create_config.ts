/** `sui-enclave create_config`: creates the config that says which image an application's enclaves may run. */

import { Transaction } from '@mysten/sui/transactions';
import type { Image } from 'sui-enclave/attestation';
import { listCapabilities, readConfig } from 'sui-enclave/sui/objects';
import { createEnclaveConfig, newCapFromPublisher } from 'sui-enclave/sui/transactions';
import { runAsProcess, UsageError } from '../command.ts';
import { objectId, text } from '../values.ts';
import type { Chain } from './chain.ts';
import { type Input, suiCommand } from './command.ts';
import { imageToAllow, isSameImage } from './contract.ts';
import type { Application } from './deployments.ts';
import { SuiCommandError } from './errors.ts';
import { applicationOf, IDS } from './ids.ts';
import { EXPERIMENTAL_FLAG, PCRS_OPTION, SOURCE_OPTION } from './options.ts';
import type { Outcome } from './outcome.ts';

const ARGUMENTS = {
  enclavePackage: IDS.enclavePackage,
  appPackage: IDS.appPackage,
  module: IDS.module,
  witness: IDS.witness,
  name: { schema: text },
};
type ConfigInput = Pick<Input<typeof ARGUMENTS>, 'args' | 'deployments'>;

/** The only capability for the application that the sender owns. @throws SuiCommandError: CAPABILITY */
async function ownCapability(chain: Chain, enclavePackage: string, application: string): Promise<string> {
  const original = await chain.originalPackage(enclavePackage);
  const sender = chain.sender();
  const found = await listCapabilities(chain.client, sender, { enclavePackage: original, application });
  const [only, ...others] = found;
  if (only !== undefined && others.length === 0) return only;
  throw new SuiCommandError(
    'CAPABILITY',
    only === undefined
      ? `${sender} owns no capability for ${application}: publishing gave it to the publisher`
      : `${sender} owns several capabilities for ${application}: name one by --cap, of ${found.join(', ')}`,
  );
}

/** The config that the deployment file has for the application, unless it is retired. @throws SuiCommandError: DEPLOYMENT */
async function present(
  { deployments }: ConfigInput,
  chain: Chain,
  application: string,
  image: Image,
): Promise<Outcome | undefined> {
  const noted = [...(deployments?.read()?.applications.values() ?? [])].find(
    ({ original, module, witness }) => `${original}::${module}::${witness}` === application,
  );
  if (deployments === undefined || noted?.config === undefined) return undefined;
  await deployments.checkChain(chain);
  const config = await readConfig(chain.client, noted.config.id);
  if (config.isRetired) return undefined;
  const same = isSameImage(config.image, image);
  return {
    status: 'unchanged',
    title: `${deployments.path} has a config for ${application}${same ? '' : ', which allows another image'}: nothing to do. ${same ? '' : 'Allow this one by rotate or update_pcrs. '}Create another with --again.`,
    fields: {
      config: config.id,
      name: config.name,
      configVersion: config.configVersion,
      capability: config.capabilityId,
      ...config.image,
    },
  };
}

/** Writes the deployment file: the entry of the package, or a new one for a package that was published elsewhere. */
async function note(input: ConfigInput, chain: Chain, outcome: Outcome, application: string): Promise<void> {
  await input.deployments?.note(chain, outcome, (applications) => {
    const { enclavePackage, appPackage, name } = input.args;
    const [original = '', module = '', witness = ''] = application.split('::');
    const found = [...applications].find(
      ([, app]) => app.original === original && (app.module === undefined || app.module === module),
    );
    const entry = found?.[0] ?? input.deployments?.app ?? module;
    if (found === undefined && applications.has(entry))
      return `it has another application ${entry}: name this one by --app`;
    const { config, capability } = outcome.fields as { config: string; capability: string };
    const before: Application = found?.[1] ?? { package: appPackage, original, registrars: [], enclaves: [] };
    if (before.config !== undefined) chain.notes.push(`The config before was ${before.config.id}.`);
    const created = { enclavePackage, module, witness, capability, config: { id: config, name, version: 0 } };
    return [entry, { ...before, ...created, registrars: [], enclaves: [] }];
  });
}

export const main = suiCommand({
  name: 'create_config',
  purpose:
    'Creates and shares a config at version 0, which allows the image of the PCR file. With --publisher, the sender also\ngets a new EnclaveCap for it: use this if the module is on chain already, or claims its Publisher in its init.',
  arguments: ARGUMENTS,
  options: {
    ...PCRS_OPTION,
    ...SOURCE_OPTION,
    cap: { value: '<id>', help: 'the EnclaveCap to use, if the sender owns several', schema: objectId },
    publisher: {
      value: '<id>',
      help: "make a new EnclaveCap with this Publisher of the application's module",
      schema: objectId,
    },
    ...EXPERIMENTAL_FLAG,
    again: { help: 'create another config even if the deployment file has one' },
  },
  plan({ args, options }) {
    const { enclavePackage, name } = args;
    const { cap: capId, publisher: publisherId } = options;
    if (capId !== undefined && publisherId !== undefined) throw new UsageError('give --cap or --publisher');
    const application = applicationOf(args);
    return [
      ...(options.again ? [] : ['end here if the deployment file has a config for the application']),
      `read the registers in ${options.pcrs}`,
      publisherId === undefined
        ? `use the capability ${capId ?? `for ${application} that the sender owns`}`
        : `call ${enclavePackage}::enclave::new_cap_from_publisher<${application}>, and give the capability to the sender`,
      `call ${enclavePackage}::enclave::${options['source-url'] === undefined ? 'create_enclave_config' : 'new_enclave_config'}<${application}> for the config ${JSON.stringify(name)}`,
    ];
  },
  async run(input, chain) {
    const { args, options } = input;
    const { enclavePackage, name } = args;
    const { cap: named, publisher: publisherId } = options;
    const { image, source } = await imageToAllow(chain, options);
    // A package's types keep the id under which it was first published.
    const original = await chain.originalPackage(args.appPackage);
    const application = applicationOf({ ...args, appPackage: original });
    const there = options.again ? undefined : await present(input, chain, application, image);
    if (there !== undefined) return there;
    const call = { enclavePackage, application };
    const tx = new Transaction();
    const capId =
      publisherId === undefined
        ? (named ?? (await ownCapability(chain, enclavePackage, application)))
        : newCapFromPublisher(tx, { ...call, publisherId });
    createEnclaveConfig(tx, { ...call, capId, name, image, source });
    if (typeof capId !== 'string') tx.transferObjects([capId], chain.sender());
    const outcome = await chain.submit(tx, {
      title: `create the config ${JSON.stringify(name)} for ${application}`,
      fields: {
        name,
        application,
        ...(typeof capId === 'string' ? { capability: capId } : { publisher: publisherId }),
        ...image,
        ...(source && { source }),
      },
      report: ({ created }) => ({
        config: created.find(({ type }) => type.includes('::enclave::EnclaveConfig<'))?.id,
        configVersion: 0,
        ...(typeof capId !== 'string' && {
          capability: created.find(({ type }) => type.includes('::enclave::EnclaveCap<'))?.id,
        }),
      }),
    });
    await note(input, chain, outcome, application);
    return outcome;
  },
});

if (import.meta.main) await runAsProcess(main);
