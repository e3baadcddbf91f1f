/** The interface of a compiled module, and the changes that an upgrade may make. */
import { dumpMovePackage } from '@zktx.io/sui-move-builder/full';
import fc from 'fast-check';
import { beforeAll, describe, expect, test } from 'vitest';
import { listIncompatibilities } from '../../../../src/devnet/bytecode/compatibility.ts';
import { type ModuleInterface, readModule } from '../../../../src/devnet/bytecode/module_bytecode.ts';
import { packageDigest } from '../../../../src/devnet/bytecode/package_digest.ts';
import { buildPackage, chooseFramework } from '../../../../src/toolchain/move/packages.ts';
import { compileVariants } from './compile_variants.ts';

const SELF = `0x${'5'.repeat(64)}`;

const BASE = `module dice::dice;
use std::string::String;
public struct Die has copy, drop, store { sides: u64, name: String }
public struct Box<phantom T, U: store> has key { id: UID, inner: vector<U> }
public enum Throw has copy, drop { Missed, Hit { points: u64 } }
public fun sides(die: &Die): u64 { die.sides }
public fun keep<T: copy + drop>(value: &mut T, other: T): (T, u64) { *value = other; (other, 1) }
public fun points(t: &Throw): u64 { match (t) { Throw::Missed => 0, Throw::Hit { points } => *points } }
public fun new<T, U: store>(inner: vector<U>, ctx: &mut TxContext): Box<T, U> { Box { id: object::new(ctx), inner } }
public fun all(): (u8, u16, u32, u64, u128, u256, vector<u64>) {
    let mut many = vector[1, 2, 3];
    let mut i = 0;
    while (i < many.length()) { many.swap(0, i); i = i + 1 };
    many.push_back(18446744073709551615);
    (255, 65535, 4294967295, many.pop_back(), 0xffffffffffffffffffffffffffffffff, 0xffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff, many)
}
public(package) fun internal(die: Die): Die { die }
entry fun roll(_: u64) {}
fun own() {}
#[allow(unused_function)]
fun unused() { own(); roll(1); }
`;

const MAY: readonly [string, (source: string) => string][] = [
  ['change nothing', (source) => source],
  ['change what a function does', (source) => source.replace('{ die.sides }', '{ die.sides + 1 }')],
  ['add a function', (source) => `${source}public fun more(): u64 { 1 }\n`],
  ['add a type', (source) => `${source}public struct More has drop {}\n`],
  [
    'change a function that is not public',
    (source) => source.replace('fun own()', 'fun own2()').replace('own();', 'own2();'),
  ],
  [
    'remove an entry function',
    (source) => source.replace('entry fun roll(_: u64) {}', '').replace('roll(1);', ''),
  ],
  ['make a function public', (source) => source.replace('\nfun own()', '\npublic fun own()')],
  [
    'require less of a type parameter',
    (source) =>
      source.replace(
        'keep<T: copy + drop>(value: &mut T, other: T): (T, u64) { *value = other; (other, 1) }',
        'keep<T: drop>(value: &mut T, other: T): (T, u64) { abort 1 }',
      ),
  ],
];

const MAY_NOT: readonly [string, (source: string) => string, string][] = [
  ['rename its module', (s) => s.replace('dice::dice;', 'dice::coin;'), 'the module dice is gone'],
  [
    'remove a public function',
    (s) => s.replace(/public fun sides.*\n/, ''),
    'the public function dice::sides is gone',
  ],
  [
    'make a public function private',
    (s) => s.replace('public fun sides', '#[allow(unused_function)]\nfun sides'),
    'dice::sides is gone, or not public',
  ],
  [
    'restrict a public function to its package',
    (s) => s.replace('public fun sides', 'public(package) fun sides'),
    'dice::sides is gone, or not public',
  ],
  [
    'change a parameter',
    (s) => s.replace('sides(die: &Die)', 'sides(die: &mut Die)'),
    `took (&${SELF}::dice::Die), and takes (&mut ${SELF}::dice::Die)`,
  ],
  [
    'change what a function returns',
    (s) => s.replace('): u64 { die.sides }', '): u128 { die.sides as u128 }'),
    'returned (u64), and returns (u128)',
  ],
  [
    'require more of a type parameter',
    (s) => s.replace('T: copy + drop', 'T: copy + drop + store'),
    'dice::keep requires more',
  ],
  [
    'add a type parameter',
    (s) => s.replace('sides(die', 'sides<T>(die'),
    'dice::sides requires more of its type parameters, or has another number of them',
  ],
  [
    'remove a type',
    (s) => s.replace(/public enum.*\n/, '').replace(/public fun points.*\n/, ''),
    'the type dice::Throw is gone',
  ],
  [
    'add an ability',
    (s) => s.replace('Throw has copy, drop', 'Throw has copy, drop, store'),
    'dice::Throw has other abilities',
  ],
  [
    'add a field',
    (s) => s.replace('sides: u64, name', 'sides: u64, colour: u8, name'),
    'the type dice::Die was',
  ],
  [
    'swap fields',
    (s) => s.replace('sides: u64, name: String', 'name: String, sides: u64'),
    'the type dice::Die was',
  ],
  [
    'rename a field',
    (s) => s.replace('sides: u64', 'faces: u64').replace('die.sides', 'die.faces'),
    'the type dice::Die was',
  ],
  [
    'add a variant',
    (s) =>
      s
        .replace('Missed, Hit', 'Missed, Lost, Hit')
        .replace('Throw::Missed => 0,', 'Throw::Missed => 0, Throw::Lost => 0,'),
    'the type dice::Throw was',
  ],
  [
    'change what a type parameter must be',
    (s) =>
      s
        .replace('Box<phantom T, U: store>', 'Box<phantom T: drop, U: store>')
        .replace('new<T, U', 'new<T: drop, U'),
    'dice::Box has other type parameters',
  ],
];

