/** Finds the people who may change what was audited, and the data that the host of an enclave sees. */
import { createHash } from 'node:crypto';
import { bcs } from '@mysten/sui/bcs';
import { GrpcTypes } from '@mysten/sui/grpc';
import { TransactionDataBuilder } from '@mysten/sui/transactions';
import { fromBase64, normalizeStructTag, normalizeSuiAddress } from '@mysten/sui/utils';
import { SuiError } from 'sui-enclave/sui/errors';
import { toSuiError } from 'sui-enclave/sui/failures';
import type { EnclaveConfig } from 'sui-enclave/sui/objects';
import type { Chain } from 'sui-enclave-cli/sui/chain';
import { withoutSelfAddress } from 'sui-enclave-devnet/bytecode/self_address';
import type { AuditedSource } from './source.ts';

/** A capability and its owner. */
export interface Holder {
  readonly what: 'EnclaveCap' | 'RegistrarCap' | 'UpgradeCap';
  /** Actions that the holder could take. */
  readonly could: string;
  /** The id of the capability; null if no capability is known. */
  readonly id: string | null;
  /** Address or other owner of the capability. */
  readonly holder: string;
}

const MAKE_IMMUTABLE = `${normalizeSuiAddress('0x2')}::package::make_immutable`;
/**
 * Maximum number of a capability's transactions that are read. The last transaction may have deleted the
 * capability.
 */
const MAX_CHANGES = 10;

const REGISTER = 'register enclaves of the same image';
/** Maximum number of listed registrars: thousands would push the rest of the report out of sight. */
const MAX_REGISTRARS = 50;

const UPGRADE_CAP = normalizeStructTag('0x2::package::UpgradeCap');
const UpgradeCap = bcs.struct('UpgradeCap', {
  id: bcs.Address,
  package: bcs.Address,
  version: bcs.u64(),
  policy: bcs.u8(),
});

/**
 * Finds the holders of all capabilities over a config and its packages.
 *
 * @param packages the original ids of the packages whose future versions contracts would trust too
 * @param capabilities ids of the application's further capabilities, which have other configs, or none yet
 * @throws SuiError
 */
export async function findHolders(
  config: EnclaveConfig,
  packages: readonly string[],
  chain: Chain,
  capabilities: readonly string[] = [],
): Promise<Holder[]> {
  const otherCapabilities = capabilities.filter((id) => id !== config.capabilityId);
  const unlistedCount = config.registrars.length - MAX_REGISTRARS;
  const originals = new Set(packages.map((id) => normalizeSuiAddress(id)));
  return [
    await findCapabilityHolder(
      'EnclaveCap',
      config.capabilityId,
      'allow another image, add registrars, end the config',
      chain,
    ),
    ...(await readInTurn(otherCapabilities, (id) =>
      findCapabilityHolder('EnclaveCap', id, 'create and change other configs of the application', chain),
    )),
    ...(await readInTurn(config.registrars.slice(0, MAX_REGISTRARS), (id) =>
      findCapabilityHolder('RegistrarCap', id, REGISTER, chain),
    )),
    ...(unlistedCount > 0
      ? [
          {
            what: 'RegistrarCap' as const,
            could: REGISTER,
            id: null,
            holder: `not looked up: ${unlistedCount} more`,
          },
        ]
      : []),
    ...(await readInTurn([...originals], (original) => findUpgradeHolder(original, chain))),
  ];
}

/** Reads values one after another, to spare the node. */
async function readInTurn<K, V>(keys: readonly K[], read: (key: K) => Promise<V>): Promise<V[]> {
  const values: V[] = [];
  for (const key of keys) values.push(await read(key));
  return values;
}

async function findCapabilityHolder(
  capability: Holder['what'],
  id: string,
  could: string,
  chain: Chain,
): Promise<Holder> {
  const object = await findObject(id, chain);
  return { what: capability, could, id, holder: object === undefined ? HIDDEN : describeOwner(object) };
}

const HIDDEN = 'not known: the node does not show it, so it is in another object, or was deleted';
const NO_RECORD = 'not known: the node has no record of the publication';
const WRAPPED =
  'not known: the publication left no capability on chain, and did not make the package immutable, so the capability may be in another object';

