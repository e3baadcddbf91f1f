/** The weather server as production configures it, log included, against the stand-in of its upstream. */
import { loadApplication } from '../../../src/app.ts';
import { boot } from '../../../src/server/boot.ts';
import { readServerConfig } from '../../../src/server/config.ts';
import { createLog } from '../../../src/server/log.ts';
import { DEV_API_KEY, startWeatherStandIn } from '../../dev/weather_api.ts';

const env = { ...process.env, APP: 'weather', PORT: '0', API_KEY: DEV_API_KEY };
const config = readServerConfig(env);
const application = await loadApplication(new URL('../../../src/apps/', import.meta.url), config.app);
const weather = await startWeatherStandIn();
const origins = { 'api.weatherapi.com': weather.origin };
const { url } = await boot({ config, env, log: createLog(config.logLevel), ...application, origins });

process.on('message', () => {
  globalThis.gc?.();
  const { rss, heapUsed } = process.memoryUsage();
  process.send?.({ rss, heapUsed });
});
process.send?.({ url });
