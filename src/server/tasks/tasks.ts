/** The tasks of an application in one server. */
import { ApplicationMistake, ConfigError } from 'sui-enclave/errors';
import { quantity } from 'sui-enclave/wording';
import type { SignedAnswer } from '../keys/signer.ts';
import type { ScheduledTask, Task, TaskOptions, TaskOutcome, TaskState } from './task.ts';

const MAX_TASKS = 16;

export class Tasks {
  readonly #options: TaskOptions;
  #scheduled: readonly ScheduledTask[] = [];

  constructor(options: TaskOptions) {
    this.#options = options;
  }

  /** @throws ConfigError if two tasks have the same name, or there are too many */
  set(tasks: readonly Task[] = []): void {
    if (tasks.length > MAX_TASKS) {
      throw new ConfigError(
        `an application has at most ${MAX_TASKS} tasks, and this one has ${tasks.length}`,
      );
    }
    const names = new Set<string>();
    this.#scheduled = tasks.map(({ name, schedule }) => {
      if (typeof schedule !== 'function') throw new ConfigError(`the task ${name} must be made by task()`);
      if (names.has(name)) throw new ConfigError(`two tasks have the name ${name}: each needs its own`);
      names.add(name);
      return schedule(this.#options);
    });
  }

  start(): void {
    for (const task of this.#scheduled) task.start();
  }

  states(): TaskState[] {
    return this.#scheduled.map(({ state }) => state);
  }

  /** Lists, for `/readyz`, the tasks whose last run failed or has not ended in time. */
  warnings(): string[] {
    return this.states().flatMap(({ name, failures, isOverdue }) => {
      if (isOverdue) return `the task ${name} has not ended, although its time is over`;
      return failures > 0 ? `the task ${name} has failed in ${quantity(failures, 'run')} in a row` : [];
    });
  }

  /** @throws TASK_NO_VALUE; ApplicationMistake if there is no such task */
  latest(name: string): SignedAnswer {
    return this.#find(name).latest();
  }

  /**
   * Runs a task now, unless a run has begun already, for development and tests.
   *
   * @returns when the run has ended
   */
  run(name: string): Promise<TaskOutcome> {
    return this.#find(name).run();
  }

  /** Begins no more runs, aborts those that have begun, and waits at most `graceMs` for their end. */
  async stop(graceMs: number): Promise<void> {
    const { promise: graceEnd, resolve } = Promise.withResolvers<void>();
    const grace = setTimeout(resolve, graceMs);
    await Promise.race([Promise.all(this.#scheduled.map((task) => task.stop())), graceEnd]);
    clearTimeout(grace);
  }

  #find(name: string): ScheduledTask {
    const task = this.#scheduled.find(({ state }) => state.name === name);
    if (task) return task;
    throw new ApplicationMistake(
      `${name} is not among the tasks that create has returned: call latest in a handler, or add the task`,
    );
  }
}
