/** The fake of the weather service, 20 ms away. A process of its own, so that its CPU is not the server's. */
import { startFakeWeatherApi } from '../../../src/testing/weather_api.ts';
import { announce } from './announce.ts';

const { origin } = await startFakeWeatherApi({ delayMs: 20 });
announce(origin);
