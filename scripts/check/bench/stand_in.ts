/** The fake of the weather service, 20 ms away. A process of its own, so that its CPU is not the server's. */
import { startWeatherStandIn } from '../../../src/testing/weather_api.ts';
import { announce } from './announce.ts';

const { origin } = await startWeatherStandIn({ delayMs: 20 });
announce(origin);
