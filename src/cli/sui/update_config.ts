/** `sui-enclave update_config`: sets the name of a config, and the maximum age of its keys. */

import { Transaction } from '@mysten/sui/transactions';
import { readConfig } from 'sui-enclave/sui/objects';
import { updateMaxKeyAge, updateName } from 'sui-enclave/sui/transactions';
import * as v from 'valibot';
import { runAsProcess, UsageError } from '../command.ts';
import { text } from '../values.ts';
import { suiCommand } from './command.ts';
import { checkContract, checkNotRetired } from './contract.ts';

/** Maximum age in milliseconds; null for any age. */
const maxKeyAge = v.pipe(
  v.string(),
  v.regex(/^([1-9][0-9]{0,5}|none)$/, 'must be a whole number of hours from 1 to 999999, or none'),
  v.transform((hours) => (hours === 'none' ? null : BigInt(hours) * 3_600_000n)),
);

export const main = suiCommand({
  name: 'update_config',
  purpose:
    'Renames a config, or sets a maximum age for the keys of its enclaves, including those that are registered: contracts\nreject answers of older keys. Restart each enclave, and register its new key, before the old one reaches that age.',
  example: '--max-key-age 168 --network testnet',
  ids: ['enclavePackage', 'configId'],
  arguments: {},
  options: {
    name: { value: '<name>', help: 'the new name, which only people read', schema: text },
    'max-key-age': {
      value: '<hours>',
      help: 'the maximum age of a key since its attestation, in hours, or none',
      schema: maxKeyAge,
    },
  },
  check({ options }) {
    if (options.name === undefined && options['max-key-age'] === undefined) {
      throw new UsageError('give --name or --max-key-age');
    }
  },
  async run({ ids, options, deployments }, chain) {
    const { name, 'max-key-age': maxKeyAgeMs } = options;
    const config = await readConfig(chain.client, ids.configId);
    await checkContract(chain, config, ids);
    checkNotRetired(config);
    const { application, capabilityId: capId } = config;
    const call = { ...ids, application, capId };
    const tx = new Transaction();
    if (name !== undefined) updateName(tx, { ...call, name });
    if (maxKeyAgeMs !== undefined) updateMaxKeyAge(tx, { ...call, maxKeyAgeMs });
    const outcome = await chain.submit(tx, {
      title: `update the config ${JSON.stringify(config.name)} of ${application}`,
      fields: {
        config: config.id,
        capability: capId,
        ...(name !== undefined && { name }),
        ...(maxKeyAgeMs !== undefined && { maxKeyAgeMs: maxKeyAgeMs ?? 'none' }),
      },
    });
    if (name !== undefined) {
      await deployments?.recordConfig(chain, outcome, config.id, (application) => ({
        ...application,
        ...(application.config && { config: { ...application.config, name } }),
      }));
    }
    return outcome;
  },
});

if (import.meta.main) await runAsProcess(main);
