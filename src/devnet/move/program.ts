/** Declares what the Move machine runs: linked functions, the search for a function, and native functions. */
import type { FunctionCode, ModuleCode } from '../bytecode/module_code.ts';
import type { MoveAbort } from '../failures.ts';
import type { MoveType } from './types.ts';
import type { Codec, Value } from './values.ts';

/** A function with the package that contains its code. */
export interface Linked {
  /** The id of the package. */
  readonly packageId: string;
  readonly module: ModuleCode;
  readonly code: FunctionCode;
}

/** Values that a call of a native function gets. */
export interface NativeCall {
  readonly args: readonly Value[];
  readonly types: readonly MoveType[];
  /** Subtracts from the remaining gas. @throws OutOfGas */
  charge(count: number): void;
  abort(code: number): MoveAbort;
}

/** Executes a native function, and returns its results. @throws MoveAbort, OutOfGas */
export type Native = (call: NativeCall) => readonly Value[];

/**
 * Finds the function that a call names.
 *
 * @param module address and name of the module
 * @throws TypeError for an unknown function
 */
export type Link = (module: string, name: string) => Linked;

/** Environment of running code. */
export interface Program {
  /** @param name of module and function, such as `event::emit` */
  native(name: string): Native | undefined;
  readonly codec: Codec;
}
