/** `sui-enclave migrate_config`: ends older versions of the package for a config. */

import { Transaction } from '@mysten/sui/transactions';
import { readConfig } from 'sui-enclave/sui/objects';
import { migrateConfig } from 'sui-enclave/sui/transactions';
import { runAsProcess } from '../command.ts';
import { suiCommand } from './command.ts';
import { checkContract } from './contract.ts';

export const main = suiCommand({
  name: 'migrate_config',
  purpose:
    'After an upgrade that raised PACKAGE_VERSION: lets only the new version of the package verify by a config and change\nit. Contracts that were compiled with an older version accept no answers from then on, until they are upgraded too.\nIt cannot be undone. Fails with ENotOlder where the package has no newer version than the config.',
  example: '--network testnet',
  ids: ['enclavePackage', 'configId'],
  arguments: {},
  options: {},
  async run({ ids }, chain) {
    const config = await readConfig(chain.client, ids.configId);
    await checkContract(chain, config, ids);
    const { id, name, application, capabilityId: capId, packageVersion } = config;
    const tx = new Transaction();
    migrateConfig(tx, { ...ids, application, capId });
    return await chain.submit(tx, {
      title: `migrate the config ${JSON.stringify(name)} of ${application}`,
      fields: { config: id, capability: capId, packageVersionBefore: packageVersion },
    });
  },
});

if (import.meta.main) await runAsProcess(main);
