/** Converts a temperature to the two forms in which it is signed. */
import { WeatherError } from './errors.ts';

/** Returns whole degrees Celsius, truncated towards zero. @throws WeatherError: WEATHER_BELOW_ZERO */
export function wholeDegrees(celsius: number): bigint {
  if (celsius < 0) {
    throw new WeatherError(
      'WEATHER_BELOW_ZERO',
      `the reading is ${celsius} °C, and the signed temperature can't be below 0`,
    );
  }
  return BigInt(Math.trunc(celsius));
}

/** Returns tenths of a degree Celsius, rounded, plus 100000. @param celsius not below -10000 */
export function tenthsPlus100000(celsius: number): bigint {
  return BigInt(Math.round(10 * celsius) + 100_000);
}
