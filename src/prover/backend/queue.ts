/** Lets callers into a section one at a time, in the order of their arrival. */
export class Queue {
  #taken = false;
  /** Functions of the waiting callers. Each is called when it is the caller's turn. */
  readonly #waiting = new Set<() => void>();

  /**
   * Waits for the caller's turn.
   *
   * @param signal makes the caller leave the queue; `enter` then throws the signal's reason
   * @returns a function that ends the turn, and that must be called exactly once
   */
  async enter(signal?: AbortSignal): Promise<() => void> {
    signal?.throwIfAborted();
    if (this.#taken) await this.#wait(signal);
    this.#taken = true;
    return () => this.#next();
  }

  #wait(signal?: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const settled = new AbortController();
      const enter = () => {
        settled.abort();
        resolve();
      };
      const leave = () => {
        this.#waiting.delete(enter);
        reject(signal?.reason);
      };
      this.#waiting.add(enter);
      signal?.addEventListener('abort', leave, { once: true, signal: settled.signal });
    });
  }

  /** Ends a turn. If a caller waits, the section stays taken, so that no later caller enters in between. */
  #next(): void {
    const [enter] = this.#waiting;
    if (!enter) {
      this.#taken = false;
      return;
    }
    this.#waiting.delete(enter);
    enter();
  }
}
