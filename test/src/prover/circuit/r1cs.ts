/**
 * Reads circom's `.r1cs`, `.wtns` and `.sym`, and checks a witness constraint by constraint, independently of
 * any prover.
 */
import { readFileSync } from 'node:fs';

/** Order of BN254's scalar field. */
export const P = 21888242871839275222246405745257275088548364400416034343698204186575808495617n;
export const mod = (value: bigint) => ((value % P) + P) % P;

/** Terms of A, B and C of each constraint `A * B = C`, one after the other. Wire 0 is the constant 1. */
export interface R1cs {
  readonly wires: number;
  readonly constraints: number;
  readonly publicInputs: number;
  readonly privateInputs: number;
  /**
   * Positions of terms. The terms of part `3 * constraint + (0 for A, 1 for B, 2 for C)` begin at
   * starts[part] and end before starts[part + 1].
   */
  readonly starts: Uint32Array;
  readonly termWires: Uint32Array;
  /** Indices into `coefficients`, by term. */
  readonly termCoefficients: Uint32Array;
  readonly coefficients: readonly bigint[];
}

function readSections(file: Buffer, magic: string): Map<number, Buffer> {
  if (file.toString('latin1', 0, 4) !== magic) throw new Error(`not a ${magic} file`);
  const sections = new Map<number, Buffer>();
  let at = 12;
  for (let n = file.readUInt32LE(8); n > 0; n--) {
    const size = Number(file.readBigUInt64LE(at + 4));
    sections.set(file.readUInt32LE(at), file.subarray(at + 12, at + 12 + size));
    at += 12 + size;
  }
  return sections;
}

const toInteger = (bytes: Buffer) => BigInt(`0x${Buffer.from(bytes).reverse().toString('hex')}`);

export function readR1cs(path: string): R1cs {
  const sections = readSections(readFileSync(path), 'r1cs');
  const header = sections.get(1) as Buffer;
  const body = sections.get(2) as Buffer;
  const constraints = header.readUInt32LE(60);
  const starts = new Uint32Array(3 * constraints + 1);
  // A term has 36 bytes, and each of the three parts begins with a count of 4 bytes.
  const terms = (body.length - 12 * constraints) / 36;
  const termWires = new Uint32Array(terms);
  const termCoefficients = new Uint32Array(terms);
  const coefficients: bigint[] = [];
  const coefficientIndexes = new Map<string, number>();
  let at = 0;
  let term = 0;
  for (let part = 0; part < 3 * constraints; part++) {
    const count = body.readUInt32LE(at);
    at += 4;
    for (let i = 0; i < count; i++, at += 36, term++) {
      termWires[term] = body.readUInt32LE(at);
      const key = body.toString('latin1', at + 4, at + 36);
      let index = coefficientIndexes.get(key);
      if (index === undefined) {
        index = coefficients.push(toInteger(body.subarray(at + 4, at + 36))) - 1;
        coefficientIndexes.set(key, index);
      }
      termCoefficients[term] = index;
    }
    starts[part + 1] = term;
  }
  return {
    wires: header.readUInt32LE(36),
    publicInputs: header.readUInt32LE(44),
    privateInputs: header.readUInt32LE(48),
    constraints,
    starts,
    termWires,
    termCoefficients,
    coefficients,
  };
}

/** Reads the value of each wire. */
export function readWitness(file: Buffer): bigint[] {
  const values = readSections(file, 'wtns').get(2) as Buffer;
  return Array.from({ length: values.length / 32 }, (_, wire) =>
    toInteger(values.subarray(32 * wire, 32 * wire + 32)),
  );
}

/** Computes the values of A, B and C in each constraint, without reducing them modulo P. */
export function evaluate(r1cs: R1cs, witness: readonly bigint[]): bigint[] {
  const { starts, termWires, termCoefficients, coefficients } = r1cs;
  return Array.from({ length: 3 * r1cs.constraints }, (_, part) => {
    let sum = 0n;
    for (let term = starts[part] as number; term < (starts[part + 1] as number); term++) {
      const value = witness[termWires[term] as number] as bigint;
      if (value !== 0n) sum += value * (coefficients[termCoefficients[term] as number] as bigint);
    }
    return sum;
  });
}

