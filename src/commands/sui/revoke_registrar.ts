/** `sui-enclave revoke_registrar`: ends a registrar, wherever it is. */

import { Transaction } from '@mysten/sui/transactions';
import { readConfig } from 'sui-enclave/sui/objects';
import { revokeRegistrarCap } from 'sui-enclave/sui/transactions';
import { runAsProcess } from '../command.ts';
import { objectId } from '../values.ts';
import { suiCommand } from './command.ts';
import { checkContract } from './contract.ts';
import { IDS } from './ids.ts';

export const main = suiCommand({
  name: 'revoke_registrar',
  purpose:
    'Revokes a RegistrarCap, wherever it is. The enclaves that it registered remain: `npm run status` lists them, and\nthe events EnclaveRegistered name the capability that registered each.',
  arguments: {
    enclave_package_id: IDS.enclave_package_id,
    enclave_config_id: IDS.enclave_config_id,
    registrar_id: { schema: objectId },
  },
  options: {},
  plan: ({ args }) => [
    `read the config ${args.enclave_config_id}, and end here if ${args.registrar_id} is not its registrar`,
    `call ${args.enclave_package_id}::enclave::revoke_registrar_cap with the capability that the config names`,
  ],
  async run({ args, deployments }, chain) {
    const { enclave_package_id: enclavePackage, enclave_config_id: configId } = args;
    const { registrar_id: registrarId } = args;
    const config = await readConfig(chain.client, configId);
    await checkContract(chain, config, { enclavePackage });
    const { application, capabilityId: capId, registrars } = config;
    if (!registrars.includes(registrarId)) {
      return {
        status: 'unchanged',
        title: `${registrarId} may not register under this config: nothing to do.`,
        fields: { config: config.id, registrars },
      };
    }
    const tx = new Transaction();
    revokeRegistrarCap(tx, { enclavePackage, application, configId: config.id, capId, registrarId });
    const outcome = await chain.submit(tx, {
      title: `revoke the registrar ${registrarId}`,
      fields: { config: config.id, registrar: registrarId, capability: capId },
    });
    await deployments?.noteConfig(chain, outcome, config.id, (noted) => ({
      ...noted,
      registrars: noted.registrars.filter(({ id }) => id !== registrarId),
    }));
    return outcome;
  },
});

if (import.meta.main) await runAsProcess(main);
