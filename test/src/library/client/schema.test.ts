/**
 * The schema of an application is not authenticated, so the client refuses every schema that is malformed.
 */
import fc from 'fast-check';
import { describe, expect, onTestFinished, test } from 'vitest';
import {
  type AppSchema,
  ClientError,
  fetchSchema,
  readSchema,
} from '../../../../src/library/client/index.ts';
import { toSchemaType } from '../../../../src/library/wire/schema_type.ts';
import { listenOnLoopback } from '../../../../src/testing/fakes.ts';
import { randomMessages } from '../wire/random_types.ts';

const SCHEMA: AppSchema = {
  version: 1,
  signs: [
    {
      intent: 0,
      name: 'WeatherResponse',
      fields: [
        { name: 'location', type: 'String' },
        { name: 'temperature', type: 'u64', width: 8 },
      ],
    },
  ],
  endpoints: [
    { method: 'POST', path: '/process_data', idempotent: true },
    { method: 'GET', path: '/latest', idempotent: true },
  ],
  inputs: { 'POST /process_data': { type: 'object', properties: { payload: { type: 'string' } } } },
};
const [WEATHER] = SCHEMA.signs;
const refusal = expect.objectContaining({ code: 'CLIENT_SCHEMA' });

const withField = (field: object) => ({ ...SCHEMA, signs: [{ ...WEATHER, fields: [field] }] });
const nest = (depth: number): unknown => (depth === 0 ? 'x' : [nest(depth - 1)]);
const withInput = (input: unknown) => ({ ...SCHEMA, inputs: { 'GET /latest': input } });

describe('readSchema', () => {
  test('returns a copy of a schema', () => {
    const copy = readSchema(SCHEMA);
    expect(copy).toEqual(SCHEMA);
    expect(copy.inputs).not.toBe(SCHEMA.inputs);
  });

  test('accepts every type that an application can sign, unless it is nested too deeply', () => {
    fc.assert(
      fc.property(randomMessages, ({ signed }) => {
        const schema = { ...SCHEMA, signs: [toSchemaType(signed)] };
        try {
          expect(readSchema(schema)).toEqual(schema);
        } catch (error) {
          expect(error).toMatchObject({ message: expect.stringMatching(/nests deeper than 8$/) });
        }
      }),
    );
  });

  test.each<[string, unknown]>([
    ['undefined', undefined],
    ['null', null],
    ['a list', [SCHEMA]],
    ['a bigint', { ...SCHEMA, version: 1n }],
    ['another version', { ...SCHEMA, version: 2 }],
    ['an unknown property', { ...SCHEMA, application: 'weather' }],
    ['no inputs', { ...SCHEMA, inputs: undefined }],
    ['inputs that are a list', { ...SCHEMA, inputs: [] }],
    ['an input that is text', withInput('x')],
    ['an input of an unknown endpoint', { ...SCHEMA, inputs: { 'POST /x': {} } }],
    ['an endpoint twice', { ...SCHEMA, endpoints: [...SCHEMA.endpoints, ...SCHEMA.endpoints] }],
    ['another method', { ...SCHEMA, endpoints: [{ method: 'PUT', path: '/x', idempotent: true }] }],
    ['a path with a query', { ...SCHEMA, endpoints: [{ method: 'GET', path: '/x?y', idempotent: true }] }],
    ['a path of another host', { ...SCHEMA, endpoints: [{ method: 'GET', path: '//x', idempotent: true }] }],
    ['an endpoint without idempotent', { ...SCHEMA, endpoints: [{ method: 'GET', path: '/x' }] }],
    ['an intent twice', { ...SCHEMA, signs: [WEATHER, WEATHER] }],
    ['an intent over 255', { ...SCHEMA, signs: [{ ...WEATHER, intent: 256 }] }],
    ['a struct with a bad name', { ...SCHEMA, signs: [{ ...WEATHER, name: 'weather' }] }],
    ['a struct without fields', { ...SCHEMA, signs: [{ ...WEATHER, fields: [] }] }],
    [
      'a field twice',
      { ...SCHEMA, signs: [{ ...WEATHER, fields: [WEATHER?.fields[0], WEATHER?.fields[0]] }] },
    ],
    ['a field with a bad name', withField({ name: 'A b', type: 'u8', width: 1 })],
    ['an unknown type', withField({ name: 'a', type: 'u65' })],
    ['a type that is not a text', withField({ name: 'a', type: 8 })],
    ['an Option of an Option', withField({ name: 'a', type: 'Option<Option<u8>>' })],
    ['a struct without its fields', withField({ name: 'a', type: 'vector<Leg>' })],
    ['fields of a number', withField({ name: 'a', type: 'u8', width: 1, fields: [] })],
    ['a wrong width', withField({ name: 'a', type: 'u8', width: 2 })],
    ['a missing width', withField({ name: 'a', type: 'u8' })],
    ['a width of a String', withField({ name: 'a', type: 'String', width: 8 })],
    ['more than 64 KB', withInput({ description: 'x'.repeat(65_536) })],
    ['more than 64 KB of UTF-8', withInput({ description: '€'.repeat(22_000) })],
    // The first two levels are inputs and the input. The other levels are the lists in enum.
    ['a ninth level', withInput({ enum: nest(7) })],
    ['a type with a ninth level', withField({ name: 'a', type: `${'vector<'.repeat(9)}u8${'>'.repeat(9)}` })],
    [
      'a type with 7000 levels',
      withField({ name: 'a', type: `${'vector<'.repeat(7000)}u8${'>'.repeat(7000)}` }),
    ],
    ['100,000 levels', withInput(JSON.parse(`${'['.repeat(100_000)}${']'.repeat(100_000)}`))],
  ])('refuses %s', (_, value) => {
    expect(() => readSchema(value)).toThrow(refusal);
  });

  test('accepts eight levels, and __proto__ as the name of a property', () => {
    const schema = withInput(JSON.parse(`{"__proto__": {}, "enum": ${JSON.stringify(nest(6))}}`));
    expect(readSchema(schema)).toEqual(schema);
  });

  test('throws nothing but a ClientError, for any JSON', () => {
    fc.assert(
      fc.property(fc.jsonValue(), fc.constantFrom('signs', 'endpoints', 'inputs'), (value, part) => {
        for (const changedSchema of [value, { ...SCHEMA, [part]: value }, { ...SCHEMA, [part]: [value] }]) {
          try {
            readSchema(changedSchema);
          } catch (error) {
            expect(error).toBeInstanceOf(ClientError);
          }
        }
      }),
      { numRuns: 500 },
    );
  });

  test('puts no text of the schema into the message', () => {
    const hostile = withField({ name: '<script>', type: '<script>' });
    expect(() => readSchema(hostile)).toThrow(
      expect.objectContaining({ message: expect.not.stringContaining('script') }),
    );
  });
});

