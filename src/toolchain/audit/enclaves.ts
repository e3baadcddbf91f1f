/** Requests a fresh attestation at each URL, and compares the attested keys with the chain. */
import { toHex } from '@mysten/sui/utils';
import { AttestationError, type Image, verifyAttestation } from 'sui-enclave/attestation';
import { fetchAttestation, getAttestedKey } from 'sui-enclave/client/attestation';
import { ClientError } from 'sui-enclave/client/errors';
import { requestJson } from 'sui-enclave/client/http';
import {
  acceptedImages,
  type Enclave,
  type EnclaveConfig,
  findRegistration,
  isKeyTooOld,
  isStale,
  listEnclaves,
  readEnclave,
} from 'sui-enclave/sui/objects';
import { quantity } from 'sui-enclave/wording';
import { printable } from 'sui-enclave-cli/printable';
import type { Chain } from 'sui-enclave-cli/sui/chain';
import { enclaveAt } from 'sui-enclave-cli/sui/contract';
import { type AuditCode, AuditError } from './errors.ts';

/** Findings about one key or fault at a URL. */
export interface AskedEnclave {
  readonly url: string;
  /** Public key in hexadecimal; null if no attested key belongs to the fault. */
  readonly publicKey: string | null;
  /** The id of the enclave's object on chain, and the time of its registration. */
  readonly enclave: { readonly id: string; readonly registeredAt: Date } | null;
  /** Reason why the audit does not accept the key or the server; null if it accepts the key. */
  readonly fault: AuditError | null;
}

export interface Enclaves {
  readonly asked: readonly AskedEnclave[];
  /** Enclaves that contracts accept, but that did not answer. */
  readonly silent: readonly Enclave[];
  readonly accepted: readonly Enclave[];
}

/** Maximum number of requests to a URL, at which several enclaves may answer in turn. */
const MAX_REQUESTS = 16;

/** Time limit for the list of all enclaves, in milliseconds: the list of a hostile node might never end. */
const LIST_MS = 5 * 60_000;

/**
 * Requests attestation at each URL.
 *
 * @param listMs time limit for the list of enclaves, in milliseconds
 * @throws AuditError: NOT_FULLY_CHECKED, if the list does not end in time; SuiError
 */
export async function askEnclaves(
  urls: readonly string[],
  config: EnclaveConfig,
  chain: Chain,
  roots: readonly Uint8Array[] | undefined,
  listMs = LIST_MS,
): Promise<Enclaves> {
  const now = Date.now();
  const signal = AbortSignal.timeout(listMs);
  const { enclaves } = await listEnclaves(chain.client, config, { signal }).catch((error: unknown) => {
    if (!signal.aborted) throw error;
    throw new AuditError(
      'NOT_FULLY_CHECKED',
      `the node did not list the enclaves within ${quantity(listMs / 1000, 'second')}`,
    );
  });
  const accepted = enclaves.filter(
    (enclave) => !config.isRetired && !isStale(enclave, config, now) && !isKeyTooOld(enclave, config, now),
  );
  const requests = Math.min(MAX_REQUESTS, 2 * Math.max(1, accepted.length));
  const askedEnclaves: AskedEnclave[] = [];
  for (const url of [...new Set(urls)]) {
    askedEnclaves.push(...(await askUrl({ url, requests, config, chain, roots, enclaves })));
  }
  const answeredIds = new Set(askedEnclaves.map(({ enclave }) => enclave?.id));
  return { asked: askedEnclaves, accepted, silent: accepted.filter(({ id }) => !answeredIds.has(id)) };
}

interface Question {
  readonly url: string;
  readonly requests: number;
  readonly config: EnclaveConfig;
  readonly chain: Chain;
  readonly roots: readonly Uint8Array[] | undefined;
  /** All registered enclaves of the config. */
  readonly enclaves: readonly Enclave[];
}

