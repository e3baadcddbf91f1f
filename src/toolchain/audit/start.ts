/**
 * Finds the config from anything that a stranger may know about an application. The audit does not trust the
 * result, but examines it.
 */
import { bcs } from '@mysten/sui/bcs';
import { normalizeSuiAddress } from '@mysten/sui/utils';
import { requestJson } from 'sui-enclave/client/http';
import { iterateEvents } from 'sui-enclave/sui';
import { NodeRefusedError, WrongObjectTypeError } from 'sui-enclave/sui/errors';
import { type EnclaveConfig, readConfig, readEnclave } from 'sui-enclave/sui/objects';
import { printable } from 'sui-enclave-cli/printable';
import { type Chain, fromNode } from 'sui-enclave-cli/sui/chain';
import { enclaveAt } from 'sui-enclave-cli/sui/contract';
import { enclaveUrl, objectId } from 'sui-enclave-cli/values';
import * as v from 'valibot';
import { AuditError } from './errors.ts';

const isUrl = (text: string) => /^https?:/i.test(text);
/** Base58 of 32 bytes. */
const DIGEST = /^[1-9A-HJ-NP-Za-km-z]{43,44}$/;

/** Schema of an audit's start: the id of a config, a package or an enclave, a digest, or an enclave's URL. */
export const start = v.union(
  [objectId, v.pipe(v.string(), v.regex(DIGEST)), v.pipe(enclaveUrl, v.check(isUrl))],
  'must be the id of a config, a package or an enclave (0x and 64 hexadecimal digits), the digest of a transaction, or the URL of an enclave',
);

export interface Start {
  readonly config: EnclaveConfig;
  /** Description of what the config was found from, such as a transaction; null if the config was named. */
  readonly from: string | null;
  /** The URL, if the text is one; otherwise empty. */
  readonly urls: readonly string[];
}

/** Maximum number of configs, more than any application has. */
const MAX_CONFIGS = 200;
/** Maximum number of a transaction's objects that are read. */
const MAX_OBJECTS = 500;

/** Path at which an enclave's host names the config. */
export const HINT_PATH = '.well-known/sui-enclave.json';
const Hint = v.object({ config: objectId });

const createUnknownError = (why: string) =>
  new AuditError('START_UNKNOWN', `${why}: ask the admin for the id of the config`);

/**
 * @param text as `start` accepts it
 * @throws AuditError: START_UNKNOWN, SEVERAL_CONFIGS; SuiError
 */
export async function findStart(text: string, chain: Chain): Promise<Start> {
  if (isUrl(text)) {
    const config = await readOnlyConfig(text, [await requestHint(text)], chain);
    return { config, from: `the host at ${printable(text)}`, urls: [text] };
  }
  if (!text.startsWith('0x')) {
    const config = await readOnlyConfig(text, await findConfigsByTransaction(text, chain), chain);
    return { config, from: `the transaction ${text}`, urls: [] };
  }
  try {
    return { config: await readConfig(chain.client, text), from: null, urls: [] };
  } catch (error) {
    if (!(error instanceof WrongObjectTypeError)) throw error;
  }
  const { type } = await chain.object(text);
  const subject = `the ${type === 'package' ? 'package' : 'object'} ${text}`;
  return {
    config: await readOnlyConfig(subject, await findConfigsByObject(text, type, chain), chain),
    from: subject,
    urls: [],
  };
}

/** Reads the only config of a list. @throws AuditError, if the list has none or several */
async function readOnlyConfig(subject: string, ids: Iterable<string>, chain: Chain): Promise<EnclaveConfig> {
  const configs = await Promise.all([...new Set(ids)].map((id) => readConfig(chain.client, id)));
  const [config, ...moreConfigs] = configs;
  if (config === undefined) throw createUnknownError(`no config was found for ${printable(subject)}`);
  if (moreConfigs.length === 0) return config;
  const lines = configs.map(({ id, name, application, isRetired }) => {
    const state = isRetired ? ', retired' : '';
    return `  ${id}  ${JSON.stringify(printable(name, 60))}, of ${application}${state}`;
  });
  throw new AuditError(
    'SEVERAL_CONFIGS',
    [
      `several configs were found for ${printable(subject)}: audit each that you use, by its id`,
      ...lines,
    ].join('\n'),
  );
}

/**
 * Requests the config that a host names. The host is not trusted: the audit then checks whether the key at
 * the URL is registered under this config.
 */
async function requestHint(url: string): Promise<string> {
  const answer = await requestJson(enclaveAt(url), HINT_PATH).catch(() => undefined);
  const hint = v.safeParse(Hint, answer?.json);
  if (hint.success) return hint.output.config;
  throw new AuditError(
    'START_UNKNOWN',
    `${printable(url)} does not name its config at /${HINT_PATH}: start from a package or a transaction of the application, and pass this URL as --url, or ask the admin for the id of the config`,
  );
}

