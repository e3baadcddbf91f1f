/** Types as text, and values in BCS. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { Datatype } from '../../../../src/devnet/bytecode/module_bytecode.ts';
import { ABILITY, Datatypes, format, instantiate, parseType } from '../../../../src/devnet/move/types.ts';
import { Codec } from '../../../../src/devnet/move/values.ts';

const A = `0x${'a'.repeat(64)}`;
const OBJECT = `0x${'2'.padStart(64, '0')}::object`;
const UID = `${OBJECT}::UID`;
const VALUE = 7;

const shop = new Map<string, Datatype>([
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
]);
const object = new Map<string, Datatype>([
  ['UID', { abilities: ABILITY.store, typeParameters: '', layout: `struct {id: ${OBJECT}::ID}` }],
  ['ID', { abilities: VALUE, typeParameters: '', layout: 'struct {bytes: address}' }],
]);
const modules = new Map([
  [`${A}::shop`, shop],
  [OBJECT, object],
]);
const datatypes = new Datatypes((module, name) => modules.get(module)?.get(name));
const codec = new Codec(datatypes);

test.each([
  'u64',
  'vector<vector<u8>>',
  `&mut ${A}::shop::Box<vector<u8>>`,
  `${A}::shop::Pair<${A}::shop::Box<u8>,T1>`,
])('%s is the same after it is parsed and formatted', (text) => {
  expect(format(parseType(text))).toBe(text);
});

test('a type without its module is refused', () => {
  expect(() => parseType('Box<u8>')).toThrow(TypeError);
});

test('arguments replace type parameters, even in nested types', () => {
  const type = instantiate(parseType(`vector<${A}::shop::Box<T1>>`), ['u8', 'bool'].map(parseType));
  expect(format(type)).toBe(`vector<${A}::shop::Box<bool>>`);
});

test('an instance has the abilities that its arguments allow; phantom arguments do not count', () => {
  const abilities = (text: string) => datatypes.abilitiesOf(parseType(text));
  expect(abilities(`${A}::shop::Box<u8>`)).toBe(ABILITY.store | ABILITY.key);
  expect(abilities(`${A}::shop::Box<${A}::shop::Pot>`)).toBe(0);
  expect(abilities(`${A}::shop::Tag<${A}::shop::Pot>`)).toBe(VALUE);
  expect(abilities(`vector<${A}::shop::Pot>`)).toBe(0);
  expect(() => abilities(`${A}::shop::None`)).toThrow(TypeError);
});

describe('a value in BCS', () => {
  const reencode = (bytes: readonly number[], text: string) => {
    const type = parseType(text);
    return codec.encode(codec.decode(Uint8Array.from(bytes), type), type);
  };

  test.each<[readonly number[], string]>([
    [[1], 'bool'],
    [[1, 2], 'u16'],
    [[2, 7, 8], 'vector<u8>'],
    [[0], 'vector<u64>'],
    [[1, 5], `${A}::shop::Size`],
    [[0], `${A}::shop::Tag<u8>`],
    [[...new Array<number>(32).fill(3), 9, 1, 0], `${A}::shop::Box<u8>`],
  ])('with the bytes %j and the type %s is encoded to the same bytes', (bytes, type) => {
    expect([...reencode(bytes, type)]).toEqual(bytes);
  });

  test('is encoded to the same bytes if it is an integer of any size', () => {
    fc.assert(
      fc.property(
        fc.constantFrom(8, 16, 32, 64, 128, 256),
        fc.uint8Array({ minLength: 32, maxLength: 32 }),
        (bits, randomBytes) => {
          const bytes = randomBytes.subarray(0, bits / 8);
          expect([...reencode([...bytes], `u${bits}`)]).toEqual([...bytes]);
        },
      ),
    );
  });

  test.each<[string, readonly number[], string]>([
    ['too short', [1], 'u16'],
    ['too long', [1, 2], 'u8'],
    ['of an unknown variant', [2], `${A}::shop::Size`],
    ['a bool of 2', [2], 'bool'],
    ['a length that is not in its shortest form', [0x80, 0x00], 'vector<u8>'],
    ['a length without an end', [0x80, 0x80, 0x80, 0x80, 0x80], 'vector<u8>'],
    ['a vector that is longer than its bytes', [0xff, 0xff, 0xff, 0xff, 0x0f], 'vector<u64>'],
  ])('bytes that are %s are refused', (_, bytes, type) => {
    expect(() => reencode(bytes, type)).toThrow(RangeError);
  });
});
