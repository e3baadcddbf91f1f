/**
 * Reads the other configs of an application: a contract that does not pin one config accepts the enclaves of
 * each.
 */
import { iterateEvents } from 'sui-enclave/sui';
import { NodeRefusedError, SuiError } from 'sui-enclave/sui/errors';
import { toSuiError } from 'sui-enclave/sui/failures';
import { acceptedImages, type EnclaveConfig, readConfig } from 'sui-enclave/sui/objects';
import { printable } from 'sui-enclave-cli/printable';
import { type Chain, fromNode } from 'sui-enclave-cli/sui/chain';
import { isSameImage } from 'sui-enclave-cli/sui/image_to_allow';
import { AuditError } from './errors.ts';

/** Maximum number of configs that are read, more than any application has. */
const MAX_CONFIGS = 200;

/** Time limit for the events of one kind, in milliseconds: the list of a hostile node might never end. */
const LIST_MS = 5 * 60_000;

/** The other configs of an application, and every capability that can create configs for it. */
export interface OtherConfigs {
  /** All configs but the audited one. */
  readonly configs: readonly EnclaveConfig[];
  /** Ids of the capabilities, including capabilities without a config. */
  readonly capabilities: readonly string[];
}

const createError = (why: string) => new AuditError('NOT_FULLY_CHECKED', why);

/**
 * Finds the other configs by the events of their creation.
 *
 * @param listMs time limit for the events of one kind, in milliseconds
 * @throws AuditError: NOT_FULLY_CHECKED, if the node does not list all of them; SuiError
 */
export async function findOtherConfigs(
  config: EnclaveConfig,
  chain: Chain,
  listMs = LIST_MS,
): Promise<OtherConfigs> {
  await checkHistory(config, chain);
  const [configs, capabilities] = [
    await readIds('EnclaveConfigCreated', config, chain, listMs),
    await readIds('EnclaveCapCreated', config, chain, listMs),
  ];
  if (!configs.has(config.id) || !capabilities.has(config.capabilityId)) {
    throw createError(
      'the node does not list the creation of this config, and so perhaps not the creation of other configs',
    );
  }
  configs.delete(config.id);
  return {
    configs: await Promise.all([...configs].map((id) => readOther(id, config, chain))),
    capabilities: [...capabilities],
  };
}

/**
 * Checks that the node still has the transaction that published the package with the application's type.
 * Nothing older is relevant.
 *
 * @throws AuditError: NOT_FULLY_CHECKED, if the node has pruned that transaction; SuiError
 */
async function checkHistory({ application }: EnclaveConfig, chain: Chain): Promise<void> {
  const [packageId = ''] = application.split('::');
  const prunedError = createError(
    `the node does not have the history since the publication of ${packageId}: pass a node that has it as --rpc-url`,
  );
  const { object } = await fromNode(
    chain.client.core.getObject({ objectId: packageId, include: { previousTransaction: true } }),
  );
  const digest = object.previousTransaction;
  if (digest === null) throw prunedError;
  const { ledgerService } = chain.client;
  const readMask = { paths: ['digest', 'checkpoint'] };
  const publication = await fromNode(ledgerService.getTransaction({ digest, readMask })).catch(
    (error: SuiError) => {
      throw error instanceof NodeRefusedError ? prunedError : error;
    },
  );
  const { response: service } = await fromNode(ledgerService.getServiceInfo({}));
  const { checkpoint } = publication.response.transaction ?? {};
  const { lowestAvailableCheckpoint: lowest } = service;
  if (checkpoint === undefined || lowest === undefined || lowest > checkpoint) throw prunedError;
}

/** @throws AuditError: NOT_FULLY_CHECKED, if the node lists no events, or too many; SuiError */
async function readIds(
  name: 'EnclaveConfigCreated' | 'EnclaveCapCreated',
  { enclavePackage, application }: EnclaveConfig,
  chain: Chain,
  listMs: number,
): Promise<Set<string>> {
  const ids = new Set<string>();
  const signal = AbortSignal.timeout(listMs);
  const query = { enclavePackage, application, name, signal };
  try {
    for await (const { data } of iterateEvents(chain.client, query)) {
      ids.add('configId' in data ? data.configId : data.capabilityId);
      if (ids.size > MAX_CONFIGS)
        throw createError(`there are more than ${MAX_CONFIGS} configs or capabilities`);
    }
  } catch (error) {
    if (signal.aborted) throw createError(`the node did not list the events within ${listMs / 1000} s`);
    if (!(error instanceof NodeRefusedError)) throw error;
    throw createError(`the node lists no events: ${printable(error.message)}`);
  }
  return ids;
}

/**
 * Reads another config of the application.
 *
 * @throws AuditError: NOT_FULLY_CHECKED, if the node does not show the config, although configs exist
 *   forever; SuiError
 */
async function readOther(id: string, config: EnclaveConfig, chain: Chain): Promise<EnclaveConfig> {
  let otherConfig: EnclaveConfig;
  try {
    otherConfig = await readConfig(chain.client, id);
  } catch (error) {
    const { code } = error instanceof SuiError ? error : toSuiError(error);
    if (code !== 'SUI_OBJECT_NOT_FOUND') throw error;
    throw createError(`the node does not show the config ${id}, which was created for this application`);
  }
  if (
    otherConfig.application !== config.application ||
    otherConfig.enclavePackage !== config.enclavePackage
  ) {
    throw createError(`the node returns the config ${id} as one of another application`);
  }
  return otherConfig;
}

/**
 * Returns whether contracts accept no enclave by this config, or only enclaves that the audited config allows
 * too.
 */
export function addsNothing(otherConfig: EnclaveConfig, { image }: EnclaveConfig, nowMs: number): boolean {
  return (
    otherConfig.isRetired ||
    acceptedImages(otherConfig, nowMs).every((accepted) => isSameImage(accepted, image))
  );
}

/** Describes the state and the registers of a config, for the report's table. */
export function describeOther(otherConfig: EnclaveConfig, nowMs: number): string {
  const { id, name, configVersion, isRetired } = otherConfig;
  const images = acceptedImages(otherConfig, nowMs).map(({ pcr0, pcr1, pcr2 }) =>
    [`PCR0 ${pcr0}`, `PCR1 ${pcr1}`, `PCR2 ${pcr2}`].join('\n'),
  );
  const state = isRetired ? ', which is retired' : '';
  return [
    `${id}, ${JSON.stringify(printable(name, 60))} at version ${configVersion}${state}`,
    ...images,
  ].join('\n');
}
