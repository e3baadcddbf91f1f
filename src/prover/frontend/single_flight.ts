import { waitForOther } from 'sui-enclave-service/waiting';

/** Runs work once for all callers that ask for it at the same time. Results are not kept. */
export class SingleFlight<Result> {
  readonly #running = new Map<string, Promise<Result>>();

  /** Joins the work that runs under this key, or starts it. It continues when a caller leaves. @throws OVERLOADED if too many wait */
  run(key: string, work: () => Promise<Result>): Promise<Result> {
    const running = this.#running.get(key);
    if (running) return waitForOther(running);
    const started = work().finally(() => this.#running.delete(key));
    this.#running.set(key, started);
    return started;
  }

  get size(): number {
    return this.#running.size;
  }
}
