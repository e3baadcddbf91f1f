/** Reads the body of a function in a compiled Move module. */
import { OPCODE } from './opcodes.ts';
import type { Reader } from './tables.ts';

export interface Instruction {
  readonly code: number;
  /**
   * Index of a table entry, of a local, or of the instruction to which a branch jumps; 0 if the instruction
   * has no operand.
   */
  readonly operand: number;
  /** Value that the instruction loads, or number of values that it packs. */
  readonly value: bigint;
}

export interface Body {
  readonly flags: number;
  /** Index of the signature that lists the locals without the parameters. */
  readonly locals: number;
  readonly instructions: readonly Instruction[];
  /** Jump tables, one for each `match`: the index of an instruction for each variant. */
  readonly jumps: readonly (readonly number[])[];
}

/** Instructions whose operand is an index. */
const INDEXED = new Set<number>([
  ...range(OPCODE.brTrue, OPCODE.branch),
  OPCODE.ldConst,
  ...range(OPCODE.copyLoc, OPCODE.unpack),
  ...range(OPCODE.existsDeprecated, OPCODE.moveToDeprecated),
  ...range(OPCODE.mutBorrowFieldGeneric, OPCODE.vecSwap),
  ...range(OPCODE.packVariant, OPCODE.variantSwitch),
]);
/** Size in bytes of the value that follows the operand, by opcode. */
const VALUE_BYTES: Readonly<Record<number, number>> = {
  [OPCODE.ldU8]: 1,
  [OPCODE.ldU16]: 2,
  [OPCODE.ldU32]: 4,
  [OPCODE.ldU64]: 8,
  [OPCODE.ldU128]: 16,
  [OPCODE.ldU256]: 32,
  [OPCODE.vecPack]: 8,
  [OPCODE.vecUnpack]: 8,
};
const OPCODES = new Set<number>(Object.values(OPCODE));

function range(from: number, to: number): number[] {
  return Array.from({ length: to - from + 1 }, (_, index) => from + index);
}

export const NATIVE = 0x2;
export const ENTRY = 0x4;

/** Reads the part of a function's definition that follows the visibility. */
export function readBody(reader: Reader, version: number): Body {
  const flags = reader.byte();
  reader.list(() => reader.index());
  if ((flags & NATIVE) !== 0) return { flags, locals: 0, instructions: [], jumps: [] };
  const locals = reader.index();
  const instructions = reader.list(() => {
    const code = reader.byte();
    if (!OPCODES.has(code)) throw new RangeError(`the instruction ${code} is unknown`);
    const operand = INDEXED.has(code) ? reader.index() : 0;
    return { code, operand, value: readLittleEndian(reader.take(VALUE_BYTES[code] ?? 0)) };
  });
  const jumps = version < 7 ? [] : reader.list(() => readJumpTable(reader));
  return { flags, locals, instructions, jumps };
}

/** Reads an unsigned integer, least significant byte first. */
function readLittleEndian(bytes: Uint8Array): bigint {
  return bytes.reduceRight((value, byte) => (value << 8n) | BigInt(byte), 0n);
}

function readJumpTable(reader: Reader): number[] {
  reader.index();
  const branches = reader.index();
  reader.byte();
  return Array.from({ length: branches }, () => reader.index());
}
