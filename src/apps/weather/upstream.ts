/** Client of weatherapi.com, `GET /v1/current.json`. */
import type { AxiosInstance } from 'axios';
import { isUpstreamError, type UpstreamError } from 'sui-enclave-server';
import * as v from 'valibot';
import { type WeatherCode, WeatherError } from './errors.ts';

export const UPSTREAM_HOST = 'api.weatherapi.com';

/**
 * Limits of a request: its time in milliseconds, and the bytes of an answer, which usually has about 1 KB.
 */
export const BOUNDS = { timeoutMs: 5000, maxSize: 64 * 1024 };

export interface Reading {
  /** Degrees Celsius, from -100 to 100. */
  readonly celsius: number;
  /** Time at which the service last updated the place, in milliseconds since the Unix epoch. */
  readonly timestampMs: bigint;
}

const Current = v.object({
  current: v.object({
    // No place on Earth has ever been outside this range.
    temp_c: v.pipe(v.number(), v.minValue(-100), v.maxValue(100)),
    last_updated_epoch: v.pipe(v.number(), v.safeInteger(), v.minValue(0), v.maxValue(1e11)),
  }),
});

const Refusal = v.object({ error: v.object({ code: v.number() }) });

// Error codes of the service.
const NO_MATCHING_LOCATION = 1006;
const KEY_CODES = [1002, 2006, 2008];
const QUOTA = 2007;

/** Reads temperatures from the service. Errors never contain the request, since its URL has the API key. */
export class WeatherService {
  readonly #client: AxiosInstance;

  /** @param client HTTP client of the service, with the limits of BOUNDS */
  constructor(client: AxiosInstance) {
    this.#client = client;
  }

  /**
   * Returns the current temperature of a place.
   *
   * @throws UPSTREAM_BUDGET_EXCEEDED; WeatherError with any code but WEATHER_BELOW_ZERO, WEATHER_STALE and
   *   WEATHER_FUTURE
   */
  async read(place: string, apiKey: string): Promise<Reading> {
    const request = {
      params: { key: apiKey, q: place },
      headers: { accept: 'application/json' },
      validateStatus: (status: number) => status === 200,
    };
    const { data } = await this.#client.get<unknown>('/v1/current.json', request).catch((error: unknown) => {
      throw isUpstreamError(error) ? failure(error) : error;
    });
    const answer = v.safeParse(Current, data);
    if (!answer.success) throw malformed();
    const { temp_c, last_updated_epoch } = answer.output.current;
    return { celsius: temp_c, timestampMs: BigInt(last_updated_epoch) * 1000n };
  }
}

function failure(cause: UpstreamError): WeatherError {
  const { reason, response } = cause;
  if (reason === 'malformed') return malformed();
  if (reason === 'status') return refusal(response?.status ?? 0, response?.data);
  const [code, message] = FAILURES[reason];
  return new WeatherError(code, message, { cause });
}

function malformed(): WeatherError {
  return new WeatherError('WEATHER_MALFORMED', 'the weather service gave no usable reading');
}

type Incomplete = Exclude<UpstreamError['reason'], 'status' | 'malformed'>;

const FAILURES: Readonly<Record<Incomplete, readonly [WeatherCode, string]>> = {
  unreachable: ['WEATHER_UNREACHABLE', 'the weather service could not be reached'],
  timeout: ['WEATHER_TIMEOUT', `the weather service did not answer within ${BOUNDS.timeoutMs} ms`],
  broken: ['WEATHER_UNREACHABLE', 'the connection to the weather service broke'],
  'slow body': [
    'WEATHER_SLOW_BODY',
    `the weather service's answer was not complete within ${BOUNDS.timeoutMs} ms`,
  ],
  'too large': ['WEATHER_OVERSIZED', `the weather service's answer is larger than ${BOUNDS.maxSize} bytes`],
};

/** Returns the error for a status other than 200. Drops the service's message, which may repeat the key. */
function refusal(status: number, data: unknown): WeatherError {
  if (status >= 500)
    return new WeatherError('WEATHER_UPSTREAM_BROKEN', `the weather service answered with status ${status}`);
  if (status < 400)
    return new WeatherError(
      'WEATHER_UPSTREAM_UNEXPECTED',
      `the weather service answered with status ${status}`,
    );
  const parsed = v.safeParse(Refusal, data);
  const code = parsed.success ? parsed.output.error.code : undefined;
  if (code === NO_MATCHING_LOCATION)
    return new WeatherError('WEATHER_LOCATION_NOT_FOUND', 'the weather service does not know this place');
  if (code === QUOTA)
    return new WeatherError(
      'WEATHER_QUOTA_EXCEEDED',
      "the API key's quota at the weather service is used up",
    );
  if (status === 401 || (code !== undefined && KEY_CODES.includes(code))) {
    return new WeatherError('WEATHER_KEY_REFUSED', 'the weather service refuses the API key of this server');
  }
  return new WeatherError(
    'WEATHER_UPSTREAM_REFUSED',
    `the weather service refused the request with status ${status}`,
  );
}
