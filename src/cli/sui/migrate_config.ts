/** `sui-enclave migrate_config`: lets only the new version of the package use a config. */

import { Transaction } from '@mysten/sui/transactions';
import { readConfig } from 'sui-enclave/sui/objects';
import { migrateConfig } from 'sui-enclave/sui/transactions';
import { runAsProcess } from '../command.ts';
import { suiCommand } from './command.ts';
import { checkContract } from './contract.ts';

export const main = suiCommand({
  name: 'migrate_config',
  purpose:
    'Migrates a config after an upgrade that raised PACKAGE_VERSION: from then on, only the new version of the package can\nverify answers with the config, or change it. Contracts that were compiled with an older version accept no answers\nuntil they are upgraded too. This cannot be undone. Fails with ENotOlder if the config is already at\nthe PACKAGE_VERSION of this package, or at a newer one.',
  example: '--network testnet',
  ids: ['enclavePackage', 'configId'],
  arguments: {},
  options: {},
  async run({ ids, deployments }, chain) {
    const config = await readConfig(chain.client, ids.configId);
    await checkContract(chain, config, ids);
    const { id, name, application, capabilityId: capId, packageVersion } = config;
    const tx = new Transaction();
    migrateConfig(tx, { ...ids, application, capId });
    const outcome = await chain.submit(tx, {
      title: `migrate the config ${JSON.stringify(name)} of ${application}`,
      fields: { config: id, capability: capId, packageVersionBefore: packageVersion },
    });
    await deployments?.recordConfig(chain, outcome, id, (entry) => ({
      ...entry,
      enclavePackage: ids.enclavePackage,
    }));
    return outcome;
  },
});

if (import.meta.main) await runAsProcess(main);
