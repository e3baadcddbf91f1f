import { integerBetween, type SettingTable } from 'sui-enclave-server';

export const WEATHER_SETTINGS = {
  WEATHER_CACHE_SECONDS: {
    schema: integerBetween(0, 3600),
    default: '30',
    meaning:
      'seconds for which a reading, or the failure that the place is unknown, is cached for all spellings of the place. Other failures are cached for at most 5 s. 0 disables the cache',
  },
} as const satisfies SettingTable;
