import { bcs } from '@mysten/bcs';
import * as v from 'valibot';
import { text, u64 } from '../../wire/bcs.ts';
import { signedType } from '../../wire/intent.ts';
import { canonicalPlace } from './place.ts';

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

/** UTF-8 bytes of a location, as it is asked for and in its canonical spelling. */
const MAX_LOCATION_BYTES = 256;

/** The requested text, and the place that it means. */
const Location = v.pipe(
  v.string(),
  v.check((location) => location.isWellFormed(), 'must be well-formed Unicode (no lone surrogate)'),
  v.maxBytes(MAX_LOCATION_BYTES, `must be at most ${MAX_LOCATION_BYTES} bytes of UTF-8`),
  v.transform((asked) => ({ asked, place: canonicalPlace(asked) })),
  v.check(({ place }) => place !== '', 'must name a place'),
  // The service would take it for where the question comes from.
  v.check(
    ({ place }) => !/^auto ?: ?ip$/.test(place),
    "must name a place: auto:ip would be the server's own",
  ),
  v.check(
    ({ place }) => Buffer.byteLength(place) <= MAX_LOCATION_BYTES,
    `must be at most ${MAX_LOCATION_BYTES} bytes of UTF-8, after NFKC too`,
  ),
);

export const WeatherRequest = v.strictObject({ location: Location });
