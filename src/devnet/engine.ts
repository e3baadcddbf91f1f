/**
 * Declares the interface of an engine, which executes a transaction's commands on the objects of a ledger.
 */
import type { Argument, Command } from './commands.ts';
import type { Status } from './failures.ts';
import type { Changes, LedgerObject } from './ledger.ts';
import type { Package, Packages } from './packages.ts';

/** An object that a transaction names. */
export interface ObjectInput {
  readonly object: LedgerObject;
  /** Whether the transaction may change the object. False if it only reads a shared object. */
  readonly isMutable: boolean;
}

/** A transaction to execute. */
export interface Execution {
  readonly changes: Changes;
  readonly sender: string;
  /** Time of the chain's clock, in milliseconds since 1970. */
  readonly nowMs: number;
  readonly epoch: bigint;
  /** DER of the root certificate that the model of `nitro_attestation` pins. */
  readonly root: Uint8Array;
  /** Pure values and objects that the transaction names. */
  readonly inputs: readonly (Uint8Array | ObjectInput)[];
  /** The gas coin, if a command uses it, with the balance that commands may spend. */
  readonly gasCoin: LedgerObject | undefined;
  readonly commands: readonly Command[];
  readonly packages: Packages;
  /** Whether to record the results of each command. */
  readonly keepsResults?: boolean;
}

/** A package that a transaction wrote. */
export type Published = Package & { readonly id: string };

/** An event that a transaction emitted. */
export interface Emitted {
  readonly type: string;
  readonly content: Uint8Array;
  /** Index of the call that emitted the event. */
  readonly command: number;
}

/** A value after a command: its type, and its content in BCS. */
export interface Output {
  readonly type: string;
  readonly content: Uint8Array;
}

/** The values that a command returned, and the final values of its `&mut` arguments. */
export interface CommandResult {
  readonly returned: readonly Output[];
  readonly mutated: readonly (Output & { readonly argument: Argument })[];
}

export interface Executed {
  readonly status: Status;
  /** Results of the commands that succeeded. */
  readonly results: readonly CommandResult[];
  readonly published: Published | undefined;
  readonly events: readonly Emitted[];
}

/**
 * Executes a transaction, and writes its changes to `changes`. @throws Refusal if it can't execute the
 * transaction
 */
export type Engine = (execution: Execution) => Promise<Executed>;
