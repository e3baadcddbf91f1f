/** `npm run add_registrar`: lets an address register enclaves of a config, and nothing else. */
import { runAsProcess } from '../command.ts';
import { suiCommand } from './command.ts';

export const main = suiCommand({
  name: 'add_registrar',
  purpose:
    "Makes a RegistrarCap and gives it to an address: its holder registers enclaves of the config's present image, with\nregister_enclave --registrar, until the registrar is revoked.",
  positionals: ['enclave_package_id', 'enclave_config_id', 'holder'],
  fromFile: ['enclave_package_id', 'enclave_config_id'],
  options: {},
  plan: ({ args }) => [
    `read the config ${args['enclave_config_id']}`,
    `call ${args['enclave_package_id']}::enclave::new_registrar_cap with the capability that the config names`,
    `transfer the RegistrarCap to ${args['holder']}`,
  ],
  async run({ args, deployments }, chain) {
    const { Transaction } = await import('@mysten/sui/transactions');
    const { readConfig } = await import('sui-enclave/sui/objects');
    const { newRegistrarCap } = await import('sui-enclave/sui/transactions');
    const { addressOf } = await import('sui-enclave/sui/values');
    const { checkContract, checkNotRetired } = await import('./contract.ts');
    const { enclave_package_id: enclavePackage = '', enclave_config_id: configId = '' } = args;
    const holder = addressOf('<holder>', args['holder'] ?? '');
    const config = await readConfig(chain.client, configId);
    await checkContract(chain, config, { enclavePackage });
    checkNotRetired(config);
    const { application, capabilityId: capId } = config;
    const tx = new Transaction();
    const registrar = newRegistrarCap(tx, { enclavePackage, application, configId: config.id, capId });
    tx.transferObjects([registrar], holder);
    const outcome = await chain.submit(tx, {
      title: `let ${holder} register enclaves for ${application}`,
      fields: { config: config.id, holder, capability: capId },
      report: ({ created }) => ({
        registrar: created.find(({ type }) => type.includes('::enclave::RegistrarCap<'))?.id,
      }),
    });
    await deployments?.noteConfig(chain, outcome, config.id, (noted) => ({
      ...noted,
      registrars: [...noted.registrars, { id: String(outcome.fields['registrar']), holder }],
    }));
    return outcome;
  },
});

if (import.meta.main) await runAsProcess(main);
