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

/** Reads the ledger of a model. @throws RequestError; the signal's reason */
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
    transactions: records(json['transactions']).map((transaction) => ({
      digest: textIn(transaction, 'digest'),
      sender: textIn(transaction, 'sender'),
      atMs: numberIn(transaction, 'atMs'),
      calls: Array.isArray(transaction['calls']) ? transaction['calls'].slice(0, 20).map(String) : [],
      failure: transaction['failure'] === null ? null : textIn(transaction, 'failure'),
      gas: textIn(transaction, 'gas'),
    })),
    objects: records(json['objects']).map((object) => ({
      id: textIn(object, 'id'),
      type: textIn(object, 'type'),
      version: textIn(object, 'version'),
      owner: textIn(object, 'owner'),
    })),
    events: records(json['events']).map((event) => ({
      type: textIn(event, 'type'),
      digest: textIn(event, 'digest'),
      sender: textIn(event, 'sender'),
    })),
  };
}

function notAModel({ host }: URL): RequestError {
  const message = `${host} lists no ledger: only the model of sui-enclave dev-sui and play does. Name a config, and read it instead.`;
  return new RequestError('malformed', message);
}

type Json = Readonly<Record<string, unknown>>;

function isRecord(value: unknown): value is Json {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function records(value: unknown): Json[] {
  return Array.isArray(value) ? value.slice(0, MAX_LISTED).filter(isRecord) : [];
}

function textIn(source: Json, name: string): string {
  const value = source[name];
  return typeof value === 'string' ? value : '';
}

function numberIn(source: Json, name: string): number {
  const value = source[name];
  return typeof value === 'number' ? value : 0;
}
