/** Bounds the gas that is spent in any 24 hours. Begins anew with each start. */

const DAY_MS = 24 * 60 * 60_000;

export class GasBudget {
  readonly #mistADay: bigint;
  #spent: { readonly at: number; readonly mist: bigint }[] = [];

  constructor(mistADay: bigint) {
    this.#mistADay = mistADay;
  }

  /** Whether so much may be spent now, in MIST. @param now in milliseconds since 1970 */
  allows(mist: bigint, now: number): boolean {
    return this.spent(now) + mist <= this.#mistADay;
  }

  /** Gas that came back makes no room for other: it would let a day spend without bound. */
  add(mist: bigint, now: number): void {
    if (mist > 0n) this.#spent.push({ at: now, mist });
  }

  /** What may be spent now, in MIST. */
  left(now: number): bigint {
    const left = this.#mistADay - this.spent(now);
    return left > 0n ? left : 0n;
  }

  /** In the last 24 hours, in MIST. */
  spent(now: number): bigint {
    this.#spent = this.#spent.filter(({ at }) => now - at < DAY_MS);
    return this.#spent.reduce((sum, { mist }) => sum + mist, 0n);
  }
}
