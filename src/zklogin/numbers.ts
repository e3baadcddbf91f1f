/**
 * Big numbers as a wallet and a proving service exchange them (spec section 2.5), by one rule at both ends:
 *
 * - a text of digits alone is decimal;
 * - any other text is standard base64 (RFC 4648, section 4) of the number's bytes, big-endian: all of them, zeros
 *   in front included, and padded where their count needs it;
 * - a Uint8Array is those bytes.
 *
 * A base64 text of digits alone is therefore decimal. No number of a login is hit by this: 16 and 34 bytes end in
 * `==`, and the 33 of an ed25519 key begin with `A`, by its flag of 0.
 */
import { fromBase64, toBase64 } from '@mysten/sui/utils';
import { InvalidOptionError } from './errors.ts';

/** A bigint, or a text or bytes as the rule above reads them. */
export type BigNumber = bigint | string | Uint8Array;

export type NumberEncoding = 'decimal' | 'base64';

/** Bytes of a salt, and of the randomness in a nonce. */
export const SALT_SIZE = 16;

/** Bytes of an extended ephemeral public key, flag and public key: of ed25519; of secp256k1 and secp256r1. */
export const EXTENDED_KEY_SIZES = [33, 34] as const;

/**
 * Base64 must have every byte: short texts such as `0x10` are base64 by chance.
 *
 * @param sizes the number's bytes; decimal digits and bigints may be of fewer
 * @throws InvalidOptionError that names it, and does not repeat it
 */
export function readNumber(name: string, value: BigNumber, ...sizes: readonly number[]): bigint {
  for (const size of sizes) {
    const number = parse(value, size);
    if (number !== null) return number;
  }
  throw new InvalidOptionError(
    `${name} must be an integer of at most ${Math.max(...sizes)} bytes in decimal, or exactly ${sizes.join(' or ')} bytes in standard base64 with its padding or as a Uint8Array`,
  );
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
  if (value instanceof Uint8Array) return value.length === size ? fromBytes(value) : null;
  const number = typeof value === 'string' ? parseText(value, size) : value;
  return typeof number === 'bigint' && number >= 0n && number < 1n << BigInt(8 * size) ? number : null;
}

function parseText(text: string, size: number): bigint | null {
  // No more digits than the number can have: BigInt takes quadratic time.
  if (/^[0-9]+$/.test(text)) return text.length <= Math.ceil(size * 2.41) ? BigInt(text) : null;
  if (!/^[A-Za-z0-9+/]+={0,2}$/.test(text) || text.length !== Math.ceil(size / 3) * 4) return null;
  const bytes = fromBase64(text);
  // Written back, it shows whether the last character has bits that stand for nothing.
  return bytes.length === size && toBase64(bytes) === text ? fromBytes(bytes) : null;
}

function fromBytes(bytes: Uint8Array): bigint {
  return bytes.reduce((number, byte) => (number << 8n) | BigInt(byte), 0n);
}
