import { UPSTREAM_HOST } from '../../../src/apps/weather/upstream.ts';
import type { StandIns } from '../stand_ins.ts';
import { DEV_API_KEY, startWeatherStandIn } from '../weather_api.ts';

export async function start(): Promise<StandIns> {
  const { origin, close } = await startWeatherStandIn();
  return {
    origins: { [UPSTREAM_HOST]: origin },
    secrets: { API_KEY: DEV_API_KEY },
    example: { path: '/process_data', body: { payload: { location: 'San Francisco' } } },
    close,
  };
}
