/** Mints a reading with the connected wallet. */
import { Transaction } from '@mysten/sui/transactions';
import { toExecutionError } from 'sui-enclave/sui';
import { mintCall, type Reading } from '../enclave/weather.ts';
import type { Settings } from '../settings.ts';
import type { Kit } from '../wallet/kit.ts';

/** The object that an executed transaction created. */
export interface MintResult {
  readonly objectId: string;
  readonly digest: string;
  readonly owner: string;
}

interface Order {
  readonly kit: Kit;
  readonly sui: Settings['sui'];
  readonly reading: Reading;
  readonly enclaveId: string;
  /** Address of the connected account. */
  readonly owner: string;
}

/** @throws the error of the wallet; SuiError */
export async function mint({ kit, sui, reading, enclaveId, owner }: Order): Promise<MintResult> {
  const transaction = new Transaction();
  transaction.setSender(owner);
  transaction.transferObjects([mintCall(transaction, reading, sui, enclaveId)], owner);
  const executed = await kit.signAndExecuteTransaction({ transaction });
  const { digest, effects, status } = executed.Transaction ?? executed.FailedTransaction;
  if (status.error !== null) throw toExecutionError(status.error);
  // A node may return a transaction only some time after its execution.
  await kit.getClient().core.waitForTransaction({ digest });
  const created = effects.changedObjects.find(({ idOperation }) => idOperation === 'Created');
  if (created === undefined) throw new Error(`the transaction ${digest} was executed, but created no object`);
  return { objectId: created.objectId, digest, owner };
}
