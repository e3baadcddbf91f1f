/** What surrounds the Move VM: types, values as Move expressions, and the report of a run. */
import { describe, expect, test } from 'vitest';
import type { ModuleInterface } from '../../../../src/move_bytecode/module_bytecode.ts';
import { MoveAbort } from '../../../../src/testing/sui/call.ts';
import { literalOf } from '../../../../src/testing/sui/vm/literals.ts';
import { chunksOf, FailedCommand, readReport } from '../../../../src/testing/sui/vm/report.ts';
import { ABILITY, Datatypes, format, instantiate, parseType } from '../../../../src/testing/sui/vm/types.ts';

const A = `0x${'a'.repeat(64)}`;
const UID = `0x${'2'.padStart(64, '0')}::object::UID`;
const VALUE = 7;

const shop: ModuleInterface = {
  address: A,
  name: 'shop',
  datatypes: new Map([
    [
      'Box',
      {
        abilities: 12,
        typeParameters: '4',
        layout: `struct {id: ${UID},content: T0,sizes: vector<${A}::shop::Size>}`,
      },
    ],
    ['Size', { abilities: VALUE, typeParameters: '', layout: 'enum {Small {},Large {by: u8}}' }],
    ['Tag', { abilities: VALUE, typeParameters: '0 phantom', layout: 'struct {dummy_field: bool}' }],
    ['Pot', { abilities: 0, typeParameters: '', layout: 'struct {dummy_field: bool}' }],
  ]),
  functions: new Map(),
  callable: new Map(),
  init: undefined,
};
const datatypes = new Datatypes([shop]);

test.each([
  'u64',
  'vector<vector<u8>>',
  `&mut ${A}::shop::Box<vector<u8>>`,
  `${A}::shop::Pair<${A}::shop::Box<u8>, T1>`,
])('%s is read and written as it is', (text) => {
  expect(format(parseType(text))).toBe(text);
});

test('a type without its module is none', () => {
  expect(() => parseType('Box<u8>')).toThrow(TypeError);
});

test('arguments take the place of parameters, also within others', () => {
  const type = instantiate(parseType(`vector<${A}::shop::Box<T1>>`), ['u8', 'bool'].map(parseType));
  expect(format(type)).toBe(`vector<${A}::shop::Box<bool>>`);
});

test('an instance has the abilities that its arguments leave it, phantom ones aside', () => {
  const abilities = (text: string) => datatypes.abilitiesOf(parseType(text));
  expect(abilities(`${A}::shop::Box<u8>`)).toBe(ABILITY.store | ABILITY.key);
  expect(abilities(`${A}::shop::Box<${A}::shop::Pot>`)).toBe(0);
  expect(abilities(`${A}::shop::Tag<${A}::shop::Pot>`)).toBe(VALUE);
  expect(abilities(`vector<${A}::shop::Pot>`)).toBe(0);
  expect(() => abilities(`${A}::shop::None`)).toThrow(TypeError);
});

describe('a value in BCS as a Move expression', () => {
  const literal = (bytes: readonly number[], type: string) =>
    literalOf(Uint8Array.from(bytes), parseType(type), datatypes);

  test.each<[readonly number[], string, string]>([
    [[1], 'bool', 'true'],
    [[1, 2], 'u16', '513u16'],
    [[2, 7, 8], 'vector<u8>', 'x"0708"'],
    [[0], 'vector<u64>', 'vector<u64>[]'],
    [[1, 5], `${A}::shop::Size`, `${A}::shop::model_make_Size_Large(5u8)`],
    [[0], `${A}::shop::Tag<u8>`, `${A}::shop::model_make_Tag<u8>()`],
    [
      [...new Array<number>(32).fill(3), 9, 1, 0],
      `${A}::shop::Box<u8>`,
      `${A}::shop::model_make_Box<u8>(@0x${'03'.repeat(32)}, 9u8, vector<${A}::shop::Size>[${A}::shop::model_make_Size_Small()])`,
    ],
  ])('%j of %s', (bytes, type, expected) => {
    expect(literal(bytes, type)).toBe(expected);
  });

  test.each<[string, readonly number[], string]>([
    ['too short', [1], 'u16'],
    ['too long', [1, 2], 'u8'],
    ['of no variant', [2], `${A}::shop::Size`],
    ['a length without an end', [0x80, 0x80, 0x80, 0x80, 0x80], 'vector<u8>'],
  ])('bytes that are %s', (_, bytes, type) => {
    expect(() => literal(bytes, type)).toThrow(RangeError);
  });
});

describe('the report of a run', () => {
  const files = {
    'sources/shop.move':
      'module own::shop;\n#[error(code = 7)]\nconst ESoldOut: vector<u8> = b"There is none left";\nfun first() {}\nfun sell() {\n    abort ESoldOut\n}\n',
  };
  const context = { files, commandAt: (line: number) => (line === 12 ? 3 : undefined), packageOf: () => A };
  const aborted = (test: number, code: bigint) =>
    `┌── t${test} ──────\n│ error: Test was not expected to error, but it aborted with code ${code} originating in the module model_run::run rooted here\n`;

  test('gives back the notes, seven bytes in a piece, and how long they are', () => {
    const report = aborted(0, 9n) + aborted(1, 0x07_06_05_04_03_02_01n) + aborted(2, 0x09_08n);
    expect(readReport(report, context)).toEqual({
      length: 9,
      bytes: Buffer.from([1, 2, 3, 4, 5, 6, 7, 8, 9]),
    });
    expect(chunksOf(9)).toBe(3);
    expect(readReport(aborted(0, 9n), context)).toEqual({ length: 9, bytes: Buffer.alloc(0) });
  });

  test("an abort is the command's, with the module's constant, its code and text, and its function", () => {
    const report = `┌── t0 ──────
│     ┌─ sources/shop.move:6:5
│     ^^^ Test was not expected to error, but it aborted with error constant 'ESoldOut' originating in the module own::shop rooted here
│ stack trace
│ 	run::run(tests/run.move:12)
│ 	run::t0(tests/run.move:40)
`;
    const location = { package: A, module: 'shop', functionName: 'sell' };
    let failed: unknown;
    try {
      readReport(report, context);
    } catch (error) {
      failed = error;
    }
    if (!(failed instanceof FailedCommand)) throw failed;
    expect(failed.command).toBe(3);
    expect(failed.cause).toBeInstanceOf(MoveAbort);
    expect(failed.cause).toMatchObject({
      location,
      constant: 'ESoldOut',
      code: 7,
      text: 'There is none left',
    });
  });

  test('of a compiler that refuses the run is an internal fault', () => {
    expect(() => readReport('error[E01002]: unexpected token', context)).toThrow(
      expect.objectContaining({ status: 'INTERNAL' }),
    );
  });
});
