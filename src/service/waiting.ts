/**
 * Waits for a call that another request makes, such as the same request to an upstream. A waiting request
 * costs neither CPU nor an upstream connection, so it releases its slot for work and joins a bounded queue
 * meanwhile.
 */
import { AsyncLocalStorage } from 'node:async_hooks';
import { ServerError } from './errors.ts';

/** Error that ends the waits of a request whose caller has left, since nobody needs its answer. */
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

/** The share of one run of a task, which is separate from that of all requests. */
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
  waitFor<T>(call: Promise<T>, ends: Ends): Promise<T>;
  /** Returns a signal that ends all waits of this work; undefined if they end only with their calls. */
  left(): AbortSignal | undefined;
}

const present = new AsyncLocalStorage<Work>();

/** Runs the handler of a request, so that `waitForShared` within it waits on behalf of this work. */
export function runAs<T>(work: Work, handler: () => T): T {
  return present.run(work, handler);
}

/** Runs work that a sealed request causes before its handler runs. */
export function runAsSealed<T>(handler: () => T): T {
  return present.run({ isSealed: true, id: '', waitFor: untilOneEnds, left: () => undefined }, handler);
}

/** Runs a task. @param signal ends its waits for calls of requests */
export function runAsTask<T>(task: TaskShare, signal: AbortSignal, handler: () => T): T {
  const work = { isSealed: false, id: undefined, task, waitFor: untilOneEnds, left: () => signal };
  return present.run(work, handler);
}

/** Returns the share of the run of a task that causes the present call; undefined in any other call. */
export function presentTask(): TaskShare | undefined {
  return present.getStore()?.task;
}

/**
 * Starts a call that other requests may wait for. If this call itself waits for a call of another request,
 * its wait does not end when the caller of the request that started it leaves.
 *
 * @param abandoned signal that nobody waits for the call any more, which ends the call's own waits
 */
export function startShared<T>(start: () => T, abandoned?: AbortSignal): T {
  const work = present.getStore();
  return work ? present.run({ ...work, left: () => abandoned }, start) : start();
}

/** Returns the kind of request that causes the present call; undefined for a task, or if none is known. */
export function presentCause(): 'plain' | 'sealed' | undefined {
  const work = present.getStore();
  if (!work || work.task) return undefined;
  return work.isSealed ? 'sealed' : 'plain';
}

/** Returns the id of the request that causes the present call. */
export function presentRequestId(): string | undefined {
  return present.getStore()?.id;
}

/**
 * Waits for a call that another request began, until the caller of the present request has left. The other
 * request must start the call by `startShared`; it awaits the call directly, and keeps its slot.
 *
 * @param leaving signal that ends the wait, but not the call
 * @throws OVERLOADED immediately if too many requests wait; what the call throws; CallerLeft; the reason of
 *   `leaving`
 */
export function waitForShared<T>(call: Promise<T>, leaving?: AbortSignal): Promise<T> {
  const work = present.getStore();
  return work ? work.waitFor(call, [leaving, work.left()]) : untilGone(call, leaving);
}

/**
 * Waits for a call, no matter who began it. The limits on waiting requests do not apply.
 *
 * @throws the reason of `leaving`
 */
export function untilGone<T>(call: Promise<T>, leaving: AbortSignal | undefined): Promise<T> {
  return untilOneEnds(call, [leaving]);
}

interface Waiter {
  resolve(value: unknown): void;
  reject(reason: unknown): void;
}

/**
 * The waiters of a call. The call itself has one reaction for all of them, since a promise keeps each of its
 * reactions until it is settled, also for those who have left.
 */
const waitersOf = new WeakMap<Promise<unknown>, Set<Waiter>>();

/** Settles like the call, or rejects with the reason of the first signal that is aborted. */
export function untilOneEnds<T>(call: Promise<T>, ends: Ends): Promise<T> {
  const signals = ends.filter((signal) => signal !== undefined);
  if (signals.length === 0) return call;
  return new Promise<unknown>((resolve, reject) => {
    const aborted = signals.find((signal) => signal.aborted);
    if (aborted) return reject(aborted.reason);
    const waiters = waitersOf.get(call) ?? shareReaction(call);
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
  waitersOf.set(call, waiters);
  const settle = (method: keyof Waiter) => (result: unknown) => {
    waitersOf.delete(call);
    for (const waiter of [...waiters]) waiter[method](result);
  };
  call.then(settle('resolve'), settle('reject'));
  return waiters;
}

/** Limits how many requests wait: `places` in all, and half of them for the same call. */
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

  /** @throws OVERLOADED without waiting if the queue is full; what the call throws; the reason of a signal */
  async waitFor<T>(call: Promise<T>, ends: Ends = []): Promise<T> {
    const waiters = this.#waiterCounts.get(call) ?? 0;
    if (this.#taken >= this.#places || waiters >= this.#places / 2) {
      throw new ServerError('OVERLOADED', 'too many requests wait for the answer to another: try again', {
        retryAfterSeconds: 1,
      });
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
