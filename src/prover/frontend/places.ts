/** Manages places for requests at the backend: as many as it can answer within ANSWER_SECONDS. */
import { FrontendError } from './errors.ts';

/** Number of latest proofs from which the duration of the next proofs is estimated. */
const RECENT = 10;
/**
 * Share of ANSWER_SECONDS for the proofs of the requests that have places. The rest is for checks, and for
 * proofs that take longer than the latest ones.
 */
const SHARE = 0.9;

export interface PlacesOptions {
  /** Time limit of an admitted request, in seconds. */
  readonly answerSeconds: number;
  /** Assumed duration of a proof in seconds, until the first proof was measured. */
  readonly proofSeconds: number;
  /** Returns the time of a monotonic clock in milliseconds. */
  readonly now?: () => number;
}

/** A place in the queue for one request, which may take and leave it once. */
export interface Place {
  /** Takes the place, if the request can be answered within ANSWER_SECONDS. @throws PROVER_BUSY */
  take(): void;
  /**
   * Returns whether the rest of ANSWER_SECONDS is enough for a second try, which must wait for all other
   * requests that have a place.
   */
  hasTime(): boolean;
  /** Records that the backend has made the proof, and leaves the place. */
  recordProof(): void;
  /** Leaves the place, if the request has taken it and not left it yet. */
  leave(): void;
}

export class Places {
  readonly #answerSeconds: number;
  readonly #limitSeconds: number;
  readonly #now: () => number;
  /**
   * Seconds between the latest proofs. A proof after an idle time counts from its own beginning. With several
   * backends, these times are shorter than a proof: each is the time by which one place prolongs a wait.
   */
  readonly #recent: number[];
  #taken = 0;
  #lastProof = Number.NEGATIVE_INFINITY;

  constructor({ answerSeconds, proofSeconds, now = () => performance.now() }: PlacesOptions) {
    this.#answerSeconds = answerSeconds;
    this.#limitSeconds = SHARE * answerSeconds;
    this.#now = now;
    this.#recent = Array<number>(RECENT).fill(proofSeconds);
  }

  /** Estimated duration of a proof in seconds, from the latest proofs. */
  get proofSeconds(): number {
    return this.#recent.reduce((sum, seconds) => sum + seconds, 0) / RECENT;
  }

  /** Number of taken places. */
  get taken(): number {
    return this.#taken;
  }

  /**
   * Requires that a request can be answered in time. An idle backend gets a request even if it was slow.
   * Otherwise, its speed would never be measured again.
   *
   * @param waitedSeconds seconds that the request has waited so far
   * @throws PROVER_BUSY
   */
  requireRoom(waitedSeconds = 0): void {
    const { proofSeconds } = this;
    const seconds = waitedSeconds + (this.#taken + 1) * proofSeconds;
    if (this.#taken === 0 || seconds <= this.#limitSeconds) return;
    throw new FrontendError(
      'PROVER_BUSY',
      'too many requests wait for their proofs: try again later',
      // After each proof, a place becomes free.
      { retryAfterSeconds: Math.max(1, Math.ceil(proofSeconds)) },
    );
  }

  /** Offers a place to a request that has just arrived. The request may take it later. */
  offer(): Place {
    const arrivedAt = this.#now();
    let takenAt: number | undefined;
    const leave = () => {
      if (takenAt === undefined) return;
      takenAt = undefined;
      this.#taken -= 1;
    };
    return {
      leave,
      take: () => {
        const now = this.#now();
        this.requireRoom((now - arrivedAt) / 1000);
        takenAt = now;
        this.#taken += 1;
      },
      hasTime: () => {
        const waitedSeconds = (this.#now() - arrivedAt) / 1000;
        return waitedSeconds + this.#taken * this.proofSeconds <= this.#answerSeconds;
      },
      recordProof: () => {
        if (takenAt !== undefined) this.#learn(takenAt);
        leave();
      },
    };
  }

  #learn(takenAt: number): void {
    const now = this.#now();
    this.#recent.shift();
    this.#recent.push((now - Math.max(takenAt, this.#lastProof)) / 1000);
    this.#lastProof = now;
  }
}
