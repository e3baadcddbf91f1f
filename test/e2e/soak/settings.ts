/** Figures that the processes of the soak share. */

/** Time that the fake of the weather service takes, in milliseconds. */
export const UPSTREAM_MS = 40;

/**
 * `MAX_CONCURRENT_REQUESTS` of the server under load. With UPSTREAM_MS, it bounds the capacity to 800 cold
 * requests a second, since `UPSTREAM_CALLS_PER_MINUTE` allows no more than 1,666.
 */
export const SLOTS = 32;
