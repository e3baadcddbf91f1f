/** Declares what instructions operate on: the frame of the running call, and the stack. */
import type { Instruction } from '../bytecode/body.ts';
import { type Location, PrimitiveError } from '../failures.ts';
import type { Linked } from './program.ts';
import type { MoveType } from './types.ts';
import {
  type Codec,
  type Composite,
  composite,
  type Int,
  int,
  type Reference,
  reference,
  type Value,
} from './values.ts';

/** A call that has not returned yet. */
export interface Frame {
  readonly linked: Linked;
  readonly types: readonly MoveType[];
  readonly locals: Value[];
  /** Index of the instruction that runs next. */
  next: number;
  /** Stack that all calls of a machine share. */
  readonly stack: Stack;
  readonly codec: Codec;
  /** Subtracts from the remaining gas. @throws OutOfGas */
  readonly charge: (count: number) => void;
}

/** Executes an instruction of a call. @throws MoveAbort, PrimitiveError, OutOfGas */
export type Execute = (frame: Frame, instruction: Instruction) => void;

/** Functions that execute instructions, by opcode. */
export type Instructions = Readonly<Record<number, Execute>>;

export class Stack {
  readonly #values: Value[] = [];

  push(value: Value): void {
    this.#values.push(value);
  }

  pushAll(values: readonly Value[]): void {
    this.#values.push(...values);
  }

  pop(): Value {
    const value = this.#values.pop();
    if (value === undefined) throw new TypeError('the stack is empty');
    return value;
  }

  popInt(): Int {
    return int(this.pop());
  }

  popComposite(): Composite {
    return composite(this.pop());
  }

  popReference(): Reference {
    return reference(this.pop());
  }

  /** Pops a reference. Returns the struct, the variant or the vector that it points to. */
  popBorrowed(): Composite {
    return composite(this.popReference().value);
  }

  /** Pops the given number of values, and returns them in the order in which they were pushed. */
  popLast(count: number): Value[] {
    return count === 0 ? [] : this.#values.splice(-count);
  }

  popAll(): Value[] {
    return this.#values.splice(0);
  }
}

/** Returns an entry of one of a module's tables, or a local variable. */
export function getEntry<T>(items: readonly T[], index: number): T {
  const entry = items[index];
  if (entry === undefined) throw new TypeError('an index points outside its table');
  return entry;
}

/** Returns the error for the instruction that is running. */
export function createError({ linked, next }: Frame, reason: string): PrimitiveError {
  return new PrimitiveError(describeLocation(linked, next - 1), reason);
}

export function describeLocation({ packageId, module, code }: Linked, instruction: number): Location {
  const [, name = ''] = module.module.split('::');
  return { package: packageId, module: name, function: code.index, functionName: code.name, instruction };
}
