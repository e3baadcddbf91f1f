/** `npm run rotate`: allows another image and registers an enclave of it, in one transaction. */
import { runAsProcess } from '../command.ts';
import { EXPERIMENTAL_FLAG, PCRS_OPTION, pcrsPath, ROOT_OPTION, suiCommand } from './command.ts';

export const main = suiCommand({
  name: 'rotate',
  purpose:
    'Allows the image of the PCR file in place of the one before, and registers the enclave at the URL, which must run\nit, in one transaction. All older enclaves are stale from then on: answers that they signed just before abort.\nDestroy them later.',
  positionals: ['enclave_package_id', 'enclave_config_id', 'enclave_url'],
  fromFile: ['enclave_package_id', 'enclave_config_id'],
  options: { ...PCRS_OPTION, ...ROOT_OPTION },
  flags: EXPERIMENTAL_FLAG,
  plan: ({ args, options }) => {
    const { enclave_package_id: id, enclave_config_id: configId, enclave_url: url } = args;
    return [
      `read the registers in ${pcrsPath(options)}`,
      `ask ${url} for its attestation, with a fresh nonce, and compare its registers with these`,
      `read the config ${configId}`,
      'call 0x2::nitro_attestation::load_nitro_attestation with the document',
      `call ${id}::enclave::begin_rotation and finish_rotation with the capability that the config names`,
    ];
  },
  async run({ args, options, flags, deployments }, chain) {
    const { Transaction } = await import('@mysten/sui/transactions');
    const { toHex } = await import('@mysten/sui/utils');
    const { enclaveAddress, readConfig } = await import('../../src/sui/objects.ts');
    const { beginRotation, finishRotation, loadAttestation } = await import('../../src/sui/transactions.ts');
    const { askForAttestation, attestedKeyOf } = await import('./attest.ts');
    const { checkContract, checkNotRetired, imageToAllow, readRoots } = await import('./contract.ts');
    const { enclave_package_id: enclavePackage = '', enclave_config_id: configId = '' } = args;
    const { enclave_url: url = '' } = args;
    const image = await imageToAllow(chain, { options, flags });
    const roots = await readRoots(chain, options);
    const attested = await askForAttestation(url, roots?.[0], chain);
    const publicKey = await attestedKeyOf(attested, image, roots);
    const config = await readConfig(chain.client, configId);
    await checkContract(chain, config, { enclavePackage });
    checkNotRetired(config);
    const { application, capabilityId: capId } = config;
    const call = { enclavePackage, application, configId: config.id, capId };
    const configVersion = config.configVersion + 1n;
    const tx = new Transaction();
    const document = loadAttestation(tx, attested.document);
    const rotation = beginRotation(tx, { ...call, image });
    finishRotation(tx, { ...call, rotation, document });
    const enclave = enclaveAddress(config, configVersion, publicKey);
    const outcome = await chain.submit(tx, {
      title: `allow another image for ${application}, and register the enclave at ${url}`,
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
  },
});

if (import.meta.main) await runAsProcess(main);
