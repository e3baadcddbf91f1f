import { bcs } from '@mysten/bcs';
import * as v from 'valibot';
import { text, u64 } from '../../signing/bcs.ts';
import { signedType } from '../../signing/intent.ts';

/** `WeatherResponse { location: String, temperature: u64 }` of the Move module `weather`, intent 0. */
export const WeatherResponse = signedType(
  0,
  bcs.struct('WeatherResponse', {
    /** The requested text, unchanged. */
    location: text,
    /** Whole degrees Celsius, truncated towards zero; a reading below 0 °C has no value here. */
    temperature: u64,
  }),
);

/** UTF-8 bytes of a location. */
const MAX_LOCATION_BYTES = 256;

export const WeatherRequest = v.strictObject({
  location: v.pipe(
    v.string(),
    v.check((location) => location.isWellFormed(), 'must be well-formed Unicode (no lone surrogate)'),
    v.check((location) => location.trim() !== '', 'must name a place'),
    // The service would take it for where the question comes from.
    v.check(
      (location) => !/^\s*auto\s*:\s*ip\s*$/i.test(location),
      "must name a place: auto:ip would be the server's own",
    ),
    v.maxBytes(MAX_LOCATION_BYTES, `must be at most ${MAX_LOCATION_BYTES} bytes of UTF-8`),
  ),
});
