/**
 * Executes Move bytecode: one call after another, with values that the caller of the machine holds.
 *
 * The machine trusts bytecode that the compiler's verifier has checked. It does not check types, abilities or
 * borrows again.
 */
import type { Instruction } from '../bytecode/body.ts';
import type { Callee } from '../bytecode/module_code.ts';
import { OPCODE } from '../bytecode/opcodes.ts';
import { MoveAbort, OutOfGas, PrimitiveError } from '../failures.ts';
import { describeLocation, type Frame, getEntry, Stack } from './frame.ts';
import { INSTRUCTIONS } from './instructions.ts';
import type { Link, Linked, Program } from './program.ts';
import { instantiate, type MoveType, parseTypeOnce } from './types.ts';
import type { Value } from './values.ts';

/** Maximum depth of calls, the same as in Sui. */
const MAX_CALL_DEPTH = 1024;

export class Machine {
  readonly #program: Program;
  readonly #stack = new Stack();
  readonly #frames: Frame[] = [];
  /** Linkage of the running call. */
  #link: Link = (module, name) => {
    throw new TypeError(`nothing calls ${module}::${name}`);
  };
  #gas: number;
  readonly #charge = (count: number): void => {
    this.#gas -= count;
    if (this.#gas < 0) throw new OutOfGas();
  };

  /** @param gas approximate number of instructions and of values that all calls together may use */
  constructor(program: Program, gas: number) {
    this.#program = program;
    this.#gas = gas;
  }

  /**
   * Calls a function and returns its results. Other tasks of this process can run in between.
   *
   * @param link finds the functions that this function calls, directly or not
   * @throws MoveAbort, PrimitiveError, OutOfGas
   */
  async call(
    linked: Linked,
    types: readonly MoveType[],
    args: readonly Value[],
    link: Link,
  ): Promise<readonly Value[]> {
    this.#link = link;
    this.#enter(linked, types, [...args]);
    while (!this.#run()) await new Promise((resolve) => setImmediate(resolve));
    return this.#stack.popAll();
  }

  #enter(linked: Linked, types: readonly MoveType[], args: Value[]): void {
    const { module, code } = linked;
    if (code.isNative) {
      const name = `${module.module.split('::')[1]}::${code.name}`;
      const native = this.#program.native(name);
      if (native === undefined) throw new TypeError(`the model of Sui has no native function ${name}`);
      const location = describeLocation(linked, 0);
      const abort = (number: number) => new MoveAbort(location, BigInt(number));
      this.#charge(args.length);
      this.#stack.pushAll(native({ args, types, charge: this.#charge, abort }));
      return;
    }
    if (this.#frames.length >= MAX_CALL_DEPTH) {
      throw new PrimitiveError(describeLocation(linked, 0), 'too many calls are open');
    }
    this.#frames.push({
      linked,
      types,
      locals: args,
      next: 0,
      stack: this.#stack,
      codec: this.#program.codec,
      charge: this.#charge,
    });
  }

  /** Executes at most 100,000 instructions. Returns whether all calls have returned. */
  #run(): boolean {
    for (let left = 100_000; left > 0; left -= 1) {
      const frame = this.#frames.at(-1);
      if (frame === undefined) return true;
      const instruction = frame.linked.code.instructions[frame.next];
      if (instruction === undefined) throw new TypeError('a function does not end with a return');
      this.#charge(1);
      frame.next += 1;
      this.#execute(frame, instruction);
    }
    return this.#frames.length === 0;
  }

  #execute(frame: Frame, instruction: Instruction): void {
    const { code, operand } = instruction;
    const { module } = frame.linked;
    switch (code) {
      case OPCODE.ret:
        this.#frames.pop();
        return;
      case OPCODE.call:
        this.#call(getEntry(module.calls, operand), frame);
        return;
      case OPCODE.callGeneric:
        this.#call(getEntry(module.genericCalls, operand), frame);
        return;
      default: {
        const run = INSTRUCTIONS[code];
        if (run === undefined) throw new TypeError(`the instruction ${code} is deprecated`);
        run(frame, instruction);
      }
    }
  }

  #call({ module, name, types }: Callee, frame: Frame): void {
    const linked = this.#link(module, name);
    const instantiated = types.map((text) => instantiate(parseTypeOnce(text), frame.types));
    this.#enter(linked, instantiated, this.#stack.popLast(linked.code.parameters));
  }
}
