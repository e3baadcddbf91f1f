/** Formats numbers in messages. Browser-safe. */

/**
 * Returns a number with its unit, for a message: `1 byte`, `2 bytes`.
 *
 * @param unit in the singular, with a plural in -s
 */
export function quantity(count: number, unit: string): string {
  return `${count} ${unit}${count === 1 ? '' : 's'}`;
}
