/**
 * Starts the weather server as production configures it, with the same log and the same limits, except that
 * the budget of upstream calls is higher. It has an emulated NSM, and the fake at `FAKE` as upstream.
 */
import { UPSTREAM_HOST } from '../../../src/apps/weather/upstream.ts';
import { EmulatedNsm } from '../../../src/testing/emulated_nsm.ts';
import { DEV_API_KEY } from '../../../src/testing/weather_api.ts';
import { serve } from './serve.ts';

await serve(
  { APP: 'weather', UPSTREAM_CALLS_PER_MINUTE: '100000' },
  {
    origins: { [UPSTREAM_HOST]: process.env['FAKE'] ?? '' },
    secrets: { API_KEY: DEV_API_KEY },
    nsm: new EmulatedNsm(),
  },
);
