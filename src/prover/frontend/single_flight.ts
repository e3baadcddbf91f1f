import { waitForOther } from 'sui-enclave-service/waiting';

/** Work that several callers may wait for at once. Results are not kept. */
export class SharedWork<Result> {
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