type FoundObject = NonNullable<Awaited<ReturnType<typeof findObject>>>;

function describeOwner({ owner }: FoundObject): string {
  if (owner.$kind === 'AddressOwner') return owner.AddressOwner;
  if (owner.$kind === 'ObjectOwner') return `the object ${owner.ObjectOwner}`;
  if (owner.$kind === 'Immutable') return 'everybody, but only to read it: it is frozen';
  return owner.$kind === 'Shared' ? 'everybody: it is shared' : `an owner of the kind ${owner.$kind}`;
}

async function findObject(objectId: string, chain: Chain) {
  try {
    const include = { content: true, objectBcs: true, previousTransaction: true } as const;
    return (await chain.client.core.getObject({ objectId, include })).object;
  } catch (error) {
    const suiError = error instanceof SuiError ? error : toSuiError(error);
    if (suiError.code === 'SUI_OBJECT_NOT_FOUND') return undefined;
    throw suiError;
  }
}

/**
 * Finds the owner of the right to upgrade a package. All versions of a package share one capability, which
 * its publication made. Returns nobody only if the publication or a later transaction proves it.
 *
 * @param original id of the first version
 * @throws SuiError
 */
export async function findUpgradeHolder(original: string, chain: Chain): Promise<Holder> {
  const could = `upgrade the package ${original}, whose older versions stay callable`;
  const createHolder = (id: string | null, text: string): Holder => ({
    what: 'UpgradeCap',
    could,
    id,
    holder: text,
  });
  const publication = await findPublication(original, chain);
  if (publication === undefined) return createHolder(null, NO_RECORD);
  const { commands, capabilities } = publication;
  const { modules } = await chain.package(original);
  const publications = commands.flatMap((command, index) => (publishes(command, modules) ? [index] : []));
  if (publications.length > 0 && publications.every((index) => isMadeImmutable(commands, index))) {
    return createHolder(null, 'nobody: the transaction that published the package made it immutable');
  }
  // A transaction may publish several packages, so several capabilities may be its results.
  const hiddenIds: string[] = [];
  for (const id of capabilities) {
    const object = await findObject(id, chain);
    if (object === undefined) hiddenIds.push(id);
    else if ((await readPackage(object.content, chain)) === original)
      return createHolder(id, describeOwner(object));
  }
  const [id] = hiddenIds;
  const publishCount = commands.filter(({ Publish }) => Publish).length;
  if (id === undefined || hiddenIds.length > 1 || publishCount > 1) {
    return createHolder(null, hiddenIds.length === 0 ? WRAPPED : HIDDEN);
  }
  const deletion = await findDeletion(id, chain);
  return createHolder(
    id,
    deletion === undefined
      ? HIDDEN
      : `nobody: the transaction ${deletion} deleted it, and so made the package immutable`,
  );
}

async function readPackage(content: Uint8Array, chain: Chain): Promise<string> {
  return await chain.originalPackage(UpgradeCap.parse(content).package);
}

type Commands = NonNullable<
  NonNullable<typeof bcs.TransactionData.$inferType.V1>['kind']['ProgrammableTransaction']
>['commands'];

interface Publication {
  readonly commands: Commands;
  /** Ids of the upgrade capabilities that the transaction left on chain as separate objects. */
  readonly capabilities: readonly string[];
}

/** Finds the publication; undefined if the node does not return the package's transaction. */
async function findPublication(original: string, chain: Chain): Promise<Publication | undefined> {
  const digest = (await findObject(original, chain))?.previousTransaction;
  if (digest === undefined || digest === null) return undefined;
  const include = { effects: true, objectTypes: true, bcs: true } as const;
  const transactionResult = await chain.client.core
    .getTransaction({ digest, include })
    .catch(() => undefined);
  const transaction = transactionResult?.Transaction;
  if (transaction?.bcs === undefined || transaction.digest !== digest) return undefined;
  if (TransactionDataBuilder.getDigestFromBytes(transaction.bcs) !== digest) return undefined;
  const { V1: data } = bcs.TransactionData.parse(transaction.bcs);
  const { changedObjects } = transaction.effects;
  const isPublication = changedObjects.some(
    ({ objectId, outputState }) =>
      outputState === 'PackageWrite' && normalizeSuiAddress(objectId) === normalizeSuiAddress(original),
  );
  if (data?.kind.ProgrammableTransaction === undefined || !isPublication) return undefined;
  const capabilities = changedObjects
    .filter(({ objectId, idOperation }) => {
      const type = transaction.objectTypes[objectId] ?? '';
      return idOperation === 'Created' && type.includes('::') && normalizeStructTag(type) === UPGRADE_CAP;
    })
    .map(({ objectId }) => normalizeSuiAddress(objectId));
  return { commands: data.kind.ProgrammableTransaction.commands, capabilities };
}

