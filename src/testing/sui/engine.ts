/** What executes the commands of a transaction, over the objects of a ledger. */
import type { Command } from './commands.ts';
import type { Status } from './failures.ts';
import type { Changes, LedgerObject, Package, Packages } from './ledger.ts';

/** A transaction to execute. */
export interface Execution {
  readonly changes: Changes;
  readonly sender: string;
  /** The chain's clock. */
  readonly nowMs: number;
  readonly epoch: bigint;
  /** DER of the root that `nitro_attestation` pins here. */
  readonly root: Uint8Array;
  /** Pure values and objects; undefined is the clock. */
  readonly inputs: readonly (Uint8Array | LedgerObject | undefined)[];
  /** Where a command uses it. */
  readonly gasCoin: LedgerObject | undefined;
  readonly commands: readonly Command[];
  readonly packages: Packages;
}

/** A package that a transaction wrote. */
export type Published = Package & { readonly id: string };

/** An event that a transaction emitted. */
export interface Emitted {
  readonly type: string;
  readonly content: Uint8Array;
  /** The index of the call that emitted it. */
  readonly command: number;
}

export interface Executed {
  readonly status: Status;
  readonly published: Published | undefined;
  readonly events: readonly Emitted[];
}

/** Writes what a transaction changes to its `changes`. @throws Refusal for what it can't execute */
export type Engine = (execution: Execution) => Promise<Executed>;
