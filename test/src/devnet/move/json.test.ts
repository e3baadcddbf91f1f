/** Checks the JSON of values by each rule of `MoveValue.json` in Sui's reference. */
import { GrpcTypes } from '@mysten/sui/grpc';
import { expect, test } from 'vitest';
import { toGrpcJson } from '../../../../src/devnet/move/json.ts';
import { Datatypes, parseType } from '../../../../src/devnet/move/types.ts';
import { Codec } from '../../../../src/devnet/move/values.ts';

const [STD, SUI, APP] = ['1', '2', 'a'].map((digit) => `0x${digit.padStart(64, '0')}`);
const layouts: Readonly<Record<string, string>> = {
  [`${STD}::ascii::String`]: 'struct {bytes: vector<u8>}',
  [`${STD}::string::String`]: 'struct {bytes: vector<u8>}',
  [`${STD}::option::Option`]: 'struct {vec: vector<T0>}',
  [`${SUI}::object::ID`]: 'struct {bytes: address}',
  [`${SUI}::object::UID`]: `struct {id: ${SUI}::object::ID}`,
  [`${SUI}::balance::Balance`]: 'struct {value: u64}',
  [`${SUI}::url::Url`]: `struct {url: ${STD}::ascii::String}`,
  [`${APP}::shop::Size`]: 'enum {Small {},Large {by: u8}}',
  [`${APP}::shop::Box`]: `struct {content: T0,sizes: vector<${APP}::shop::Size>}`,
  // A struct of the same name in another package is a struct like any other.
  [`${APP}::string::String`]: 'struct {bytes: vector<u8>}',
};
const datatypes = new Datatypes((module, name) => {
  const layout = layouts[`${module}::${name}`];
  return layout === undefined ? undefined : { abilities: 7, typeParameters: '', layout };
});

/** Returns the JSON that a client reads. */
function convert(text: string, bytes: readonly number[]): unknown {
  const type = parseType(text);
  const value = new Codec(datatypes).decode(Uint8Array.from(bytes), type);
  const object = GrpcTypes.Object.create({ json: toGrpcJson(value, type, datatypes) });
  const json = GrpcTypes.Object.toJson(GrpcTypes.Object.fromBinary(GrpcTypes.Object.toBinary(object)));
  return (json as { readonly json: unknown }).json;
}

const ID = Array.from({ length: 32 }, (_, index) => (index === 31 ? 5 : 0));
const FULL_ID = `0x${'5'.padStart(64, '0')}`;
const maxBytes = (count: number) => Array.from({ length: count }, () => 255);

test.each<[string, readonly number[], unknown]>([
  ['bool', [1], true],
  ['u8', [255], 255],
  ['u16', maxBytes(2), 65_535],
  ['u32', maxBytes(4), 4_294_967_295],
  ['u64', maxBytes(8), '18446744073709551615'],
  ['u128', maxBytes(16), String(2n ** 128n - 1n)],
  ['u256', maxBytes(32), String(2n ** 256n - 1n)],
  ['address', ID, FULL_ID],
  [`${SUI}::object::ID`, ID, FULL_ID],
  [`${SUI}::object::UID`, ID, FULL_ID],
  [`${SUI}::balance::Balance<u8>`, [7, 0, 0, 0, 0, 0, 0, 0], '7'],
  [`${STD}::string::String`, [3, 0xe2, 0x82, 0xac], '€'],
  [`${STD}::ascii::String`, [1, 0x61], 'a'],
  [`${SUI}::url::Url`, [1, 0x61], 'a'],
  ['vector<u8>', [3, 1, 2, 3], 'AQID'],
  ['vector<u16>', [2, 1, 0, 2, 0], [1, 2]],
  ['vector<vector<u8>>', [1, 1, 0], ['AA==']],
  [`${STD}::option::Option<u8>`, [0], null],
  [`${STD}::option::Option<u8>`, [1, 9], 9],
  [`${APP}::string::String`, [1, 0], { bytes: 'AA==' }],
  [`${APP}::shop::Size`, [1, 4], { '@variant': 'Large', by: 4 }],
  [
    `${APP}::shop::Box<u64>`,
    [6, 0, 0, 0, 0, 0, 0, 0, 1, 0],
    { content: '6', sizes: [{ '@variant': 'Small' }] },
  ],
])('toGrpcJson converts a %s with the bytes %j', (type, bytes, json) => {
  expect(convert(type, bytes)).toEqual(json);
});
