/** `sui-enclave rotate`: allows another image and registers enclaves of it, in one transaction. */
import { Transaction } from '@mysten/sui/transactions';
import { toHex } from '@mysten/sui/utils';
import { enclaveAddress } from 'sui-enclave/sui/objects';
import {
  beginOverlap,
  beginRotation,
  finishRotation,
  loadAttestation,
  registerEnclave,
} from 'sui-enclave/sui/transactions';
import { runAsProcess } from '../command.ts';
import { RELEASE_OPTIONS } from '../releases/read_release.ts';
import { enclaveUrl } from '../values.ts';
import type { Chain } from './chain.ts';
import { suiCommand } from './command.ts';
import {
  checkContract,
  checkNotRetired,
  overlapEnd,
  overlapField,
  readLatestConfig,
  readRoots,
} from './contract.ts';
import {
  checkNeedsNoSecrets,
  checkSameSigner,
  type ImageToAllow,
  imageToAllow,
  isSameImage,
} from './image_to_allow.ts';
import { EXPERIMENTAL_FLAG, OVERLAP_OPTION, PCRS_OPTION, ROOT_OPTION, SOURCE_OPTION } from './options.ts';
import type { Outcome } from './outcome.ts';
import {
  askAll,
  type Candidate,
  checkUrls,
  describeCandidates,
  readCandidates,
  register,
  type Target,
  toFields,
} from './registration.ts';

export const main = suiCommand({
  name: 'rotate',
  purpose: `Allows the image of the PCR file instead of the previous one, and registers the enclaves at the URLs, which must run
that image, in one transaction. All older enclaves become stale: contracts reject even answers that they signed just
before. You can destroy them later. With --overlap, enclaves of the previous version become stale only after these minutes,
or at end_overlap: use it only if their image is still trusted. If the config already allows the image, rotate only
registers the enclaves that are not registered yet; with --again, it also makes all older enclaves stale.`,
  example: 'https://weather.example --pcrs out/nitro.pcrs --network testnet',
  ids: ['enclavePackage', 'configId'],
  arguments: {
    urls: { label: 'enclave_url', schema: enclaveUrl, repeated: true },
  },
  options: {
    ...PCRS_OPTION,
    ...ROOT_OPTION,
    ...SOURCE_OPTION,
    ...RELEASE_OPTIONS,
    ...OVERLAP_OPTION,
    ...EXPERIMENTAL_FLAG,
    again: { help: 'make all older enclaves stale even if the config allows the image already' },
  },
  check: ({ args }) => checkUrls(args.urls),
  async run({ ids, args, options, deployments }, chain) {
    const { enclavePackage, configId } = ids;
    const allowed = await imageToAllow(chain, options);
    const { image } = allowed;
    checkSameSigner(deployments, configId, allowed.signer);
    const roots = await readRoots(chain, options.root);
    const documents = await askAll(args.urls, roots?.[0], chain);
    const candidates = await readCandidates(documents, { images: [image], roots, configId, deployments });
    const config = await readLatestConfig(chain, configId, deployments);
    await checkContract(chain, config, ids);
    checkNotRetired(config);
    const target = { enclavePackage, config, deployments };
    if (isSameImage(config.image, image) && !options.again)
      return await registerAlone(chain, target, candidates);
    if (config.isOpen) checkNeedsNoSecrets(allowed);
    return await allowAndRegister(chain, target, candidates, allowed, overlapEnd(config, options));
  },
});

/** Registers enclaves of an image that the config allows already. All other enclaves stay accepted. */
async function registerAlone(
  chain: Chain,
  target: Target,
  candidates: readonly Candidate[],
): Promise<Outcome> {
  const outcome = await register(chain, target, candidates);
  const reason = 'The config allows this image already';
  if (outcome.status === 'unchanged') {
    const subject = candidates.length === 1 ? 'this enclave is' : 'these enclaves are';
    return { ...outcome, title: `${reason}, and ${subject} registered: nothing to do.` };
  }
  chain.notes.push(`${reason}: no other enclave becomes stale. With --again, all of them do.`);
  return outcome;
}

async function allowAndRegister(
  chain: Chain,
  { enclavePackage, config, deployments }: Target,
  candidates: readonly Candidate[],
  { image, source }: ImageToAllow,
  untilMs: number | undefined,
): Promise<Outcome> {
  const { application, capabilityId: capId, id: configId } = config;
  const call = { enclavePackage, application, configId, capId };
  const configVersion = config.configVersion + 1n;
  const tx = new Transaction();
  const documents = candidates.map(({ document }) => loadAttestation(tx, document));
  if (untilMs !== undefined) beginOverlap(tx, { ...call, image, source, untilMs });
  for (const [index, document] of documents.entries()) {
    // The first registration finishes the rotation. Afterwards the config allows the image, so the other
    // enclaves register as usual.
    if (index > 0 || untilMs !== undefined) registerEnclave(tx, { ...call, attestation: document });
    else {
      const rotation = beginRotation(tx, { ...call, image, source });
      finishRotation(tx, { ...call, rotation, document });
    }
  }
  const enclaves = candidates.map(({ url, publicKey }) => ({
    url,
    enclave: enclaveAddress(config, configVersion, publicKey),
    publicKey: toHex(publicKey),
  }));
  const outcome = await chain.submit(tx, {
    title: `allow the image for ${application}, and register ${describeCandidates(candidates)}`,
    fields: {
      ...toFields(enclaves),
      config: configId,
      configVersion,
      capability: capId,
      before: config.image,
      after: image,
      ...(source && { source }),
      ...overlapField(untilMs),
    },
  });
  const recordedEnclaves = enclaves.map(({ enclave, url }) => ({ id: enclave, url }));
  await deployments?.recordEnclaves(chain, outcome, { id: configId, configVersion }, recordedEnclaves);
  return outcome;
}

if (import.meta.main) await runAsProcess(main);
