/** Builds transactions. Its errors say why a transaction would fail. Browser-safe. */
import { type ClientWithCoreApi, SimulationError } from '@mysten/sui/client';
import type { Transaction } from '@mysten/sui/transactions';
import { toExecutionError, toSuiError } from './failures.ts';
import { isAmbiguous, withProtoJson, withRuntimeError } from './runtime_errors.ts';

/** Options that `buildTransaction` shares with `Transaction.build`. */
export interface BuildOptions {
  /** Whether to build only the transaction's kind, for a sponsor. Default: false. */
  readonly onlyTransactionKind?: boolean;
}

/**
 * Builds a transaction as `transaction.build({ client })` does, but throws errors that say what to do. If the
 * client's error leaves open whether a function aborted with 0 or an instruction had a runtime error, this
 * function asks the node again.
 *
 * @returns BCS of the transaction's data, or of its kind
 * @throws SuiError: MoveAbortError, MoveRuntimeError, SUI_EXECUTION or SUI_GAS when the transaction would
 *   fail; any error of the client that is not about a node
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
  const include = withProtoJson({});
  return withRuntimeError(await client.core.simulateTransaction({ transaction, include }));
}
