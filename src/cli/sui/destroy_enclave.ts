/** `sui-enclave destroy_enclave`: ends an enclave's right to sign for its application. */

import { Transaction } from '@mysten/sui/transactions';
import { toHex } from '@mysten/sui/utils';
import { isStale, readConfig, readEnclave } from 'sui-enclave/sui/objects';
import { destroyEnclave, destroyOldEnclave } from 'sui-enclave/sui/transactions';
import { runAsProcess } from '../command.ts';
import { objectId } from '../values.ts';
import { suiCommand } from './command.ts';
import { checkContract } from './contract.ts';
import { IDS } from './ids.ts';

export const main = suiCommand({
  name: 'destroy_enclave',
  purpose:
    "Destroys a registered enclave. Anyone can destroy one that is stale or whose config is retired; any other takes the\nholder of the EnclaveCap, also one of the version before in an overlap. The destroyed key can't be registered at that\nversion of the config again.",
  arguments: {
    enclavePackage: IDS.enclavePackage,
    enclaveId: { label: 'enclave_object_id', schema: objectId },
  },
  options: {},
  plan: ({ args }) => [
    `read the enclave ${args.enclaveId} and its config`,
    `if it is stale, or the config retired, call ${args.enclavePackage}::enclave::destroy_old_enclave`,
    `otherwise call ${args.enclavePackage}::enclave::destroy_enclave with the capability that the config names`,
  ],
  async run({ args, deployments }, chain) {
    const { enclaveId } = args;
    const enclave = await readEnclave(chain.client, enclaveId);
    await checkContract(chain, enclave, args);
    const config = await readConfig(chain.client, enclave.configId);
    const stale = isStale(enclave, config, Date.now()) || config.isRetired;
    const { application } = enclave;
    const { id: configId, capabilityId: capId } = config;
    const tx = new Transaction();
    if (stale) destroyOldEnclave(tx, { ...args, application, configId });
    else destroyEnclave(tx, { ...args, application, configId, capId });
    const outcome = await chain.submit(tx, {
      title: `destroy the enclave ${enclaveId}`,
      fields: {
        enclave: enclave.id,
        publicKey: toHex(enclave.publicKey),
        config: configId,
        configVersion: enclave.configVersion,
        latestConfigVersion: config.configVersion,
        ...(!stale && { capability: capId }),
      },
    });
    await deployments?.noteConfig(chain, outcome, configId, (application) => ({
      ...application,
      enclaves: application.enclaves.filter(({ id }) => id !== enclave.id),
    }));
    return outcome;
  },
});

if (import.meta.main) await runAsProcess(main);
