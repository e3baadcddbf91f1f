/**
 * The modules that authors import. The compiler refuses typical mistakes of authors; `npm run types` checks
 * these tests too.
 */
import { globSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { bcs } from '@mysten/bcs';
import * as v from 'valibot';
import { describe, expect, expectTypeOf, test } from 'vitest';
import {
  defineApp,
  endpoint,
  errorClass,
  processData,
  signedType,
  struct,
  text,
  u8,
  u64,
} from '../../../src/server/index.ts';

const CALLER = { address: undefined };
const Roll = signedType(1, struct('Roll', { sides: u8, value: u8 }));
const Draw = signedType(2, struct('Draw', { note: text, picked: u64 }));
const Pair = v.strictObject({ pair: v.string(), days: v.optional(v.pipe(v.string(), v.toNumber()), '1') });

describe('a handler', () => {
  test('receives the type that its schema describes, for a body, a query and a payload', async () => {
    const handle = async (input: { pair: string; days: number }) => ({ ...input });
    const body = endpoint({ method: 'POST', path: '/a', body: Pair, handle });
    const query = endpoint({
      method: 'GET',
      path: '/b',
      query: Pair,
      async handle(input, { address }) {
        expectTypeOf(input).toEqualTypeOf<{ pair: string; days: number }>();
        expectTypeOf(address).toEqualTypeOf<string | undefined>();
        return input;
      },
    });
    for (const { accept } of [body, query]) {
      expect(await accept({ pair: 'x' })(CALLER)).toEqual({ pair: 'x', days: 1 });
      expect(() => accept({ pair: 5 })).toThrow(expect.objectContaining({ code: 'INVALID_INPUT' }));
    }
    processData({
      payload: Pair,
      handle(input) {
        expectTypeOf(input).toEqualTypeOf<{ pair: string; days: number }>();
        return expect.fail();
      },
    });
  });

  test('receives undefined without a schema', async () => {
    const { accept } = endpoint({
      method: 'GET',
      path: '/c',
      async handle(input) {
        expectTypeOf(input).toEqualTypeOf<undefined>();
        return { input };
      },
    });
    expect(await accept({ pair: 'x' })(CALLER)).toEqual({ input: undefined });
  });

  test('does not compile if its type differs from its schema', () => {
    const handleNumber = async (input: { pair: number }) => ({ ...input });
    // @ts-expect-error the schema has a string
    endpoint({ method: 'POST', path: '/a', body: Pair, handle: handleNumber });
    // @ts-expect-error the schema has a string
    endpoint({ method: 'GET', path: '/a', query: Pair, handle: handleNumber });
    // @ts-expect-error there is no schema
    endpoint({ method: 'GET', path: '/a', handle: handleNumber });
    // @ts-expect-error the schema has no such property
    endpoint({ method: 'POST', path: '/a', body: Pair, handle: async ({ cents }) => ({ cents }) });
    // @ts-expect-error an answer is an object
    endpoint({ method: 'POST', path: '/a', body: Pair, handle: async ({ pair }) => pair });
    // @ts-expect-error the answer of /process_data is signed
    processData({ payload: Pair, handle: async ({ pair }) => ({ pair }) });
  });
});

describe('an application', () => {
  test('signs the types that it declares, with their data', () => {
    defineApp({
      signs: [Roll, Draw],
      create({ sign }) {
        const signOne = () => sign(Draw, 1n, { note: '', picked: 1n });
        const odd = [
          // @ts-expect-error not among signs
          () => sign(signedType(3, struct('Seen', { at: u64 })), 1n, { at: 1n }),
          // @ts-expect-error the data of another type
          () => sign(Draw, 1n, { sides: 1, value: 1 }),
          // @ts-expect-error a u64 is a bigint here: 1 would not read back unchanged
          () => sign(Draw, 1n, { note: '', picked: 1 }),
          // @ts-expect-error the time is a bigint
          () => sign(Draw, 1, { note: '', picked: 1n }),
        ];
        return { checkSecrets: () => void [signOne, odd] };
      },
    });
    const data = { note: '', picked: 1n };
    // @ts-expect-error nothing is declared
    defineApp({ signs: [], create: ({ sign }) => ({ checkSecrets: () => void sign(Draw, 1n, data) }) });
  });

  test('declares structs, which know their fields', () => {
    const application = defineApp({ signs: [Roll], create: () => ({}) });
    expect(application.signs[0]?.payload.fields.map(({ name, move }) => [name, move])).toEqual([
      ['sides', 'u8'],
      ['value', 'u8'],
    ]);
    // @ts-expect-error a struct of @mysten/bcs does not name its fields
    defineApp({ signs: [signedType(0, bcs.struct('Roll', { sides: u8 }))], create: () => ({}) });
    // @ts-expect-error not a signed type
    defineApp({ signs: [Roll.payload], create: () => ({}) });
  });

  test('returns only the properties that the server defines', () => {
    // @ts-expect-error a misspelled property
    defineApp({ signs: [], create: () => ({ endpoint: [] }) });
    const latest = { method: 'GET', path: '/latest', handle: async () => ({}) } as const;
    // @ts-expect-error not made by endpoint()
    defineApp({ signs: [], create: () => ({ endpoints: [latest] }) });
    // @ts-expect-error no create
    defineApp({ signs: [] });
  });
});

test('an error class takes the codes of its table', () => {
  class DiceError extends errorClass({ DICE_LOST: { status: 502, meaning: 'the dice are lost' } }) {}
  expect(new DiceError('DICE_LOST', 'gone').status).toBe(502);
  // @ts-expect-error no such code
  expect(() => new DiceError('DICE_FOUND', 'there')).toThrow(TypeError);
  // @ts-expect-error no status of an error
  errorClass({ DICE_LOST: { status: 200, meaning: 'the dice are lost' } });
});

test('applications, and the modules that they import, contain no casts', () => {
  const cwd = fileURLToPath(new URL('../../../', import.meta.url));
  const files = globSync(
    [
      'src/server/{index,boot,server,application/app,keys/signer}.ts',
      'src/{apps,library/wire}/**/*.ts',
      'test/fixtures/apps/**/*.ts',
    ],
    { cwd },
  );
  expect(files.length).toBeGreaterThan(15);
  const casts = files.filter((file) =>
    /\bas (?:unknown as|never|any)\b/.test(readFileSync(`${cwd}${file}`, 'utf8')),
  );
  expect(casts).toEqual([]);
});
