/** Formats times for people, in UTC. */

const UNITS = [
  [31_556_952_000, 'years'],
  [86_400_000, 'd'],
  [3_600_000, 'h'],
  [60_000, 'min'],
  [1000, 's'],
] as const;

/**
 * Formats a duration with its two greatest units, rounded down, such as `2 h 5 min`. A year has the
 * calendar's mean length.
 *
 * @param ms duration in milliseconds, not negative
 */
export function duration(ms: number): string {
  if (ms < 1000) return `${Math.round(ms)} ms`;
  const start = UNITS.findIndex(([size]) => ms >= size);
  let remainingMs = ms;
  const parts = UNITS.slice(start, start + 2).map(([size, unit]) => {
    const count = Math.floor(remainingMs / size);
    remainingMs -= count * size;
    return count === 0 ? '' : `${count.toLocaleString('en')} ${unit}`;
  });
  return parts.filter((part) => part !== '').join(' ');
}

/** Formats a time such as `2026-11-23 03:52:10 UTC`. An invalid time stays a number. */
export function timestamp(ms: number): string {
  const date = new Date(ms);
  if (Number.isNaN(date.getTime())) return `${ms} ms`;
  return date
    .toISOString()
    .replace('T', ' ')
    .replace(/\.\d+Z$/, ' UTC');
}
