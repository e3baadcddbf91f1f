import * as v from 'valibot';
import { describe, expect, test } from 'vitest';
import { ServerError } from '../../../../src/server/errors.ts';
import { validate } from '../../../../src/server/http/validate.ts';

describe('messages describe what a property must be, without repeating its value', () => {
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
  ])('%#: %s', (schema, message) => {
    const check = () => validate(v.strictObject({ m: schema as v.GenericSchema }), { m: 123456789n });
    expect(check).toThrow(new ServerError('INVALID_INPUT', `m ${message}`));
    expect(check).not.toThrow(/123456789/);
  });
});
