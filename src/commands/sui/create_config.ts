/** `npm run create_config`: creates the config that says which image an application's enclaves may run. */

import type { Image } from 'sui-enclave/attestation';
import { runAsProcess } from '../command.ts';
import type { Chain } from './chain.ts';
import {
  EXPERIMENTAL_FLAG,
  type Input,
  PCRS_OPTION,
  pcrsPath,
  type SuiCommand,
  suiCommand,
  usageError,
} from './command.ts';
import type { Application } from './deployments.ts';
import { SuiCommandError } from './errors.ts';
import type { Outcome } from './outcome.ts';

async function read({ args, options }: Input) {
  const { applicationType } = await import('sui-enclave/sui/values');
  const {
    enclave_package_id: enclavePackage = '',
    app_package_id: appPackage = '',
    module_name: moduleName = '',
    otw_name: witness = '',
    name = '',
  } = args;
  // A package's types keep the id under which it was first published.
  const applicationOf = (packageId: string) => applicationType(packageId, moduleName, witness);
  const { cap: capId, publisher: publisherId } = options;
  if (capId !== undefined && publisherId !== undefined) throw usageError(spec, 'give --cap or --publisher');
  return { enclavePackage, appPackage, applicationOf, name, capId, publisherId };
}

/** The only capability for the application that the sender owns. @throws SuiCommandError: CAPABILITY */
async function ownCapability(chain: Chain, enclavePackage: string, application: string): Promise<string> {
  const { listCapabilities } = await import('sui-enclave/sui/objects');
  const original = await chain.originalPackage(enclavePackage);
  const sender = await chain.sender();
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
  { deployments }: Input,
  chain: Chain,
  application: string,
  image: Image,
): Promise<Outcome | undefined> {
  const noted = Object.values(deployments?.read()?.applications ?? {}).find(
    ({ original, module, witness }) => `${original}::${module}::${witness}` === application,
  );
  if (deployments === undefined || noted?.config === undefined) return undefined;
  await deployments.checkChain(chain);
  const { readConfig } = await import('sui-enclave/sui/objects');
  const { isSameImage } = await import('./contract.ts');
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
async function note(input: Input, chain: Chain, outcome: Outcome, application: string): Promise<void> {
  await input.deployments?.note(chain, outcome, (applications) => {
    const { enclave_package_id: enclavePackage = '', app_package_id: packageId = '', name = '' } = input.args;
    const [original = '', module = '', witness = ''] = application.split('::');
    const found = Object.entries(applications).find(
      ([, each]) => each.original === original && (each.module === undefined || each.module === module),
    );
    const entry = found?.[0] ?? input.deployments?.app ?? module;
    if (found === undefined && applications[entry] !== undefined)
      return `it has another application ${entry}: name this one by --app`;
    const { config, capability } = outcome.fields as { config: string; capability: string };
    const before: Application = found?.[1] ?? { package: packageId, original, registrars: [], enclaves: [] };
    if (before.config !== undefined) chain.notes.push(`The config before was ${before.config.id}.`);
    const created = { enclavePackage, module, witness, capability, config: { id: config, name, version: 0 } };
    return [entry, { ...before, ...created, registrars: [], enclaves: [] }];
  });
}

const spec: SuiCommand = {
  name: 'create_config',
  purpose:
    'Creates and shares a config at version 0, which allows the image of the PCR file. With --publisher, the sender also\ngets a new capability for it: for a module that is on chain already, or claims its Publisher in its init.',
  positionals: ['enclave_package_id', 'app_package_id', 'module_name', 'otw_name', 'name'],
  fromFile: ['enclave_package_id', 'app_package_id', 'module_name', 'otw_name'],
  flags: { ...EXPERIMENTAL_FLAG, again: 'create another config even if the deployment file has one' },
  options: {
    ...PCRS_OPTION,
    cap: ['<id>', 'the capability, where the sender owns several'],
    publisher: ['<id>', "make a capability by this Publisher of the application's module"],
  },
  async plan(input) {
    const { enclavePackage, appPackage, applicationOf, name, capId, publisherId } = await read(input);
    const application = applicationOf(appPackage);
    return [
      ...(input.flags.has('again')
        ? []
        : ['end here if the deployment file has a config for the application']),
      `read the registers in ${pcrsPath(input.options)}`,
      publisherId === undefined
        ? `use the capability ${capId ?? `for ${application} that the sender owns`}`
        : `call ${enclavePackage}::enclave::new_cap_from_publisher<${application}>, and give the capability to the sender`,
      `call ${enclavePackage}::enclave::create_enclave_config<${application}> for the config ${JSON.stringify(name)}`,
    ];
  },
  async run(input, chain) {
    const { Transaction } = await import('@mysten/sui/transactions');
    const { createEnclaveConfig, newCapFromPublisher } = await import('sui-enclave/sui/transactions');
    const { addressOf } = await import('sui-enclave/sui/values');
    const { imageToAllow } = await import('./contract.ts');
    const { enclavePackage, appPackage, applicationOf, name, capId: named, publisherId } = await read(input);
    const image = await imageToAllow(chain, input);
    const application = applicationOf(await chain.originalPackage(addressOf('<app_package_id>', appPackage)));
    const there = input.flags.has('again') ? undefined : await present(input, chain, application, image);
    if (there !== undefined) return there;
    const call = { enclavePackage, application };
    const tx = new Transaction();
    const capId =
      publisherId === undefined
        ? (named ?? (await ownCapability(chain, enclavePackage, application)))
        : newCapFromPublisher(tx, { ...call, publisherId });
    createEnclaveConfig(tx, { ...call, capId, name, image });
    if (typeof capId !== 'string') tx.transferObjects([capId], await chain.sender());
    const outcome = await chain.submit(tx, {
      title: `create the config ${JSON.stringify(name)} for ${application}`,
      fields: {
        name,
        application,
        ...(typeof capId === 'string' ? { capability: capId } : { publisher: publisherId }),
        ...image,
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
};

export const main = suiCommand(spec);

if (import.meta.main) await runAsProcess(main);
