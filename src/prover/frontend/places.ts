/** Places for requests at the backend: as many as can be answered within ANSWER_SECONDS. */
import { FrontendError } from './errors.ts';

/** Number of the last proofs from which the duration of the next ones is estimated. */
const RECENT = 10;
/**
 * The part of ANSWER_SECONDS that places may take. The rest is for checks, and for proofs that take longer
 * than the last ones.
 */
const SHARE = 0.9;

export interface PlacesOptions {
  /** Time limit of a request that was admitted, in seconds. */
  readonly answerSeconds: number;
  /** Duration of a proof until one was measured, in seconds. */
  readonly proofSeconds: number;
  /** A monotonic clock in milliseconds. */
  readonly now?: () => number;
}

/** A place in the queue, of one request. It may be taken and left once. */
export interface Place {
  /** Takes it, if the rest of ANSWER_SECONDS is enough. @throws PROVER_BUSY */
  take(): void;
  /**
   * Returns whether a second try fits into the rest of ANSWER_SECONDS: it queues behind all others that have
   * a place.
   */
  hasTime(): boolean;
  /** Records that the backend has made the proof, and leaves the place. */
  proved(): void;
  /** Leaves the place, if it was taken and not left. */
  leave(): void;
}

export class Places {
  readonly #answerSeconds: number;
  readonly #limitSeconds: number;
  readonly #now: () => number;
  /**
   * Seconds between the last proofs, or since the beginning of one if nothing was to be proved before it.
   * With several backends that is the part of a proof's duration that each of them adds to a wait.
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

  /** Estimated duration of a proof in seconds, from the last ones. */
  get proofSeconds(): number {
    return this.#recent.reduce((sum, each) => sum + each, 0) / RECENT;
  }

  /** Number of places that are taken. */
  get taken(): number {
    return this.#taken;
  }

  /**
   * Requires that a request can be answered in time. An idle backend is always asked, however slow it was;
   * otherwise its duration would never be measured again.
   *
   * @param waitedSeconds of the request, so far
   * @throws PROVER_BUSY
   */
  requireRoom(waitedSeconds = 0): void {
    const { proofSeconds } = this;
    const seconds = waitedSeconds + (this.#taken + 1) * proofSeconds;
    if (this.#taken === 0 || seconds <= this.#limitSeconds) return;
    throw new FrontendError(
      'PROVER_BUSY',
      'too many requests wait for their proofs: try again later',
      // A place is free after each proof.
      { retryAfterSeconds: Math.max(1, Math.ceil(proofSeconds)) },
    );
  }

  /** Offers a place to a request that has just arrived, which it may take later. */
  place(): Place {
    const arrived = this.#now();
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
        this.requireRoom((now - arrived) / 1000);
        takenAt = now;
        this.#taken += 1;
      },
      hasTime: () => {
        const waitedSeconds = (this.#now() - arrived) / 1000;
        return waitedSeconds + this.#taken * this.proofSeconds <= this.#answerSeconds;
      },
      proved: () => {
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
