/** `npm run create_config`: creates the config that says which image an application's enclaves may run. */
import { runAsProcess } from '../command.ts';
import type { Chain } from './chain.ts';
import { type Input, PCRS_OPTION, pcrsPath, suiCommand } from './command.ts';
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
  return { enclavePackage, appPackage, applicationOf, name, capId: options['cap'] };
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

export const main = suiCommand({
  name: 'create_config',
  purpose: 'Creates and shares a config at version 0, which allows the image of the PCR file.',
  positionals: ['enclave_package_id', 'app_package_id', 'module_name', 'otw_name', 'name'],
  options: { ...PCRS_OPTION, cap: ['<id>', 'the capability, where the sender owns several'] },
  async plan(input) {
    const { enclavePackage, appPackage, applicationOf, name, capId } = await read(input);
    const application = applicationOf(appPackage);
    return [
      `read the registers in ${pcrsPath(input.options)}`,
      `use the capability ${capId ?? `for ${application} that the sender owns`}`,
      `call ${enclavePackage}::enclave::create_enclave_config<${application}> for the config ${JSON.stringify(name)}`,
    ];
  },
  async run(input, chain) {
    const { Transaction } = await import('@mysten/sui/transactions');
    const { createEnclaveConfig } = await import('../../src/sui/transactions.ts');
    const { addressOf } = await import('../../src/sui/values.ts');
    const { readImage } = await import('./contract.ts');
    const { enclavePackage, appPackage, applicationOf, name, capId: named } = await read(input);
    const image = await readImage(chain, input.options);
    const application = applicationOf(await chain.originalPackage(addressOf('<app_package_id>', appPackage)));
    const capId = named ?? (await ownCapability(chain, enclavePackage, application));
    const tx = new Transaction();
    createEnclaveConfig(tx, { enclavePackage, application, capId, name, image });
    return await chain.submit(tx, {
      title: `create the config ${JSON.stringify(name)} for ${application}`,
      fields: { name, application, capability: capId, ...image },
      report: ({ created }) => ({
        config: created.find(({ type }) => type.includes('::enclave::EnclaveConfig<'))?.id,
        configVersion: 0,
      }),
    });
  },
});

if (import.meta.main) await runAsProcess(main);
