/** `sui-enclave retire_config`: retires a config, permanently. */

import { Transaction } from '@mysten/sui/transactions';
import { readConfig } from 'sui-enclave/sui/objects';
import { retireConfig } from 'sui-enclave/sui/transactions';
import { runAsProcess } from '../command.ts';
import { suiCommand } from './command.ts';
import { checkContract } from './contract.ts';
import { SuiCommandError } from './errors.ts';

export const main = suiCommand({
  name: 'retire_config',
  purpose:
    'Retires a config permanently: nothing can be registered under it, and no contract accepts an answer of its enclaves.\nAnyone can then destroy those enclaves. It asks for confirmation on the terminal; without a terminal, give --yes.',
  example: '--network testnet',
  ids: ['enclavePackage', 'configId'],
  arguments: {},
  options: { yes: { help: 'retire it without asking' } },
  check({ ask, isTrial, options }) {
    if (!isTrial && !options.yes && ask === undefined) {
      throw new SuiCommandError(
        'NOT_CONFIRMED',
        'retiring a config cannot be undone, and no terminal can confirm it: pass --yes. Nothing was sent',
      );
    }
  },
  async run(invocation, chain) {
    const { ids, ask, isTrial, options } = invocation;
    const config = await readConfig(chain.client, ids.configId);
    await checkContract(chain, config, ids);
    const { id, name, application, capabilityId: capId, configVersion } = config;
    const fields = { config: id, name, configVersion, capability: capId };
    if (config.isRetired) {
      return { status: 'unchanged', title: 'The config is retired already: nothing to do.', fields };
    }
    if (!isTrial && !options.yes) {
      const question = `Retire the config ${JSON.stringify(name)} (${id}) of ${application} permanently? This cannot be undone. Type yes to continue: `;
      if ((await ask?.(question))?.trim() !== 'yes') {
        throw new SuiCommandError('NOT_CONFIRMED', 'the answer was not yes. Nothing was sent');
      }
    }
    const tx = new Transaction();
    retireConfig(tx, { ...ids, application, capId });
    return await chain.submit(tx, {
      title: `retire the config ${JSON.stringify(name)} of ${application}`,
      fields,
    });
  },
});

if (import.meta.main) await runAsProcess(main);
