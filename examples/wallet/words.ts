/** Parses amounts that people enter, and formats amounts and ids for people. */

const MIST_DIGITS = 9;

/**
 * Converts SUI in decimal to MIST, exactly. Returns undefined for less than one MIST, and for text
 * that is not an amount.
 */
export function parseMist(text: string): bigint | undefined {
  const [, whole = '', fraction = ''] = /^(\d{1,10})(?:\.(\d{1,9}))?$/.exec(text.trim()) ?? [];
  if (whole === '') return undefined;
  const mist = BigInt(whole + fraction.padEnd(MIST_DIGITS, '0'));
  return mist === 0n ? undefined : mist;
}

/** Formats MIST as SUI such as `12.5`, without trailing zeros. */
export function formatSui(mist: bigint): string {
  const digits = mist.toString().padStart(MIST_DIGITS + 1, '0');
  const whole = BigInt(digits.slice(0, -MIST_DIGITS)).toLocaleString('en');
  const fraction = digits.slice(-MIST_DIGITS).replace(/0+$/, '');
  return fraction === '' ? whole : `${whole}.${fraction}`;
}

/** Shortens an id to its ends, such as `0x123456…abcdef`. A digest keeps 6 characters at each end. */
export function shortenId(id: string): string {
  return id.length > 16 ? `${id.slice(0, id.startsWith('0x') ? 8 : 6)}…${id.slice(-6)}` : id;
}
