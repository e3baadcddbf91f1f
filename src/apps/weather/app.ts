import {
  type AppContext,
  type Application,
  createBudget,
  defineApp,
  endpoint,
  processData,
  readSettings,
  type SignedAnswer,
} from 'sui-enclave-server';
import * as v from 'valibot';
import { LoadingCache } from './cache.ts';
import { tenthsPlus100000, wholeDegrees } from './degrees.ts';
import { WeatherError } from './errors.ts';
import { WEATHER_SETTINGS } from './settings.ts';
import { Temperature, WeatherRequest, WeatherResponse } from './types.ts';
import { BOUNDS, type Reading, UPSTREAM_HOST, WeatherService } from './upstream.ts';

const MAX_AGE_MS = 60 * 60 * 1000;
const MAX_AHEAD_MS = 60 * 1000;
const MAX_CACHED_PLACES = 1000;
/** Number of spellings of a place whose signed answers are cached. Other spellings are signed each time. */
const MAX_SPELLINGS = 8;
/** Lifetime of most cached failures, in milliseconds. It is short, since the service may recover soon. */
const FAILURE_MS = 5000;

/** Answers that were signed for a reading, by requested spelling. */
type SignedAnswers = Map<string, SignedAnswer>;

interface CachedReading {
  readonly reading: Reading;
  readonly whole: SignedAnswers;
  readonly tenths: SignedAnswers;
}

/**
 * Creates the endpoints, which sign the temperature that weatherapi.com reports for a place, with the time of
 * the reading.
 */
function create({ env, upstream, secret, sign }: AppContext): Application {
  const ttlMs = 1000 * readSettings(WEATHER_SETTINGS, env).WEATHER_CACHE_SECONDS;
  const service = new WeatherService(upstream(UPSTREAM_HOST, { ...BOUNDS, budget: createBudget(env) }));
  const cache = new LoadingCache<CachedReading>({
    ttlMs,
    failureMs: (error) => chooseFailureMs(error, ttlMs),
    maxEntries: MAX_CACHED_PLACES,
  });

  async function load(place: string): Promise<CachedReading> {
    const reading = await service.read(place, secret('API_KEY'));
    requireCurrent(reading);
    return { reading, whole: new Map(), tenths: new Map() };
  }

  function answer(answers: SignedAnswers, location: string, signNow: () => SignedAnswer): SignedAnswer {
    const signed = answers.get(location) ?? signNow();
    if (answers.size < MAX_SPELLINGS) answers.set(location, signed);
    return signed;
  }

  return {
    endpoints: [
      processData({
        payload: WeatherRequest,
        async handle({ location: { requested: location, place } }) {
          const { reading, whole } = await cache.get(place, load);
          const temperature = wholeDegrees(reading.celsius);
          // Each answer needs this check, since a cached reading ages.
          requireCurrent(reading);
          return answer(whole, location, () =>
            sign(WeatherResponse, reading.timestampMs, { location, temperature }),
          );
        },
      }),
      endpoint({
        method: 'POST',
        path: '/temperature',
        body: v.strictObject({ payload: WeatherRequest }),
        async handle({
          payload: {
            location: { requested: location, place },
          },
        }) {
          const { reading, tenths } = await cache.get(place, load);
          requireCurrent(reading);
          const tenths_plus_100000 = tenthsPlus100000(reading.celsius);
          return answer(tenths, location, () =>
            sign(Temperature, reading.timestampMs, { location, tenths_plus_100000 }),
          );
        },
      }),
    ],
  };
}

export default defineApp({ signs: [WeatherResponse, Temperature], create });

/**
 * Returns the lifetime of a failure in the cache, in milliseconds. If the service does not know the place, it
 * is the lifetime of a reading. For any other WeatherError, it is at most FAILURE_MS; for other errors, 0.
 */
function chooseFailureMs(error: unknown, ttlMs: number): number {
  if (!(error instanceof WeatherError)) return 0;
  return error.status === 422 ? ttlMs : Math.min(ttlMs, FAILURE_MS);
}

function requireCurrent({ timestampMs }: Reading): void {
  const ageMs = Date.now() - Number(timestampMs);
  if (ageMs > MAX_AGE_MS) throw new WeatherError('WEATHER_STALE', 'Weather API timestamp is too old');
  if (ageMs < -MAX_AHEAD_MS)
    throw new WeatherError('WEATHER_FUTURE', 'Weather API timestamp is in the future');
}
