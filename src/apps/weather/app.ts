import {
  type AppContext,
  type Application,
  budgetFrom,
  defineApp,
  processData,
  readSettings,
  type SignedAnswer,
} from 'sui-enclave-server';
import { LoadingCache } from './cache.ts';
import { WeatherError } from './errors.ts';
import { WEATHER_SETTINGS } from './settings.ts';
import { WeatherRequest, WeatherResponse } from './types.ts';
import { BOUNDS, type Reading, UPSTREAM_HOST, WeatherService } from './upstream.ts';

const MAX_AGE_MS = 60 * 60 * 1000;
const MAX_AHEAD_MS = 60 * 1000;
const MAX_CACHED_PLACES = 1000;
/** The number of spellings of a place whose signed answers are cached. Others are signed for each request. */
const MAX_SPELLINGS = 8;
/** Failures are cached only briefly: the service may recover soon. */
const FAILURE_MS = 5000;

/** A reading of a place, with the answers signed for it by requested spelling. */
interface CachedReading {
  readonly reading: Reading;
  readonly answers: Map<string, SignedAnswer>;
}

/** Signs the temperature that weatherapi.com reports for a place, with the time of the reading. */
function create({ env, upstream, secret, sign }: AppContext): Application {
  const ttlMs = 1000 * readSettings(WEATHER_SETTINGS, env).WEATHER_CACHE_SECONDS;
  const service = new WeatherService(upstream(UPSTREAM_HOST, { ...BOUNDS, budget: budgetFrom(env) }));
  const cache = new LoadingCache<CachedReading>({
    ttlMs,
    failureMs: (error) => keepFailureMs(error, ttlMs),
    maxEntries: MAX_CACHED_PLACES,
  });

  async function load(place: string): Promise<CachedReading> {
    const reading = await service.read(place, secret('API_KEY'));
    requireCurrent(reading);
    return { reading, answers: new Map() };
  }

  function answer({ reading, answers }: CachedReading, location: string): SignedAnswer {
    const { timestampMs, temperature } = reading;
    const signed = answers.get(location) ?? sign(WeatherResponse, timestampMs, { location, temperature });
    if (answers.size < MAX_SPELLINGS) answers.set(location, signed);
    return signed;
  }

  return {
    endpoints: [
      processData({
        payload: WeatherRequest,
        async handle({ location: { asked, place } }) {
          const cached = await cache.get(place, load);
          // For each answer: a cached reading ages.
          requireCurrent(cached.reading);
          return answer(cached, asked);
        },
      }),
    ],
  };
}

export default defineApp({ signs: [WeatherResponse], create });

/** How long to cache a failure: as long as a reading if it is about the place, not at all if it is not the service's. */
function keepFailureMs(error: unknown, ttlMs: number): number {
  if (!(error instanceof WeatherError)) return 0;
  return error.status === 422 ? ttlMs : Math.min(ttlMs, FAILURE_MS);
}

function requireCurrent({ timestampMs }: Reading): void {
  const ageMs = Date.now() - Number(timestampMs);
  if (ageMs > MAX_AGE_MS) throw new WeatherError('WEATHER_STALE', 'Weather API timestamp is too old');
  if (ageMs < -MAX_AHEAD_MS)
    throw new WeatherError('WEATHER_FUTURE', 'Weather API timestamp is in the future');
}