/** Compiled modules of `BASE` and of each change to it. */
let compiled: ReadonlyMap<string, Uint8Array>;
let base: ModuleInterface[];
beforeAll(async () => {
  const sources = [...new Set([BASE, ...[...MAY, ...MAY_NOT].map(([, change]) => change(BASE))])];
  const modules = await compileVariants(sources);
  compiled = new Map(modules.map((module, index) => [sources[index] ?? '', module]));
  base = readInterface(BASE);
});

function findModule(source: string): Uint8Array {
  const module = compiled.get(source);
  if (module === undefined) throw new Error(`not compiled: ${source}`);
  return module;
}

function readInterface(source: string): ModuleInterface[] {
  return [readModule(findModule(source), SELF)];
}

describe('a module', () => {
  test('is read with its types, but only with its public functions', () => {
    const [dice] = base as [ModuleInterface];
    expect(dice.name).toBe('dice');
    expect([...dice.functions.keys()].sort()).toEqual(['all', 'keep', 'new', 'points', 'sides']);
    expect(dice.functions.get('keep')).toMatchObject({
      constraints: [3],
      parameters: '&mut T0,T0',
      returns: 'T0,u64',
    });
    expect(dice.functions.get('all')).toMatchObject({ returns: 'u8,u16,u32,u64,u128,u256,vector<u64>' });
    expect(dice.functions.get('new')?.returns).toBe(`${SELF}::dice::Box<T0,T1>`);
    const std = `0x${'1'.padStart(64, '0')}`;
    expect(dice.datatypes.get('Die')).toMatchObject({
      abilities: 7,
      layout: `struct {sides: u64,name: ${std}::string::String}`,
    });
    expect(dice.datatypes.get('Box')).toMatchObject({ abilities: 8, typeParameters: '0 phantom,4' });
    expect(dice.datatypes.get('Throw')).toMatchObject({
      abilities: 3,
      layout: 'enum {Missed {},Hit {points: u64}}',
    });
  });

  test('of move/ is read with the names of its sources', async () => {
    const { modules } = await buildPackage('enclave', chooseFramework({}));
    const interfaces = modules.map((module) => readModule(new Uint8Array(Buffer.from(module, 'base64'))));
    expect(interfaces.map(({ name }) => name).sort()).toEqual([
      'attested',
      'enclave',
      'once',
      'pcrs',
      'source',
    ]);
    const enclave = interfaces.find(({ name }) => name === 'enclave');
    expect(enclave?.functions.has('assert_signed')).toBe(true);
    expect(enclave?.functions.has('enclave_of')).toBe(false);
    expect(enclave?.datatypes.get('Rotation')).toMatchObject({ abilities: 0 });
  });

  test('is read, or refused with a RangeError, if a byte is changed', () => {
    const module = findModule(BASE);
    const otherVersion = Uint8Array.from(module);
    otherVersion[4] = 9;
    expect(() => readModule(otherVersion)).toThrow('version 9 of the binary format');
    expect(() => readModule(new Uint8Array())).toThrow(RangeError);
    expect(() => readModule(Buffer.from('<html>, and not a module'))).toThrow('not a Move module');
    fc.assert(
      fc.property(
        fc.integer({ min: 0, max: module.length - 1 }),
        fc.integer({ min: 1, max: 255 }),
        (position, mask) => {
          const changed = Uint8Array.from(module);
          changed[position] = (changed[position] ?? 0) ^ mask;
          try {
            readModule(changed);
          } catch (error) {
            expect(error).toBeInstanceOf(RangeError);
          }
        },
      ),
      { numRuns: 300 },
    );
  });

  test('is refused if it is cut anywhere', () => {
    const module = findModule(BASE);
    for (let length = 0; length < module.length; length += 1) {
      expect(() => readModule(module.subarray(0, length)), String(length)).toThrow(RangeError);
    }
  });
});

test.each(MAY)('an upgrade may %s', (_, change) => {
  expect(listIncompatibilities(base, readInterface(change(BASE)))).toEqual([]);
});

test.each(MAY_NOT)('an upgrade may not %s', (_, change, message) => {
  const changed = change(BASE);
  expect(changed).not.toBe(BASE);
  const problems = listIncompatibilities(base, readInterface(changed));
  expect(problems.join('\n')).toContain(message);
});

test("a package's digest equals the compiler's", async () => {
  const { fetcher } = chooseFramework({});
  const files = {
    'Move.toml': '[package]\nname = "dice"\nedition = "2024"\n',
    'sources/dice.move': `${BASE}`,
  };
  const compiled = await dumpMovePackage({ files, fetcher, network: 'testnet', silenceWarnings: true });
  if ('error' in compiled) throw new Error(compiled.error);
  const modules = compiled.modules.map((module) => Buffer.from(module, 'base64'));
  expect([...packageDigest(modules, compiled.dependencies)]).toEqual(compiled.digest);
  expect([...packageDigest(modules, [...compiled.dependencies].reverse())]).toEqual(compiled.digest);
});
