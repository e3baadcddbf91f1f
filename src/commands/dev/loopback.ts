/** Pages on this machine, which may use the development services whatever their port. */

const ORIGIN = /^http:\/\/(127\.0\.0\.1|localhost)(:[0-9]{1,5})?$/;

export const isLoopbackOrigin = (origin: string): boolean => ORIGIN.test(origin);

/** In place of a list of origins. */
export const LOOPBACK_ORIGINS = { includes: isLoopbackOrigin };
