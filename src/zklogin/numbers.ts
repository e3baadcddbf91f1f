/** Big numbers as the proving service takes them: decimal text or base64 (spec section 2.5). */
import { fromBase64, toBase64 } from '@mysten/sui/utils';
import { InvalidOptionError } from './errors.ts';

/** A bigint; decimal digits; or base64 of all its bytes, big-endian. A text of digits alone is decimal. */
export type BigNumber = bigint | string;

export type NumberEncoding = 'decimal' | 'base64';

/** Bytes of a salt, and of the randomness in a nonce. */
export const SALT_SIZE = 16;

/**
 * Base64 must have every byte, zeros in front included: short texts such as `0x10` are base64 by chance.
 *
 * @param size bytes of the number
 * @throws InvalidOptionError that names it, and does not repeat it
 */
export function readNumber(name: string, value: BigNumber, size: number): bigint {
  const number = parse(value, size);
  if (number === null) {
    throw new InvalidOptionError(
      `${name} must be an integer of at most ${size} bytes in decimal, or of ${size} bytes in base64`,
    );
  }
  return number;
}

/** Whether readNumber takes it. */
export function isNumber(value: BigNumber, size: number): boolean {
  return parse(value, size) !== null;
}

/** @param size bytes of the base64 form: the number is padded with zeros in front */
export function writeNumber(number: bigint, encoding: NumberEncoding, size: number): string {
  if (encoding === 'decimal') return number.toString();
  const hex = number.toString(16).padStart(2 * size, '0');
  return toBase64(Uint8Array.from(hex.match(/../g) ?? [], (byte) => Number.parseInt(byte, 16)));
}

function parse(value: BigNumber, size: number): bigint | null {
  const number = typeof value === 'string' ? parseText(value, size) : value;
  return typeof number === 'bigint' && number >= 0n && number < 1n << BigInt(8 * size) ? number : null;
}

function parseText(text: string, size: number): bigint | null {
  // No more digits than the number can have: BigInt takes quadratic time.
  if (/^[0-9]+$/.test(text)) return text.length <= Math.ceil(size * 2.41) ? BigInt(text) : null;
  if (!/^[A-Za-z0-9+/]+={0,2}$/.test(text) || text.length !== Math.ceil(size / 3) * 4) return null;
  const bytes = fromBase64(text);
  if (bytes.length !== size) return null;
  return bytes.reduce((number, byte) => (number << 8n) | BigInt(byte), 0n);
}
