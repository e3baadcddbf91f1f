/** `npm run create_config`: creates the config that says which image an application's enclaves may run. */
import { runAsProcess } from '../command.ts';
import type { Chain } from './chain.ts';
import { type Input, PCRS_OPTION, pcrsPath, type SuiCommand, suiCommand, usageError } from './command.ts';
import { SuiCommandError } from './errors.ts';

async function read({ args, options }: Input) {
  const { applicationType } = await import('../../src/sui/values.ts');
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
  const { listCapabilities } = await import('../../src/sui/objects.ts');
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

const spec: SuiCommand = {
  name: 'create_config',
  purpose:
    'Creates and shares a config at version 0, which allows the image of the PCR file. With --publisher, the sender also\ngets a new capability for it: for a module that is on chain already, or claims its Publisher in its init.',
  positionals: ['enclave_package_id', 'app_package_id', 'module_name', 'otw_name', 'name'],
  options: {
    ...PCRS_OPTION,
    cap: ['<id>', 'the capability, where the sender owns several'],
    publisher: ['<id>', "make a capability by this Publisher of the application's module"],
  },
  async plan(input) {
    const { enclavePackage, appPackage, applicationOf, name, capId, publisherId } = await read(input);
    const application = applicationOf(appPackage);
    return [
      `read the registers in ${pcrsPath(input.options)}`,
      publisherId === undefined
        ? `use the capability ${capId ?? `for ${application} that the sender owns`}`
        : `call ${enclavePackage}::enclave::new_cap_from_publisher<${application}>, and give the capability to the sender`,
      `call ${enclavePackage}::enclave::create_enclave_config<${application}> for the config ${JSON.stringify(name)}`,
    ];
  },
  async run(input, chain) {
    const { Transaction } = await import('@mysten/sui/transactions');
    const { createEnclaveConfig, newCapFromPublisher } = await import('../../src/sui/transactions.ts');
    const { addressOf } = await import('../../src/sui/values.ts');
    const { readImage } = await import('./contract.ts');
    const { enclavePackage, appPackage, applicationOf, name, capId: named, publisherId } = await read(input);
    const image = await readImage(chain, input.options);
    const application = applicationOf(await chain.originalPackage(addressOf('<app_package_id>', appPackage)));
    const call = { enclavePackage, application };
    const tx = new Transaction();
    const capId =
      publisherId === undefined
        ? (named ?? (await ownCapability(chain, enclavePackage, application)))
        : newCapFromPublisher(tx, { ...call, publisherId });
    createEnclaveConfig(tx, { ...call, capId, name, image });
    if (typeof capId !== 'string') tx.transferObjects([capId], await chain.sender());
    return await chain.submit(tx, {
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
  },
};

export const main = suiCommand(spec);

if (import.meta.main) await runAsProcess(main);
