/**
 * Finds the wires that the inputs do not determine, by a static check. A prover could choose the values of
 * these wires. The check works by propagation, so it may report a determined wire, but it never misses an
 * undetermined one:
 *
 * - If A and B of a constraint are determined, the constraint determines the last undetermined wire in C.
 * - It also determines several wires in C if all of them are bits, and no two subsets of their coefficients
 * have the same sum.
 * - A gadget determines its outputs by a lemma, which must be proved elsewhere.
 */
import { countUses, P, type R1cs } from './r1cs.ts';

/** A lemma: if all wires of `needs` are determined, those of `gives` are too. */
export interface Lemma {
  readonly needs: readonly number[];
  readonly gives: readonly number[];
}

/** Returns the wires that occur in a constraint and are neither inputs nor determined by them. */
export function undetermined(r1cs: R1cs, lemmas: readonly Lemma[]): number[] {
  return new Propagation(r1cs).run(lemmas);
}

class Propagation {
  readonly #r1cs: R1cs;
  readonly #uses: ReturnType<typeof countUses>;
  readonly #isDetermined: Uint8Array;
  readonly #isBit: Uint8Array;
  /**
   * Numbers of open terms in each constraint: terms whose wires aren't determined yet. The first array counts
   * open terms in A and B. The second counts open terms in C. The third counts the open terms in C whose
   * wires are not known to be bits.
   */
  readonly #openFactors: Uint32Array;
  readonly #openInC: Uint32Array;
  readonly #openNonBits: Uint32Array;
  readonly #queue: number[] = [];

  constructor(r1cs: R1cs) {
    this.#r1cs = r1cs;
    this.#uses = countUses(r1cs);
    this.#isDetermined = new Uint8Array(r1cs.wires);
    this.#isBit = new Uint8Array(r1cs.wires);
    this.#openFactors = new Uint32Array(r1cs.constraints);
    this.#openInC = new Uint32Array(r1cs.constraints);
    this.#openNonBits = new Uint32Array(r1cs.constraints);
    for (let constraint = 0; constraint < r1cs.constraints; constraint++) this.#findBit(constraint);
    for (let part = 0; part < 3 * r1cs.constraints; part++) {
      for (const { wire } of this.#terms(part)) this.#count(part, wire, 1);
    }
  }

  run(lemmas: readonly Lemma[]): number[] {
    const { wires, publicInputs, privateInputs, constraints } = this.#r1cs;
    for (let wire = 0; wire <= publicInputs + privateInputs; wire++) this.#markDetermined(wire);
    for (let constraint = 0; constraint < constraints; constraint++) this.#queue.push(constraint);
    let pending = lemmas;
    for (;;) {
      for (let constraint = this.#queue.pop(); constraint !== undefined; constraint = this.#queue.pop())
        this.#solve(constraint);
      const ready = pending.filter(({ needs }) => needs.every((wire) => this.#isDetermined[wire]));
      if (ready.length === 0) break;
      pending = pending.filter((lemma) => !ready.includes(lemma));
      for (const { gives } of ready) for (const wire of gives) this.#markDetermined(wire);
    }
    const isUsed = (wire: number) => this.#uses.starts[wire] !== this.#uses.starts[wire + 1];
    return Array.from({ length: wires }, (_, wire) => wire).filter(
      (wire) => !this.#isDetermined[wire] && isUsed(wire),
    );
  }

  #terms(part: number): { wire: number; coefficient: bigint }[] {
    const { starts, termWires, termCoefficients, coefficients } = this.#r1cs;
    const terms = [];
    for (let term = starts[part] as number; term < (starts[part + 1] as number); term++) {
      const coefficient = coefficients[termCoefficients[term] as number] as bigint;
      terms.push({ wire: termWires[term] as number, coefficient });
    }
    return terms;
  }

  /** Marks a wire as a bit if this constraint says, up to a factor, that `wire * (wire - 1)` is 0. */
  #findBit(constraint: number): void {
    const [a, b, c] = [0, 1, 2].map((part) => this.#terms(3 * constraint + part)) as [Terms, Terms, Terms];
    if (c.length > 0 || a.length + b.length !== 3) return;
    const [factor, difference] = a.length === 1 ? [a, b] : [b, a];
    const wire = factor[0]?.wire ?? 0;
    const slope = difference.find((term) => term.wire === wire)?.coefficient;
    const constant = difference.find((term) => term.wire === 0)?.coefficient;
    if (wire !== 0 && slope !== undefined && constant !== undefined && (slope + constant) % P === 0n) {
      this.#isBit[wire] = 1;
    }
  }

  #count(part: number, wire: number, by: 1 | -1): void {
    const constraint = Math.floor(part / 3);
    const add = (counts: Uint32Array) => {
      counts[constraint] = (counts[constraint] as number) + by;
    };
    if (part % 3 < 2) {
      add(this.#openFactors);
    } else {
      add(this.#openInC);
      if (!this.#isBit[wire]) add(this.#openNonBits);
    }
  }

  #markDetermined(wire: number): void {
    if (this.#isDetermined[wire]) return;
    this.#isDetermined[wire] = 1;
    const { starts, parts } = this.#uses;
    for (let use = starts[wire] as number; use < (starts[wire + 1] as number); use++) {
      const part = parts[use] as number;
      this.#count(part, wire, -1);
      this.#queue.push(Math.floor(part / 3));
    }
  }

  #solve(constraint: number): void {
    const open = this.#openInC[constraint] as number;
    if (this.#openFactors[constraint] !== 0 || open === 0) return;
    if (open > 1 && this.#openNonBits[constraint] !== 0) return;
    const terms = this.#terms(3 * constraint + 2).filter(({ wire }) => !this.#isDetermined[wire]);
    if (open > 1 && !isSubsetSumUnique(terms.map(({ coefficient }) => coefficient))) return;
    for (const { wire } of terms) this.#markDetermined(wire);
  }
}

type Terms = { wire: number; coefficient: bigint }[];

/**
 * Returns whether each absolute value exceeds the sum of all smaller ones, without wrapping around the field.
 */
function isSubsetSumUnique(coefficients: readonly bigint[]): boolean {
  const sizes = coefficients.map((coefficient) => (coefficient > P / 2n ? P - coefficient : coefficient));
  sizes.sort((a, b) => (a < b ? -1 : 1));
  let sum = 0n;
  return sizes.every((size) => {
    const isMore = size > sum;
    sum += size;
    return isMore && sum < P / 2n;
  });
}
