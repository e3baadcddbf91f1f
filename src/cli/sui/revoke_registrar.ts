/** `sui-enclave revoke_registrar`: revokes a registrar, no matter who owns it. */

import { Transaction } from '@mysten/sui/transactions';
import { readConfig } from 'sui-enclave/sui/objects';
import { revokeRegistrarCap } from 'sui-enclave/sui/transactions';
import { runAsProcess } from '../command.ts';
import { objectId } from '../values.ts';
import { suiCommand } from './command.ts';
import { checkContract } from './contract.ts';

export const main = suiCommand({
  name: 'revoke_registrar',
  purpose:
    'Revokes a RegistrarCap, no matter who owns it. The enclaves that it registered remain: `status` lists them, and\neach event EnclaveRegistered names the capability that registered the enclave.',
  example: '0x<registrar> --network testnet',
  ids: ['enclavePackage', 'configId'],
  arguments: { registrarId: { label: 'registrar_id', schema: objectId } },
  options: {},
  async run({ ids, args, deployments }, chain) {
    const { registrarId } = args;
    const config = await readConfig(chain.client, ids.configId);
    await checkContract(chain, config, ids);
    const { application, capabilityId: capId, registrars } = config;
    if (!registrars.includes(registrarId)) {
      return {
        status: 'unchanged',
        title: `${registrarId} may not register under this config: nothing to do.`,
        fields: { config: config.id, registrars },
      };
    }
    const tx = new Transaction();
    revokeRegistrarCap(tx, { ...ids, registrarId, application, capId });
    const outcome = await chain.submit(tx, {
      title: `revoke the registrar ${registrarId}`,
      fields: { config: config.id, registrar: registrarId, capability: capId },
    });
    await deployments?.recordConfig(chain, outcome, config.id, (application) => ({
      ...application,
      registrars: application.registrars.filter(({ id }) => id !== registrarId),
    }));
    return outcome;
  },
});

if (import.meta.main) await runAsProcess(main);
