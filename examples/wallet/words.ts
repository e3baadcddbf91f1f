/** Numbers and ids as people read and write them. */

const MIST_DIGITS = 9;

/** Converts SUI in decimal to MIST, exactly; undefined for less than one MIST, or what is not an amount. */
export function parseMist(text: string): bigint | undefined {
  const [, whole = '', fraction = ''] = /^(\d{1,10})(?:\.(\d{1,9}))?$/.exec(text.trim()) ?? [];
  if (whole === '') return undefined;
  const mist = BigInt(whole + fraction.padEnd(MIST_DIGITS, '0'));
  return mist === 0n ? undefined : mist;
}

/** `12.5`: all digits that are not 0. */
export function formatSui(mist: bigint): string {
  const digits = mist.toString().padStart(MIST_DIGITS + 1, '0');
  const whole = BigInt(digits.slice(0, -MIST_DIGITS)).toLocaleString('en');
  const fraction = digits.slice(-MIST_DIGITS).replace(/0+$/, '');
  return fraction === '' ? whole : `${whole}.${fraction}`;
}

/** `0x1234…abcd`, or the ends of a digest. */
export function short(id: string): string {
  return id.length > 16 ? `${id.slice(0, id.startsWith('0x') ? 8 : 6)}…${id.slice(-6)}` : id;
}