/** @param type of the object */
async function findConfigsByObject(id: string, type: string, chain: Chain): Promise<Iterable<string>> {
  if (type === 'package') return await findConfigsByPackage(id, chain);
  if (/^0x\w+::enclave::EnclaveConfig</.test(type)) return [id];
  if (/^0x\w+::enclave::Enclave</.test(type)) return [(await readEnclave(chain.client, id)).configId];
  return [];
}

/**
 * Returns the configs that a transaction used, created or changed. If it touched no config, returns the
 * configs of the packages that it published or called.
 */
async function findConfigsByTransaction(digest: string, chain: Chain): Promise<Iterable<string>> {
  const include = { effects: true, bcs: true } as const;
  const answer = await fromNode(chain.client.core.getTransaction({ digest, include }));
  const { effects, bcs: bytes } = answer.Transaction ?? answer.FailedTransaction;
  const { inputs: objectInputs = [], commands = [] } =
    bcs.TransactionData.parse(bytes).V1.kind.ProgrammableTransaction ?? {};
  const inputs = objectInputs.flatMap(({ Object: object }) => {
    const { SharedObject: shared, ImmOrOwnedObject: owned, Receiving: received } = object ?? {};
    return (shared ?? owned ?? received)?.objectId ?? [];
  });
  const calledPackages = commands.flatMap(({ MoveCall: call }) => call?.package ?? []);
  const publishedObjects = effects.changedObjects.filter(({ outputState }) => outputState === 'PackageWrite');
  const changedObjects = effects.changedObjects.filter(({ outputState }) => outputState === 'ObjectWrite');
  const objects = [...inputs, ...changedObjects.map(({ objectId: id }) => id)].map((id) =>
    normalizeSuiAddress(id),
  );
  const configs = await findConfigsByObjects([...new Set(objects)].slice(0, MAX_OBJECTS), chain);
  if (configs.length > 0) return configs;
  const packages = [...publishedObjects.map(({ objectId: id }) => id), ...calledPackages].map((id) =>
    normalizeSuiAddress(id),
  );
  const ids = new Set<string>();
  for (const id of new Set(packages.filter(isOfUsers))) {
    for (const config of await findConfigsByPackage(id, chain)) ids.add(config);
  }
  return ids;
}

async function findConfigsByObjects(ids: string[], chain: Chain): Promise<string[]> {
  if (ids.length === 0) return [];
  const { objects } = await fromNode(chain.client.core.getObjects({ objectIds: ids }));
  const configs: string[] = [];
  for (const object of objects) {
    // The object may have been deleted since.
    if (object instanceof Error || object.type === 'package') continue;
    configs.push(...(await findConfigsByObject(object.objectId, object.type, chain)));
  }
  return configs;
}

/** Packages of Sui itself have short ids. */
const isOfUsers = (id: string) => !/^0x0{60}/.test(id);

/**
 * Returns the configs of a package's applications, by the events of the configs' creation. For the package
 * `enclave`, returns the configs of all applications that use it.
 *
 * @throws AuditError: START_UNKNOWN; SuiError
 */
async function findConfigsByPackage(packageId: string, chain: Chain): Promise<Iterable<string>> {
  const original = await chain.originalPackage(packageId);
  const { response } = await fromNode(chain.client.movePackageService.getPackage({ packageId }));
  const linked = (response.package?.linkage ?? []).flatMap(({ originalId }) => originalId ?? []);
  const candidates = [original, ...linked.map((id) => normalizeSuiAddress(id)).filter(isOfUsers)];
  const originals = new Map([[original, original]]);
  const ids = new Set<string>();
  for (const enclavePackage of new Set(candidates)) {
    try {
      const query = { enclavePackage, name: 'EnclaveConfigCreated' } as const;
      for await (const { application, data } of iterateEvents(chain.client, query)) {
        const [address = ''] = application.split('::');
        // A type's address is the id of the version that introduced the type.
        const typeOriginal = originals.get(address) ?? (await chain.originalPackage(address));
        originals.set(address, typeOriginal);
        if (typeOriginal === original || enclavePackage === original) ids.add(data.configId);
        if (ids.size > MAX_CONFIGS)
          throw createUnknownError(`more than ${MAX_CONFIGS} configs were found for ${packageId}`);
      }
    } catch (error) {
      if (!(error instanceof NodeRefusedError)) throw error;
      throw createUnknownError(
        `the node lists no events, from which an audit finds the configs of ${packageId}`,
      );
    }
  }
  return ids;
}
