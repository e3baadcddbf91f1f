import { Unacceptable, UpstreamFailed, UpstreamTimeout } from '../../errors.ts';

export class LocationNotFound extends Unacceptable {
  readonly code = 'WEATHER_LOCATION_NOT_FOUND';
}

/** The signed temperature is a u64: there is no value for a reading below 0 °C. */
export class BelowZero extends Unacceptable {
  readonly code = 'WEATHER_BELOW_ZERO';
}

export class StaleReading extends UpstreamFailed {
  readonly code = 'WEATHER_STALE';
}

export class FutureReading extends UpstreamFailed {
  readonly code = 'WEATHER_FUTURE';
}

/** The service does not take the API key. */
export class KeyRefused extends UpstreamFailed {
  readonly code = 'WEATHER_KEY_REFUSED';
}

/** The API key's quota is used up. */
export class QuotaExceeded extends UpstreamFailed {
  readonly code = 'WEATHER_QUOTA_EXCEEDED';
}

/** Any other 4xx. */
export class UpstreamRefused extends UpstreamFailed {
  readonly code = 'WEATHER_UPSTREAM_REFUSED';
}

/** A 5xx. */
export class UpstreamBroken extends UpstreamFailed {
  readonly code = 'WEATHER_UPSTREAM_BROKEN';
}

/** A status that is neither 200 nor an error, such as a redirect, which is not followed. */
export class UpstreamUnexpected extends UpstreamFailed {
  readonly code = 'WEATHER_UPSTREAM_UNEXPECTED';
}

/** No connection, or one that broke before the answer was whole. */
export class UpstreamUnreachable extends UpstreamFailed {
  readonly code = 'WEATHER_UNREACHABLE';
}

export class UpstreamMalformed extends UpstreamFailed {
  readonly code = 'WEATHER_MALFORMED';
}

export class UpstreamOversized extends UpstreamFailed {
  readonly code = 'WEATHER_OVERSIZED';
}

/** No status line in time. */
export class UpstreamSilent extends UpstreamTimeout {
  readonly code = 'WEATHER_TIMEOUT';
}

/** The body began, but did not end in time. */
export class UpstreamSlow extends UpstreamTimeout {
  readonly code = 'WEATHER_SLOW_BODY';
}
