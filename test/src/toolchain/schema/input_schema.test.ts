/** No rule of valibot is lost: either JSON Schema has it, or the description has its name and message. */
import * as v from 'valibot';
import { describe, expect, test } from 'vitest';
import { WeatherRequest } from '../../../../src/apps/weather/types.ts';
import { inputSchema } from '../../../../src/toolchain/schema/input_schema.ts';

const string = v.string();

test('the schema has the rules that JSON Schema can express', () => {
  const schema = v.strictObject({
    pair: v.pipe(string, v.regex(/^[A-Z]{3,5}$/), v.maxLength(5)),
    days: v.optional(v.pipe(v.number(), v.safeInteger(), v.minValue(1)), 7),
    side: v.picklist(['buy', 'sell']),
    tags: v.array(v.nullable(string)),
  });
  expect(inputSchema(schema)).toEqual({
    type: 'object',
    properties: {
      pair: { type: 'string', pattern: '^[A-Z]{3,5}$', maxLength: 5 },
      days: { type: 'integer', minimum: 1, maximum: Number.MAX_SAFE_INTEGER, default: 7 },
      side: { type: 'string', enum: ['buy', 'sell'] },
      tags: { type: 'array', items: { anyOf: [{ type: 'string' }, { type: 'null' }] } },
    },
    required: ['pair', 'side', 'tags'],
    additionalProperties: false,
  });
});

test("the description has the rules of weather's location, including those after the transformation", () => {
  const { properties } = inputSchema(WeatherRequest);
  expect(properties?.['location']).toEqual({
    type: 'string',
    description: [
      'check: must be well-formed Unicode (no lone surrogate)',
      'check: must be at most 256 bytes of UTF-8',
      'transform',
      'check: must name a place',
      "check: must name a place: auto:ip would be the server's location",
      'check: must be at most 256 bytes of UTF-8, after NFKC too',
    ].join('; '),
  });
});

describe('a rule that JSON Schema can not express is in the description', () => {
  test.each<[string, v.GenericSchema, object]>([
    [
      'a check',
      v.pipe(
        string,
        v.check((text) => text !== 'x', 'is not x'),
      ),
      { type: 'string', description: 'check: is not x' },
    ],
    [
      'a check without a message',
      v.pipe(
        string,
        v.check((text) => text !== 'x'),
      ),
      { type: 'string', description: 'check' },
    ],
    [
      'a check together with a description',
      v.pipe(
        string,
        v.check((text) => text !== 'x', 'is not x'),
        v.description('A word.'),
      ),
      { type: 'string', description: 'A word.; check: is not x' },
    ],
    [
      'a bound after a transformation, which applies to another value',
      v.pipe(string, v.trim(), v.maxLength(5, 'is too long')),
      { type: 'string', description: 'trim; max_length: is too long' },
    ],
    [
      'a bound without a message after a transformation',
      v.pipe(string, v.transform(Number), v.number(), v.maxValue(5)),
      { type: 'string', description: 'transform; number number; max_value <=5' },
    ],
    [
      'a pipe within a pipe, after a transformation',
      v.pipe(v.pipe(string, v.toLowerCase()), v.regex(/^a/, 'begins with a')),
      { type: 'string', description: 'to_lower_case; regex: begins with a' },
    ],
    [
      'a regular expression with flags, whose pattern alone would match other values',
      v.pipe(string, v.regex(/^abc$/i)),
      { type: 'string', description: 'regex /^abc$/i' },
    ],
    [
      'the message of a pattern',
      v.pipe(string, v.regex(/^[a-z]+-[a-z]+$/, 'must be a pair')),
      { type: 'string', pattern: '^[a-z]+-[a-z]+$', description: 'regex: must be a pair' },
    ],
    [
      'a second pattern',
      v.pipe(string, v.regex(/a/), v.regex(/b/, 'has a b')),
      { type: 'string', pattern: 'a', description: 'regex: has a b' },
    ],
    ['a type that JSON does not have', v.bigint(), { description: 'bigint bigint' }],
    ['a custom schema', v.custom<string>(() => true, 'is mine'), { description: 'custom: is mine' }],
    [
      'a default that is computed for each request',
      v.optional(string, () => String(Math.random())),
      { type: 'string', description: 'default: computed for each request' },
    ],
    [
      'a fallback',
      v.fallback(v.number(), 5),
      { type: 'number', description: 'fallback: an invalid value is replaced' },
    ],
    [
      'a fallback of a whole pipe',
      v.fallback(
        v.pipe(
          v.optional(v.number(), 1),
          v.check(() => true, 'fits'),
        ),
        5,
      ),
      {
        type: 'number',
        default: 1,
        description: 'check: fits; fallback: an invalid value is replaced',
      },
    ],
    [
      'a check of an object, and a rule of its property',
      v.pipe(
        v.object({ a: v.pipe(string, v.trim()) }),
        v.check(() => true, 'fits'),
      ),
      {
        type: 'object',
        properties: { a: { type: 'string', description: 'trim' } },
        required: ['a'],
        description: 'check: fits',
      },
    ],
    [
      'a rule of an element of a list and a record in a union',
      v.union([v.array(v.pipe(string, v.trim())), v.record(string, v.pipe(string, v.trim()))]),
      {
        anyOf: [
          { type: 'array', items: { type: 'string', description: 'trim' } },
          {
            type: 'object',
            propertyNames: { type: 'string' },
            additionalProperties: { type: 'string', description: 'trim' },
          },
        ],
      },
    ],
  ])('%s', (_, schema, expected) => {
    expect(inputSchema(schema)).toEqual(expected);
  });
});

test('the schema of a type that contains itself is finite', () => {
  interface Tree {
    readonly name: string;
    readonly parts: readonly Tree[];
  }
  const Tree: v.GenericSchema<Tree> = v.object({
    name: v.pipe(string, v.trim()),
    parts: v.array(v.lazy(() => Tree)),
  });
  const json = JSON.stringify(inputSchema(Tree));
  expect(json).toContain('"$ref":"#/$defs/0"');
  expect(json.match(/"description":"trim"/g)).toHaveLength(2);
});

test('an action without effect on the input is not a rule', () => {
  const schema = v.pipe(string, v.brand('Pair'), v.readonly(), v.maxLength(5));
  expect(inputSchema(schema)).toEqual({ type: 'string', maxLength: 5 });
});

test('the schema itself is not changed', () => {
  const schema = v.pipe(
    string,
    v.trim(),
    v.check((text) => text !== '', 'is not empty'),
  );
  inputSchema(schema);
  expect(v.parse(schema, ' a ')).toBe('a');
  expect(v.is(schema, ' ')).toBe(false);
});
