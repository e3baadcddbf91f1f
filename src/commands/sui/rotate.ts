/** `npm run rotate`: allows another image and registers an enclave of it, in one transaction. */
import type { Image } from 'sui-enclave/attestation';
import { runAsProcess } from '../command.ts';
import type { Chain } from './chain.ts';
import { EXPERIMENTAL_FLAG, PCRS_OPTION, pcrsPath, ROOT_OPTION, suiCommand } from './command.ts';
import type { Outcome } from './outcome.ts';
import type { Applicant } from './registration.ts';

export const main = suiCommand({
  name: 'rotate',
  purpose:
    'Allows the image of the PCR file in place of the one before, and registers the enclave at the URL, which must run\nit, in one transaction. All older enclaves are stale from then on: answers that they signed just before abort.\nDestroy them later. Where the config allows the image already, it registers the enclave if need be, and no other\nbecomes stale; with --again they do.',
  positionals: ['enclave_package_id', 'enclave_config_id', 'enclave_url'],
  fromFile: ['enclave_package_id', 'enclave_config_id'],
  options: { ...PCRS_OPTION, ...ROOT_OPTION },
  flags: {
    ...EXPERIMENTAL_FLAG,
    again: 'make all older enclaves stale even if the config allows the image already',
  },
  plan: ({ args, options, flags }) => {
    const { enclave_package_id: id, enclave_config_id: configId, enclave_url: url } = args;
    return [
      `read the registers in ${pcrsPath(options)}`,
      `ask ${url} for its attestation, with a fresh nonce, and compare its registers with these`,
      `read the config ${configId}`,
      ...(flags.has('again')
        ? []
        : ['if it has these registers, register the enclave unless it is registered, and end here']),
      'call 0x2::nitro_attestation::load_nitro_attestation with the document',
      `call ${id}::enclave::begin_rotation and finish_rotation with the capability that the config names`,
    ];
  },
  async run({ args, options, flags, deployments }, chain) {
    const { readConfig } = await import('sui-enclave/sui/objects');
    const { addressOf } = await import('sui-enclave/sui/values');
    const { askForAttestation, attestedKeyOf } = await import('./attest.ts');
    const { checkContract, checkNotRetired, imageToAllow, isSameImage, readRoots } = await import(
      './contract.ts'
    );
    const { enclave_package_id: enclavePackage = '', enclave_url: url = '' } = args;
    const configId = addressOf('<enclave_config_id>', args['enclave_config_id'] ?? '');
    const image = await imageToAllow(chain, { options, flags });
    const roots = await readRoots(chain, options);
    const attested = await askForAttestation(url, roots?.[0], chain);
    const publicKey = await attestedKeyOf(attested, { image, roots, configId, deployments });
    const config = await readConfig(chain.client, configId);
    await checkContract(chain, config, { enclavePackage });
    checkNotRetired(config);
    const { document } = attested;
    const applicant = { enclavePackage, config, url, document, publicKey, deployments };
    const isAllowed = isSameImage(config.image, image);
    return isAllowed && !flags.has('again')
      ? await registerAlone(chain, applicant)
      : await allowAndRegister(chain, applicant, image);
  },
});

/** The config allows the image already: every other enclave goes on. */
async function registerAlone(chain: Chain, applicant: Applicant): Promise<Outcome> {
  const { register } = await import('./registration.ts');
  const outcome = await register(chain, applicant);
  const allows = 'The config allows this image already';
  if (outcome.status === 'unchanged') {
    return { ...outcome, title: `${allows}, and this enclave is registered: nothing to do.` };
  }
  chain.notes.push(`${allows}: no other enclave becomes stale. With --again, all of them do.`);
  return outcome;
}

async function allowAndRegister(
  chain: Chain,
  { enclavePackage, config, url, document, publicKey, deployments }: Applicant,
  image: Image,
): Promise<Outcome> {
  const { Transaction } = await import('@mysten/sui/transactions');
  const { toHex } = await import('@mysten/sui/utils');
  const { enclaveAddress } = await import('sui-enclave/sui/objects');
  const { beginRotation, finishRotation, loadAttestation } = await import('sui-enclave/sui/transactions');
  const { application, capabilityId: capId } = config;
  const call = { enclavePackage, application, configId: config.id, capId };
  const configVersion = config.configVersion + 1n;
  const tx = new Transaction();
  const loaded = loadAttestation(tx, document);
  const rotation = beginRotation(tx, { ...call, image });
  finishRotation(tx, { ...call, rotation, document: loaded });
  const enclave = enclaveAddress(config, configVersion, publicKey);
  const outcome = await chain.submit(tx, {
    title: `allow the image for ${application}, and register the enclave at ${url}`,
    fields: {
      enclave,
      publicKey: toHex(publicKey),
      config: config.id,
      configVersion,
      capability: capId,
      before: config.image,
      after: image,
    },
  });
  await deployments?.noteEnclave(chain, outcome, { id: config.id, configVersion }, { id: enclave, url });
  return outcome;
}

if (import.meta.main) await runAsProcess(main);
