/** `npm run update_config`: the name of a config, and the maximum age of its keys. */
import { runAsProcess } from '../command.ts';
import { type Input, type SuiCommand, suiCommand, usageError } from './command.ts';

function read({ options: { name, 'max-key-age': age } }: Input) {
  if (name === undefined && age === undefined) throw usageError(spec, 'give --name or --max-key-age');
  return { name, maxKeyAgeMs: age === undefined ? undefined : ageOf(age) };
}

/** In milliseconds; null for any age. */
function ageOf(text: string): bigint | null {
  if (text === 'none') return null;
  if (!/^[1-9][0-9]{0,5}$/.test(text)) {
    throw usageError(spec, '--max-key-age must be a whole number of hours from 1 to 999999, or none');
  }
  return BigInt(text) * 3_600_000n;
}

const spec: SuiCommand = {
  name: 'update_config',
  purpose:
    'Renames a config, or sets the maximum age of enclave keys, including registered ones: contracts reject answers of older\nkeys. Restart and register enclaves before their keys reach that age.',
  positionals: ['enclave_package_id', 'enclave_config_id'],
  fromFile: ['enclave_package_id', 'enclave_config_id'],
  options: {
    name: ['<name>', 'the name, which only people read'],
    'max-key-age': ['<hours>', 'the maximum age of keys since their attestation, or none'],
  },
  plan(input) {
    const { name, maxKeyAgeMs } = read(input);
    const { enclave_package_id: id, enclave_config_id: configId } = input.args;
    const calls = [
      ...(name === undefined ? [] : ['update_name']),
      ...(maxKeyAgeMs === undefined ? [] : ['update_max_key_age']),
    ];
    return [
      `read the config ${configId}`,
      `call ${id}::enclave::${calls.join(' and ')} with the capability that the config names`,
    ];
  },
  async run(input, chain) {
    const { Transaction } = await import('@mysten/sui/transactions');
    const { readConfig } = await import('sui-enclave/sui/objects');
    const { updateMaxKeyAge, updateName } = await import('sui-enclave/sui/transactions');
    const { checkContract, checkNotRetired } = await import('./contract.ts');
    const { name, maxKeyAgeMs } = read(input);
    const { enclave_package_id: enclavePackage = '', enclave_config_id: configId = '' } = input.args;
    const config = await readConfig(chain.client, configId);
    await checkContract(chain, config, { enclavePackage });
    checkNotRetired(config);
    const { application, capabilityId: capId } = config;
    const call = { enclavePackage, application, configId: config.id, capId };
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
      await input.deployments?.noteConfig(chain, outcome, config.id, (noted) => ({
        ...noted,
        ...(noted.config && { config: { ...noted.config, name } }),
      }));
    }
    return outcome;
  },
};

export const main = suiCommand(spec);

if (import.meta.main) await runAsProcess(main);
