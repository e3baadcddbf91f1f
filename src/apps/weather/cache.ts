import { startShared, waitForShared } from 'sui-enclave-server';

export interface CacheBounds {
  /**
   * Lifetime of a loaded value, in milliseconds. With 0, no value is cached, but concurrent requests still
   * share a load.
   */
  readonly ttlMs: number;
  /** Returns the lifetime of a failure, in milliseconds. */
  failureMs(error: unknown): number;
  readonly maxEntries: number;
}

/**
 * Caches loaded values by key. Concurrent requests for a key share one load. Its outcome, a value or a
 * failure, answers later requests until it expires. During the load, only the request that began it holds a
 * slot for work.
 */
export class LoadingCache<T> {
  readonly #bounds: CacheBounds;
  readonly #loading = new Map<string, Promise<T>>();
  /** Sorted by load time, oldest first. */
  readonly #entries = new Map<string, { outcome: Promise<T>; expiresAt: number }>();

  constructor(bounds: CacheBounds) {
    this.#bounds = bounds;
  }

  /**
   * Returns the cached value, or loads it.
   *
   * @throws the failure of the load; OVERLOADED if too many requests wait
   */
  get(key: string, load: (key: string) => Promise<T>): Promise<T> {
    const entry = this.#entries.get(key);
    if (entry && performance.now() < entry.expiresAt) return entry.outcome;
    const loading = this.#loading.get(key);
    return loading ? waitForShared(loading) : this.#load(key, load);
  }

  #load(key: string, load: (key: string) => Promise<T>): Promise<T> {
    const outcome = startShared(() => load(key));
    this.#loading.set(key, outcome);
    const settle = (lifetimeMs: number) => {
      this.#loading.delete(key);
      this.#entries.delete(key);
      if (lifetimeMs > 0) this.#store(key, outcome, lifetimeMs);
    };
    outcome.then(
      () => settle(this.#bounds.ttlMs),
      (error) => settle(this.#bounds.failureMs(error)),
    );
    return outcome;
  }

  #store(key: string, outcome: Promise<T>, lifetimeMs: number): void {
    this.#entries.set(key, { outcome, expiresAt: performance.now() + lifetimeMs });
    if (this.#entries.size > this.#bounds.maxEntries) {
      const [oldest] = this.#entries.keys();
      this.#entries.delete(oldest as string);
    }
  }
}
