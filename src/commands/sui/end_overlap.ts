/** `sui-enclave end_overlap`: makes the enclaves of the version before stale, before the time that was set for them. */

import { Transaction } from '@mysten/sui/transactions';
import { readConfig } from 'sui-enclave/sui/objects';
import { endOverlap } from 'sui-enclave/sui/transactions';
import { runAsProcess } from '../command.ts';
import { suiCommand } from './command.ts';
import { checkContract, checkNotRetired } from './contract.ts';
import { IDS } from './ids.ts';

export const main = suiCommand({
  name: 'end_overlap',
  purpose:
    'Ends the overlap of a config, which rotate or update_pcrs began with --overlap: from then on, contracts accept enclaves\nof the latest version only. After the time that was set, it gives the storage of the overlap back.',
  arguments: { enclave_package_id: IDS.enclave_package_id, enclave_config_id: IDS.enclave_config_id },
  options: {},
  plan: ({ args }) => [
    `read the config ${args.enclave_config_id}, and end here if it has no overlap`,
    `call ${args.enclave_package_id}::enclave::end_overlap with the capability that the config names`,
  ],
  async run({ args }, chain) {
    const { enclave_package_id: enclavePackage, enclave_config_id: configId } = args;
    const config = await readConfig(chain.client, configId);
    await checkContract(chain, config, { enclavePackage });
    checkNotRetired(config);
    const { id, name, application, capabilityId: capId, configVersion, overlap } = config;
    const fields = { config: id, configVersion, capability: capId };
    if (overlap === null) {
      return { status: 'unchanged', title: 'The config has no overlap: nothing to do.', fields };
    }
    const tx = new Transaction();
    endOverlap(tx, { enclavePackage, application, configId: id, capId });
    return await chain.submit(tx, {
      title: `end the overlap of the config ${JSON.stringify(name)} of ${application}`,
      fields: { ...fields, overlapUntil: new Date(Number(overlap.untilMs)) },
    });
  },
});

if (import.meta.main) await runAsProcess(main);
