/**
 * `sui-enclave end_overlap`: makes the enclaves of the previous version stale before the time that the admin
 * set for the end of the overlap.
 */

import { Transaction } from '@mysten/sui/transactions';
import { endOverlap } from 'sui-enclave/sui/transactions';
import { runAsProcess } from '../command.ts';
import { suiCommand } from './command.ts';
import { checkContract, checkNotRetired, readLatestConfig } from './contract.ts';

export const main = suiCommand({
  name: 'end_overlap',
  purpose:
    'Ends the overlap of a config, which rotate or update_pcrs began with --overlap: from then on, contracts accept enclaves\nof the latest version only. If its time is already over, the command only frees the storage of the overlap.',
  example: '--network testnet',
  ids: ['enclavePackage', 'configId'],
  arguments: {},
  options: {},
  async run({ ids, deployments }, chain) {
    const config = await readLatestConfig(chain, ids.configId, deployments);
    await checkContract(chain, config, ids);
    checkNotRetired(config);
    const { id, name, application, capabilityId: capId, configVersion, overlap } = config;
    const fields = { config: id, configVersion, capability: capId };
    if (overlap === null) {
      return { status: 'unchanged', title: 'The config has no overlap: nothing to do.', fields };
    }
    const tx = new Transaction();
    endOverlap(tx, { ...ids, application, capId });
    return await chain.submit(tx, {
      title: `end the overlap of the config ${JSON.stringify(name)} of ${application}`,
      fields: { ...fields, overlapUntil: new Date(Number(overlap.untilMs)) },
    });
  },
});

if (import.meta.main) await runAsProcess(main);
