/** Operands of an instruction: the call that runs, and the stack. */
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

/** A call that has not returned. */
export interface Frame {
  readonly linked: Linked;
  readonly types: readonly MoveType[];
  readonly locals: Value[];
  /** The index of the instruction that runs after this one. */
  next: number;
  /** The stack that all calls of a machine share. */
  readonly stack: Stack;
  readonly codec: Codec;
  /** Takes from the gas that is left. @throws OutOfGas */
  readonly charge: (count: number) => void;
}

/** Executes an instruction of the call. @throws MoveAbort, PrimitiveError, OutOfGas */
export type Execute = (frame: Frame, instruction: Instruction) => void;

/** The functions of instructions, by opcode. */
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

  /** Returns the last values, in their order. */
  popLast(count: number): Value[] {
    return count === 0 ? [] : this.#values.splice(-count);
  }

  popAll(): Value[] {
    return this.#values.splice(0);
  }
}

/** Returns an item of one of a module's tables, or a local variable. */
export function at<T>(items: readonly T[], index: number): T {
  const item = items[index];
  if (item === undefined) throw new TypeError('an index points outside its table');
  return item;
}

/** Returns the error of the instruction that runs. */
export function failed({ linked, next }: Frame, reason: string): PrimitiveError {
  return new PrimitiveError(describeLocation(linked, next - 1), reason);
}

export function describeLocation({ packageId, module, code }: Linked, instruction: number): Location {
  const [, name = ''] = module.module.split('::');
  return { package: packageId, module: name, function: code.index, functionName: code.name, instruction };
}
