/** Parses untrusted JSON. Refuses what is too large, and what two parsers could read differently. */
import { invalidReleaseOption, ReleaseError } from './errors.ts';

/**
 * Parses a file.
 *
 * @param label names the file in messages
 * @param maxSize in bytes
 * @throws ReleaseError: RELEASE_OPTION if `bytes` is not a Uint8Array; RELEASE_TOO_LARGE, RELEASE_JSON
 */
export function parseStrictJson(bytes: Uint8Array, label: string, maxSize: number): unknown {
  if (!(bytes instanceof Uint8Array)) throw invalidReleaseOption(`${label} must be a Uint8Array`);
  if (bytes.length > maxSize) {
    throw new ReleaseError(
      'RELEASE_TOO_LARGE',
      `${label} has ${bytes.length} bytes, but may have at most ${maxSize}`,
    );
  }
  let text: string;
  let value: unknown;
  try {
    text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
    value = JSON.parse(text);
  } catch {
    throw new ReleaseError('RELEASE_JSON', `${label} is not JSON in UTF-8`);
  }
  const name = findDuplicate(text);
  if (name !== undefined) {
    throw new ReleaseError('RELEASE_JSON', `${label} has ${name.slice(0, 80)} twice in one object`);
  }
  return value;
}

/** Matches a string, or a character of JSON's structure. */
const TOKENS = /"(?:[^"\\]|\\.)*"|[{}[\]:,]/g;

/**
 * Finds a name that occurs twice in an object: `JSON.parse` takes the last value, other parsers the first.
 */
function findDuplicate(text: string): string | undefined {
  const names: (Set<string> | undefined)[] = [];
  let lastToken = '';
  for (const [token] of text.matchAll(TOKENS)) {
    if (token === '{') names.push(new Set());
    else if (token === '[') names.push(undefined);
    else if (token === '}' || token === ']') names.pop();
    else if (token === ':') {
      const name = JSON.stringify(JSON.parse(lastToken));
      const namesOfObject = names.at(-1);
      if (namesOfObject?.has(name)) return name;
      namesOfObject?.add(name);
    }
    lastToken = token;
  }
  return undefined;
}

/** @throws ReleaseError: RELEASE_FORM */
export function requireObject(value: unknown, label: string): Readonly<Record<string, unknown>> {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw badForm(label, 'an object');
  return value as Readonly<Record<string, unknown>>;
}

/** @throws ReleaseError: RELEASE_FORM */
export function requireList(value: unknown, label: string): readonly unknown[] {
  if (!Array.isArray(value)) throw badForm(label, 'a list');
  return value;
}

/** @throws ReleaseError: RELEASE_FORM */
export function requireText(value: unknown, label: string, form: RegExp): string {
  if (typeof value !== 'string' || !form.test(value))
    throw badForm(label, `a text of the form ${form.source}`);
  return value;
}

/** @throws ReleaseError: RELEASE_FORM */
export function requireCount(value: unknown, label: string): number {
  if (typeof value !== 'number' || !Number.isSafeInteger(value) || value < 1) {
    throw badForm(label, 'a positive integer');
  }
  return value;
}

export function badForm(label: string, expected: string): ReleaseError {
  return new ReleaseError('RELEASE_FORM', `${label} is not ${expected}`);
}
