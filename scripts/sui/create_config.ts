/** `npm run create_config`: makes the config that says which image may run as an application's enclaves. */
import { Transaction } from '@mysten/sui/transactions';
import { EnclaveError } from '../../src/errors.ts';
import { listCapabilities } from '../../src/sui/objects.ts';
import { createEnclaveConfig } from '../../src/sui/transactions.ts';
import { addressOf, applicationType } from '../../src/sui/values.ts';
import { type Input, runCommand } from './command.ts';
import { PCRS_OPTION, pcrsPath, readImage } from './contract.ts';

/** The sender owns no capability for the application, or several. */
class CapabilityError extends EnclaveError {
  readonly code = 'CAPABILITY';
}

function read({ args, options }: Input) {
  const {
    enclave_package_id: enclavePackage = '',
    app_package_id: appPackage = '',
    module_name: moduleName = '',
    otw_name: witness = '',
    name = '',
  } = args;
  // A package's types keep the id that it was first published as.
  const applicationOf = (packageId: string) => applicationType(packageId, moduleName, witness);
  return { enclavePackage, appPackage, applicationOf, name, capId: options['cap'] };
}

await runCommand({
  name: 'create_config',
  purpose: 'Makes and shares a config at version 0, which allows the image of the PCR file.',
  positionals: ['enclave_package_id', 'app_package_id', 'module_name', 'otw_name', 'name'],
  options: { ...PCRS_OPTION, cap: ['<id>', 'the capability, where the sender owns several'] },
  plan(input) {
    const { enclavePackage, appPackage, applicationOf, name, capId } = read(input);
    const application = applicationOf(appPackage);
    return [
      `read the registers in ${pcrsPath(input.options)}`,
      `use the capability ${capId ?? `for ${application} that the sender owns`}`,
      `call ${enclavePackage}::enclave::create_enclave_config<${application}> for the config ${JSON.stringify(name)}`,
    ];
  },
  async run(input, chain) {
    const { enclavePackage, appPackage, applicationOf, name, capId: named } = read(input);
    const image = await readImage(chain, input.options);
    const application = applicationOf(await chain.originalPackage(addressOf('<app_package_id>', appPackage)));
    const capId = named ?? (await ownCapability());
    const tx = new Transaction();
    createEnclaveConfig(tx, { enclavePackage, application, capId, name, image });
    return await chain.submit(tx, {
      title: `create the config ${JSON.stringify(name)} for ${application}`,
      fields: { name, application, capability: capId, ...image },
      report: ({ created }) => ({
        config: created.find(({ type }) => type.includes('::enclave::EnclaveConfig<'))?.id,
        version: 0,
      }),
    });

    async function ownCapability(): Promise<string> {
      const original = await chain.originalPackage(enclavePackage);
      const found = await listCapabilities(chain.client, chain.sender, {
        enclavePackage: original,
        application,
      });
      const [only, ...others] = found;
      if (only !== undefined && others.length === 0) return only;
      throw new CapabilityError(
        only === undefined
          ? `${chain.sender} owns no capability for ${application}: publishing gave it to the publisher`
          : `${chain.sender} owns several capabilities for ${application}: name one by --cap, of ${found.join(', ')}`,
      );
    }
  },
});