/** Returns the indexes of the constraints that a witness breaks. */
export function findBrokenConstraints(r1cs: R1cs, witness: readonly bigint[]): number[] {
  const parts = evaluate(r1cs, witness);
  const brokenConstraints: number[] = [];
  for (let index = 0; index < r1cs.constraints; index++) {
    const [a, b, c] = parts.slice(3 * index, 3 * index + 3) as [bigint, bigint, bigint];
    if ((a * b - c) % P !== 0n) brokenConstraints.push(index);
  }
  return brokenConstraints;
}

/** Terms and their parts by wire. Those of a wire begin at starts[wire] and end before starts[wire + 1]. */
export interface Uses {
  readonly starts: Uint32Array;
  readonly terms: Uint32Array;
  readonly parts: Uint32Array;
}

export function countUses(r1cs: R1cs): Uses {
  const starts = new Uint32Array(r1cs.wires + 1);
  for (const wire of r1cs.termWires) starts[wire + 1] = (starts[wire + 1] as number) + 1;
  for (let wire = 0; wire < r1cs.wires; wire++) {
    starts[wire + 1] = (starts[wire + 1] as number) + (starts[wire] as number);
  }
  const next = starts.slice();
  const terms = new Uint32Array(r1cs.termWires.length);
  const parts = new Uint32Array(r1cs.termWires.length);
  for (let part = 0; part < 3 * r1cs.constraints; part++) {
    for (let term = r1cs.starts[part] as number; term < (r1cs.starts[part + 1] as number); term++) {
      const wire = r1cs.termWires[term] as number;
      const slot = next[wire] as number;
      next[wire] = slot + 1;
      terms[slot] = term;
      parts[slot] = part;
    }
  }
  return { starts, terms, parts };
}

/**
 * Calls `callback` with the name and the wire of each signal. The wire is -1 if the compiler replaced the
 * signal by other wires.
 */
export function eachSymbol(path: string, callback: (name: string, wire: number) => void): void {
  const text = readFileSync(path, 'latin1');
  for (let at = 0; at < text.length; ) {
    const end = text.indexOf('\n', at);
    const line = text.slice(at, end === -1 ? text.length : end);
    at += line.length + 1;
    const wireAt = line.indexOf(',') + 1;
    callback(line.slice(line.lastIndexOf(',') + 1), Number(line.slice(wireAt, line.indexOf(',', wireAt))));
  }
}

/**
 * Returns the wires that can be changed alone without breaking a constraint.
 *
 * @param change returns the difference to add to a wire's value
 */
export function freeWires(
  r1cs: R1cs,
  uses: Uses,
  witness: readonly bigint[],
  change: (value: bigint) => bigint,
): number[] {
  const parts = evaluate(r1cs, witness);
  const free: number[] = [];
  for (let wire = 1; wire < r1cs.wires; wire++) {
    if (!isPinned(r1cs, uses, parts, wire, change(witness[wire] as bigint))) free.push(wire);
  }
  return free;
}

function isPinned(
  r1cs: R1cs,
  uses: Uses,
  parts: readonly bigint[],
  wire: number,
  difference: bigint,
): boolean {
  const end = uses.starts[wire + 1] as number;
  for (let use = uses.starts[wire] as number; use < end; ) {
    const constraint = Math.floor((uses.parts[use] as number) / 3);
    const [a = 0n, b = 0n, c = 0n] = [0, 1, 2].map((part) => {
      const at = 3 * constraint + part;
      if (use === end || uses.parts[use] !== at) return parts[at];
      const coefficient = r1cs.coefficients[r1cs.termCoefficients[uses.terms[use++] as number] as number];
      return (parts[at] as bigint) + (coefficient as bigint) * difference;
    });
    if ((a * b - c) % P !== 0n) return true;
  }
  return false;
}
