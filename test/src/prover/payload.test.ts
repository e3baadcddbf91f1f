import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { parseProperties } from '../../../src/prover/payload.ts';

const properties = (text: string) => parseProperties(Buffer.from(text));

describe('the properties of a payload', () => {
  test('are returned with their positions in bytes', () => {
    const text = '{ "é": "ü" ,"sub"\t:\n"1" , "n":[{"sub":"2"},"}"],"z":{"a":[1,"]"]}, "t":true }';
    const readProperties = properties(text);
    expect([...readProperties.keys()]).toEqual(['é', 'sub', 'n', 'z', 't']);
    expect(readProperties.get('sub')).toEqual({
      name: 'sub',
      value: '1',
      text: '"sub"\t:\n"1" ,',
      start: Buffer.from('{ "é": "ü" ,').length,
      nameLength: 5,
      colonIndex: 6,
      valueIndex: 8,
      valueLength: 3,
    });
    expect(readProperties.get('n')?.value).toEqual([{ sub: '2' }, '}']);
    expect(readProperties.get('z')?.text).toBe('"z":{"a":[1,"]"]},');
    expect(readProperties.get('t')?.text).toBe('"t":true }');
  });

  test('may be absent, or have the names of built-in properties', () => {
    expect(properties(' { } ').size).toBe(0);
    expect([...properties('{"__proto__":1,"constructor":"x"}').keys()]).toEqual(['__proto__', 'constructor']);
    expect(properties('{"__proto__":{"sub":1}}').has('sub')).toBe(false);
  });

  test('are those that JSON.parse reads, whatever the white space and the escapes', () => {
    const stringifyWithSpace = (value: unknown, space: string) => JSON.stringify(value, null, space);
    fc.assert(
      fc.property(
        fc.dictionary(fc.string(), fc.jsonValue()),
        fc.constantFrom('', ' ', '\t'),
        (value, space) => {
          const text = stringifyWithSpace(value, space);
          const bytes = Buffer.from(text);
          const readProperties = parseProperties(bytes);
          const parsed = JSON.parse(text);
          expect([...readProperties.keys()].sort()).toEqual(Object.keys(parsed).sort());
          for (const [
            name,
            { start, text, nameLength, colonIndex, valueIndex, valueLength },
          ] of readProperties) {
            const raw = bytes.subarray(start, start + Buffer.from(text, 'latin1').length).toString('latin1');
            expect(raw).toBe(text);
            const slice = (from: number, length: number) =>
              JSON.parse(Buffer.from(text.slice(from, from + length), 'latin1').toString());
            expect(slice(0, nameLength)).toBe(name);
            expect(text[colonIndex]).toBe(':');
            expect(slice(valueIndex, valueLength)).toEqual(parsed[name]);
            expect(text).toMatch(/[,}]$/);
          }
        },
      ),
    );
  });

  test.each(['', '[]', 'null', '"x"', '{', '{"a":1', '{"a":1}}', '{a:1}'])('are not found in %j', (text) => {
    expect(() => properties(text)).toThrow(expect.objectContaining({ code: 'PROVER_TOKEN' }));
  });

  test('are not read from invalid UTF-8', () => {
    const bytes = Buffer.from('{"a":"x"}');
    bytes[6] = 0xff;
    expect(() => parseProperties(bytes)).toThrow(expect.objectContaining({ code: 'PROVER_TOKEN' }));
  });

  test.each(['{"a":1,"a":2}', '{"a":1,"\\u0061":2}'])('are refused if a name occurs twice: %j', (text) => {
    expect(() => properties(text)).toThrow(expect.objectContaining({ code: 'PROVER_CLAIM', claim: 'a' }));
  });
});
