import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { buildBody, buildQuery, formatKey, listFields } from '../../../src/console/call/schema_form.ts';
import { createSignedType } from '../../../src/console/call/signed_type.ts';
import { describeSigned, readSchema } from '../../../src/library/client/index.ts';

const weather = readSchema(
  JSON.parse(readFileSync(new URL('../../../src/apps/weather/schema.json', import.meta.url), 'utf8')),
);
const object = (properties: object, required: string[] = []) => ({ type: 'object', properties, required });

describe('a form', () => {
  test('of weather has the field of its input, with the rules of the application', () => {
    const [field, ...moreFields] = listFields(weather.inputs['POST /process_data'] ?? {});
    expect(moreFields).toEqual([]);
    expect(field).toMatchObject({ path: ['payload', 'location'], kind: 'text', isRequired: true });
    expect(field?.description).toMatch(
      /^Well-formed Unicode \(no lone surrogate\); at most 256 bytes of UTF-8; must name a place; /,
    );
    expect(buildBody(field ? [field] : [], { [field ? formatKey(field) : '']: 'Bern' })).toEqual({
      body: { payload: { location: 'Bern' } },
    });
  });

  test.each([
    [{ maxLength: 5, minLength: 1 }, 'At least 1 character; at most 5 characters'],
    [
      { minimum: 0, maximum: 9, description: 'trim; check: must be even; check: must be even' },
      'At least 0; at most 9; even',
    ],
    [{ description: 'The city: as its post office writes it' }, 'The city: as its post office writes it'],
    [{ description: 'transform' }, ''],
    [{ maxLength: '<b>', description: 5 }, ''],
  ])('describes valid values in plain words: %j', (schema, words) => {
    const [field] = listFields({ type: 'string', ...schema });
    expect(field?.description).toBe(words);
  });

  test('makes JSON values of every kind', () => {
    const fields = listFields(
      object(
        {
          n: { type: 'integer' },
          x: { type: 'number' },
          yes: { type: 'boolean' },
          unit: { enum: ['a', 1, null] },
          list: { type: 'array', items: { type: 'string' } },
          left: { type: 'string' },
          ['__proto__']: { type: 'string' },
        },
        ['n', 'x', 'yes', 'unit', 'list'],
      ),
    );
    const values = { n: '-5', x: '1.5', yes: 'true', unit: '1', list: '["a"]' };
    const keyed = Object.fromEntries(
      Object.entries(values).map(([name, value]) => [JSON.stringify([name]), value]),
    );
    expect(buildBody(fields, keyed)).toEqual({ body: { n: -5, x: 1.5, yes: true, unit: 1, list: ['a'] } });
  });

  test.each([
    ['integer', '1.5', /integer/],
    ['integer', '9007199254740993', /exactly/],
    ['number', 'x', /number/],
    ['boolean', '', /Choose/],
    ['array', '[', /JSON/],
  ])('refuses for %s the text %j', (type, text, problem) => {
    const built = buildBody(listFields(object({ a: { type } }, ['a'])), { '["a"]': text });
    expect('problem' in built && built.problem).toMatch(problem);
  });

  test('of a GET makes the query', () => {
    expect(buildQuery({ place: 'a b&c', days: 3, exact: true })).toBe('?place=a+b%26c&days=3&exact=true');
    expect(buildQuery({})).toBe('');
  });

  test('of a hostile schema is bounded, and does not throw', () => {
    const wide = object(
      Object.fromEntries(Array.from({ length: 1000 }, (_, index) => [`p${index}`, { type: 'string' }])),
    );
    expect(listFields(wide)).toHaveLength(64);
    fc.assert(
      fc.property(
        fc.dictionary(fc.constantFrom('type', 'properties', 'required', 'enum'), fc.jsonValue()),
        (schema) => {
          const fields = listFields(schema);
          expect(fields.length).toBeLessThanOrEqual(64);
          buildBody(fields, {});
        },
      ),
    );
  });
});

describe('the codec of a signed type', () => {
  test('encodes the values that describeSigned decodes', () => {
    const { signs } = readSchema({
      version: 1,
      endpoints: [],
      inputs: {},
      signs: [
        {
          intent: 3,
          name: 'Everything',
          fields: [
            { name: 'a', type: 'u8', width: 1 },
            { name: 'b', type: 'u256', width: 32 },
            { name: 'c', type: 'address', width: 32 },
            { name: 'd', type: 'vector<u8>' },
            { name: 'e', type: 'Option<u64>' },
            { name: 'f', type: 'vector<Inner>', fields: [{ name: 'g', type: 'bool', width: 1 }] },
            { name: 'h', type: 'String' },
          ],
        },
      ],
    });
    const [type] = signs;
    if (!type) throw new Error('the schema has no signed type');
    const payload = {
      a: 7,
      b: '12',
      c: `0x${'ab'.repeat(32)}`,
      d: [1, 2],
      e: 5,
      f: [{ g: true }],
      h: 'text',
    };
    const bytes = createSignedType(type).message.serialize({ intent: 3, timestamp_ms: 9, payload }).toBytes();
    expect(describeSigned(type, bytes).map(({ path, value }) => [path, value])).toEqual([
      ['intent', '3'],
      ['timestamp_ms', '9'],
      ['payload.a', '7'],
      ['payload.b', '12'],
      ['payload.c', `0x${'ab'.repeat(32)}`],
      ['payload.d', '0x0102'],
      ['payload.e', 'some'],
      ['payload.e.some', '5'],
      ['payload.f', '1 item'],
      ['payload.f[0].g', 'true'],
      ['payload.h', 'text'],
    ]);
  });
});
