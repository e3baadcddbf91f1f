/** `npm run register_enclave`: registers the enclave at a URL, if the chain can be expected to accept it. */
import type { EnclaveConfig } from 'sui-enclave/sui/objects';
import { runAsProcess } from '../command.ts';
import { type Input, ROOT_OPTION, suiCommand } from './command.ts';
import { SuiCommandError } from './errors.ts';

async function read({ args, options }: Input) {
  const { applicationType } = await import('sui-enclave/sui/values');
  const {
    enclave_package_id: enclavePackage = '',
    app_package_id: appPackage = '',
    enclave_config_id: configId = '',
    enclave_url: url = '',
    module_name: moduleName = '',
    otw_name: witness = '',
  } = args;
  const application = applicationType(appPackage, moduleName, witness);
  return { enclavePackage, configId, url, application, registrarId: options['registrar'] };
}

/** @throws SuiCommandError: WOULD_ABORT */
function checkRegistrar({ id, registrars }: EnclaveConfig, registrarId: string | undefined): void {
  if (registrarId === undefined || registrars.includes(registrarId)) return;
  throw new SuiCommandError(
    'WOULD_ABORT',
    `${registrarId} may not register under the config ${id}: it was revoked, or is of another config`,
  );
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
  fromFile: ['enclave_package_id', 'app_package_id', 'enclave_config_id', 'module_name', 'otw_name'],
  options: {
    ...ROOT_OPTION,
    registrar: ['<id>', "register with this RegistrarCap of the sender, not with the config's capability"],
  },
  async plan(input) {
    const { enclavePackage, configId, url, application, registrarId } = await read(input);
    return [
      `ask ${url} for its attestation, with a fresh nonce`,
      'predict whether the chain verifies the document, and end here if it does not',
      `read the config ${configId}, and compare its registers with those of the document`,
      'compute the address of the enclave from its key, and end here if it is registered',
      'call 0x2::nitro_attestation::load_nitro_attestation with the document',
      registrarId === undefined
        ? `call ${enclavePackage}::enclave::register_enclave<${application}> with the capability that the config names`
        : `call ${enclavePackage}::enclave::register_enclave_as_registrar<${application}> with the registrar ${registrarId}`,
    ];
  },
  async run(input, chain) {
    const { readConfig } = await import('sui-enclave/sui/objects');
    const { addressOf } = await import('sui-enclave/sui/values');
    const { askForAttestation, attestedKeyOf } = await import('./attest.ts');
    const { checkContract, checkNotRetired, readRoots } = await import('./contract.ts');
    const { register } = await import('./registration.ts');
    const { enclavePackage, configId, url, application, registrarId: named } = await read(input);
    const registrarId = named === undefined ? undefined : addressOf('--registrar', named);
    const roots = await readRoots(chain, input.options);
    const attested = await askForAttestation(url, roots?.[0], chain);
    const config = await readConfig(chain.client, configId);
    await checkContract(chain, config, { enclavePackage, application });
    checkNotRetired(config);
    checkRegistrar(config, registrarId);
    const { deployments } = input;
    const expected = { image: config.image, roots, configId: config.id, deployments };
    const publicKey = await attestedKeyOf(attested, expected);
    const { document } = attested;
    const applicant = { enclavePackage, config, url, document, publicKey, deployments };
    return await register(chain, applicant, registrarId);
  },
});

if (import.meta.main) await runAsProcess(main);
