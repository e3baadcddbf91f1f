import type { StandIns } from 'sui-enclave-testing/stand_ins';
import { DEV_API_KEY, startWeatherStandIn } from 'sui-enclave-testing/weather_api';
import { UPSTREAM_HOST } from './upstream.ts';

export async function start(): Promise<StandIns> {
  const { origin, close } = await startWeatherStandIn();
  return {
    origins: { [UPSTREAM_HOST]: origin },
    secrets: { API_KEY: DEV_API_KEY },
    example: { path: '/process_data', body: { payload: { location: 'San Francisco' } } },
    close,
  };
}
