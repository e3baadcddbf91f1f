import type { BootOptions } from 'sui-enclave-server/boot';

type TaskClock = NonNullable<BootOptions['taskClock']>;

interface Timer {
  readonly time: number;
  due(): Promise<void>;
}

/** A clock of tasks that stands still until a test moves it. Its random numbers are zero. */
export class HeldClock implements TaskClock {
  readonly #timers = new Set<Timer>();
  #now = 0;

  now(): number {
    return this.#now;
  }

  random(): number {
    return 0;
  }

  setTimer(due: () => Promise<void>, ms: number): () => void {
    const timer = { time: this.#now + ms, due };
    this.#timers.add(timer);
    return () => {
      this.#timers.delete(timer);
    };
  }

  /**
   * Moves the time forward by `ms`. At each time at which tasks are due, waits until their runs have ended.
   * On this clock, runs take no time.
   */
  async pass(ms: number): Promise<void> {
    const end = this.#now + ms;
    for (;;) {
      const time = Math.min(...Array.from(this.#timers, (timer) => timer.time));
      if (time > end) break;
      this.#now = time;
      const due = [...this.#timers].filter((timer) => timer.time === time);
      for (const timer of due) this.#timers.delete(timer);
      await Promise.all(due.map((timer) => timer.due()));
    }
    this.#now = end;
  }
}
