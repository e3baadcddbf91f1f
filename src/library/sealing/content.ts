/**
 * The sealed plaintext: JSON in UTF-8, padded with spaces, which JSON allows at its end (RFC 8259, section
 * 2).
 */
import { parseJsonText, UNREADABLE_NAME } from '../json_text.ts';
import { SealingError } from './errors.ts';

const SPACE = 0x20;

/**
 * Encodes and pads JSON.
 *
 * @param multiple the length is padded to a multiple of this number of bytes; 0 and 1 mean no padding
 */
export function encodeContent(json: string, multiple: number): Uint8Array {
  const bytes = new TextEncoder().encode(json);
  const excess = multiple > 1 ? bytes.length % multiple : 0;
  if (excess === 0) return bytes;
  const padded = new Uint8Array(bytes.length + multiple - excess).fill(SPACE);
  padded.set(bytes);
  return padded;
}

/**
 * Parses the JSON of an object.
 *
 * @param properties the only properties that the object may have; default: any
 * @throws SealingError: SEALED_CONTENT
 */
export function decodeContent(bytes: Uint8Array, properties?: readonly string[]): Record<string, unknown> {
  let content: unknown;
  try {
    content = parseJsonText(new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes));
  } catch (error) {
    const { message } = error as Error;
    throw invalidContent(message === UNREADABLE_NAME ? message : 'it is not JSON in UTF-8');
  }
  if (typeof content !== 'object' || content === null || Array.isArray(content)) {
    throw invalidContent('it is not an object');
  }
  if (properties && !Object.keys(content).every((name) => properties.includes(name))) {
    throw invalidContent(`it has a property besides ${properties.join(', ')}`);
  }
  return content as Record<string, unknown>;
}

export function invalidContent(problem: string): SealingError {
  return new SealingError('SEALED_CONTENT', `the sealed content can't be used: ${problem}`);
}
