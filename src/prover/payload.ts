/** Locates the properties of a JWT's payload in its bytes, which JSON.parse can't do. */
import { KeyClaimError, ProverError } from './errors.ts';

/**
 * A property on the top level. Lengths and indexes are in bytes. The indexes of colon and value count from
 * `start`.
 */
export interface PayloadProperty {
  /** Name of the property, without escapes. */
  readonly name: string;
  /** Value as JSON.parse returns it. */
  readonly value: unknown;
  /**
   * Text from the name's opening quote to the `,` or `}` that ends the property, with one character for each
   * byte.
   */
  readonly text: string;
  /** Index of the first byte in the payload. */
  readonly start: number;
  readonly nameLength: number;
  readonly colonIndex: number;
  readonly valueIndex: number;
  readonly valueLength: number;
}

const SPACE = /[ \t\n\r]*/y;
/** Matches a string, a number, true, false or null. */
const SCALAR = /"(?:[^"\\]|\\.)*"|[^\s"[\]{},:]+/y;

/**
 * Returns the properties of a JSON object's top level by name, in the payload's order.
 *
 * @param payload JSON object in UTF-8
 * @throws ProverError if the payload is not a JSON object; KeyClaimError if a name occurs twice, since JSON
 *   doesn't define which value counts
 */
export function parseProperties(payload: Uint8Array): Map<string, PayloadProperty> {
  const parsed = parseObject(payload);
  // The text has one character for each byte. In UTF-8, no byte of a multi-byte character equals an ASCII
  // character.
  const text = Buffer.from(payload).toString('latin1');
  const properties = new Map<string, PayloadProperty>();
  let position = skip(SPACE, text, 0) + 1;
  for (;;) {
    position = skip(SPACE, text, position);
    if (text[position] === '}') return properties;
    const start = position;
    const nameEnd = skip(SCALAR, text, start);
    const colon = skip(SPACE, text, nameEnd);
    const value = skip(SPACE, text, colon + 1);
    const valueEnd = findValueEnd(text, value);
    const terminator = skip(SPACE, text, valueEnd);
    const name = JSON.parse(Buffer.from(text.slice(start, nameEnd), 'latin1').toString()) as string;
    if (properties.has(name)) throw new KeyClaimError(name, 'occurs twice');
    properties.set(name, {
      name,
      value: parsed[name],
      text: text.slice(start, terminator + 1),
      start,
      nameLength: nameEnd - start,
      colonIndex: colon - start,
      valueIndex: value - start,
      valueLength: valueEnd - value,
    });
    if (text[terminator] === '}') return properties;
    position = terminator + 1;
  }
}

function parseObject(payload: Uint8Array): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(
      new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(payload),
    );
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) {
      return value as Record<string, unknown>;
    }
  } catch {
    // The parser's error is discarded, since its message quotes the input.
  }
  throw new ProverError('PROVER_TOKEN', "the token's payload is not a JSON object");
}

/**
 * Returns the end of a match that begins at `start`, or `start` without a match. `text` is well-formed JSON.
 */
function skip(pattern: RegExp, text: string, start: number): number {
  pattern.lastIndex = start;
  return start + (pattern.exec(text)?.[0].length ?? 0);
}

function findValueEnd(text: string, start: number): number {
  let position = start;
  let depth = 0;
  do {
    const char = text[position] as string;
    if ('{['.includes(char)) depth++;
    if ('}]'.includes(char)) depth--;
    position = Math.max(position + 1, skip(SCALAR, text, position));
  } while (depth > 0);
  return position;
}
