/** The body of a function in a compiled Move module. */
import type { Reader } from './tables.ts';

export interface Instruction {
  readonly code: number;
  /** An index, a number of bytes or an offset, by the instruction; 0 where it has none. */
  readonly operand: number;
  /** The value that it loads, or the number of values that it packs. */
  readonly value: bigint;
}

export interface Body {
  readonly flags: number;
  /** The index of the signature of its locals that are no parameters. */
  readonly locals: number;
  readonly instructions: readonly Instruction[];
  /** Offsets by variant, for each `match`. */
  readonly jumps: readonly (readonly number[])[];
}

/** The instructions whose operand is an index, and those whose operands end with a value of so many bytes. */
const INDEXED = new Set([
  ...[0x03, 0x04, 0x05, 0x07, ...range(0x0a, 0x13), ...range(0x29, 0x2d), ...range(0x36, 0x47)],
  ...range(0x4e, 0x56),
]);
const VALUE_BYTES: Readonly<Record<number, number>> = {
  6: 8,
  49: 1,
  50: 16,
  64: 8,
  70: 8,
  72: 2,
  73: 4,
  74: 32,
};
const LAST_INSTRUCTION = 0x56;

function range(from: number, to: number): number[] {
  return Array.from({ length: to - from + 1 }, (_, index) => from + index);
}

/** Makes a struct of its fields; the operand is the index of the struct. */
export const PACK = 0x12;

export const NATIVE = 0x2;
export const ENTRY = 0x4;

/** The rest of a function's definition, after its visibility. */
export function readBody(at: Reader, version: number): Body {
  const flags = at.byte();
  at.list(() => at.index());
  if ((flags & NATIVE) !== 0) return { flags, locals: 0, instructions: [], jumps: [] };
  const locals = at.index();
  const instructions = at.list(() => {
    const code = at.byte();
    if (code === 0 || code > LAST_INSTRUCTION) throw new RangeError(`an unknown instruction, ${code}`);
    const operand = INDEXED.has(code) ? at.index() : 0;
    return { code, operand, value: littleEndian(at.take(VALUE_BYTES[code] ?? 0)) };
  });
  const jumps = version < 7 ? [] : at.list(() => jumpTable(at));
  return { flags, locals, instructions, jumps };
}

/** An unsigned integer. */
function littleEndian(bytes: Uint8Array): bigint {
  return bytes.reduceRight((value, byte) => (value << 8n) | BigInt(byte), 0n);
}

function jumpTable(at: Reader): number[] {
  at.index();
  const branches = at.index();
  at.byte();
  return Array.from({ length: branches }, () => at.index());
}
