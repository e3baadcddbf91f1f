import { integerBetween, type SettingTable } from 'sui-enclave-server';

export const WEATHER_SETTINGS = {
  WEATHER_CACHE_SECONDS: {
    schema: integerBetween(0, 3600),
    default: '30',
    meaning:
      'how many seconds the server caches a reading, or the failure that the place is unknown. All spellings of the place share it. Other failures are cached for at most 5 s. 0 disables the cache',
  },
} as const satisfies SettingTable;
