import { describe, expect, test } from 'vitest';
import { choosePath, chooseSigned, findSchema } from '../../../../src/cli/sui/app_schema.ts';
import type { AppSchema } from '../../../../src/library/client/index.ts';

const STRING = `0x${'0'.repeat(63)}1::string::String`;
const [get, post] = ['GET', 'POST'].map(
  (method) => (path: string) => ({ method, path, idempotent: true }) as AppSchema['endpoints'][number],
) as [(path: string) => AppSchema['endpoints'][number], (path: string) => AppSchema['endpoints'][number]];

function schema(overrides: Partial<AppSchema>): AppSchema {
  return { version: 1, signs: [], endpoints: [], inputs: {}, ...overrides };
}

const signs = (intent: number, name: string, ...types: string[]) => ({
  intent,
  name,
  fields: types.map((type, index) => ({ name: `f${index}`, type })),
});

describe('the path', () => {
  test.each<[string | undefined, AppSchema['endpoints'], 'GET' | 'POST']>([
    ['/process_data', [post('/draw'), post('/process_data')], 'POST'],
    ['/draw', [post('/draw'), get('/latest')], 'POST'],
    ['/latest', [post('/draw'), get('/latest')], 'GET'],
    [undefined, [post('/draw'), post('/roll')], 'POST'],
    [undefined, [post('/draw')], 'GET'],
  ])('is %s for %j by %s', (path, endpoints, method) => {
    expect(choosePath(schema({ endpoints }), method)).toBe(path);
  });
});

describe('the signed type', () => {
  const types = [
    signs(3, 'Quote', 'String', 'u64'),
    signs(4, 'Reading', 'String', 'u64'),
    signs(5, 'Roll', 'vector<u8>', 'Option<String>'),
  ];
  const chooseIntent = (values: string[], packed: string[] = []) =>
    chooseSigned(schema({ signs: types }), { values, packed })?.intent;

  test.each<[number | undefined, string[], string[]]>([
    [5, ['vector<u8>', `0x${'0'.repeat(63)}1::option::Option<${STRING}>`], []],
    [4, [STRING, 'u64'], ['Reading', 'Receipt']],
    [undefined, [STRING, 'u64'], []],
    [undefined, [STRING, 'u64'], ['Quote', 'Reading']],
    [undefined, ['u64', STRING], []],
    [undefined, [STRING], []],
  ])('has the intent %s if the function takes %j and creates %j', (intent, values, packed) => {
    expect(chooseIntent(values, packed)).toBe(intent);
  });

  test('names the fields', () => {
    expect(
      chooseSigned(schema({ signs: types }), { values: ['vector<u8>', 'Option<String>'], packed: [] })?.names,
    ).toEqual(['f0', 'f1']);
  });
});

test('findSchema reads the schema of an application in a clone', () => {
  expect(findSchema('weather')?.signs.map(({ name }) => name)).toEqual(['WeatherResponse', 'Temperature']);
  expect(findSchema('no_such_application')).toBeUndefined();
});
