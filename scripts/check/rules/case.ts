/** A transaction that a network accepts or refuses, with the objects that it needs. */
import type { Transaction, TransactionArgument } from '@mysten/sui/transactions';
import { findCreatedId, type Sent, type World } from './world.ts';

/** The published probe, which is a Move package, and the account that calls it. */
export interface Probe {
  readonly world: World;
  readonly packageId: string;
  readonly sender: string;
  /** Calls a function of the probe. */
  readonly call: Call;
}

export type Call = (
  tx: Transaction,
  name: string,
  args?: readonly TransactionArgument[],
  types?: readonly string[],
) => ReturnType<Transaction['moveCall']>;

export interface Case {
  readonly name: string;
  readonly outcome: string | RegExp;
  /** Builds the transaction. `ids` are the ids of the objects that `needs` lists. */
  build(tx: Transaction, probe: Probe, ids: readonly string[]): void;
  /** Kinds of the objects that the transaction needs, which determine the objects' owners. */
  readonly needs?: readonly ('thing' | 'shared' | 'frozen' | 'pinned')[];
  /** Expected effects of the transaction on these objects; `gone` if it wraps the object. */
  readonly effects?: readonly ('deleted' | 'gone' | 'changed' | 'untouched')[];
}

export function createProbe(world: World, packageId: string): Probe {
  const call: Call = (tx, name, args = [], types = []) =>
    tx.moveCall({
      target: `${packageId}::probe::${name}`,
      arguments: [...args],
      typeArguments: [...types],
    });
  return { world, packageId, sender: world.address, call };
}

/** Makes the objects that a case needs. */
export async function makeObjects(
  { world, call, sender }: Probe,
  needs: NonNullable<Case['needs']>,
): Promise<string[]> {
  const ids: string[] = [];
  for (const need of needs) {
    const sent = await world.send((tx) => {
      const object = call(tx, need === 'pinned' ? 'pinned' : 'thing', [tx.pure.u64(5)]);
      if (need === 'thing') tx.transferObjects([object], sender);
      if (need === 'shared') call(tx, 'share', [object]);
      if (need === 'frozen') call(tx, 'freeze_it', [object]);
      if (need === 'pinned') call(tx, 'share_pinned', [object]);
    });
    if (sent.outcome !== 'done') throw new Error(`can't make a ${need} object: ${sent.outcome}`);
    ids.push(findCreatedId(sent, need === 'pinned' ? '::probe::Pinned' : '::probe::Thing'));
  }
  return ids;
}

/** Returns the effect of a transaction on an object. */
export function findEffect(id: string, { changed }: Sent): NonNullable<Case['effects']>[number] {
  const change = changed.find(({ objectId }) => objectId === id);
  if (change === undefined) return 'untouched';
  if (change.outputState !== 'DoesNotExist') return 'changed';
  return change.idOperation === 'Deleted' ? 'deleted' : 'gone';
}

export const object = (tx: Transaction, id = '') => tx.object(id);
