/**
 * Waiting for a call that another request makes, such as the same request to an upstream. A waiting request costs
 * neither CPU nor an upstream connection, so it releases its slot for work and joins a bounded queue meanwhile.
 */
import { AsyncLocalStorage } from 'node:async_hooks';
import { ServerError } from './errors.ts';

/** The work on a request, as the calls within it see it. */
export interface Work {
  /** Whether the request came sealed: what it causes must not be counted or reported. */
  readonly isSealed: boolean;
  /** As in the header `x-request-id`. */
  readonly id: string;
  waitFor<T>(call: Promise<T>, gone?: AbortSignal): Promise<T>;
}

const present = new AsyncLocalStorage<Work>();

/** Runs the handler of a request: `waitForOther` within it waits as this work. */
export function runAs<T>(work: Work, handler: () => T): T {
  return present.run(work, handler);
}

/** Runs what a sealed request causes before its handler. */
export function runAsSealed<T>(handler: () => T): T {
  return present.run({ isSealed: true, id: '', waitFor: untilGone }, handler);
}

/** What causes the present call: a request that came plain or sealed. Undefined: none that is known. */
export function presentCause(): 'plain' | 'sealed' | undefined {
  const work = present.getStore();
  if (!work) return undefined;
  return work.isSealed ? 'sealed' : 'plain';
}

/** The id of the request that causes the present call. */
export function presentRequestId(): string | undefined {
  return present.getStore()?.id;
}

/**
 * Waits for a call that another request began. Who begins the call awaits the call itself, and keeps its slot.
 *
 * @param gone ends the wait, but not the call
 * @throws OVERLOADED immediately if too many requests wait; what the call throws; the reason of `gone`
 */
export function waitForOther<T>(call: Promise<T>, gone?: AbortSignal): Promise<T> {
  return present.getStore()?.waitFor(call, gone) ?? untilGone(call, gone);
}

function untilGone<T>(call: Promise<T>, gone?: AbortSignal): Promise<T> {
  if (!gone) return call;
  return new Promise((resolve, reject) => {
    const leave = () => reject(gone.reason);
    if (gone.aborted) return leave();
    gone.addEventListener('abort', leave, { once: true });
    call.then(resolve, reject).finally(() => gone.removeEventListener('abort', leave));
  });
}

/** The places of requests that wait: some in all, and half of them for one call. */
export class WaitingRoom {
  readonly #places: number;
  readonly #ofCall = new Map<Promise<unknown>, number>();
  #taken = 0;

  constructor(places: number) {
    this.#places = places;
  }

  /** Number of requests that wait. */
  get size(): number {
    return this.#taken;
  }

  /** @throws OVERLOADED without waiting if there is no place; what the call throws; the reason of `gone` */
  async waitFor<T>(call: Promise<T>, gone?: AbortSignal): Promise<T> {
    const same = this.#ofCall.get(call) ?? 0;
    if (this.#taken >= this.#places || same >= this.#places / 2) {
      throw new ServerError('OVERLOADED', 'too many requests wait for the answer to another: try again', {
        retryAfterSeconds: 1,
      });
    }
    this.#taken += 1;
    this.#ofCall.set(call, same + 1);
    try {
      return await untilGone(call, gone);
    } finally {
      this.#taken -= 1;
      this.#leave(call);
    }
  }

  #leave(call: Promise<unknown>): void {
    const others = (this.#ofCall.get(call) as number) - 1;
    if (others === 0) this.#ofCall.delete(call);
    else this.#ofCall.set(call, others);
  }
}
