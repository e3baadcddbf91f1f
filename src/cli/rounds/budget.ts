/**
 * Bounds the gas of the transactions that are signed in any 24 hours, and in any hour if an hour is limited
 * too, even across restarts. A transaction counts with its whole budget, whatever a node says about its cost:
 * the chain charges no more than the budget, and a node may lie.
 */
import { EnclaveError } from 'sui-enclave/errors';

const HOUR_MS = 60 * 60_000;
export const DAY_MS = 24 * HOUR_MS;

/** The windows in which gas may be limited: length, description, and property of the file with the limit. */
const WINDOWS = {
  GAS_AN_HOUR: { ms: HOUR_MS, text: 'the last hour', property: 'gas_an_hour' },
  GAS_A_DAY: { ms: DAY_MS, text: 'the last 24 hours', property: 'gas_a_day' },
} as const;

/** Code of the error for a transaction that would exceed a limit. */
export type GasCode = keyof typeof WINDOWS;

const CODES = Object.keys(WINDOWS) as GasCode[];

/** The limits in MIST, by the code of the error for a transaction that would exceed the limit. */
export interface GasLimits {
  readonly GAS_AN_HOUR?: bigint;
  readonly GAS_A_DAY: bigint;
}

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

/** Error for a transaction that would exceed a limit. */
export class GasLimitError extends EnclaveError {
  readonly code: GasCode;

  constructor(code: GasCode, message: string) {
    super(message);
    this.code = code;
  }
}

interface Cost {
  /** Time of the signature by the monotonic clock. */
  readonly at: number;
  readonly mist: bigint;
}

export class GasBudget {
  readonly #limits: GasLimits;
  readonly #clock: () => number;
  readonly #record: SigningRecord;
  #costs: readonly Cost[];

  /** @param clock monotonic, in milliseconds */
  constructor(limits: GasLimits, clock: () => number, record: SigningRecord) {
    this.#limits = limits;
    this.#clock = clock;
    this.#record = record;
    this.#costs = record.signed.map(({ ageMs, mist }) => ({ at: clock() - ageMs, mist }));
  }

  /**
   * Records a transaction that is about to be signed.
   *
   * @param mist the transaction's gas budget in MIST
   * @param isUrgent false for a transaction that can wait. It must fit into half of each limit, so that the
   *   other half remains for urgent transactions
   * @throws GasLimitError, or an error of the record; the transaction must then not be signed
   */
  spend(mist: bigint, isUrgent = true): void {
    const now = this.#clock();
    for (const code of CODES) {
      const limit = this.#limits[code];
      const spent = this.spent(code);
      if (limit === undefined || spent + mist <= (isUrgent ? limit : limit / 2n)) continue;
      const { text, property } = WINDOWS[code];
      const bound = isUrgent ? property : `half of ${property}`;
      throw new GasLimitError(
        code,
        `the budgets of ${text} add up to ${spent} MIST; one more transaction, of ${mist} MIST, would exceed ${bound}`,
      );
    }
    const costs = [...this.#costs, { at: now, mist }];
    this.#record.replace(costs.map(({ at, mist }) => ({ ageMs: now - at, mist })));
    this.#costs = costs;
  }

  /**
   * Returns the gas that the limit of a window still allows, in MIST.
   *
   * @param code a window that has a limit
   */
  left(code: GasCode = 'GAS_A_DAY'): bigint {
    const remainder = (this.#limits[code] ?? 0n) - this.spent(code);
    return remainder > 0n ? remainder : 0n;
  }

  /** Returns the budgets of a window, by default of the last 24 hours, in MIST. */
  spent(code: GasCode = 'GAS_A_DAY'): bigint {
    const now = this.#clock();
    this.#costs = this.#costs.filter(({ at }) => now - at < DAY_MS);
    const { ms } = WINDOWS[code];
    return this.#costs.reduce((sum, { at, mist }) => (now - at < ms ? sum + mist : sum), 0n);
  }
}
