import { signedType, struct, text, u64 } from 'sui-enclave-server';
import * as v from 'valibot';
import { canonicalPlace } from './place.ts';

/** `WeatherResponse { location: String, temperature: u64 }` of the Move module `weather`, intent 0. */
export const WeatherResponse = signedType(
  0,
  struct('WeatherResponse', {
    /** The requested location, unchanged. */
    location: text,
    /** Whole degrees Celsius, truncated towards zero; a reading below 0 °C can't be represented. */
    temperature: u64,
  }),
);

/** `Temperature { location: String, tenths_plus_100000: u64 }` of the Move module `weather`, intent 1. */
export const Temperature = signedType(
  1,
  struct('Temperature', {
    /** The requested location, unchanged. */
    location: text,
    /**
     * Tenths of a degree Celsius, rounded, plus 100000, so that a u64 holds readings below 0 °C: -0.4 °C is
     * 99996.
     */
    tenths_plus_100000: u64,
  }),
);

/** Maximum size of a location in UTF-8, both as requested and in canonical form. */
const MAX_LOCATION_BYTES = 256;

/** The requested spelling and its canonical form. */
const Location = v.pipe(
  v.string(),
  v.check((location) => location.isWellFormed(), 'must be well-formed Unicode (no lone surrogate)'),
  // valibot's maxBytes would encode the text.
  v.check(
    (location) => Buffer.byteLength(location) <= MAX_LOCATION_BYTES,
    `must be at most ${MAX_LOCATION_BYTES} bytes of UTF-8`,
  ),
  v.transform((rawText) => ({ requested: rawText, place: canonicalPlace(rawText) })),
  v.check(({ place }) => place !== '', 'must name a place'),
  // The service resolves auto:ip to the location of its caller, which would be this server.
  v.check(
    ({ place }) => !/^auto ?: ?ip$/.test(place),
    "must name a place: auto:ip would be the server's location",
  ),
  v.check(
    ({ place }) => Buffer.byteLength(place) <= MAX_LOCATION_BYTES,
    `must be at most ${MAX_LOCATION_BYTES} bytes of UTF-8, after NFKC too`,
  ),
);

export const WeatherRequest = v.strictObject({ location: Location });
