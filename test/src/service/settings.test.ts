/** Tests how the values of a table of settings are read, and the messages for invalid values. */
import * as v from 'valibot';
import { describe, expect, expectTypeOf, test } from 'vitest';
import {
  acceptOneOf,
  integerBetween,
  readSettings,
  type Setting,
  type SettingTable,
  textSetting,
  trueOrFalse,
  zeroOrOne,
} from '../../../src/service/settings.ts';

const meaning = 'for tests';
const TABLE = {
  COUNT: { schema: integerBetween(1, 10), default: '5', meaning },
  WORD: { schema: acceptOneOf('small', 'large'), default: 'small', meaning },
  LEVEL: { schema: acceptOneOf('a', 'b', 'c'), default: 'c', meaning },
  ON: { schema: trueOrFalse, default: 'false', meaning },
  FLAG: { schema: zeroOrOne, default: '0', meaning },
  NAME: { schema: textSetting('be a name in lower case', (text) => /^[a-z]+$/.test(text)), meaning },
  ANY: { schema: v.string(), meaning },
  FILE: { schema: textSetting('be a path'), optional: true, meaning },
  LINES: { schema: v.string(), default: '', meaning },
} as const satisfies SettingTable;
const REQUIRED = { NAME: 'a', ANY: 'b' };

describe('readSettings', () => {
  test('returns the default of a setting that is not set', () => {
    expect(readSettings(TABLE, REQUIRED)).toEqual({
      COUNT: 5,
      WORD: 'small',
      LEVEL: 'c',
      ON: false,
      FLAG: false,
      NAME: 'a',
      ANY: 'b',
      FILE: undefined,
      LINES: '',
    });
  });

  test('returns each value with the type of its schema', () => {
    const env = { ...REQUIRED, COUNT: '10', WORD: 'large', LEVEL: 'a', ON: 'true', FLAG: '1', FILE: '/f' };
    const settings = readSettings(TABLE, { ...env, ELSE: 'x' });
    expect(settings).toMatchObject({
      COUNT: 10,
      WORD: 'large',
      LEVEL: 'a',
      ON: true,
      FLAG: true,
      FILE: '/f',
    });
    expect(settings).not.toHaveProperty('ELSE');
    expectTypeOf(settings.COUNT).toEqualTypeOf<number>();
    expectTypeOf(settings.WORD).toEqualTypeOf<'small' | 'large'>();
    expectTypeOf(settings.ON).toEqualTypeOf<boolean>();
    expectTypeOf(settings.NAME).toEqualTypeOf<string>();
    expectTypeOf(settings.FILE).toEqualTypeOf<string | undefined>();
  });

  test.each([
    ['COUNT', '0', 'must be an integer from 1 to 10'],
    ['COUNT', '11', 'must be an integer from 1 to 10'],
    ['COUNT', '5.0', 'must be an integer from 1 to 10'],
    ['COUNT', ' 5', 'must be an integer from 1 to 10'],
    ['COUNT', '0x5', 'must be an integer from 1 to 10'],
    ['COUNT', `${'0'.repeat(15)}5`, 'must be an integer from 1 to 10'],
    ['WORD', 'medium', 'must be small or large'],
    ['LEVEL', 'd', 'must be one of a, b, c'],
    ['ON', '1', 'must be true or false'],
    ['FLAG', 'true', 'must be 0 or 1'],
    ['NAME', 'A', 'must be a name in lower case'],
    ['NAME', undefined, 'must be a name in lower case'],
    ['ANY', undefined, 'must be set'],
  ])('says what a setting must be: %s=%o', (name, text, message) => {
    expect(() => readSettings(TABLE, { ...REQUIRED, [name]: text })).toThrow(
      expect.objectContaining({ code: 'CONFIG', message: `${name} ${message}` }),
    );
  });

  test.each(Object.keys(TABLE).filter((name) => name !== 'LINES'))(
    'refuses an empty %s, whose default is not empty',
    (name) => {
      expect(() => readSettings(TABLE, { ...REQUIRED, LINES: '', [name]: '' })).toThrow(
        `${name} is set but empty: give it a value or unset it`,
      );
    },
  );
});

test('a setting without a `meaning` does not compile', () => {
  // @ts-expect-error: `meaning` is missing
  const setting: Setting = { schema: v.string() };
  expect(setting).not.toHaveProperty('meaning');
});
