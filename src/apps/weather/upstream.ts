/** weatherapi.com, `GET /v1/current.json`. */
import * as v from 'valibot';
import { ExchangeFailed, parseJson, type Upstream, type UpstreamAnswer } from '../../server/upstream.ts';
import { type WeatherCode, WeatherError } from './errors.ts';

export const UPSTREAM_HOST = 'api.weatherapi.com';

/** For the whole exchange, from the DNS query to the last byte. */
const DEADLINE_MS = 5000;
/** An answer has about 1 KB. */
const MAX_ANSWER_BYTES = 64 * 1024;

export interface Reading {
  /** Whole degrees Celsius, truncated towards zero. */
  readonly temperature: bigint;
  /** When the service last updated the place, in milliseconds since the Unix epoch. */
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

/** The service's own error codes. */
const NO_MATCHING_LOCATION = 1006;
const KEY_CODES = [1002, 2006, 2008];
const QUOTA = 2007;

/** Errors never contain the request, since its URL contains the API key. */
export class WeatherService {
  readonly #ask: Upstream;

  constructor(ask: Upstream) {
    this.#ask = ask;
  }

  /** @throws WeatherError with any code but WEATHER_STALE and WEATHER_FUTURE; UPSTREAM_BUDGET_EXCEEDED */
  async read(place: string, apiKey: string): Promise<Reading> {
    const query = new URLSearchParams({ key: apiKey, q: place });
    const { status, body } = await this.#exchange(`/v1/current.json?${query}`);
    if (status !== 200) throw refusal(status, body);
    const answer = v.safeParse(Current, parseJson(body));
    if (!answer.success)
      throw new WeatherError('WEATHER_MALFORMED', 'the weather service gave no usable reading');
    const { temp_c, last_updated_epoch } = answer.output.current;
    if (temp_c < 0) {
      throw new WeatherError(
        'WEATHER_BELOW_ZERO',
        `the reading is ${temp_c} °C, and the signed temperature can't be below 0`,
      );
    }
    return { temperature: BigInt(Math.trunc(temp_c)), timestampMs: BigInt(last_updated_epoch) * 1000n };
  }

  async #exchange(path: string): Promise<UpstreamAnswer> {
    const headers = { accept: 'application/json' };
    const bounds = { timeoutMs: DEADLINE_MS, maxSize: MAX_ANSWER_BYTES };
    return await this.#ask(path, { headers, ...bounds }).catch((error: unknown) => {
      throw error instanceof ExchangeFailed ? failure(error) : error;
    });
  }
}

function failure(cause: ExchangeFailed): WeatherError {
  const [code, message] = FAILURES[cause.reason];
  return new WeatherError(code, message, { cause });
}

const FAILURES: Readonly<Record<ExchangeFailed['reason'], readonly [WeatherCode, string]>> = {
  unreachable: ['WEATHER_UNREACHABLE', 'the weather service could not be reached'],
  timeout: ['WEATHER_TIMEOUT', `the weather service did not answer within ${DEADLINE_MS} ms`],
  broken: ['WEATHER_UNREACHABLE', 'the connection to the weather service broke'],
  'slow body': [
    'WEATHER_SLOW_BODY',
    `the weather service's answer was not complete within ${DEADLINE_MS} ms`,
  ],
  'too large': ['WEATHER_OVERSIZED', `the weather service's answer is larger than ${MAX_ANSWER_BYTES} bytes`],
};

/** The error for a status other than 200. The service's message may repeat the key and is dropped. */
function refusal(status: number, body: Buffer): WeatherError {
  if (status >= 500)
    return new WeatherError('WEATHER_UPSTREAM_BROKEN', `the weather service answered with status ${status}`);
  if (status < 400)
    return new WeatherError(
      'WEATHER_UPSTREAM_UNEXPECTED',
      `the weather service answered with status ${status}`,
    );
  const parsed = v.safeParse(Refusal, parseJson(body));
  const code = parsed.success ? parsed.output.error.code : undefined;
  if (code === NO_MATCHING_LOCATION)
    return new WeatherError('WEATHER_LOCATION_NOT_FOUND', 'the weather service knows no such place');
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
