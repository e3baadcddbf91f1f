/** `sui-enclave update_pcrs`: replaces the image that a config allows. */

import { Transaction } from '@mysten/sui/transactions';
import { beginOverlap, updatePcrs } from 'sui-enclave/sui/transactions';
import { runAsProcess } from '../command.ts';
import { RELEASE_OPTIONS } from '../releases/read_release.ts';
import { suiCommand } from './command.ts';
import { checkContract, checkNotRetired, overlapEnd, overlapField, readLatestConfig } from './contract.ts';
import { checkNeedsNoSecrets, checkSameSigner, imageToAllow, isSameImage } from './image_to_allow.ts';
import { EXPERIMENTAL_FLAG, OVERLAP_OPTION, PCRS_OPTION, SOURCE_OPTION } from './options.ts';

export const main = suiCommand({
  name: 'update_pcrs',
  purpose:
    'Allows the image of the PCR file instead of the previous one. Every enclave registered so far becomes stale: contracts\nreject its answers. Register an enclave of the new image right afterwards, or use rotate. With --overlap, contracts\naccept enclaves of the previous version for some minutes more: use it only if their image is still trusted.',
  example: '--pcrs out/nitro.pcrs --network testnet',
  ids: ['enclavePackage', 'configId'],
  arguments: {},
  options: { ...PCRS_OPTION, ...SOURCE_OPTION, ...RELEASE_OPTIONS, ...OVERLAP_OPTION, ...EXPERIMENTAL_FLAG },
  async run({ ids, options, deployments }, chain) {
    const allowed = await imageToAllow(chain, options);
    const { image, source, signer } = allowed;
    checkSameSigner(deployments, ids.configId, signer);
    const config = await readLatestConfig(chain, ids.configId, deployments);
    await checkContract(chain, config, ids);
    checkNotRetired(config);
    const { application, capabilityId: capId, configVersion } = config;
    if (isSameImage(config.image, image)) {
      return {
        status: 'unchanged',
        title: 'The config allows this image already: nothing to do.',
        fields: { config: config.id, configVersion, ...image },
      };
    }
    if (config.isOpen) checkNeedsNoSecrets(allowed);
    const untilMs = overlapEnd(config, options);
    const tx = new Transaction();
    const call = { ...ids, application, capId, image, source };
    if (untilMs === undefined) updatePcrs(tx, call);
    else beginOverlap(tx, { ...call, untilMs });
    const outcome = await chain.submit(tx, {
      title: `allow another image for ${application}`,
      fields: {
        config: config.id,
        configVersion: configVersion + 1n,
        capability: capId,
        before: config.image,
        after: image,
        ...(source && { source }),
        ...overlapField(untilMs),
      },
    });
    const version = Number(configVersion + 1n);
    await deployments?.recordConfig(chain, outcome, config.id, (application) => ({
      ...application,
      ...(application.config && { config: { ...application.config, version } }),
    }));
    return outcome;
  },
});

if (import.meta.main) await runAsProcess(main);
