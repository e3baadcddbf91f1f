/** Tests that no text changes how the names of a later text are read, as it does in V8's `JSON.parse`. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { parseJsonText } from '../../../src/library/json_text.ts';
import { randomJson } from './random_json.ts';

/** Texts after which V8's `JSON.parse` misreads names in the texts of the first test. */
const POISONS = ['{"q":1,"Z\\\\u00f":1}', '{"q":1,"\\\\u":1}', '{"q":1,"\\\\":1}', '{"q":1,"\\\\u0":1}'];

describe('a name with escapes', () => {
  test.each([
    ['{"q":1,"Z\\u00fcrich":5}', 'Zürich'],
    ['{"q":1,"\\u00E9a":5}', 'éa'],
    ['{"q":1,"\\u0061b" \n:5}', 'ab'],
    ['{"q":1,"\\ud83d\\ude00":5}', '😀'],
    ['{"q":1,"\\ud83d":5}', '\ud83d'],
    ['{"q":1,"a\\/b":5}', 'a/b'],
    ['{"q":1,"\\u002f":5}', '/'],
  ])('in %j is read as %j, after any other text', (text, name) => {
    for (const poison of POISONS) JSON.parse(poison);
    expect(parseJsonText(text)).toEqual({ q: 1, [name]: 5 });
  });

  test.each([
    '\\"',
    '\\\\',
    '\\n',
    '\\b',
    '\\u0022',
    '\\u005c',
    '\\u005C',
    '\\u001f',
    '\\u0000',
    'a\\\\u00e9',
  ])('is refused if it can not be written without an escape: %s', (name) => {
    expect(() => parseJsonText(`[{"a":{"${name}":1}}]`)).toThrow(SyntaxError);
  });

  test('may be __proto__, which is a property like any other', () => {
    const value = parseJsonText('{"\\u005f_proto__":{"a":1}}') as object;
    expect([Object.keys(value), Object.getPrototypeOf(value)]).toEqual([['__proto__'], Object.prototype]);
  });

  test('reaches the reviver as it is read', () => {
    const names: string[] = [];
    parseJsonText('{"\\u00e9":"\\u00e9"}', (name, value) => {
      names.push(name);
      return value;
    });
    expect(names).toEqual(['é', '']);
  });
});

test('a string that is not a name may have any escape', () => {
  const strings = ['"', '\\', '\n', '\u0000', 'é', 'a": "b', '\\u00e9'];
  expect(parseJsonText(JSON.stringify(strings))).toEqual(strings);
  expect(parseJsonText(JSON.stringify({ a: strings, b: '":' }))).toEqual({ a: strings, b: '":' });
});

/** Writes each character as `\uXXXX`. */
const escapeAll = (text: string) =>
  Array.from({ length: text.length }, (_, index) => text.charCodeAt(index))
    .map((code) => `\\u${code.toString(16).padStart(4, '0')}`)
    .join('');

/** Writes JSON with all strings escaped. */
function writeEscaped(value: unknown): string {
  if (typeof value === 'string') return `"${escapeAll(value)}"`;
  if (Array.isArray(value)) return `[${value.map(writeEscaped).join()}]`;
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  return `{${Object.entries(value).map(([name, part]) => `"${escapeAll(name)}":${writeEscaped(part)}`)}}`;
}

test('any JSON is read as it was written, however it was escaped', () => {
  fc.assert(
    fc.property(randomJson, (value) => {
      expect(parseJsonText(writeEscaped(value))).toEqual(value);
      expect(parseJsonText(JSON.stringify(value))).toEqual(value);
    }),
  );
});

test('a text that is not JSON is refused, even if unescaping it would make it JSON', () => {
  for (const text of [
    '\\u007b"a":1}',
    '{\\u0022a":1}',
    '{"a"\\u003a1}',
    '{"\\x":1}',
    '{"\\u12":1}',
    '{"\\',
  ]) {
    expect(() => parseJsonText(text), text).toThrow(SyntaxError);
  }
  const pieces = ['"', '\\', '\\u0061', '\\u0022', ':', ',', '{', '}', '[', ']', ' ', '1', 'a', '\n', '\\/'];
  fc.assert(
    fc.property(fc.array(fc.constantFrom(...pieces), { maxLength: 12 }), (parts) => {
      const text = parts.join('');
      let isJson = true;
      try {
        JSON.parse(text);
      } catch {
        isJson = false;
      }
      if (!isJson) expect(() => parseJsonText(text), text).toThrow(SyntaxError);
    }),
    { numRuns: 5000 },
  );
});

test('a long text of escapes or of quotes is read in time linear in its length', () => {
  const [escapes, quotes] = ['\\n', '\\"'].map((pair) => pair.repeat(1_000_000));
  expect(parseJsonText(`["${escapes}"]`)).toEqual(['\n'.repeat(1_000_000)]);
  expect(() => parseJsonText(`["${quotes}`)).toThrow(SyntaxError);
});
