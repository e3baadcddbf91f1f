/** Constants that the processes of the soak share. */

/** Time in which the fake weather service answers, in milliseconds. */
export const UPSTREAM_MS = 40;

/**
 * `MAX_CONCURRENT_REQUESTS` of the server under load. With UPSTREAM_MS, it limits the capacity to 800 cold
 * requests a second. `UPSTREAM_CALLS_PER_MINUTE` would allow 1,666 a second.
 */
export const SLOTS = 32;
