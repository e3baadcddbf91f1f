/**
 * `sui-enclave register_enclave`: registers the enclaves at some URLs, if the chain can be expected to accept
 * them.
 */
import type { EnclaveConfig } from 'sui-enclave/sui/objects';
import { runAsProcess } from '../command.ts';
import { enclaveUrl, objectId } from '../values.ts';
import { suiCommand } from './command.ts';
import { checkContract, checkNotRetired, readLatestConfig, readRoots } from './contract.ts';
import { SuiCommandError } from './errors.ts';
import { formatApplicationType, formerIds } from './ids.ts';
import { ROOT_OPTION } from './options.ts';
import { askAll, checkUrls, readCandidates, register } from './registration.ts';

/** @throws SuiCommandError: WOULD_ABORT */
function checkRegistrar({ id, registrars }: EnclaveConfig, registrarId: string | undefined): void {
  if (registrarId === undefined || registrars.includes(registrarId)) return;
  throw new SuiCommandError(
    'WOULD_ABORT',
    `${registrarId} may not register under the config ${id}: the registrar was revoked, or is of another config`,
  );
}

const URLS = { urls: { label: 'enclave_url', schema: enclaveUrl, repeated: true } } as const;

export const main = suiCommand({
  name: 'register_enclave',
  purpose:
    'Requests the attestation of each enclave, checks it, and registers the keys under the config, in one transaction. It\nsends nothing that the chain would refuse. It reports enclaves that are registered already, and does not register them again.\nUnder an open config, the sender needs no capability.',
  example: 'https://weather.example --network testnet',
  ids: ['enclavePackage', 'appPackage', 'configId', 'module', 'witness'],
  arguments: URLS,
  formerly: {
    ...formerIds('enclavePackage', 'appPackage', 'configId'),
    ...URLS,
    ...formerIds('module', 'witness'),
  },
  options: {
    ...ROOT_OPTION,
    registrar: {
      value: '<id>',
      help: "register with this RegistrarCap of the sender instead of the config's EnclaveCap",
      schema: objectId,
    },
  },
  check: ({ args }) => checkUrls(args.urls),
  async run({ ids, args, options, deployments }, chain) {
    const { enclavePackage, configId } = ids;
    const application = formatApplicationType(ids);
    const roots = await readRoots(chain, options.root);
    const documents = await askAll(args.urls, roots?.[0], chain);
    const config = await readLatestConfig(chain, configId, deployments);
    await checkContract(chain, config, { enclavePackage, application });
    checkNotRetired(config);
    checkRegistrar(config, options.registrar);
    const expected = { images: [config.image], roots, configId: config.id, deployments };
    const candidates = await readCandidates(documents, expected);
    return await register(chain, { enclavePackage, config, deployments }, candidates, options.registrar);
  },
});

if (import.meta.main) await runAsProcess(main);
