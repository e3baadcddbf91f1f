/** Who could change what the audit has seen, and what of it the host of an enclave sees. */
import { bcs } from '@mysten/sui/bcs';
import { normalizeStructTag, normalizeSuiAddress } from '@mysten/sui/utils';
import { SuiError } from 'sui-enclave/sui/errors';
import { suiErrorOf } from 'sui-enclave/sui/failures';
import type { EnclaveConfig } from 'sui-enclave/sui/objects';
import type { Chain } from '../sui/chain.ts';
import type { AuditedSource } from './source.ts';

/** A capability, and who has it. */
export interface Holder {
  readonly what: 'EnclaveCap' | 'RegistrarCap' | 'UpgradeCap';
  /** What they could do. */
  readonly could: string;
  /** The id of the capability; null where none is known. */
  readonly id: string | null;
  /** An address, or what else has it. */
  readonly holder: string;
}

const UPGRADE_CAP = normalizeStructTag('0x2::package::UpgradeCap');
const UpgradeCap = bcs.struct('UpgradeCap', {
  id: bcs.Address,
  package: bcs.Address,
  version: bcs.u64(),
  policy: bcs.u8(),
});

/** @throws SuiError */
export async function holdersOf(config: EnclaveConfig, chain: Chain): Promise<Holder[]> {
  const holders: Holder[] = [
    {
      what: 'EnclaveCap',
      could: 'allow another image, add registrars, end the config',
      id: config.capabilityId,
      holder: await holderOf(config.capabilityId, chain),
    },
  ];
  for (const id of config.registrars) {
    const holder = await holderOf(id, chain);
    holders.push({ what: 'RegistrarCap', could: 'register enclaves of the same image', id, holder });
  }
  const [application = ''] = config.application.split('::');
  for (const original of new Set([config.enclavePackage, normalizeSuiAddress(application)])) {
    const could = `upgrade the package ${original}, whose older versions stay callable`;
    holders.push({ what: 'UpgradeCap', could, ...(await upgradeCapOf(original, chain)) });
  }
  return holders;
}

async function holderOf(objectId: string, chain: Chain): Promise<string> {
  const object = await findObject(objectId, chain);
  if (object === undefined) return 'nobody, or another object: it was deleted, or is in one';
  const { owner } = object;
  if (owner.$kind === 'AddressOwner') return owner.AddressOwner;
  if (owner.$kind === 'ObjectOwner') return `the object ${owner.ObjectOwner}`;
  if (owner.$kind === 'Immutable') return 'everybody, by reference alone: it is frozen';
  return owner.$kind === 'Shared' ? 'everybody: it is shared' : `an owner of the kind ${owner.$kind}`;
}

async function findObject(objectId: string, chain: Chain) {
  try {
    const include = { content: true, previousTransaction: true } as const;
    return (await chain.client.core.getObject({ objectId, include })).object;
  } catch (error) {
    const known = error instanceof SuiError ? error : suiErrorOf(error);
    if (known.code === 'SUI_OBJECT_NOT_FOUND') return undefined;
    throw known;
  }
}

const UNKNOWN = 'not known: the node has no record of the publication';

/** The capability that the publication of a package made: the chain does not lead from a package to it. */
async function upgradeCapOf(original: string, chain: Chain): Promise<Pick<Holder, 'id' | 'holder'>> {
  const digest = (await findObject(original, chain))?.previousTransaction;
  if (digest === undefined || digest === null) return { id: null, holder: UNKNOWN };
  const include = { effects: true, objectTypes: true } as const;
  const found = await chain.client.core.getTransaction({ digest, include }).catch(() => undefined);
  const transaction = found?.Transaction;
  if (transaction === undefined) return { id: null, holder: UNKNOWN };
  const { changedObjects } = transaction.effects;
  if (!changedObjects.some(({ objectId }) => normalizeSuiAddress(objectId) === original)) {
    return { id: null, holder: UNKNOWN };
  }
  const caps = changedObjects.filter(({ objectId, idOperation }) => {
    const type = transaction.objectTypes[objectId] ?? '';
    return idOperation === 'Created' && type.includes('::') && normalizeStructTag(type) === UPGRADE_CAP;
  });
  // A transaction may publish several packages.
  for (const { objectId } of caps) {
    const object = await findObject(objectId, chain);
    const isOther = object !== undefined && (await originalOf(object.content, chain)) !== original;
    if (!isOther) return { id: objectId, holder: await holderOf(objectId, chain) };
  }
  return { id: null, holder: 'nobody: the package is immutable since its publication' };
}

async function originalOf(content: Uint8Array, chain: Chain): Promise<string> {
  return await chain.originalPackage(UpgradeCap.parse(content).package);
}

/** What the image's settings say about secrets and about the host of an enclave, a line each. */
export function settingsLines({ manifest, environment }: AuditedSource): string[] {
  const { secrets, provisioners = [], endpoints } = manifest;
  const isSealed = (name: string) => environment[name] === 'sealed';
  const secretLine =
    secrets.length === 0
      ? 'Secrets: none.'
      : isSealed('SECRETS') || provisioners.length > 0
        ? `Secrets (${secrets.join(', ')}): sealed to the enclave, so that its host does not see them. Who may send them: ${provisioners.join(', ') || 'anybody'}.`
        : `Secrets (${secrets.join(', ')}): the host of the enclave sees them, and chooses them.`;
  return [
    secretLine,
    isSealed('REQUESTS')
      ? 'Requests: sealed to the enclave, so that its host does not see them.'
      : 'Requests: the host of the enclave sees them and the answers, and may keep them back.',
    endpoints.length === 0
      ? 'The enclave can ask no other service.'
      : `The enclave asks ${endpoints.join(', ')} by https: its host sees when, how often and how much.`,
    'The host can stop the enclave, delay it, and choose which requests reach it.',
  ];
}
