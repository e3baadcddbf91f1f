/**
 * Reads the ledger of the model of `sui-enclave dev-sui`, which the model lists for pages such as this one.
 */
import { RequestError, requestJson } from '../lib/request.ts';

export interface LedgerTransaction {
  readonly digest: string;
  readonly sender: string;
  readonly atMs: number;
  readonly calls: readonly string[];
  /** Reason of the failure; null if the transaction succeeded. */
  readonly failure: string | null;
  /** Net gas of the transaction, in MIST. */
  readonly gas: string;
}

export interface LedgerObject {
  readonly id: string;
  readonly type: string;
  readonly version: string;
  readonly owner: string;
}

export interface LedgerEvent {
  readonly type: string;
  readonly digest: string;
  readonly sender: string;
}

export interface Ledger {
  readonly counts: { readonly transactions: number; readonly objects: number; readonly events: number };
  readonly transactions: readonly LedgerTransaction[];
  readonly objects: readonly LedgerObject[];
  readonly events: readonly LedgerEvent[];
}

const MAX_LISTED = 200;

/** @throws RequestError; the signal's reason */
export async function readLedger(node: URL, signal: AbortSignal): Promise<Ledger> {
  const json = await requestJson(new URL('model/ledger', node), { signal }).catch((error: unknown) => {
    if (error instanceof RequestError && error.failure === 'refused') throw notAModel(node);
    throw error;
  });
  if (!isRecord(json) || json['model'] !== true) throw notAModel(node);
  const counts = isRecord(json['counts']) ? json['counts'] : {};
  return {
    counts: {
      transactions: numberIn(counts, 'transactions'),
      objects: numberIn(counts, 'objects'),
      events: numberIn(counts, 'events'),
    },
    transactions: records(json['transactions']).map((item) => ({
      digest: textIn(item, 'digest'),
      sender: textIn(item, 'sender'),
      atMs: numberIn(item, 'atMs'),
      calls: Array.isArray(item['calls']) ? item['calls'].slice(0, 20).map(String) : [],
      failure: item['failure'] === null ? null : textIn(item, 'failure'),
      gas: textIn(item, 'gas'),
    })),
    objects: records(json['objects']).map((item) => ({
      id: textIn(item, 'id'),
      type: textIn(item, 'type'),
      version: textIn(item, 'version'),
      owner: textIn(item, 'owner'),
    })),
    events: records(json['events']).map((item) => ({
      type: textIn(item, 'type'),
      digest: textIn(item, 'digest'),
      sender: textIn(item, 'sender'),
    })),
  };
}

function notAModel({ host }: URL): RequestError {
  const message = `${host} lists no ledger: only the model of sui-enclave dev-sui and play does. Name a config, and read that.`;
  return new RequestError('malformed', message);
}

type Json = Readonly<Record<string, unknown>>;

function isRecord(value: unknown): value is Json {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function records(value: unknown): Json[] {
  return Array.isArray(value) ? value.slice(0, MAX_LISTED).filter(isRecord) : [];
}

function textIn(item: Json, name: string): string {
  const value = item[name];
  return typeof value === 'string' ? value : '';
}

function numberIn(item: Json, name: string): number {
  const value = item[name];
  return typeof value === 'number' ? value : 0;
}
