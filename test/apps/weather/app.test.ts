import { afterEach, describe, expect, test, vi } from 'vitest';
import { DEV_API_KEY, type FAILURES, temperatureOf } from '../../../scripts/dev/weather_api.ts';
import { startServer, startWeather } from '../../support.ts';

interface Answer {
  response: { timestamp_ms: number; data: { location: string; temperature: number } };
  error: string;
  code: string;
}

const read = async (answer: Response) => (await answer.json()) as Answer;

afterEach(() => {
  vi.useRealTimers();
});

describe('a reading', () => {
  test('is of the place that was asked for, truncated towards zero, at its own time', async () => {
    const { ask } = await startWeather();
    for (const place of ['Paris', 'Oslo', 'Zürich', '東京', 'New York']) {
      const { response } = await read(await ask(place));
      expect(response.data).toEqual({ location: place, temperature: Math.trunc(temperatureOf(place)) });
      expect(response.timestamp_ms % 900_000).toBe(0);
      expect(Date.now() - response.timestamp_ms).toBeLessThan(900_000);
    }
    expect(Math.trunc(temperatureOf('Paris'))).not.toBe(temperatureOf('Paris'));
  });

  test.each(['a&key=stolen', 'a#b', 'a?b=c', 'a%26b', 'a+b c', '../../v2', 'a\r\nHost: evil', '"<>\\^`{|}'])(
    'of %j asks for exactly that, whatever it means in a URL',
    async (place) => {
      const { ask, weather } = await startWeather();
      expect((await read(await ask(place))).response.data.location).toBe(place);
      expect(weather.asked).toEqual([place]);
    },
  );
});

describe('the upstream', () => {
  test('is asked once for requests of one place at a time, and for those shortly after', async () => {
    const { ask, weather } = await startWeather({ delayMs: 100 });
    const answers = await Promise.all(
      Array.from({ length: 20 }, () => ask('Paris').then((answer) => answer.text())),
    );
    expect(new Set(answers).size).toBe(1);
    await ask('Paris');
    expect(weather.asked).toEqual(['Paris']);
  });

  test('is asked each time when the cache is off, but still once for requests at a time', async () => {
    const { ask, weather } = await startWeather({ delayMs: 100, env: { WEATHER_CACHE_SECONDS: '0' } });
    await Promise.all([ask('Paris'), ask('Paris')]);
    await ask('Paris');
    expect(weather.asked).toEqual(['Paris', 'Paris']);
  });

  test('is asked for each spelling of a place: the signed text is the requested one', async () => {
    const { ask, weather } = await startWeather();
    for (const place of ['paris', 'Paris', 'Paris ']) {
      expect((await read(await ask(place))).response.data.location).toBe(place);
    }
    expect(weather.asked).toEqual(['paris', 'Paris', 'Paris ']);
  });

  test('is reached over one kept connection', async () => {
    const { ask, weather } = await startWeather();
    for (const place of ['a', 'b', 'c', 'd']) await ask(place);
    expect(weather.connections()).toBe(1);
  });

  test('is not asked through a proxy of the environment', async () => {
    vi.stubEnv('HTTP_PROXY', 'http://127.0.0.1:1').stubEnv('http_proxy', 'http://127.0.0.1:1');
    const { ask } = await startWeather();
    expect((await ask('Paris')).status).toBe(200);
    vi.unstubAllEnvs();
  });
});

