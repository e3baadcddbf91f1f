/** Schema of an object whose keys come from outside, such as from a file. */
import * as v from 'valibot';

/**
 * Works like `v.record`, but returns a Map of all entries: `v.record` silently drops the keys `constructor`,
 * `prototype` and `__proto__`.
 *
 * @param message the error message for a value that is not an object
 */
export function namedEntries<
  const Name extends v.GenericSchema<string, string>,
  const Value extends v.GenericSchema,
>(name: Name, value: Value, message = 'must be an object') {
  return v.pipe(
    v.custom<Readonly<Record<string, v.InferInput<Value>>>>(isPlain, message),
    v.transform((object) => new Map(Object.entries(object))),
    v.map(name, value),
  );
}

function isPlain(value: unknown): boolean {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
