import { readFileSync } from 'node:fs';
import * as v from 'valibot';

/** More than this, and the time in signed answers and the checks of others' times can't be relied on. */
const MAX_DIFFERENCE_MS = 5000;

const State = v.union([
  v.strictObject({ source: v.literal('ptp0'), difference_ms: v.pipe(v.number(), v.safeInteger()) }),
  v.strictObject({ source: v.literal('kernel') }),
]);

export type ClockState = v.InferOutput<typeof State> | { readonly source: 'unknown' };

/**
 * What init says about the system's clock: its source, and how far off it was when init last set it right.
 * Without a file to read, as outside an image, the clock is the kernel's and nobody checks it.
 */
export class Clock {
  readonly #path: string | undefined;

  constructor(path: string | undefined) {
    this.#path = path;
  }

  state(): ClockState {
    if (this.#path === undefined) return { source: 'kernel' };
    try {
      return v.parse(State, JSON.parse(readFileSync(this.#path, 'utf8')));
    } catch {
      return { source: 'unknown' };
    }
  }

  /** For `/readyz`: what should worry an operator, though the server works. */
  warnings(): string[] {
    const state = this.state();
    if (state.source === 'unknown') return ['the state of the clock is not known'];
    if (state.source === 'ptp0' && Math.abs(state.difference_ms) > MAX_DIFFERENCE_MS) {
      return [`the clock differed from the hypervisor's by ${state.difference_ms} ms`];
    }
    return [];
  }
}
