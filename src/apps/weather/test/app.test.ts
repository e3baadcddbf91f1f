import { setTimeout as sleep } from 'node:timers/promises';
import { changeDeadline } from 'sui-enclave-testing/change_deadline';
import { startServer, startWeather, type TestServer } from 'sui-enclave-testing/start_server';
import { computeTemperature, DEV_API_KEY, type FAILURES } from 'sui-enclave-testing/weather_api';
import { afterEach, describe, expect, test, vi } from 'vitest';

interface Answer {
  response: { timestamp_ms: number; data: { location: string; temperature: number } };
  error: string;
  code: string;
}

const read = async (answer: Response) => (await answer.json()) as Answer;

afterEach(() => {
  vi.useRealTimers();
  vi.restoreAllMocks();
});

/** Replaces the clock of caches and budgets by one that is `ahead` by some milliseconds, at first by 0. */
function mockClock(): { ahead: number } {
  const clock = { ahead: 0 };
  const now = performance.now.bind(performance);
  vi.spyOn(performance, 'now').mockImplementation(() => now() + clock.ahead);
  return clock;
}

describe('a reading', () => {
  test('is for the requested place, is truncated towards zero, and has the time at which the service made it', async () => {
    const { ask } = await startWeather();
    for (const place of ['Paris', 'Oslo', 'Zürich', '東京', 'New York']) {
      const { response } = await read(await ask(place));
      expect(response.data).toEqual({ location: place, temperature: Math.trunc(computeTemperature(place)) });
      expect(response.timestamp_ms % 900_000).toBe(0);
      expect(Date.now() - response.timestamp_ms).toBeLessThan(900_000);
    }
    expect(Math.trunc(computeTemperature('Paris'))).not.toBe(computeTemperature('Paris'));
  });

  test.each(['a&key=stolen', 'a#b', 'a?b=c', 'a%26b', 'a+b c', '../../v2', '48.8,2.3', '"<>\\^`{|}'])(
    'of %j is requested by exactly this text, whatever it means in a URL',
    async (place) => {
      const { ask, weather } = await startWeather();
      expect((await read(await ask(place))).response.data.location).toBe(place);
      expect(weather.asked).toEqual([place]);
    },
  );

  test.each([
    ['invisible characters only', '\u200b\ufeff\u00ad \u2060\u0000', /must name a place/],
    [
      'the server’s own place in full-width letters',
      'ａｕｔｏ：ｉｐ',
      /auto:ip would be the server's location/,
    ],
    ['the server’s own place with a joiner', 'Auto\u200d: IP', /auto:ip would be the server's location/],
    ['a string that grows by NFKC', '\ufdfa'.repeat(80), /at most 256 bytes of UTF-8, after NFKC too/],
  ])('of %s is rejected without a request to the service', async (_title, location, message) => {
    const { ask, weather } = await startWeather();
    const answer = await ask(location);
    expect(answer.status).toBe(400);
    expect(await read(answer)).toEqual({ error: expect.stringMatching(message), code: 'INVALID_INPUT' });
    expect(weather.asked).toEqual([]);
  });
});

describe('a reading in tenths of a degree', () => {
  async function askTenths(server: TestServer, location: string) {
    const answer = await server.post('/temperature', { payload: { location } });
    return (await answer.json()) as {
      response: { intent: number; timestamp_ms: number; data: { tenths_plus_100000: number } };
      code: string;
    };
  }

  test('may be below zero, and is signed with a type of its own', async () => {
    const { server, weather } = await startWeather();
    const cold = await askTenths(server, '!cold');
    expect(cold.response).toMatchObject({
      intent: 1,
      data: { location: '!cold', tenths_plus_100000: 99_996 },
    });
    const { response } = await askTenths(server, 'Paris');
    expect(response.data.tenths_plus_100000).toBe(100_000 + Math.round(10 * computeTemperature('Paris')));
    expect(weather.asked).toEqual(['!cold', 'paris']);
  });

  test('comes from the same request to the service as the reading in whole degrees, and has the same time', async () => {
    const { server, ask, weather } = await startWeather();
    const whole = await read(await ask('Paris'));
    const tenths = await askTenths(server, 'PARIS');
    expect(tenths.response.timestamp_ms).toBe(whole.response.timestamp_ms);
    expect(await read(await ask('Paris'))).toEqual(whole);
    expect(await askTenths(server, 'PARIS')).toEqual(tenths);
    expect(weather.asked).toEqual(['paris']);
    expect(await read(await ask('!cold'))).toMatchObject({ code: 'WEATHER_BELOW_ZERO' });
    expect((await askTenths(server, '!cold')).response.data.tenths_plus_100000).toBe(99_996);
  });

  test('is refused for the same reasons as a reading in whole degrees', async () => {
    const { server } = await startWeather();
    for (const [place, code] of [
      ['auto:ip', 'INVALID_INPUT'],
      ['!unknown', 'WEATHER_LOCATION_NOT_FOUND'],
      ['!stale', 'WEATHER_STALE'],
      ['!plasma', 'WEATHER_MALFORMED'],
    ] as const) {
      expect(await askTenths(server, place)).toMatchObject({ code });
    }
  });
});

describe('the upstream', () => {
  test('gets one request for concurrent requests for a place and for requests shortly afterwards', async () => {
    const { ask, weather } = await startWeather({ beforeAnswer: () => sleep(100) });
    const answers = await Promise.all(
      Array.from({ length: 20 }, () => ask('Paris').then((answer) => answer.text())),
    );
    expect(new Set(answers).size).toBe(1);
    await ask('Paris');
    expect(weather.asked).toEqual(['paris']);
  });

  test('gets a request each time if the cache is disabled, but still only one for concurrent requests', async () => {
    const { ask, weather } = await startWeather({
      beforeAnswer: () => sleep(500),
      env: { WEATHER_CACHE_SECONDS: '0' },
    });
    await Promise.all([ask('Paris'), ask('Paris')]);
    await ask('Paris');
    expect(weather.asked).toEqual(['paris', 'paris']);
  });

  test('gets one request for all spellings of a place, and the signed location is the requested spelling', async () => {
    const { ask, weather } = await startWeather();
    const spellings = ['LonDON', 'london', ' London\t', 'Lon\u200bdon', 'Ｌｏｎｄｏｎ', '\ufeffLONDON\u00ad'];
    const many = Array.from({ length: 20 }, (_, index) => `London${' '.repeat(index)}`);
    // Every spelling is requested twice: cached answers have the same data as new ones.
    for (const place of [...spellings, ...many, ...spellings, ...many]) {
      const { response } = await read(await ask(place));
      expect(response.data).toEqual({
        location: place,
        temperature: Math.trunc(computeTemperature('london')),
      });
    }
    expect(weather.asked).toEqual(['london']);
  });

  test('gets one request for a failure, which all spellings of the place share', async () => {
    const { ask, weather } = await startWeather();
    for (const place of ['!unknown', '!UNKNOWN', '!un\u200bknown '])
      expect((await ask(place)).status).toBe(422);
    expect(weather.asked).toEqual(['!unknown']);
  });

  test('is reached over one persistent connection', async () => {
    const { ask, weather } = await startWeather();
    for (const place of ['a', 'b', 'c', 'd']) await ask(place);
    expect(weather.connections()).toBe(1);
  });

  test('is not reached through a proxy that the environment names', async () => {
    vi.stubEnv('HTTP_PROXY', 'http://127.0.0.1:1').stubEnv('http_proxy', 'http://127.0.0.1:1');
    const { ask } = await startWeather();
    expect((await ask('Paris')).status).toBe(200);
    vi.unstubAllEnvs();
  });
});

describe('a failure of the upstream has its own code', () => {
  const expectedFailures: Record<Exclude<keyof typeof FAILURES, '!timeout' | '!drip'>, [number, string]> = {
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

  test.each(Object.entries(expectedFailures))('%s', async (place, [status, code]) => {
    const { ask, server, weather } = await startWeather();
    const answer = await ask(place);
    expect(answer.status).toBe(status);
    const text = await answer.text();
    expect(JSON.parse(text)).toEqual({ error: expect.any(String), code });
    expect(weather.asked).toEqual([place]);
    // The failure is cached for a while. Afterwards, the service is asked again.
    expect(await (await ask(place)).text()).toBe(text);
    expect(weather.asked).toEqual([place]);
    const clock = mockClock();
    clock.ahead += status === 422 ? 28_000 : 3000;
    await ask(place);
    expect(weather.asked).toEqual([place]);
    clock.ahead += 3000;
    await ask(place);
    expect(weather.asked).toEqual([place, place]);
    expect(text + server.printed()).not.toContain(DEV_API_KEY);
    expect((await ask('Paris')).status).toBe(200);
  });

  test('!timeout and !drip: neither silence nor a slow body outlasts the deadline', async () => {
    changeDeadline(5000, 300);
    const { ask } = await startWeather();
    const start = performance.now();
    const [silent, slow] = await Promise.all([ask('!timeout'), ask('!drip')]);
    expect(performance.now() - start).toBeLessThan(4000);
    expect([silent.status, slow.status]).toEqual([504, 504]);
    expect(await read(silent)).toMatchObject({ code: 'WEATHER_TIMEOUT' });
    expect(await read(slow)).toMatchObject({ code: 'WEATHER_SLOW_BODY' });
  });

  test('if the API key is wrong, and the log does not contain the key', async () => {
    const { ask, server } = await startWeather({ env: { API_KEY: 'hunter2' } });
    const answer = await ask('Paris');
    expect(await read(answer)).toMatchObject({ code: 'WEATHER_KEY_REFUSED' });
    expect(server.printed()).not.toContain('hunter2');
  });

  test('if nothing listens, and the log has the error code of the system', async () => {
    const { post, printed } = await startServer({ origins: { 'api.weatherapi.com': 'http://127.0.0.1:1' } });
    const answer = await post('/process_data', { payload: { location: 'Paris' } });
    expect(answer.status).toBe(502);
    expect(await read(answer)).toMatchObject({ code: 'WEATHER_UNREACHABLE' });
    expect(printed()).toMatch(/"code":"WEATHER_UNREACHABLE".*"cause":\{.*"code":"ECONNREFUSED"/);
    expect(printed()).not.toContain(DEV_API_KEY);
  });
});

describe('the budget of calls', () => {
  test('is spent only by requests to the service', async () => {
    const { ask, server, weather } = await startWeather({ env: { UPSTREAM_CALLS_PER_MINUTE: '3' } });
    await server.get('/health_check');
    for (const place of ['Paris', '!unknown', 'Oslo']) await ask(place);
    const refused = await ask('Rome');
    expect(refused.status).toBe(503);
    expect(Number(refused.headers.get('retry-after'))).toBeOneOf([20, 19, 18, 17]);
    expect(await read(refused)).toEqual({
      error: 'too many requests to the upstream service: try again later',
      code: 'UPSTREAM_BUDGET_EXCEEDED',
    });
    expect([(await ask('PARIS')).status, (await ask('!unknown')).status]).toEqual([200, 422]);
    expect(weather.asked).toEqual(['paris', '!unknown', 'oslo']);
  });

  test('admits calls again after the time in Retry-After, since a refusal is not cached', async () => {
    const { ask } = await startWeather({ env: { UPSTREAM_CALLS_PER_MINUTE: '1' } });
    const clock = mockClock();
    expect((await ask('Paris')).status).toBe(200);
    const refused = await ask('Oslo');
    clock.ahead += 1000 * Number(refused.headers.get('retry-after'));
    expect((await ask('Oslo')).status).toBe(200);
  });

  test('limits the calls that callers can cause: 300 places cost 60 calls, and at most one more each second', async () => {
    const { ask, weather } = await startWeather();
    const started = performance.now();
    const statuses: number[] = [];
    // A slow machine does not answer 300 concurrent requests in time.
    while (statuses.length < 300) {
      const answers = Array.from({ length: 20 }, (_, index) => ask(`place ${statuses.length + index}`));
      statuses.push(...(await Promise.all(answers)).map(({ status }) => status));
    }
    const seconds = Math.ceil((performance.now() - started) / 1000);
    expect(new Set(statuses)).toEqual(new Set([200, 503]));
    expect(weather.asked).toHaveLength(statuses.filter((status) => status === 200).length);
    expect(weather.asked.length).toBeGreaterThanOrEqual(60);
    expect(weather.asked.length).toBeLessThanOrEqual(60 + seconds);
  });

  test.each(['0', '-1', '100001', '1.5', 'x'])(
    'prevents a start with UPSTREAM_CALLS_PER_MINUTE=%s',
    async (value) => {
      await expect(startServer({ env: { UPSTREAM_CALLS_PER_MINUTE: value } })).rejects.toThrow(
        /^UPSTREAM_CALLS_PER_MINUTE must be an integer from 1 to 100000/,
      );
    },
  );
});

describe('the age of a reading', () => {
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
    expect(weather.asked).toEqual(['paris']);
  });
});

test.each(['-1', '3601', 'x', '1.5'])('WEATHER_CACHE_SECONDS=%s prevents a start', async (value) => {
  await expect(startServer({ env: { WEATHER_CACHE_SECONDS: value } })).rejects.toThrow(
    /^WEATHER_CACHE_SECONDS must be an integer from 0 to 3600/,
  );
});
