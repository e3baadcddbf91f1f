/** The program of the machine: functions, how it finds them, and the native ones. */
import type { FunctionCode, ModuleCode } from '../bytecode/module_code.ts';
import type { MoveAbort } from '../failures.ts';
import type { MoveType } from './types.ts';
import type { Codec, Value } from './values.ts';

/** A function, in the package whose code it is. */
export interface Linked {
  /** The id of the package. */
  readonly packageId: string;
  readonly module: ModuleCode;
  readonly code: FunctionCode;
}

/** Parameters of a call to a native function. */
export interface NativeCall {
  readonly args: readonly Value[];
  readonly types: readonly MoveType[];
  /** Takes from the gas that is left. @throws OutOfGas */
  charge(count: number): void;
  abort(code: number): MoveAbort;
}

/** Executes a native function, and returns its results. @throws MoveAbort, OutOfGas */
export type Native = (call: NativeCall) => readonly Value[];

/**
 * Finds a function that code calls.
 *
 * @param module address and name
 * @throws TypeError for an unknown function
 */
export type Link = (module: string, name: string) => Linked;

/** The surroundings of code that runs. */
export interface Program {
  /** @param name module and function, such as `event::emit` */
  native(name: string): Native | undefined;
  readonly codec: Codec;
}
