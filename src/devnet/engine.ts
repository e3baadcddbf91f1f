/** The interface of an engine, which executes the commands of a transaction over the objects of a ledger. */
import type { Argument, Command } from './commands.ts';
import type { Status } from './failures.ts';
import type { Changes, LedgerObject } from './ledger.ts';
import type { Package, Packages } from './packages.ts';

/** An object that a transaction names. */
export interface ObjectInput {
  readonly object: LedgerObject;
  /** False: the transaction only reads a shared object. */
  readonly isMutable: boolean;
}

/** A transaction to execute. */
export interface Execution {
  readonly changes: Changes;
  readonly sender: string;
  /** Time of the chain's clock, in milliseconds since 1970. */
  readonly nowMs: number;
  readonly epoch: bigint;
  /** DER of the root that `nitro_attestation` pins here. */
  readonly root: Uint8Array;
  /** Pure values and objects. */
  readonly inputs: readonly (Uint8Array | ObjectInput)[];
  /** The gas coin, where a command uses it, with the balance that commands may take. */
  readonly gasCoin: LedgerObject | undefined;
  readonly commands: readonly Command[];
  readonly packages: Packages;
  /** Whether to note what each command returned. */
  readonly keepsResults?: boolean;
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

/** A value after a command. */
export interface Output {
  readonly type: string;
  readonly content: Uint8Array;
}

/** The returned values of a command, and the final values of its `&mut` arguments. */
export interface CommandResult {
  readonly returned: readonly Output[];
  readonly mutated: readonly (Output & { readonly argument: Argument })[];
}

export interface Executed {
  readonly status: Status;
  /** Results of the commands before one failed. */
  readonly results: readonly CommandResult[];
  readonly published: Published | undefined;
  readonly events: readonly Emitted[];
}

/** Writes what a transaction changes to its `changes`. @throws Refusal for what it can't execute */
export type Engine = (execution: Execution) => Promise<Executed>;
