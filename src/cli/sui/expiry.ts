/** The expiry that a node puts into a transaction that it resolves. */
import { bcs } from '@mysten/sui/bcs';
import type { ClientWithCoreApi } from '@mysten/sui/client';
import { Transaction } from '@mysten/sui/transactions';
import { MAX_TIME_MS } from 'sui-enclave/sui/structs';

type TransactionData = (typeof bcs.TransactionData.$inferType)['V1'];

/** Describes the time until which a transaction can be executed; null if it does not expire. */
export function describeExpiry(bytes: Uint8Array): string | null {
  const { expiration } = bcs.TransactionData.parse(bytes).V1;
  if (expiration.Epoch !== undefined) return `at the end of epoch ${expiration.Epoch}`;
  const window = expiration.ValidDuring ?? expiration.Validity;
  if (window === undefined) return null;
  const { maxEpoch, maxTimestamp } = window;
  const ends = [
    ...(maxEpoch === null ? [] : [`at the end of epoch ${maxEpoch}`]),
    ...(maxTimestamp === null ? [] : [formatTime(BigInt(maxTimestamp))]),
  ];
  return ends.length > 0 ? ends.join(', or earlier ') : null;
}

/** Formats a time. The node may name any number of milliseconds, even one that a `Date` can't hold. */
function formatTime(ms: bigint): string {
  return ms > MAX_TIME_MS ? `${ms} ms after 1970-01-01` : `at ${new Date(Number(ms)).toISOString()}`;
}

/**
 * Returns the same transaction without an expiry, since the signers of a multisig may need days. Returns null
 * unless an address owns an input, such as a gas coin. The version of such an input changes with the
 * execution, so the transaction can't be executed twice. Without such an input, only the expiry prevents a
 * second execution. Also returns null if the node refuses a transaction without an expiry: older networks
 * require one if no coin pays the gas.
 *
 * @throws whatever the client throws
 */
export async function withoutExpiry(
  client: ClientWithCoreApi,
  bytes: Uint8Array,
): Promise<Uint8Array<ArrayBuffer> | null> {
  const { V1: data } = bcs.TransactionData.parse(bytes);
  if (!(await hasOwnedInput(client, data))) return null;
  const unexpiringBytes = bcs.TransactionData.serialize({
    V1: { ...data, expiration: { None: true } },
  }).toBytes();
  const simulated = await client.core.simulateTransaction({ transaction: Transaction.from(unexpiringBytes) });
  return simulated.Transaction === undefined ? null : unexpiringBytes;
}

async function hasOwnedInput(client: ClientWithCoreApi, data: TransactionData): Promise<boolean> {
  const inputs = data.kind.ProgrammableTransaction?.inputs ?? [];
  const objectIds = [
    ...(data.gasData.payment ?? []),
    ...inputs.flatMap(({ Object: object }) => object?.ImmOrOwnedObject ?? []),
  ].map(({ objectId }) => objectId);
  if (objectIds.length === 0) return false;
  // The transaction itself does not distinguish owned objects from immutable ones.
  const { objects } = await client.core.getObjects({ objectIds });
  return objects.some((object) => !(object instanceof Error) && object.owner.$kind === 'AddressOwner');
}
