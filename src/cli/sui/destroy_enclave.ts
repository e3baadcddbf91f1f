/** `sui-enclave destroy_enclave`: ends an enclave's right to sign for its application. */

import { Transaction } from '@mysten/sui/transactions';
import { toHex } from '@mysten/sui/utils';
import { isStale, readConfig, readEnclave } from 'sui-enclave/sui/objects';
import { destroyEnclave, destroyOldEnclave } from 'sui-enclave/sui/transactions';
import { runAsProcess } from '../command.ts';
import { objectId } from '../values.ts';
import { suiCommand } from './command.ts';
import { checkContract } from './contract.ts';

export const main = suiCommand({
  name: 'destroy_enclave',
  purpose:
    "Destroys a registered enclave. Anyone can destroy one that is stale or whose config is retired. Only the holder of the\nEnclaveCap can destroy any other, such as one of the previous version in an overlap. The destroyed key can't be\nregistered at that version of the config again.",
  example: '0x<enclave> --network testnet',
  ids: ['enclavePackage'],
  arguments: { enclaveId: { label: 'enclave_object_id', schema: objectId } },
  options: {},
  async run({ ids, args, deployments }, chain) {
    const { enclaveId } = args;
    const enclave = await readEnclave(chain.client, enclaveId);
    await checkContract(chain, enclave, ids);
    const config = await readConfig(chain.client, enclave.configId);
    const mayAnyoneDestroy = isStale(enclave, config, Date.now()) || config.isRetired;
    const { application } = enclave;
    const { id: configId, capabilityId: capId } = config;
    const tx = new Transaction();
    if (mayAnyoneDestroy) destroyOldEnclave(tx, { ...ids, enclaveId, application, configId });
    else destroyEnclave(tx, { ...ids, enclaveId, application, configId, capId });
    const outcome = await chain.submit(tx, {
      title: `destroy the enclave ${enclaveId}`,
      fields: {
        enclave: enclave.id,
        publicKey: toHex(enclave.publicKey),
        config: configId,
        configVersion: enclave.configVersion,
        latestConfigVersion: config.configVersion,
        ...(!mayAnyoneDestroy && { capability: capId }),
      },
    });
    await deployments?.recordConfig(chain, outcome, configId, (application) => ({
      ...application,
      enclaves: application.enclaves.filter(({ id }) => id !== enclave.id),
    }));
    return outcome;
  },
});

if (import.meta.main) await runAsProcess(main);
