import type { Fakes } from 'sui-enclave-testing/fakes';
import { DEV_API_KEY, startFakeWeatherApi } from 'sui-enclave-testing/weather_api';
import { UPSTREAM_HOST } from './upstream.ts';

export async function start(): Promise<Fakes> {
  const { origin, close } = await startFakeWeatherApi();
  return {
    origins: { [UPSTREAM_HOST]: origin },
    secrets: { API_KEY: DEV_API_KEY },
    example: { path: '/process_data', body: { payload: { location: 'San Francisco' } } },
    close,
  };
}
