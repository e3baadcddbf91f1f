/** Builds transactions, and says why one would fail. Browser-safe. */
import { type ClientWithCoreApi, SimulationError } from '@mysten/sui/client';
import type { Transaction } from '@mysten/sui/transactions';
import { toExecutionError, toSuiError } from './failures.ts';
import { isAmbiguous, withNodesWords, withRuntimeError } from './runtime_errors.ts';

/** Options that `buildTransaction` shares with `Transaction.build`. */
export interface BuildOptions {
  /** Whether the result is the transaction's kind alone, for a sponsor. Default: false. */
  readonly onlyTransactionKind?: boolean;
}

/**
 * `transaction.build({ client })`, with an error that says what to do. Where the client leaves open whether a
 * function aborted with 0 or an instruction had no result, this asks the node a second time.
 *
 * @returns BCS of the transaction's data, or of its kind
 * @throws SuiError: MoveAbortError, MoveRuntimeError, SUI_EXECUTION or SUI_GAS when the transaction would
 *   fail; what the client throws about anything but a node
 */
export async function buildTransaction(
  client: ClientWithCoreApi,
  transaction: Transaction,
  { onlyTransactionKind = false }: BuildOptions = {},
): Promise<Uint8Array<ArrayBuffer>> {
  try {
    return await transaction.build({ client, onlyTransactionKind });
  } catch (error) {
    const failure = error instanceof SimulationError ? error.executionError : undefined;
    if (failure === undefined || !isAmbiguous(failure)) throw toSuiError(error);
    const answer = await simulate(client, transaction).catch(() => undefined);
    throw toExecutionError(answer?.FailedTransaction?.status.error ?? failure);
  }
}

async function simulate(client: ClientWithCoreApi, transaction: Transaction) {
  const include = withNodesWords({});
  return withRuntimeError(await client.core.simulateTransaction({ transaction, include }));
}
