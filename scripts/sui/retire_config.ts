/** `npm run retire_config`: ends a config for ever. */
import { runAsProcess } from '../command.ts';
import { suiCommand } from './command.ts';

export const main = suiCommand({
  name: 'retire_config',
  purpose:
    'Ends a config for ever: nothing can be registered under it, and no contract accepts an answer of its enclaves.\nAnyone can destroy these then.',
  positionals: ['enclave_package_id', 'enclave_config_id'],
  fromFile: ['enclave_package_id', 'enclave_config_id'],
  options: {},
  plan: ({ args }) => [
    `read the config ${args['enclave_config_id']}, and end here if it is retired`,
    `call ${args['enclave_package_id']}::enclave::retire with the capability that the config names`,
  ],
  async run({ args }, chain) {
    const { Transaction } = await import('@mysten/sui/transactions');
    const { readConfig } = await import('../../src/sui/objects.ts');
    const { retireConfig } = await import('../../src/sui/transactions.ts');
    const { checkContract } = await import('./contract.ts');
    const { enclave_package_id: enclavePackage = '', enclave_config_id: configId = '' } = args;
    const config = await readConfig(chain.client, configId);
    await checkContract(chain, config, { enclavePackage });
    const { id, name, application, capabilityId: capId, configVersion } = config;
    const fields = { config: id, name, configVersion, capability: capId };
    if (config.isRetired) {
      return { status: 'unchanged', title: 'The config is retired already: nothing to do.', fields };
    }
    const tx = new Transaction();
    retireConfig(tx, { enclavePackage, application, configId: id, capId });
    return await chain.submit(tx, {
      title: `retire the config ${JSON.stringify(name)} of ${application}`,
      fields,
    });
  },
});

if (import.meta.main) await runAsProcess(main);
