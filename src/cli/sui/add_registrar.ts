/** `sui-enclave add_registrar`: lets an address register enclaves of a config, and nothing else. */

import { Transaction } from '@mysten/sui/transactions';
import { readConfig } from 'sui-enclave/sui/objects';
import { newRegistrarCap } from 'sui-enclave/sui/transactions';
import { runAsProcess } from '../command.ts';
import { objectId } from '../values.ts';
import { suiCommand } from './command.ts';
import { checkContract, checkNotRetired } from './contract.ts';
import { IDS } from './ids.ts';

export const main = suiCommand({
  name: 'add_registrar',
  purpose:
    "Makes a RegistrarCap and gives it to an address: its holder registers enclaves of the config's current image, with\nregister_enclave --registrar, until the registrar is revoked.",
  arguments: {
    enclavePackage: IDS.enclavePackage,
    configId: IDS.configId,
    holder: { schema: objectId },
  },
  options: {},
  plan: ({ args }) => [
    `read the config ${args.configId}`,
    `call ${args.enclavePackage}::enclave::new_registrar_cap with the capability that the config names`,
    `transfer the RegistrarCap to ${args.holder}`,
  ],
  async run({ args, deployments }, chain) {
    const { holder } = args;
    const config = await readConfig(chain.client, args.configId);
    await checkContract(chain, config, args);
    checkNotRetired(config);
    const { application, capabilityId: capId } = config;
    const tx = new Transaction();
    const registrar = newRegistrarCap(tx, { ...args, application, capId });
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
