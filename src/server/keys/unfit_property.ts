/**
 * Finds the property of a value that BCS changes, for a message to the application's author. It never reveals
 * values.
 */
import { isDeepStrictEqual } from 'node:util';
import { isPlain } from 'sui-enclave/wire/failing_property';

/**
 * Returns the path of the first property that two values don't have in common. An empty string means
 * the values themselves.
 */
export function propertyThatDiffers(original: unknown, read: unknown): string {
  if (!isPlain(original) || !isPlain(read)) return '';
  const keys = new Set([...Object.keys(original), ...Object.keys(read)]);
  for (const key of keys) {
    const [originalValue, readValue] = [original, read].map(
      (value) => (value as Record<string, unknown>)[key],
    );
    const isInBoth = Object.hasOwn(original, key) && Object.hasOwn(read, key);
    if (isInBoth && isDeepStrictEqual(originalValue, readValue)) continue;
    const innerPath = propertyThatDiffers(originalValue, readValue);
    return innerPath === '' ? key : `${key}.${innerPath}`;
  }
  return '';
}
