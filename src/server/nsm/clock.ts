import { readFileSync } from 'node:fs';
import * as v from 'valibot';
import { EnclaveServerError } from '../enclave_errors.ts';

/**
 * Maximum difference from the NSM's time, in milliseconds. Beyond it, the time in signed answers and checks
 * of foreign timestamps are unreliable.
 */
const MAX_DIFFERENCE_MS = 5000;
/** Time for which a document from the NSM confirms the clock, in milliseconds. */
const CONFIRMED_MS = 10 * 60_000;
/** Interval at which the server requests a document to confirm the clock, in milliseconds. */
export const CONFIRM_EVERY_MS = 60_000;

/** The sources by which init may steer the clock, and their names in a warning. */
const REFERENCES = { ptp0: 'hypervisor', nsm: 'NSM' } as const;

const State = v.union([
  v.strictObject({
    source: v.picklist(['ptp0', 'nsm']),
    difference_ms: v.pipe(v.number(), v.safeInteger()),
  }),
  v.strictObject({ source: v.literal('kernel') }),
]);

export type ClockState = v.InferOutput<typeof State> | { readonly source: 'unknown' };

/**
 * Judges whether the system clock is right. The judgement uses init's report (the clock's source, and its
 * error when init last corrected it) and the time in the NSM's documents. Outside an image there is no
 * report, and nothing corrects the clock.
 */
export class Clock {
  readonly #path: string | undefined;
  readonly #now: () => number;
  readonly #onChange: (isConfirmed: boolean, differenceMs: number) => void;
  #agreed: boolean | undefined;
  #confirmedUntil = Number.NEGATIVE_INFINITY;
  /** The difference from the time in the last document. */
  #differenceMs = 0;

  /**
   * @param now a monotonic clock in milliseconds
   * @param onChange called after the first document, and whenever a document confirms the clock and the
   *   previous document did not, or vice versa
   */
  constructor(
    path: string | undefined,
    now: () => number = () => performance.now(),
    onChange: (isConfirmed: boolean, differenceMs: number) => void = () => {},
  ) {
    this.#onChange = onChange;
    this.#path = path;
    this.#now = now;
  }

  state(): ClockState {
    if (this.#path === undefined) return { source: 'kernel' };
    try {
      return v.parse(State, JSON.parse(readFileSync(this.#path, 'utf8')));
    } catch {
      return { source: 'unknown' };
    }
  }

  /**
   * Compares the clock with the time in a document from the NSM. Only the latest document counts. All
   * parameters are in milliseconds since the Unix epoch.
   *
   * @param documentMs the time in the document
   * @param requestedMs the clock's time before the document was requested
   * @param answeredMs the clock's time after the document arrived
   */
  compare(documentMs: number, requestedMs: number, answeredMs: number): void {
    // The NSM made the document at some time between the two, so the clock differs by at least this much.
    const nearestMs = Math.min(Math.max(documentMs, requestedMs), answeredMs);
    this.#differenceMs = nearestMs - documentMs;
    const agrees = Math.abs(this.#differenceMs) <= MAX_DIFFERENCE_MS;
    this.#confirmedUntil = agrees ? this.#now() + CONFIRMED_MS : Number.NEGATIVE_INFINITY;
    if (agrees !== this.#agreed) this.#onChange(agrees, this.#differenceMs);
    this.#agreed = agrees;
  }

  /** Whether a document from the last 10 minutes agrees with the clock. */
  get isConfirmed(): boolean {
    return this.#doubt() === null;
  }

  /** @throws CLOCK_UNCONFIRMED unless a document from the last 10 minutes agrees within 5 seconds */
  requireConfirmed(): void {
    const doubt = this.#doubt();
    if (doubt === null) return;
    const retryAfterSeconds = CONFIRM_EVERY_MS / 1000;
    throw new EnclaveServerError('CLOCK_UNCONFIRMED', `nothing is signed while ${doubt}`, {
      retryAfterSeconds,
    });
  }

  /** Lists, for `/readyz`, the problems that an operator should know of, although the server works. */
  warnings(): string[] {
    const state = this.state();
    const warnings: string[] = [];
    if (state.source === 'unknown') warnings.push('the state of the clock is unknown');
    if ('difference_ms' in state && Math.abs(state.difference_ms) > MAX_DIFFERENCE_MS) {
      warnings.push(`the clock differed from the ${REFERENCES[state.source]}'s by ${state.difference_ms} ms`);
    }
    const doubt = this.#doubt();
    return doubt === null ? warnings : [...warnings, doubt];
  }

  #doubt(): string | null {
    if (this.#now() < this.#confirmedUntil) return null;
    return Math.abs(this.#differenceMs) > MAX_DIFFERENCE_MS
      ? `the clock differs from the NSM's by ${this.#differenceMs} ms`
      : 'no document of the NSM from the last 10 minutes confirms the clock';
  }
}
