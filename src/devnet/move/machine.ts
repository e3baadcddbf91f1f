/**
 * Executes Move bytecode: one call after the other, over values that its caller holds.
 *
 * It trusts the bytecode, which the compiler's verifier has seen: it does not check types, abilities or borrows again.
 */
import type { Instruction } from '../bytecode/body.ts';
import type { Callee, ModuleCode, Variant } from '../bytecode/module_code.ts';
import { OPCODE } from '../bytecode/opcodes.ts';
import { type Location, MoveAbort, OutOfGas, PrimitiveError } from '../failures.ts';
import { CAST, calculated } from './arithmetic.ts';
import type { Link, Linked, Program } from './program.ts';
import { instantiate, type MoveType, parseType } from './types.ts';
import {
  areEqual,
  Composite,
  composite,
  copyOf,
  Int,
  int,
  Reference,
  reference,
  u64,
  type Value,
} from './values.ts';

interface Frame {
  readonly linked: Linked;
  readonly types: readonly MoveType[];
  readonly locals: Value[];
  next: number;
}

/** As in Sui. */
const MAX_CALL_DEPTH = 1024;

/** Types of a module, parsed once. */
const parsed = new Map<string, MoveType>();

function typeOf(text: string): MoveType {
  const type = parsed.get(text) ?? parseType(text);
  parsed.set(text, type);
  return type;
}

