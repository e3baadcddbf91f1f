import { startShared, waitForShared } from 'sui-enclave-server';

export interface CacheBounds {
  /**
   * Lifetime of a result, in milliseconds. With 0 nothing is kept, but concurrent requests still share a
   * load.
   */
  readonly ttlMs: number;
  /** Returns the lifetime of a failure, in milliseconds. */
  failureMs(error: unknown): number;
  readonly maxEntries: number;
}

/**
 * Caches loaded values by key. Concurrent requests for a key share one load. Its outcome, a result or a
 * failure, answers later requests until it expires. Only the request that began the load holds a slot for
 * work meanwhile.
 */
export class LoadingCache<T> {
  readonly #bounds: CacheBounds;
  readonly #loading = new Map<string, Promise<T>>();
  /** Sorted by load time, oldest first. */
  readonly #kept = new Map<string, { outcome: Promise<T>; until: number }>();

  constructor(bounds: CacheBounds) {
    this.#bounds = bounds;
  }

  /** @throws what the load throws; OVERLOADED if too many requests wait for it */
  get(key: string, load: (key: string) => Promise<T>): Promise<T> {
    const kept = this.#kept.get(key);
    if (kept && performance.now() < kept.until) return kept.outcome;
    const loading = this.#loading.get(key);
    return loading ? waitForShared(loading) : this.#load(key, load);
  }

  #load(key: string, load: (key: string) => Promise<T>): Promise<T> {
    const outcome = startShared(() => load(key));
    this.#loading.set(key, outcome);
    const keep = (forMs: number) => {
      this.#loading.delete(key);
      this.#kept.delete(key);
      if (forMs > 0) this.#keep(key, outcome, forMs);
    };
    outcome.then(
      () => keep(this.#bounds.ttlMs),
      (error) => keep(this.#bounds.failureMs(error)),
    );
    return outcome;
  }

  #keep(key: string, outcome: Promise<T>, forMs: number): void {
    this.#kept.set(key, { outcome, until: performance.now() + forMs });
    if (this.#kept.size > this.#bounds.maxEntries) {
      const [oldest] = this.#kept.keys();
      this.#kept.delete(oldest as string);
    }
  }
}
