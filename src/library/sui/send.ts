/**
 * Sends signed transactions, and looks up a transaction if the answer to its send is unclear. Browser-safe.
 */
import type { ClientWithCoreApi, SuiClientTypes } from '@mysten/sui/client';
import { TransactionDataBuilder } from '@mysten/sui/transactions';
import { pause } from '../waiting.ts';
import { NotVisibleError, ObjectNotFoundError, type SuiError } from './errors.ts';
import { toExecutionError, toSendError } from './failures.ts';
import { findMissingObject, listObjectIds } from './inputs.ts';
import { withProtoJson, withRuntimeError } from './runtime_errors.ts';
import { invalidValue } from './values.ts';

type Include = SuiClientTypes.TransactionInclude;

/** A signed transaction that can be sent. */
export interface SignedTransaction<Included extends Include = object> {
  /** BCS of the transaction's data. */
  readonly transaction: Uint8Array;
  /** Signatures in base64: the sender's, then the sponsor's if another address pays the gas. */
  readonly signatures: readonly string[];
  /** Parts of the transaction to return, as in the options of the client's `executeTransaction`. */
  readonly include?: Included;
  /**
   * Time limit in milliseconds for looking up the transaction after an unclear answer. Before the send, the
   * same limit applies to the wait for objects that the node does not show yet. Default: 10,000.
   */
  readonly lookUpMs?: number;
  /**
   * Time limit in milliseconds within which the node's reads must show the executed transaction. With 0, the
   * call does not wait for that. A transaction that is built before the reads show this one may name old
   * objects, and then fails. Default: 60,000.
   */
  readonly waitMs?: number;
  /** Ends the waiting. The transaction may be executed nonetheless. */
  readonly signal?: AbortSignal;
}

const LOOK_UP_MS = 10_000;
const WAIT_MS = 60_000;
/** The maximum delay of timers (WHATWG HTML, "Timers"). */
const MAX_MS = 2_147_483_647;
/**
 * Pause between the first two checks for missing objects, in milliseconds. Each further pause is twice as
 * long.
 */
const FIRST_PAUSE_MS = 100;

/**
 * Executes a signed transaction, and waits until the node shows it. Later reads and builds then see its
 * changes, unless another node answers them. If the node doesn't answer, or gives an answer that nodes also
 * give for executed transactions (such as the gRPC statuses ABORTED and RESOURCE_EXHAUSTED), this function
 * looks up the digest until the node shows the transaction, or `lookUpMs` is over. Sending the same bytes
 * again is safe: the chain executes them once.
 *
 * A transaction that names a missing object is not sent: validators would look for the object for more than a
 * minute, and the outcome would be unknown. Since reads lag behind execution, this function first waits up to
 * `lookUpMs` for the object.
 *
 * @returns the client's description of the transaction
 * @throws SuiError: ObjectNotFoundError before anything is sent; UnknownOutcomeError with the digest if the
 *   node doesn't know the transaction in time; MoveAbortError, MoveRuntimeError, SUI_EXECUTION or SUI_GAS if
 *   it was executed and failed; NotVisibleError with the digest if it succeeded, but the wait ended before
 *   the node showed it
 */
export async function sendTransaction<Included extends Include = object>(
  client: ClientWithCoreApi,
  { waitMs = WAIT_MS, transaction, ...options }: SignedTransaction<Included>,
): Promise<SuiClientTypes.Transaction<Included>> {
  const signed = { ...options, transaction: copyTransaction(transaction) };
  checkDuration('waitMs', waitMs);
  checkDuration('lookUpMs', signed.lookUpMs ?? LOOK_UP_MS);
  const answer = (await findInputs(client, signed)) ?? (await executeSigned(client, signed));
  const executed = answer.Transaction ?? answer.FailedTransaction;
  const { error: cause } = executed.status;
  const failure = cause === null ? null : toExecutionError(cause);
  if (waitMs > 0) {
    // The digest is computed here: the node could return the digest of another transaction.
    const digest = TransactionDataBuilder.getDigestFromBytes(signed.transaction);
    // A failed transaction also changes the gas coin, so this waits for it too.
    await waitUntilVisible(client, digest, { waitMs, signal: signed.signal }).catch((error: SuiError) => {
      throw failure ?? error;
    });
  }
  if (failure !== null) throw failure;
  return executed;
}

/**
 * Waits until the node shows every object that a transaction names.
 *
 * @returns the transaction if an object is missing because this transaction was executed before; else
 *   null
 * @throws SuiError: ObjectNotFoundError
 */
