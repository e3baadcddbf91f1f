/**
 * Reads and writes big numbers as a wallet and a proving service exchange them. Both sides follow the same
 * rule:
 *
 * - a string of digits only is decimal;
 * - any other string is standard base64 (RFC 4648, section 4) of all the number's bytes, big-endian,
 *   including leading zeros, with padding;
 * - a Uint8Array holds the same bytes.
 *
 * A base64 string of digits only would be read as decimal. No number of a login is affected: in base64, 16
 * and 34 bytes end in `==`, 32 bytes end in `=`, and the 33 bytes of an ed25519 key begin with `A`, since its
 * flag is 0.
 */
import { fromBase64, toBase64 } from '@mysten/sui/utils';
import { ZkLoginError } from './errors.ts';

/** A bigint, or a string or bytes in the form that the rule above defines. */
export type BigNumber = bigint | string | Uint8Array;

/** Encoding of big numbers in requests to services. */
export type NumberEncoding = 'decimal' | 'base64';

/** Size in bytes of a salt, and of the randomness in a nonce. */
export const SALT_SIZE = 16;

/**
 * Sizes in bytes of an extended ephemeral public key, which is the flag and the public key. 32: ed25519
 * without its flag, which is 0, as in an example of Sui's documentation. 33: ed25519. 34: secp256k1 and
 * secp256r1.
 */
export const EXTENDED_KEY_SIZES = [32, 33, 34] as const;

/**
 * Reads a number. Base64 must contain every byte, since short strings such as `0x10` are base64 by chance.
 *
 * @param sizes allowed sizes in bytes; decimal strings and bigints may be smaller
 * @throws ZkLoginError: ZKLOGIN_OPTION. The message names the argument, but doesn't repeat its value
 */
export function readNumber(name: string, value: BigNumber, ...sizes: readonly number[]): bigint {
  for (const size of sizes) {
    const number = parse(value, size);
    if (number !== null) return number;
  }
  throw new ZkLoginError(
    'ZKLOGIN_OPTION',
    `${name} must be an integer of at most ${Math.max(...sizes)} bytes in decimal, or exactly ${formatAlternatives(sizes)} bytes in standard base64 with its padding or as a Uint8Array`,
  );
}

/** Formats sizes as "32, 33 or 34". */
function formatAlternatives(sizes: readonly number[]): string {
  const firstSizes = sizes.slice(0, -1).join(', ');
  return `${firstSizes}${firstSizes === '' ? '' : ' or '}${sizes.at(-1)}`;
}

/** Returns whether readNumber accepts the value. */
export function isNumber(value: BigNumber, size: number): boolean {
  return parse(value, size) !== null;
}

/**
 * Writes a number.
 *
 * @param size number of bytes in base64, to which the number is padded with leading zeros
 */
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
  // Limit the number of digits, since BigInt takes quadratic time.
  if (/^[0-9]+$/.test(text)) return text.length <= Math.ceil(size * 2.41) ? BigInt(text) : null;
  if (!/^[A-Za-z0-9+/]+={0,2}$/.test(text) || text.length !== Math.ceil(size / 3) * 4) return null;
  const bytes = fromBase64(text);
  // Encode it again to detect unused bits in the last character.
  return bytes.length === size && toBase64(bytes) === text ? fromBytes(bytes) : null;
}

function fromBytes(bytes: Uint8Array): bigint {
  return bytes.reduce((number, byte) => (number << 8n) | BigInt(byte), 0n);
}
