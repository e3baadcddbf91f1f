/** Pauses between rounds, which grow after failures. */

export interface Pauses {
  /** Pause after a round without a failure, in milliseconds. */
  readonly intervalMs: number;
  /** The longest pause, in milliseconds. */
  readonly maxPauseMs: number;
  /** Returns a random number from 0 to 1. */
  random(): number;
}

/**
 * Returns the pause in milliseconds, which doubles with each failure up to the maximum. It varies by up to a
 * fifth, so that several programs do not act at the same time.
 */
export function pauseAfter(failures: number, { intervalMs, maxPauseMs, random }: Pauses): number {
  // 2 ** 30 intervals exceed every bound.
  const pause = Math.min(intervalMs * 2 ** Math.min(failures, 30), maxPauseMs);
  return pause * (0.8 + 0.4 * random());
}