async function findInputs<Included extends Include>(
  client: ClientWithCoreApi,
  { transaction, include, lookUpMs = LOOK_UP_MS, signal }: SignedTransaction<Included>,
): Promise<SuiClientTypes.TransactionResult<Included> | null> {
  const objectIds = listObjectIds(transaction);
  const digest = TransactionDataBuilder.getDigestFromBytes(transaction);
  const deadline = performance.now() + lookUpMs;
  for (let pauseMs = FIRST_PAUSE_MS; ; pauseMs *= 2) {
    const missing = await findMissingObject(client, objectIds, signal);
    // If the signal is aborted, the send throws an error.
    if (missing === undefined || signal?.aborted) return null;
    const shared = { include: withProtoJson(include), ...(signal && { signal }) };
    const executed = await client.core.getTransaction({ digest, ...shared }).catch(() => null);
    if (executed !== null) return withRuntimeError(executed);
    const leftMs = deadline - performance.now();
    if (leftMs <= 0) {
      const advice = 'nothing was sent; build the transaction again, with objects that exist';
      throw new ObjectNotFoundError(missing, advice);
    }
    await pause(Math.min(pauseMs, leftMs), signal).catch(() => undefined);
  }
}

/** Waits until the node's reads show an executed transaction. @throws SuiError: NotVisibleError */
export async function waitUntilVisible(
  client: ClientWithCoreApi,
  digest: string,
  { waitMs, signal }: { readonly waitMs: number; readonly signal?: AbortSignal | undefined },
): Promise<void> {
  try {
    await client.core.waitForTransaction({ digest, timeout: waitMs, ...(signal && { signal }) });
  } catch (cause) {
    const reason = signal?.aborted ? 'the signal ended the wait' : `after ${waitMs} ms`;
    throw new NotVisibleError(digest, reason, { cause });
  }
}

/** Returns a copy of the bytes, since the caller may change the original while this module still reads it. */
function copyTransaction(bytes: unknown): Uint8Array {
  if (bytes instanceof Uint8Array) return new Uint8Array(bytes);
  throw invalidValue('"transaction" must be a Uint8Array with the BCS of the transaction\'s data');
}

function checkDuration(name: string, value: number): void {
  if (Number.isInteger(value) && value >= 0 && value <= MAX_MS) return;
  throw invalidValue(`"${name}" must be an integer from 0 to ${MAX_MS}, in milliseconds`);
}

/**
 * Sends a signed transaction, and looks it up after an unclear answer. Unlike `sendTransaction`, it does not
 * check for missing objects, also returns a failed transaction, and does not wait until the node shows it.
 */
export async function executeSigned<Included extends Include = object>(
  client: ClientWithCoreApi,
  {
    transaction,
    signatures,
    include,
    lookUpMs = LOOK_UP_MS,
    signal,
  }: Omit<SignedTransaction<Included>, 'waitMs'>,
): Promise<SuiClientTypes.TransactionResult<Included>> {
  const shared = { include: withProtoJson(include), ...(signal && { signal }) };
  const digest = TransactionDataBuilder.getDigestFromBytes(transaction);
  try {
    const request = { transaction, signatures: [...signatures], ...shared };
    return withRuntimeError(await client.core.executeTransaction(request));
  } catch (thrown) {
    const error = toSendError(thrown, digest);
    const executed = await lookUp(client, error, { digest, timeout: lookUpMs, ...shared }).catch(() => null);
    if (executed === null) throw error;
    return withRuntimeError(executed);
  }
}

/**
 * Looks up a transaction after an error. Returns null if the error leaves no doubt about the outcome. Rejects
 * if the transaction is not found.
 */
async function lookUp<Included extends Include>(
  client: ClientWithCoreApi,
  error: SuiError,
  options: SuiClientTypes.GetTransactionOptions<Included> & { readonly timeout: number },
): Promise<SuiClientTypes.TransactionResult<Included> | null> {
  if (error.code === 'SUI_UNKNOWN_OUTCOME') return await client.core.waitForTransaction(options);
  // An earlier send of these bytes may have been executed. In this case, the transaction itself changed
  // its objects.
  const isChanged = error.code === 'SUI_OBJECT_CHANGED' || error.code === 'SUI_OBJECT_NOT_FOUND';
  return isChanged ? await client.core.getTransaction(options) : null;
}
