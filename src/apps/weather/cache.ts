/**
 * Answers by place. Requests for a place share one load while it is in flight; its result answers the rest
 * for `ttlMs`. A failed load is not kept.
 */
export class AnswerCache<T> {
  readonly #ttlMs: number;
  readonly #maxEntries: number;
  readonly #loading = new Map<string, Promise<T>>();
  /** Oldest first: all entries live equally long. */
  readonly #kept = new Map<string, { value: T; until: number }>();

  /** @param ttlMs 0 keeps nothing; loads in flight are still shared. */
  constructor(ttlMs: number, maxEntries: number) {
    this.#ttlMs = ttlMs;
    this.#maxEntries = maxEntries;
  }

  async get(key: string, load: () => Promise<T>): Promise<T> {
    const kept = this.#kept.get(key);
    if (kept && performance.now() < kept.until) return kept.value;
    const loading = this.#loading.get(key);
    if (loading) return loading;
    const fresh = load();
    this.#loading.set(key, fresh);
    try {
      const value = await fresh;
      this.#keep(key, value);
      return value;
    } finally {
      this.#loading.delete(key);
    }
  }

  #keep(key: string, value: T): void {
    if (this.#ttlMs === 0) return;
    this.#kept.delete(key);
    this.#kept.set(key, { value, until: performance.now() + this.#ttlMs });
    if (this.#kept.size > this.#maxEntries) {
      const [oldest] = this.#kept.keys();
      this.#kept.delete(oldest as string);
    }
  }
}
