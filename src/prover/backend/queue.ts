/** Lets callers into a section one at a time, in the order of their arrival. */
export class Queue {
  #taken = false;
  /** Functions that are called when it is a caller's turn. */
  readonly #waiting = new Set<() => void>();

  /**
   * @param signal leaves the queue, and throws its reason
   * @returns a function that ends the turn; call it exactly once
   */
  async enter(signal?: AbortSignal): Promise<() => void> {
    signal?.throwIfAborted();
    if (this.#taken) await this.#wait(signal);
    this.#taken = true;
    return () => this.#next();
  }

  #wait(signal?: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const leave = () => {
        this.#waiting.delete(enter);
        reject(signal?.reason);
      };
      const enter = () => {
        signal?.removeEventListener('abort', leave);
        resolve();
      };
      this.#waiting.add(enter);
      signal?.addEventListener('abort', leave, { once: true });
    });
  }

  /** The section stays taken if someone waits, so that nobody enters in between. */
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
