/**
 * Waits for a call that another request makes, such as the same request to an upstream. A waiting request
 * needs neither CPU nor an upstream connection. It therefore releases its slot and joins a bounded queue.
 */
import { AsyncLocalStorage } from 'node:async_hooks';
import { ServerError } from './errors.ts';

/** Error that ends the waits of a request whose caller has left, since its answer is no longer needed. */
export class CallerLeft extends ServerError {
  constructor() {
    // A caller sees this message only if it waits for a call that another request has begun without
    // `startShared`.
    super('OVERLOADED', 'the request whose answer this one waited for has ended: try again', {
      retryAfterSeconds: 1,
    });
  }
}

/** Signals that end a wait, but not the call. */
type Ends = readonly (AbortSignal | undefined)[];

/** Limits of one run of a task. Its calls and signatures don't count against the limits of requests. */
export interface TaskShare {
  /** Counts a request to an upstream. @throws ApplicationMistake if the run must not send it */
  takeCall(): void;
  /** Counts a signature. @throws ApplicationMistake if the run must not make it */
  takeSignature(): void;
}

/** The work on a request, or a run of a task, as the calls within it see it. */
export interface Work {
  /** Whether the request came sealed. If so, its effects must not be counted or reported. */
  readonly isSealed: boolean;
  /** The id in the header `x-request-id`; undefined in a task. */
  readonly id: string | undefined;
  /** Set in a task only. */
  readonly task?: TaskShare;
  /** Waits for a call, until one of the signals is aborted. */
  waitFor<T>(call: Promise<T>, ends: Ends): Promise<T>;
  /** Returns the signal that ends all waits of this work; undefined if only their calls end them. */
  leavingSignal(): AbortSignal | undefined;
}

const currentWork = new AsyncLocalStorage<Work>();

/** Runs the handler of a request, so that `waitForShared` within it waits on behalf of this work. */
export function runAs<T>(work: Work, handler: () => T): T {
  return currentWork.run(work, handler);
}

/** Runs work that a sealed request causes before its handler runs. */
export function runAsSealed<T>(handler: () => T): T {
  return currentWork.run(
    { isSealed: true, id: '', waitFor: untilOneEnds, leavingSignal: () => undefined },
    handler,
  );
}

/** Runs a task. @param signal ends its waits for calls of requests */
export function runAsTask<T>(task: TaskShare, signal: AbortSignal, handler: () => T): T {
  const work = { isSealed: false, id: undefined, task, waitFor: untilOneEnds, leavingSignal: () => signal };
  return currentWork.run(work, handler);
}

/** Returns the limits of the task's run that makes the current call; undefined outside of a task. */
export function presentTask(): TaskShare | undefined {
  return currentWork.getStore()?.task;
}

/**
 * Starts a call that other requests may wait for. If this call itself waits for a call of another request,
 * its wait does not end when the caller of the request that started it leaves.
 *
 * @param abandoned aborted once no caller waits for the call any more; it ends the call's own waits
 */
export function startShared<T>(start: () => T, abandoned?: AbortSignal): T {
  const work = currentWork.getStore();
  return work ? currentWork.run({ ...work, leavingSignal: () => abandoned }, start) : start();
}

/** Returns the kind of request that makes the current call; undefined in a task, and outside of a request. */
export function presentCause(): 'plain' | 'sealed' | undefined {
  const work = currentWork.getStore();
  if (!work || work.task) return undefined;
  return work.isSealed ? 'sealed' : 'plain';
}

/** Returns the id of the request that makes the current call; undefined outside of a request. */
export function presentRequestId(): string | undefined {
  return currentWork.getStore()?.id;
}

/**
 * Waits for a call that another request began, until the caller of the current request has left. The other
 * request must start the call by `startShared`. It awaits the call directly, and keeps its slot.
 *
 * @param leaving signal that ends the wait, but not the call
 * @throws OVERLOADED immediately if too many requests wait; CallerLeft; the error of the call; the reason of
 *   `leaving`
 */
