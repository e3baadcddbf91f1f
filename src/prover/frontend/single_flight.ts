import { startShared, waitForShared } from 'sui-enclave-service/waiting';

interface RunningWork<Result> {
  readonly outcome: Promise<Result>;
  readonly abandoned: AbortController;
  /** Number of callers that wait for the outcome. */
  callers: number;
}

/** Runs work once for all callers that ask for it at the same time. Does not keep its outcome. */
export class SingleFlight<Result> {
  readonly #running = new Map<string, RunningWork<Result>>();

  /**
   * Joins the work that runs under this key, or starts it. The work continues as long as one of its callers
   * is connected.
   *
   * @param leaving signal that is aborted when the caller has left
   * @param work ends when its signal is aborted, because the last caller has left. A later caller starts the
   *   work again
   * @throws OVERLOADED if too many callers wait; errors of the work. Throws the reason of `leaving` once it
   *   is aborted
   */
  async run(
    key: string,
    leaving: AbortSignal,
    work: (abandoned: AbortSignal) => Promise<Result>,
  ): Promise<Result> {
    leaving.throwIfAborted();
    const joined = this.#running.get(key);
    const running = joined ?? this.#start(key, work);
    running.callers += 1;
    const leave = () => {
      running.callers -= 1;
      if (running.callers > 0) return;
      this.#forget(key, running.abandoned);
      running.abandoned.abort(leaving.reason);
    };
    leaving.addEventListener('abort', leave, { once: true });
    try {
      // The caller that started the work keeps a slot until the work ends, so that there is never more work
      // than slots.
      return await (joined ? waitForShared(running.outcome, leaving) : running.outcome);
    } finally {
      leaving.removeEventListener('abort', leave);
      if (!leaving.aborted) leave();
    }
  }

  get size(): number {
    return this.#running.size;
  }

  #start(key: string, work: (abandoned: AbortSignal) => Promise<Result>): RunningWork<Result> {
    const abandoned = new AbortController();
    const shared = startShared(() => work(abandoned.signal), abandoned.signal);
    const outcome = shared.finally(() => this.#forget(key, abandoned));
    const running: RunningWork<Result> = { outcome, abandoned, callers: 0 };
    this.#running.set(key, running);
    return running;
  }

  /** Forgets the work that this controller ends, unless others have started it again. */
  #forget(key: string, abandoned: AbortController): void {
    if (this.#running.get(key)?.abandoned === abandoned) this.#running.delete(key);
  }
}