describe('fetchSchema', () => {
  async function serve(status: number, body: string): Promise<string> {
    const { origin, close } = await listenOnLoopback((request, response) => {
      response.statusCode = request.url === '/x/schema' ? status : 404;
      response.end(body);
    });
    onTestFinished(close);
    return `${origin}/x`;
  }

  test('asks for the schema below the URL of the enclave', async () => {
    expect(await fetchSchema(await serve(200, JSON.stringify(SCHEMA)))).toEqual(SCHEMA);
  });

  test.each([
    [200, '{}', { code: 'CLIENT_SCHEMA' }],
    [200, '{', { code: 'CLIENT_MALFORMED_ANSWER' }],
    [200, ' '.repeat(1_048_577), { code: 'CLIENT_ANSWER_TOO_LARGE' }],
    [
      404,
      '{"error":"none","code":"SCHEMA_NOT_FOUND"}',
      { code: 'CLIENT_REFUSED', serverCode: 'SCHEMA_NOT_FOUND' },
    ],
  ])('throws, for the status %i and the body %.10s, %j', async (status, body, error) => {
    await expect(fetchSchema(await serve(status, body))).rejects.toMatchObject(error);
  });

  test.each([
    ['javascript:alert(1)', {}],
    ['http://user:password@127.0.0.1', {}],
    ['http://127.0.0.1', { timeout: 1 }],
    ['http://127.0.0.1', { timeoutMs: -1 }],
    ['http://127.0.0.1', { signal: 1 }],
  ])('refuses %s with %j', async (url, options) => {
    await expect(fetchSchema(url, options as never)).rejects.toMatchObject({ code: 'CLIENT_OPTION' });
  });

  test('ends with the reason of the signal', async () => {
    const signal = AbortSignal.abort(new Error('enough'));
    await expect(fetchSchema(await serve(200, '{}'), { signal })).rejects.toThrow('enough');
  });
});
