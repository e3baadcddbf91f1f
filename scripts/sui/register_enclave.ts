/** `npm run register_enclave`: registers the enclave at a URL, if the chain can be expected to accept it. */

import type { EnclaveConfig } from '../../src/sui/objects.ts';
import { runAsProcess } from '../command.ts';
import type { Chain } from './chain.ts';
import { type Input, ROOT_OPTION, suiCommand } from './command.ts';
import { SuiCommandError } from './errors.ts';

async function read({ args }: Input) {
  const { applicationType } = await import('../../src/sui/values.ts');
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

interface Attested {
  readonly document: Uint8Array;
  readonly nonce: Uint8Array;
  /** The time at which it was verified, in milliseconds since 1970. */
  readonly now: number;
}

/** The enclave's document, if the chain can be expected to verify it. @throws SuiCommandError: WOULD_ABORT */
async function askForAttestation(url: string, root: Uint8Array | undefined, chain: Chain): Promise<Attested> {
  const { predictRegistration } = await import('../../src/attestation/index.ts');
  const { fetchAttestation } = await import('../../src/client/attestation.ts');
  const { enclaveAt } = await import('./contract.ts');
  const { document, nonce } = await fetchAttestation(enclaveAt(url));
  const now = Date.now();
  const { accepted, abort, reason, until } = await predictRegistration(document, now, root);
  if (!accepted) {
    throw new SuiCommandError(
      'WOULD_ABORT',
      `load_nitro_attestation would abort with ${abort}: ${reason}. Nothing was sent`,
    );
  }
  chain.notes.push(`The chain can be expected to verify the document until ${until?.toISOString()}.`);
  return { document, nonce, now };
}

/** The key that the document attests, for the image of the config. @throws AttestationError */
async function verify(
  { document, nonce, now }: Attested,
  { image }: EnclaveConfig,
  roots: Uint8Array[] | undefined,
): Promise<Uint8Array> {
  const { verifyAttestation } = await import('../../src/attestation/index.ts');
  const { attestedKey } = await import('../../src/client/attestation.ts');
  const policy = { images: [image], nonce };
  return attestedKey(await verifyAttestation(document, { now, policy, ...(roots && { roots }) }));
}

export const main = suiCommand({
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
  async plan(input) {
    const { enclavePackage, configId, url, application } = await read(input);
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
    const { Transaction } = await import('@mysten/sui/transactions');
    const { toHex } = await import('@mysten/sui/utils');
    const { findRegistration, readConfig } = await import('../../src/sui/objects.ts');
    const { registerEnclave } = await import('../../src/sui/transactions.ts');
    const { checkContract, readRoots } = await import('./contract.ts');
    const { enclavePackage, configId, url, application } = await read(input);
    const roots = await readRoots(input.options);
    const attested = await askForAttestation(url, roots?.[0], chain);
    const config = await readConfig(chain.client, configId);
    await checkContract(chain, config, { enclavePackage, application });
    const publicKey = await verify(attested, config, roots);
    const { enclaveId, state } = await findRegistration(chain.client, config, publicKey);
    const fields = {
      enclave: enclaveId,
      publicKey: toHex(publicKey),
      config: config.id,
      configVersion: config.configVersion,
    };
    if (state === 'registered') {
      return { status: 'unchanged', title: 'This enclave is registered already: nothing to do.', fields };
    }
    if (state === 'destroyed') {
      throw new SuiCommandError(
        'WOULD_ABORT',
        `register_enclave would abort: the key ${fields.publicKey} was registered at version ${config.configVersion} and destroyed. Restart the enclave for a new key`,
      );
    }
    const tx = new Transaction();
    registerEnclave(tx, {
      enclavePackage,
      application: config.application,
      configId: config.id,
      capId: config.capabilityId,
      attestation: attested.document,
    });
    return await chain.submit(tx, {
      title: `register the enclave at ${url} for ${config.application}`,
      fields: { ...fields, capability: config.capabilityId },
    });
  },
});

if (import.meta.main) await runAsProcess(main);
