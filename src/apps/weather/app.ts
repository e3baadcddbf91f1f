import { type AppContext, type Application, processData } from '../../app.ts';
import { integer } from '../../config.ts';
import type { SignedAnswer } from '../../signing/signer.ts';
import { AnswerCache } from './cache.ts';
import { FutureReading, StaleReading } from './errors.ts';
import { WeatherRequest, WeatherResponse } from './types.ts';
import { UPSTREAM_HOST, WeatherService } from './upstream.ts';

const MAX_AGE_MS = 60 * 60 * 1000;
const MAX_AHEAD_MS = 60 * 1000;
const MAX_CACHED_PLACES = 1000;

export const signs = [WeatherResponse];

/** Signs the temperature of a place as weatherapi.com gives it, with the reading's own time. */
export function create({ env, upstream, secret, sign }: AppContext): Application {
  const cacheSeconds = integer(env, 'WEATHER_CACHE_SECONDS', { from: 0, to: 3600, otherwise: 30 });
  const service = new WeatherService(upstream(UPSTREAM_HOST));
  const cache = new AnswerCache<{ timestampMs: bigint; answer: SignedAnswer }>(
    cacheSeconds * 1000,
    MAX_CACHED_PLACES,
  );

  async function load(location: string) {
    const { temperature, timestampMs } = await service.read(location, secret('API_KEY'));
    requireCurrent(timestampMs);
    return { timestampMs, answer: sign(WeatherResponse, timestampMs, { location, temperature }) };
  }

  return {
    processData: processData({
      payload: WeatherRequest,
      async handle({ location }) {
        const { timestampMs, answer } = await cache.get(location, () => load(location));
        // Again for each answer: a kept one ages.
        requireCurrent(timestampMs);
        return answer;
      },
    }),
  };
}

function requireCurrent(timestampMs: bigint): void {
  const ageMs = Date.now() - Number(timestampMs);
  if (ageMs > MAX_AGE_MS) throw new StaleReading('Weather API timestamp is too old');
  if (ageMs < -MAX_AHEAD_MS) throw new FutureReading('Weather API timestamp is in the future');
}
