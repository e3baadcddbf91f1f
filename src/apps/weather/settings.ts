import { integerBetween, type SettingTable } from 'sui-enclave-server';

export const WEATHER_SETTINGS = {
  WEATHER_CACHE_SECONDS: {
    schema: integerBetween(0, 3600),
    default: '30',
    meaning:
      'how long a reading, or the answer that the place is unknown, is reused for the same place in any spelling. Other failures are cached for 5 s at most. 0 disables the cache',
  },
} as const satisfies SettingTable;
