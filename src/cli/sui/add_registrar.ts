/** `sui-enclave add_registrar`: lets an address register enclaves of a config, and nothing else. */

import { Transaction } from '@mysten/sui/transactions';
import { readConfig } from 'sui-enclave/sui/objects';
import { newRegistrarCap } from 'sui-enclave/sui/transactions';
import { runAsProcess } from '../command.ts';
import { objectId } from '../values.ts';
import { suiCommand } from './command.ts';
import { checkContract, checkNotRetired } from './contract.ts';

export const main = suiCommand({
  name: 'add_registrar',
  purpose:
    "Creates a RegistrarCap and transfers it to an address, which can then register enclaves of the config's current image,\nwith register_enclave --registrar, until the registrar is revoked.",
  example: '0x<address> --network testnet',
  ids: ['enclavePackage', 'configId'],
  arguments: { holder: { schema: objectId } },
  options: {},
  async run({ ids, args, deployments }, chain) {
    const { holder } = args;
    const config = await readConfig(chain.client, ids.configId);
    await checkContract(chain, config, ids);
    checkNotRetired(config);
    const { application, capabilityId: capId } = config;
    const tx = new Transaction();
    const registrar = newRegistrarCap(tx, { ...ids, application, capId });
    tx.transferObjects([registrar], holder);
    const outcome = await chain.submit(tx, {
      title: `let ${holder} register enclaves for ${application}`,
      fields: { config: config.id, holder, capability: capId },
      report: ({ created }) => ({
        registrar: created.find(({ type }) => type.includes('::enclave::RegistrarCap<'))?.id,
      }),
    });
    await deployments?.recordConfig(chain, outcome, config.id, (application) => ({
      ...application,
      registrars: [...application.registrars, { id: String(outcome.fields['registrar']), holder }],
    }));
    return outcome;
  },
});

if (import.meta.main) await runAsProcess(main);
