/** Finds the objects that a transaction names. Browser-safe. */
import { bcs } from '@mysten/sui/bcs';
import { type ClientWithCoreApi, ObjectError } from '@mysten/sui/client';
import { fromBase58 } from '@mysten/sui/utils';
import { abortable } from '../waiting.ts';

/** Time limit for reading the objects, in milliseconds: a node that hangs must not prevent the send. */
const READ_MS = 10_000;
/**
 * Value of each of the last 20 bytes of a payment's digest, if the payment is not an object but a part of an
 * address's balance.
 */
const RESERVATION = 0xac;

/**
 * Lists the ids of the objects that a transaction takes, or pays with.
 *
 * @param transaction BCS of the transaction's data; for other bytes, the list is empty
 */
export function listObjectIds(transaction: Uint8Array): string[] {
  try {
    const { kind, gasData } = bcs.TransactionData.parse(transaction).V1;
    const objectRefs = (kind.ProgrammableTransaction?.inputs ?? []).flatMap(
      ({ Object: input }) => input?.ImmOrOwnedObject ?? input?.SharedObject ?? input?.Receiving ?? [],
    );
    const coins = (gasData.payment ?? []).filter(({ digest }) => !isReservation(digest));
    return [...new Set([...objectRefs, ...coins].map(({ objectId }) => objectId))];
  } catch {
    return [];
  }
}

function isReservation(digest: string): boolean {
  return fromBase58(digest)
    .slice(12)
    .every((byte) => byte === RESERVATION);
}

/**
 * Returns the id of the first of these objects that does not exist, according to the node. Returns undefined
 * if all exist, or if the node does not answer.
 */
export async function findMissingObject(
  client: ClientWithCoreApi,
  objectIds: readonly string[],
  signal: AbortSignal | undefined,
): Promise<string | undefined> {
  try {
    const request = { objectIds: [...objectIds], ...(signal && { signal }) };
    const { objects } = await abortable(client.core.getObjects(request), AbortSignal.timeout(READ_MS));
    return objectIds.find((_, index) => {
      const object = objects[index];
      return object instanceof ObjectError && object.reason !== 'unknown';
    });
  } catch {
    return undefined;
  }
}