export class Machine {
  readonly #program: Program;
  readonly #stack: Value[] = [];
  readonly #frames: Frame[] = [];
  /** Of the call that runs. */
  #link: Link = (module, name) => {
    throw new TypeError(`nothing calls ${module}::${name}`);
  };
  #gas: number;
  readonly #charge = (count: number): void => {
    this.#gas -= count;
    if (this.#gas < 0) throw new OutOfGas();
  };

  /** @param gas about the number of instructions and of values that its calls may take together */
  constructor(program: Program, gas: number) {
    this.#program = program;
    this.#gas = gas;
  }

  /**
   * Calls a function and returns its results. It lets others work in between.
   *
   * @param link finds what the function calls, and everything below it
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
    return this.#stack.splice(0);
  }

  #enter(linked: Linked, types: readonly MoveType[], args: Value[]): void {
    const { module, code } = linked;
    if (code.isNative) {
      const name = `${module.module.split('::')[1]}::${code.name}`;
      const native = this.#program.native(name);
      if (native === undefined) throw new TypeError(`the model of Sui has no native function ${name}`);
      const location = locationOf(linked, 0);
      const abort = (number: number) => new MoveAbort(location, BigInt(number));
      this.#charge(args.length);
      this.#stack.push(...native({ args, types, charge: this.#charge, abort }));
      return;
    }
    if (this.#frames.length >= MAX_CALL_DEPTH) {
      throw new PrimitiveError(locationOf(linked, 0), 'too many calls are open');
    }
    this.#frames.push({ linked, types, locals: args, next: 0 });
  }

  /** A stretch of instructions. Returns whether all calls have returned. */
  #run(): boolean {
    for (let left = 100_000; left > 0; left -= 1) {
      const frame = this.#frames.at(-1);
      if (frame === undefined) return true;
      const instruction = frame.linked.code.instructions[frame.next];
      if (instruction === undefined) throw new TypeError('a function without an end');
      this.#charge(1);
      frame.next += 1;
      this.#execute(instruction, frame);
    }
    return this.#frames.length === 0;
  }

  #pop(): Value {
    const value = this.#stack.pop();
    if (value === undefined) throw new TypeError('the stack is empty');
    return value;
  }

  /** The last values, in their order. */
  #popAll(count: number): Value[] {
    return count === 0 ? [] : this.#stack.splice(-count);
  }

  #execute({ code, operand, value }: Instruction, frame: Frame): void {
    const stack = this.#stack;
    const { linked, locals } = frame;
    const { module } = linked;
    switch (code) {
      case OPCODE.pop:
        stack.pop();
        return;
      case OPCODE.ret:
        this.#frames.pop();
        return;
      case OPCODE.brTrue:
        if (this.#pop() === true) frame.next = operand;
        return;
      case OPCODE.brFalse:
        if (this.#pop() === false) frame.next = operand;
        return;
      case OPCODE.branch:
        frame.next = operand;
        return;
      case OPCODE.ldU64:
        stack.push(u64(value));
        return;
      case OPCODE.ldConst: {
        const { type, bytes } = at(module.constants, operand);
        this.#charge(bytes.length);
        stack.push(this.#program.codec.decode(bytes, typeOf(type)));
        return;
      }
      case OPCODE.ldTrue:
      case OPCODE.ldFalse:
        stack.push(code === OPCODE.ldTrue);
        return;
      case OPCODE.copyLoc:
        stack.push(copyOf(at(locals, operand), this.#charge));
        return;
      case OPCODE.moveLoc:
        stack.push(at(locals, operand));
        return;
      case OPCODE.stLoc:
        locals[operand] = this.#pop();
        return;
      case OPCODE.mutBorrowLoc:
      case OPCODE.immBorrowLoc:
        stack.push(new Reference(locals, operand));
        return;
      case OPCODE.mutBorrowField:
      case OPCODE.immBorrowField:
        this.#borrowField(at(module.fields, operand));
        return;
      case OPCODE.mutBorrowFieldGeneric:
      case OPCODE.immBorrowFieldGeneric:
        this.#borrowField(at(module.fieldInstances, operand));
        return;
      case OPCODE.call:
        this.#call(at(module.calls, operand), frame);
        return;
      case OPCODE.callGeneric:
        this.#call(at(module.genericCalls, operand), frame);
        return;
      case OPCODE.pack:
        stack.push(new Composite(this.#popAll(at(module.structs, operand))));
        return;
      case OPCODE.packGeneric:
        stack.push(new Composite(this.#popAll(at(module.structInstances, operand))));
        return;
      case OPCODE.unpack:
      case OPCODE.unpackGeneric:
        stack.push(...composite(this.#pop()).items);
        return;
      case OPCODE.readRef:
        stack.push(copyOf(reference(this.#pop()).value, this.#charge));
        return;
      case OPCODE.writeRef: {
        const target = reference(this.#pop());
        target.value = this.#pop();
        return;
      }
      case OPCODE.not:
        stack.push(this.#pop() !== true);
        return;
      case OPCODE.or:
      case OPCODE.and: {
        const right = this.#pop() === true;
        const left = this.#pop() === true;
        stack.push(code === OPCODE.or ? left || right : left && right);
        return;
      }
      case OPCODE.eq:
      case OPCODE.neq: {
        const right = this.#pop();
        stack.push(areEqual(this.#pop(), right, this.#charge) === (code === OPCODE.eq));
        return;
      }
      case OPCODE.abort:
        throw this.#aborted(int(this.#pop()).value, frame);
      case OPCODE.nop:
      case OPCODE.freezeRef:
        return;
      case OPCODE.ldU8:
        stack.push(new Int(8, value));
        return;
      case OPCODE.ldU16:
        stack.push(new Int(16, value));
        return;
      case OPCODE.ldU32:
        stack.push(new Int(32, value));
        return;
      case OPCODE.ldU128:
        stack.push(new Int(128, value));
        return;
      case OPCODE.ldU256:
        stack.push(new Int(256, value));
        return;
      case OPCODE.castU8:
      case OPCODE.castU64:
      case OPCODE.castU128:
      case OPCODE.castU16:
      case OPCODE.castU32:
      case OPCODE.castU256:
        this.#cast(CAST[code] ?? 0, frame);
        return;
      case OPCODE.vecPack: {
        this.#charge(Number(value));
        stack.push(new Composite(this.#popAll(Number(value))));
        return;
      }
      case OPCODE.vecUnpack: {
        const { items } = composite(this.#pop());
        if (BigInt(items.length) !== value) throw this.#failed(frame, 'a vector of another length');
        stack.push(...items);
        return;
      }
      case OPCODE.vecLen:
        stack.push(u64(composite(reference(this.#pop()).value).items.length));
        return;
      case OPCODE.vecImmBorrow:
      case OPCODE.vecMutBorrow: {
        const index = Number(int(this.#pop()).value);
        const { items } = composite(reference(this.#pop()).value);
        if (index >= items.length) throw this.#failed(frame, 'an index outside of the vector');
        stack.push(new Reference(items, index));
        return;
      }
      case OPCODE.vecPushBack: {
        const item = this.#pop();
        composite(reference(this.#pop()).value).items.push(item);
        return;
      }
      case OPCODE.vecPopBack: {
        const item = composite(reference(this.#pop()).value).items.pop();
        if (item === undefined) throw this.#failed(frame, 'the vector is empty');
        stack.push(item);
        return;
      }
      case OPCODE.vecSwap: {
        const [one, other] = [Number(int(this.#pop()).value), Number(int(this.#pop()).value)];
        const { items } = composite(reference(this.#pop()).value);
        const [first, second] = [items[one], items[other]];
        if (first === undefined || second === undefined) {
          throw this.#failed(frame, 'an index outside of the vector');
        }
        items[one] = second;
        items[other] = first;
        return;
      }
      case OPCODE.packVariant:
        this.#packVariant(at(module.variants, operand));
        return;
      case OPCODE.packVariantGeneric:
        this.#packVariant(at(module.variantInstances, operand));
        return;
      case OPCODE.unpackVariant:
      case OPCODE.unpackVariantGeneric:
        stack.push(...this.#variant(this.#pop(), variantOf(module, code, operand), frame).items);
        return;
      case OPCODE.unpackVariantImmRef:
      case OPCODE.unpackVariantMutRef:
      case OPCODE.unpackVariantGenericImmRef:
      case OPCODE.unpackVariantGenericMutRef: {
        const held = reference(this.#pop()).value;
        const { items } = this.#variant(held, variantOf(module, code, operand), frame);
        stack.push(...items.map((_, index) => new Reference(items, index)));
        return;
      }
      case OPCODE.variantSwitch: {
        const { tag } = composite(reference(this.#pop()).value);
        frame.next = at(at(linked.code.jumps, operand), tag);
        return;
      }
      default:
        this.#calculate(code, frame);
    }
  }

  #borrowField(index: number): void {
    this.#stack.push(new Reference(composite(reference(this.#pop()).value).items, index));
  }

  #call({ module, name, types }: Callee, frame: Frame): void {
    const callee = this.#link(module, name);
    const given = types.map((text) => instantiate(typeOf(text), frame.types));
    this.#enter(callee, given, this.#popAll(callee.code.parameters));
  }

  #packVariant({ tag, fields }: Variant): void {
    this.#stack.push(new Composite(this.#popAll(fields), tag));
  }

  #variant(value: Value, { tag }: Variant, frame: Frame): Composite {
    const held = composite(value);
    if (held.tag !== tag) throw this.#failed(frame, 'another variant');
    return held;
  }

  #cast(bits: number, frame: Frame): void {
    const { value } = int(this.#pop());
    if (value >> BigInt(bits) !== 0n) throw this.#failed(frame, 'a cast that loses bits');
    this.#stack.push(new Int(bits, value));
  }

  #calculate(code: number, frame: Frame): void {
    const right = int(this.#pop());
    const left = int(this.#pop());
    const result = calculated(code, left, right.value);
    if (result === undefined) throw this.#failed(frame, 'arithmetic');
    this.#stack.push(typeof result === 'boolean' ? result : new Int(left.bits, result));
  }

  #failed({ linked, next }: Frame, what: string): PrimitiveError {
    return new PrimitiveError(locationOf(linked, next - 1), what);
  }

  #aborted(code: bigint, { linked, next }: Frame): MoveAbort {
    return new MoveAbort(locationOf(linked, next - 1), code, (index) => {
      const constant = linked.module.constants[index];
      if (constant === undefined || constant.type !== 'vector<u8>') return undefined;
      const { items } = composite(this.#program.codec.decode(constant.bytes, typeOf(constant.type)));
      return Buffer.from(items.map((item) => Number(int(item).value))).toString();
    });
  }
}

function variantOf(module: ModuleCode, code: number, operand: number): Variant {
  return at(code >= OPCODE.unpackVariantGeneric ? module.variantInstances : module.variants, operand);
}

function at<T>(items: readonly T[], index: number): T {
  const item = items[index];
  if (item === undefined) throw new TypeError('an index points outside its table');
  return item;
}

function locationOf({ packageId, module, code }: Linked, instruction: number): Location {
  const [, name = ''] = module.module.split('::');
  return { package: packageId, module: name, function: code.index, functionName: code.name, instruction };
}
