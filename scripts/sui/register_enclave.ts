/** `npm run register_enclave`: registers the enclave at a URL, once the chain can be expected to accept it. */

import { Transaction } from '@mysten/sui/transactions';
import { toHex } from '@mysten/sui/utils';
import { predictRegistration, verifyAttestation } from '../../src/attestation/index.ts';
import { attestedKey, fetchAttestation } from '../../src/client/attestation.ts';
import { EnclaveError } from '../../src/errors.ts';
import { findRegistration, readConfig } from '../../src/sui/objects.ts';
import { registerEnclave } from '../../src/sui/transactions.ts';
import { applicationType } from '../../src/sui/values.ts';
import { type Input, runCommand } from './command.ts';
import { checkContract, enclaveAt, ROOT_OPTION, readRoots } from './contract.ts';

/** The chain would abort: nothing was sent. */
class WouldAbortError extends EnclaveError {
  readonly code = 'WOULD_ABORT';
}

function read({ args }: Input) {
  const {
    enclave_package_id: enclavePackage = '',
    app_package_id: appPackage = '',
    enclave_config_id: configId = '',
    enclave_url: url = '',
    module_name: moduleName = '',
    otw_name: witness = '',
  } = args;
  return { enclavePackage, configId, url, application: applicationType(appPackage, moduleName, witness) };
}

await runCommand({
  name: 'register_enclave',
  purpose:
    'Asks the enclave for its attestation and registers its key under the config. What the chain would refuse is not\nsent; an enclave that is registered already is reported, not registered again.',
  positionals: [
    'enclave_package_id',
    'app_package_id',
    'enclave_config_id',
    'enclave_url',
    'module_name',
    'otw_name',
  ],
  options: ROOT_OPTION,
  plan(input) {
    const { enclavePackage, configId, url, application } = read(input);
    return [
      `ask ${url} for its attestation, with a fresh nonce`,
      'predict whether the chain verifies the document, and end here if it does not',
      `read the config ${configId}, and compare its registers with those of the document`,
      'compute the address of the enclave from its key, and end here if it is registered',
      'call 0x2::nitro_attestation::load_nitro_attestation with the document',
      `call ${enclavePackage}::enclave::register_enclave<${application}> with the capability that the config names`,
    ];
  },
  async run(input, chain) {
    const { enclavePackage, configId, url, application } = read(input);
    const roots = await readRoots(input.options);
    const { document: attestation, nonce } = await fetchAttestation(enclaveAt(url));
    const now = Date.now();
    const { accepted, abort, reason, until } = await predictRegistration(attestation, now, roots?.[0]);
    if (!accepted) {
      throw new WouldAbortError(
        `load_nitro_attestation would abort with ${abort}: ${reason}. Nothing was sent`,
      );
    }
    chain.notes.push(`The chain can be expected to verify the document until ${until?.toISOString()}.`);

    const config = await readConfig(chain.client, configId);
    await checkContract(chain, config, { enclavePackage, application });
    const policy = { images: [config.image], nonce };
    const publicKey = attestedKey(
      await verifyAttestation(attestation, { now, policy, ...(roots && { roots }) }),
    );
    const { enclaveId, state } = await findRegistration(chain.client, config, publicKey);
    const fields = {
      enclave: enclaveId,
      publicKey: toHex(publicKey),
      config: config.id,
      version: config.version,
    };
    if (state === 'registered') {
      return { status: 'unchanged', title: 'This enclave is registered already: nothing to do.', fields };
    }
    if (state === 'destroyed') {
      throw new WouldAbortError(
        `register_enclave would abort: the key ${fields.publicKey} was registered at version ${config.version} and destroyed. Restart the enclave for a new key`,
      );
    }
    const tx = new Transaction();
    registerEnclave(tx, {
      enclavePackage,
      application: config.application,
      configId: config.id,
      capId: config.capabilityId,
      attestation,
    });
    return await chain.submit(tx, {
      title: `register the enclave at ${url} for ${config.application}`,
      fields: { ...fields, capability: config.capabilityId },
    });
  },
});
