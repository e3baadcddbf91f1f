/** Bounds the gas that is spent in any 24 hours, also over restarts. Times are of a monotonic clock, in milliseconds. */

export const DAY_MS = 24 * 60 * 60_000;

/** What a transaction of an earlier process cost. */
export interface PastCost {
  /** How long before the chain's last checkpoint, in milliseconds. */
  readonly ageMs: number;
  /** Negative where more came back than was spent. */
  readonly mist: bigint;
}

interface Cost {
  readonly at: number;
  readonly mist: bigint;
}

export class GasBudget {
  readonly #mistADay: bigint;
  #spent: Cost[] = [];
  /** Earlier processes may have spent everything right before the start, as long as nothing else is known. */
  #before: Cost | undefined;

  /** @param startedAt by the monotonic clock */
  constructor(mistADay: bigint, startedAt: number) {
    this.#mistADay = mistADay;
    this.#before = { at: startedAt, mist: mistADay };
  }

  /** Whether it matters what earlier processes spent, and is not known. */
  needsPast(now: number): boolean {
    return this.#before !== undefined && now - this.#before.at < DAY_MS;
  }

  /** What earlier processes spent in the last 24 hours. */
  recall(costs: readonly PastCost[], now: number): void {
    this.#before = undefined;
    for (const { ageMs, mist } of costs) this.add(mist, now - ageMs);
  }

  /** Whether so much may be spent now, in MIST. */
  allows(mist: bigint, now: number): boolean {
    return this.spent(now) + mist <= this.#mistADay;
  }

  /** Gas that came back makes no room for other: it would let a day spend without bound. */
  add(mist: bigint, at: number): void {
    if (mist > 0n) this.#spent.push({ at, mist });
  }

  /** What may be spent now, in MIST. */
  left(now: number): bigint {
    const left = this.#mistADay - this.spent(now);
    return left > 0n ? left : 0n;
  }

  /** In the last 24 hours, in MIST. */
  spent(now: number): bigint {
    const isOfToday = ({ at }: Cost) => now - at < DAY_MS;
    this.#spent = this.#spent.filter(isOfToday);
    const costs = this.#before && isOfToday(this.#before) ? [this.#before, ...this.#spent] : this.#spent;
    return costs.reduce((sum, { mist }) => sum + mist, 0n);
  }
}