export function waitForShared<T>(call: Promise<T>, leaving?: AbortSignal): Promise<T> {
  const work = currentWork.getStore();
  return work ? work.waitFor(call, [leaving, work.leavingSignal()]) : untilAborted(call, leaving);
}

/**
 * Waits for a call, no matter who began it. The limits on waiting requests do not apply.
 *
 * @throws the error of the call; the reason of `leaving`
 */
export function untilAborted<T>(call: Promise<T>, leaving: AbortSignal | undefined): Promise<T> {
  return untilOneEnds(call, [leaving]);
}

interface Waiter {
  resolve(value: unknown): void;
  reject(reason: unknown): void;
}

/**
 * The waiters of each call. A call has one reaction for all its waiters: a promise keeps every reaction until
 * it is settled, even if the waiter has left.
 */
const waitersByCall = new WeakMap<Promise<unknown>, Set<Waiter>>();

/** Settles like the call, or rejects with the reason of the first signal that is aborted. */
export function untilOneEnds<T>(call: Promise<T>, ends: Ends): Promise<T> {
  const signals = ends.filter((signal) => signal !== undefined);
  if (signals.length === 0) return call;
  return new Promise<unknown>((resolve, reject) => {
    const aborted = signals.find((signal) => signal.aborted);
    if (aborted) return reject(aborted.reason);
    const waiters = waitersByCall.get(call) ?? shareReaction(call);
    const end = (settle: () => void) => {
      waiters.delete(waiter);
      for (const signal of signals) signal.removeEventListener('abort', leave);
      settle();
    };
    const leave = ({ target }: Event) => end(() => reject((target as AbortSignal).reason));
    const waiter: Waiter = {
      resolve: (value) => end(() => resolve(value)),
      reject: (reason) => end(() => reject(reason)),
    };
    waiters.add(waiter);
    for (const signal of signals) signal.addEventListener('abort', leave);
  }) as Promise<T>;
}

function shareReaction(call: Promise<unknown>): Set<Waiter> {
  const waiters = new Set<Waiter>();
  waitersByCall.set(call, waiters);
  const settle = (method: keyof Waiter) => (outcome: unknown) => {
    waitersByCall.delete(call);
    for (const waiter of [...waiters]) waiter[method](outcome);
  };
  call.then(settle('resolve'), settle('reject'));
  return waiters;
}

/** Limits the number of waiting requests: `places` in all, and half as many for the same call. */
export class WaitingRoom {
  readonly #places: number;
  /** Numbers of requests that wait, by the call that they wait for. */
  readonly #waiterCounts = new Map<Promise<unknown>, number>();
  #taken = 0;

  constructor(places: number) {
    this.#places = places;
  }

  /** Number of requests that wait. */
  get size(): number {
    return this.#taken;
  }

  /**
   * Waits for a call, until one of the signals is aborted.
   *
   * @throws OVERLOADED immediately if the queue is full; the error of the call; the reason of a signal
   */
  async waitFor<T>(call: Promise<T>, ends: Ends = []): Promise<T> {
    const waiters = this.#waiterCounts.get(call) ?? 0;
    if (this.#taken >= this.#places || waiters >= this.#places / 2) {
      throw new ServerError(
        'OVERLOADED',
        'too many requests wait for the answer to another request: try again',
        {
          retryAfterSeconds: 1,
        },
      );
    }
    this.#taken += 1;
    this.#waiterCounts.set(call, waiters + 1);
    try {
      return await untilOneEnds(call, ends);
    } finally {
      this.#taken -= 1;
      this.#leave(call);
    }
  }

  #leave(call: Promise<unknown>): void {
    const remainingWaiters = (this.#waiterCounts.get(call) as number) - 1;
    if (remainingWaiters === 0) this.#waiterCounts.delete(call);
    else this.#waiterCounts.set(call, remainingWaiters);
  }
}
