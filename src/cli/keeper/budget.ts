/**
 * Bounds the gas of the transactions that are signed in any 24 hours, even across restarts. A transaction
 * counts with its whole budget, whatever a node says about its cost: the chain charges no more than the
 * budget, and a node may lie.
 */
import { EnclaveError } from 'sui-enclave/errors';

export const DAY_MS = 24 * 60 * 60_000;

/** A transaction that was signed, or was about to be. */
export interface Signed {
  /** Age of the transaction, in milliseconds. */
  readonly ageMs: number;
  /** The transaction's gas budget in MIST. */
  readonly mist: bigint;
}

/** The record of signed transactions, which outlasts the process. */
export interface SigningRecord {
  /** The transactions of earlier processes. */
  readonly signed: readonly Signed[];
  /** Replaces the whole record. @throws EnclaveError if it can't be stored */
  replace(signed: readonly Signed[]): void;
}

/** The record of a process that signs nothing. */
export const NO_RECORD: SigningRecord = { signed: [], replace() {} };

/** Error for a transaction that would exceed `gas_a_day`. */
export class GasADayError extends EnclaveError {
  readonly code = 'GAS_A_DAY';
}

interface Cost {
  /** Time of the signature by the monotonic clock. */
  readonly at: number;
  readonly mist: bigint;
}

export class GasBudget {
  readonly #mistADay: bigint;
  readonly #clock: () => number;
  readonly #record: SigningRecord;
  #costs: readonly Cost[];

  /** @param clock monotonic, in milliseconds */
  constructor(mistADay: bigint, clock: () => number, record: SigningRecord) {
    this.#mistADay = mistADay;
    this.#clock = clock;
    this.#record = record;
    this.#costs = record.signed.map(({ ageMs, mist }) => ({ at: clock() - ageMs, mist }));
  }

  /**
   * Notes a transaction that is about to be signed.
   *
   * @param mist the transaction's gas budget
   * @throws GasADayError, or an error of the record; the transaction must then not be signed
   */
  spend(mist: bigint): void {
    const now = this.#clock();
    const spent = this.spent();
    if (spent + mist > this.#mistADay) {
      throw new GasADayError(
        `${spent} MIST, the budgets of the last 24 hours, and ${mist}, that of one transaction more, exceed gas_a_day`,
      );
    }
    const costs = [...this.#costs, { at: now, mist }];
    this.#record.replace(costs.map(({ at, mist }) => ({ ageMs: now - at, mist })));
    this.#costs = costs;
  }

  /** Returns the gas that may be signed now, in MIST. */
  left(): bigint {
    const left = this.#mistADay - this.spent();
    return left > 0n ? left : 0n;
  }

  /** Returns the budgets of the last 24 hours, in MIST. */
  spent(): bigint {
    const now = this.#clock();
    this.#costs = this.#costs.filter(({ at }) => now - at < DAY_MS);
    return this.#costs.reduce((sum, { mist }) => sum + mist, 0n);
  }
}
