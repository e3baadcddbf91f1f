/**
 * Starts the fake of the weather service, 20 ms away. Its own process keeps its CPU time apart from the
 * server's.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { startFakeWeatherApi } from '../../../src/testing/weather_api.ts';
import { announce } from './announce.ts';

const { origin } = await startFakeWeatherApi(() => sleep(20));
announce(origin);
