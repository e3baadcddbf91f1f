/**
 * Runs the weather server with production's configuration, except for the budget of calls and the number of
 * slots. The soak changes its emulated NSM and its clock.
 */

import { serve } from '../../../scripts/check/bench/serve.ts';
import { UPSTREAM_HOST } from '../../../src/apps/weather/upstream.ts';
import { NsmIo } from '../../../src/server/nsm/errors.ts';
import { EmulatedNsm } from '../../../src/testing/emulated_nsm.ts';
import { DEV_API_KEY } from '../../../src/testing/weather_api.ts';
import { SLOTS } from './settings.ts';

/** State of the NSM. `foreign` has another root, and `lies` answers with bytes that are not a document. */
export type NsmMode = 'well' | 'slow' | 'dead' | 'lies' | 'foreign';

export interface Command {
  readonly nsm?: NsmMode;
  /** Offset of the clock from the true time, in milliseconds. */
  readonly clockMs?: number;
  /** Whether to collect garbage, and to report the heap in bytes. */
  readonly collect?: boolean;
  /** Whether to report root and registers of the NSM. */
  readonly trust?: boolean;
}

const SLOW_MS = 700;
const trueClock = Date.now.bind(Date);
const nsm = new EmulatedNsm(trueClock);
const foreign = new EmulatedNsm(trueClock);
let mode: NsmMode = 'well';
let clockMs = 0;
Date.now = () => trueClock() + clockMs;

process.on('message', (command: Command) => {
  mode = command.nsm ?? mode;
  clockMs = command.clockMs ?? clockMs;
  if (command.trust) process.send?.({ root: nsm.rootPem(), pcrs: nsm.pcrsFile() });
  if (!command.collect) return;
  globalThis.gc?.();
  process.send?.({ heap: process.memoryUsage().heapUsed });
});

await serve(
  {
    APP: 'weather',
    UPSTREAM_CALLS_PER_MINUTE: '100000',
    MAX_CONCURRENT_REQUESTS: String(SLOTS),
    LOG_LEVEL: 'info',
  },
  {
    origins: { [UPSTREAM_HOST]: process.env['FAKE'] ?? '' },
    secrets: { API_KEY: DEV_API_KEY },
    nsm: {
      async transact(request) {
        if (mode === 'dead') throw new NsmIo('ioctl', 'EIO');
        if (mode === 'lies') return Buffer.from('not the answer of an NSM');
        if (mode === 'slow') await new Promise((resolve) => setTimeout(resolve, SLOW_MS));
        return await (mode === 'foreign' ? foreign : nsm).transact(request);
      },
      close() {},
    },
  },
);