/** Requests attestation several times. Lists each attested key, and each code of a fault, once. */
async function askUrl(question: Question): Promise<AskedEnclave[]> {
  const { url, requests } = question;
  const enclavesByKey = new Map<string, AskedEnclave>();
  const claimed = new Set<string>();
  for (let request = 0; request < requests; request += 1) {
    try {
      const publicKey = await attest(question);
      claimed.add(await requestClaimedKey(url));
      const hex = toHex(publicKey);
      if (!enclavesByKey.has(hex)) enclavesByKey.set(hex, await compareWithChain(publicKey, question));
    } catch (error) {
      const fault = toFault(error, url);
      enclavesByKey.set(fault.code, { url, publicKey: null, enclave: null, fault });
      // A further request would take just as long.
      if (fault.code === 'NOT_FULLY_CHECKED') break;
    }
  }
  const missingKey = [...claimed].find((key) => !enclavesByKey.has(key));
  // If several enclaves share the URL, the enclave that named its key may not be the one that attested.
  if (missingKey !== undefined && !enclavesByKey.has('NOT_FULLY_CHECKED')) {
    const fault = new AuditError(
      'KEY_DIFFERS',
      `${printable(url)} says that it signs with the key ${printable(missingKey, 64)}, which it does not attest`,
    );
    enclavesByKey.set(fault.code, { url, publicKey: null, enclave: null, fault });
  }
  return [...enclavesByKey.values()];
}

/** @throws AttestationError, ClientError */
async function attest({ url, config, roots }: Question): Promise<Uint8Array> {
  const { document, nonce } = await fetchAttestation(enclaveAt(url));
  const now = Date.now();
  const images: readonly Image[] = acceptedImages(config, now);
  const policy = { images, nonce };
  return getAttestedKey(await verifyAttestation(document, { now, policy, ...(roots && { roots }) }));
}

/** Returns the key with which the server says that it signs. */
async function requestClaimedKey(url: string): Promise<string> {
  const { json } = await requestJson(enclaveAt(url), 'health_check');
  const { pk } = Object(json) as { pk?: unknown };
  return typeof pk === 'string' ? pk.replace(/^0x/, '').toLowerCase() : '';
}

async function compareWithChain(
  publicKey: Uint8Array,
  { url, config, chain, enclaves }: Question,
): Promise<AskedEnclave> {
  const hex = toHex(publicKey);
  const attested = { url, publicKey: hex };
  const refuse = (code: AuditCode, why: string): AskedEnclave => ({
    ...attested,
    enclave: null,
    fault: new AuditError(code, `the key ${hex} at ${printable(url)} ${why}`),
  });
  const { state, enclaveId } = await findRegistration(chain.client, config, publicKey);
  if (state !== 'registered') {
    const older = enclaves.find((enclave) => toHex(enclave.publicKey) === hex);
    if (older !== undefined) {
      const at = `${older.configVersion}, and the config is at ${config.configVersion}`;
      return refuse('ENCLAVE_STALE', `was registered at version ${at}`);
    }
    const suffix = state === 'destroyed' ? ' any more' : '';
    return refuse('KEY_NOT_REGISTERED', `is not registered under the config${suffix}`);
  }
  const enclave = await readEnclave(chain.client, enclaveId);
  // The enclave's id is derived from its key: a node that returns another object lies.
  if (toHex(enclave.publicKey) !== hex || enclave.configId !== config.id) {
    return refuse('KEY_DIFFERS', `is not the key of its enclave on chain, ${enclaveId}`);
  }
  if (isKeyTooOld(enclave, config, Date.now())) {
    return refuse('ENCLAVE_STALE', 'is older than the config allows');
  }
  const registeredAt = new Date(Number(enclave.registeredAtMs));
  return { ...attested, enclave: { id: enclaveId, registeredAt }, fault: null };
}

const CODES_OF_ATTESTATION: Readonly<Record<string, AuditCode>> = {
  CHAIN_ROOT: 'ROOT_UNKNOWN',
  POLICY_DEBUG: 'ENCLAVE_DEBUG',
  POLICY_PCRS: 'ENCLAVE_REGISTERS',
};

/**
 * Returns the reason why the server is not trusted. @throws the error itself, if it says nothing about the
 * server
 */
function toFault(error: unknown, url: string): AuditError {
  const where = printable(url);
  if (error instanceof AttestationError) {
    const code = CODES_OF_ATTESTATION[error.code] ?? 'ATTESTATION_INVALID';
    const [first = '', ...moreLines] = error.message.split('\n').map((line) => printable(line, 300));
    const why = [first.replace(/:$/, ''), ...moreLines].join('\n');
    return new AuditError(code, `${where}: ${error.code}: ${why}`);
  }
  if (!(error instanceof ClientError)) throw error;
  const silentCodes = ['CLIENT_UNREACHABLE', 'CLIENT_REFUSED'];
  if (silentCodes.includes(error.code)) {
    return new AuditError('NOT_FULLY_CHECKED', `${where} does not answer: ${printable(error.message)}`);
  }
  return new AuditError('ATTESTATION_INVALID', `${where}: ${error.code}: ${printable(error.message)}`);
}
