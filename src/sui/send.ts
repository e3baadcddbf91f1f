/** Sends signed transactions, and looks for those whose send had no clear answer. Browser-safe. */
import type { ClientWithCoreApi, SuiClientTypes } from '@mysten/sui/client';
import { TransactionDataBuilder } from '@mysten/sui/transactions';
import type { SuiError } from './errors.ts';
import { failureOf, sendErrorOf } from './failures.ts';

type Include = SuiClientTypes.TransactionInclude;

/** A signed transaction. */
export interface SignedTransaction<Included extends Include = object> {
  /** BCS of its data. */
  readonly transaction: Uint8Array;
  /** In base64: the sender's, then the sponsor's if another address pays the gas. */
  readonly signatures: readonly string[];
  /** What the result holds, as the client's `executeTransaction` takes it. */
  readonly include?: Included;
  /** How long to look for the transaction after an unclear answer, in milliseconds. Default: 10,000. */
  readonly lookUpMs?: number;
  /** Ends the waiting. The transaction may be executed nonetheless. */
  readonly signal?: AbortSignal;
}

const LOOK_UP_MS = 10_000;

/**
 * Executes a signed transaction. When the node doesn't answer, or answers with what it also says of executed
 * transactions (the gRPC statuses ABORTED and RESOURCE_EXHAUSTED among them), it is asked for the digest until the
 * transaction shows, or the time is over. Sending the same bytes again is safe: the chain executes them once.
 *
 * @returns the client's description of the transaction
 * @throws SuiError: UnknownOutcomeError with the digest if the node doesn't know the transaction in time;
 *   MoveAbortError, SUI_EXECUTION or SUI_GAS when it was executed and failed
 */
export async function sendTransaction<Included extends Include = object>(
  client: ClientWithCoreApi,
  signed: SignedTransaction<Included>,
): Promise<SuiClientTypes.Transaction<Included>> {
  const result = await resultOfSending(client, signed);
  const executed = result.Transaction ?? result.FailedTransaction;
  if (executed.status.error !== null) throw failureOf(executed.status.error);
  return executed;
}

/** `sendTransaction`, which returns a failed transaction too. */
export async function resultOfSending<Included extends Include = object>(
  client: ClientWithCoreApi,
  { transaction, signatures, include, lookUpMs = LOOK_UP_MS, signal }: SignedTransaction<Included>,
): Promise<SuiClientTypes.TransactionResult<Included>> {
  const shared = { ...(include && { include }), ...(signal && { signal }) };
  try {
    return await client.core.executeTransaction({ transaction, signatures: [...signatures], ...shared });
  } catch (thrown) {
    const digest = TransactionDataBuilder.getDigestFromBytes(transaction);
    const error = sendErrorOf(thrown, digest);
    const found = await lookUp(client, error, { digest, timeout: lookUpMs, ...shared }).catch(() => null);
    if (found === null) throw error;
    return found;
  }
}

/** The transaction if it was executed nonetheless; null if the error leaves no doubt. Rejects if none is found. */
async function lookUp<Included extends Include>(
  client: ClientWithCoreApi,
  error: SuiError,
  options: SuiClientTypes.GetTransactionOptions<Included> & { readonly timeout: number },
): Promise<SuiClientTypes.TransactionResult<Included> | null> {
  if (error.code === 'SUI_UNKNOWN_OUTCOME') return await client.core.waitForTransaction(options);
  // An earlier send of these bytes may have been executed: then it was the transaction itself that changed its objects.
  const isChanged = error.code === 'SUI_OBJECT_CHANGED' || error.code === 'SUI_OBJECT_NOT_FOUND';
  return isChanged ? await client.core.getTransaction(options) : null;
}