describe('a failure of the upstream has its own code', () => {
  const wanted: Record<Exclude<keyof typeof FAILURES, '!timeout' | '!drip'>, [number, string]> = {
    '!unknown': [422, 'WEATHER_LOCATION_NOT_FOUND'],
    '!key': [502, 'WEATHER_KEY_REFUSED'],
    '!disabled': [502, 'WEATHER_KEY_REFUSED'],
    '!quota': [502, 'WEATHER_QUOTA_EXCEEDED'],
    '!refused': [502, 'WEATHER_UPSTREAM_REFUSED'],
    '!broken': [502, 'WEATHER_UPSTREAM_BROKEN'],
    '!redirect': [502, 'WEATHER_UPSTREAM_UNEXPECTED'],
    '!empty': [502, 'WEATHER_UPSTREAM_UNEXPECTED'],
    '!reset': [502, 'WEATHER_UNREACHABLE'],
    '!cut': [502, 'WEATHER_UNREACHABLE'],
    '!garbage': [502, 'WEATHER_MALFORMED'],
    '!notutf8': [502, 'WEATHER_MALFORMED'],
    '!missing': [502, 'WEATHER_MALFORMED'],
    '!text': [502, 'WEATHER_MALFORMED'],
    '!plasma': [502, 'WEATHER_MALFORMED'],
    '!oversized': [502, 'WEATHER_OVERSIZED'],
    '!stale': [502, 'WEATHER_STALE'],
    '!future': [502, 'WEATHER_FUTURE'],
    '!cold': [422, 'WEATHER_BELOW_ZERO'],
  };

  test.each(Object.entries(wanted))('%s', async (place, [status, code]) => {
    const { ask, server, weather } = await startWeather();
    const answer = await ask(place);
    expect(answer.status).toBe(status);
    const text = await answer.text();
    expect(JSON.parse(text)).toEqual({ error: expect.any(String), code });
    expect(weather.asked).toEqual([place]);
    // A failure is not kept.
    await ask(place);
    expect(weather.asked).toEqual([place, place]);
    expect(text + server.printed()).not.toContain(DEV_API_KEY);
    expect((await ask('Paris')).status).toBe(200);
  });

  test('!timeout and !drip: neither silence nor a slow body outlasts the deadline', async () => {
    const { ask } = await startWeather();
    const start = performance.now();
    const [silent, slow] = await Promise.all([ask('!timeout'), ask('!drip')]);
    expect(performance.now() - start).toBeLessThan(10_000);
    expect([silent.status, slow.status]).toEqual([504, 504]);
    expect(await read(silent)).toMatchObject({ code: 'WEATHER_TIMEOUT' });
    expect(await read(slow)).toMatchObject({ code: 'WEATHER_SLOW_BODY' });
  });

  test('when the API key is wrong, neither key shows up', async () => {
    const { ask, server } = await startWeather({ env: { API_KEY: 'hunter2' } });
    const answer = await ask('Paris');
    expect(await read(answer)).toMatchObject({ code: 'WEATHER_KEY_REFUSED' });
    expect(server.printed()).not.toContain('hunter2');
  });

  test('when nothing listens there', async () => {
    const { post, printed } = await startServer({ origins: { 'api.weatherapi.com': 'http://127.0.0.1:1' } });
    const answer = await post('/process_data', { payload: { location: 'Paris' } });
    expect(answer.status).toBe(502);
    expect(await read(answer)).toMatchObject({ code: 'WEATHER_UNREACHABLE' });
    expect(printed()).not.toContain(DEV_API_KEY);
  });
});

describe('age', () => {
  test('is checked again for an answer from the cache', async () => {
    const { ask, weather } = await startWeather({ env: { WEATHER_CACHE_SECONDS: '3600' } });
    const { response } = await read(await ask('Paris'));
    vi.useFakeTimers({ toFake: ['Date'] });
    vi.setSystemTime(response.timestamp_ms + 3_600_000);
    expect((await ask('Paris')).status).toBe(200);
    vi.setSystemTime(response.timestamp_ms + 3_600_001);
    expect(await read(await ask('Paris'))).toEqual({
      error: 'Weather API timestamp is too old',
      code: 'WEATHER_STALE',
    });
    vi.setSystemTime(response.timestamp_ms - 60_000);
    expect((await ask('Paris')).status).toBe(200);
    vi.setSystemTime(response.timestamp_ms - 60_001);
    expect(await read(await ask('Paris'))).toMatchObject({ code: 'WEATHER_FUTURE' });
    expect(weather.asked).toEqual(['Paris']);
  });
});

test.each(['-1', '3601', 'x', '1.5'])('WEATHER_CACHE_SECONDS=%s stops the start', async (value) => {
  await expect(startServer({ env: { WEATHER_CACHE_SECONDS: value } })).rejects.toThrow(
    /^WEATHER_CACHE_SECONDS must be a whole number from 0 to 3600/,
  );
});
