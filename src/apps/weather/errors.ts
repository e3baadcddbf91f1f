import { type ErrorTable, errorClass } from 'sui-enclave-server';

export const WEATHER_ERRORS = {
  WEATHER_LOCATION_NOT_FOUND: { status: 422, meaning: 'the weather service does not know this place' },
  WEATHER_BELOW_ZERO: {
    status: 422,
    meaning:
      "the reading is below 0 °C: the `temperature` of `WeatherResponse` is a u64 and can't hold it; `POST /temperature` can",
  },
  WEATHER_STALE: { status: 502, meaning: 'the reading is over 1 h old' },
  WEATHER_FUTURE: { status: 502, meaning: 'the time of the reading is over 1 min in the future' },
  WEATHER_KEY_REFUSED: { status: 502, meaning: "the weather service refuses the operator's API key" },
  WEATHER_QUOTA_EXCEEDED: { status: 502, meaning: "the quota of the operator's API key is used up" },
  WEATHER_UPSTREAM_REFUSED: { status: 502, meaning: 'the weather service answered with another 4xx status' },
  WEATHER_UPSTREAM_BROKEN: { status: 502, meaning: 'the weather service answered with a 5xx status' },
  WEATHER_UPSTREAM_UNEXPECTED: {
    status: 502,
    meaning:
      'the weather service answered with a status below 400 other than 200; redirects are not followed',
  },
  WEATHER_UNREACHABLE: {
    status: 502,
    meaning: 'no connection, or the connection broke before the answer was complete',
  },
  WEATHER_MALFORMED: { status: 502, meaning: 'the answer contains no usable reading' },
  WEATHER_OVERSIZED: { status: 502, meaning: 'the answer is larger than 64 KiB' },
  WEATHER_TIMEOUT: { status: 504, meaning: 'the status line did not arrive within 5 s' },
  WEATHER_SLOW_BODY: { status: 504, meaning: 'the body was not complete within 5 s' },
} as const satisfies ErrorTable;

export type WeatherCode = keyof typeof WEATHER_ERRORS;

export class WeatherError extends errorClass(WEATHER_ERRORS) {}