/** Returns whether a command publishes these modules, which on chain have the package's id instead of 0x0. */
function publishes({ Publish: publish }: Commands[number], modules: readonly Uint8Array[]): boolean {
  if (!publish) return false;
  const publishedDigests = publish.modules
    .map((module) => computeDigest(Buffer.from(toBytes(module))))
    .sort();
  const chainDigests = modules.map(computeDigest).sort();
  return (
    publishedDigests.length === chainDigests.length &&
    publishedDigests.every((digest, at) => digest === chainDigests[at])
  );
}

function toBytes(module: string | Iterable<number>): Uint8Array {
  return typeof module === 'string' ? fromBase64(module) : Uint8Array.from(module);
}

/** Computes the digest of a module. The digest of an unreadable module matches no other digest. */
function computeDigest(module: Uint8Array): string {
  const hash = (bytes: Uint8Array) => createHash('sha256').update(bytes).digest('hex');
  try {
    return hash(withoutSelfAddress(module).module);
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    return `as it is: ${hash(module)}`;
  }
}

/**
 * Returns whether a later command passes the capability of a publication to `0x2::package::make_immutable`.
 */
function isMadeImmutable(commands: Commands, publication: number): boolean {
  return commands.some(({ MoveCall: call }, index) => {
    if (!call || index <= publication || call.arguments.length !== 1) return false;
    const { package: id, module, function: name } = call;
    const [argument] = call.arguments;
    const [commandIndex, part] = argument?.NestedResult ?? [argument?.Result, 0];
    const target = `${normalizeSuiAddress(id)}::${module}::${name}`;
    return target === MAKE_IMMUTABLE && commandIndex === publication && part === 0;
  });
}

/**
 * Returns the digest of the transaction that deleted an object; undefined if the node shows no such
 * transaction.
 */
async function findDeletion(objectId: string, chain: Chain): Promise<string | undefined> {
  const { ChangedObject_IdOperation: Operation } = GrpcTypes;
  const predicate = { oneofKind: 'affectedObject', affectedObject: { objectId } } as const;
  const { responses } = chain.client.ledgerService.listTransactions({
    readMask: { paths: ['digest', 'effects'] },
    filter: { terms: [{ literals: [{ negated: false, predicate }] }] },
    options: { ordering: GrpcTypes.Ordering.DESCENDING, limit: MAX_CHANGES },
  });
  try {
    for await (const { transaction } of responses) {
      const { digest, effects } = transaction ?? {};
      const isDeleted = effects?.changedObjects.some(
        (changed) =>
          normalizeSuiAddress(changed.objectId ?? '') === objectId &&
          changed.idOperation === Operation.DELETED,
      );
      if (effects?.status?.success === true && isDeleted) return digest;
    }
  } catch (error) {
    // Few nodes list transactions. Without the list, the state of the capability stays unknown.
    toSuiError(error);
  }
  return undefined;
}

/** Describes the image's settings about secrets and about the host of an enclave, a line each. */
export function describeSettings({ manifest, environment }: AuditedSource): string[] {
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
      : 'Requests: the host of the enclave sees them and the answers, and may withhold them.',
    endpoints.length === 0
      ? 'The enclave can not call other services.'
      : `The enclave asks ${endpoints.join(', ')} by https: its host sees when, how often and how much.`,
    'The host can stop the enclave, delay it, and choose which requests reach it.',
  ];
}
