import * as v from 'valibot';
import { describe, expect, test } from 'vitest';
import { ServerError } from '../../../../src/service/errors.ts';
import { validate } from '../../../../src/service/http/validate.ts';

describe('a message describes what a property must be, without repeating its value:', () => {
  test.each([
    [v.string(), 'must be a string'],
    [v.number(), 'must be a number'],
    [v.boolean(), 'must be true or false'],
    [v.array(v.string()), 'must be an array'],
    [v.strictObject({ a: v.string() }), 'must be an object'],
    [
      v.pipe(
        v.custom<string>(() => true),
        v.regex(/^[A-Z]{3}$/),
      ),
      'must match /^[A-Z]{3}$/',
    ],
    [
      v.pipe(
        v.custom<string>(() => true),
        v.regex(/^[A-Z]{3}$/, 'must be a currency'),
      ),
      'must be a currency',
    ],
    [v.picklist(['a', 'b']), 'must be ("a" | "b")'],
  ])('case %#: %s', (schema, message) => {
    const check = () => validate(v.strictObject({ m: schema as v.GenericSchema }), { m: 123456789n });
    expect(check).toThrow(new ServerError('INVALID_INPUT', `m ${message}`));
    expect(check).not.toThrow(/123456789/);
  });
});

describe('a bound is described in words', () => {
  test.each([
    [v.pipe(v.array(v.string()), v.minLength(1)), [], 'must have at least 1 item'],
    [v.pipe(v.array(v.string()), v.nonEmpty()), [], 'must have at least 1 item'],
    [v.pipe(v.array(v.string()), v.maxLength(2)), ['a', 'b', 'c'], 'must have at most 2 items'],
    [v.pipe(v.string(), v.minLength(2)), 'a', 'must have at least 2 characters'],
    [v.pipe(v.string(), v.length(1)), 'ab', 'must have exactly 1 character'],
    [v.pipe(v.number(), v.minValue(1)), 0, 'must be at least 1'],
    [v.pipe(v.number(), v.maxValue(9)), 10, 'must be at most 9'],
    [v.pipe(v.array(v.string()), v.minLength(1, 'name an item')), [], 'name an item'],
  ])('case %#: %s %j', (schema, input, message) => {
    const check = () => validate(v.strictObject({ m: schema as v.GenericSchema }), { m: input });
    expect(check).toThrow(new ServerError('INVALID_INPUT', `m ${message}`));
  });
});
