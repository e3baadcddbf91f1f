/** What a module declares is compared whatever the order of its tables is. */
import { dumpMovePackage, initMovePackageBuilder } from '@zktx.io/sui-move-builder/full';
import { expect, test } from 'vitest';
import { declarationsOf } from '../../../../src/devnet/bytecode/normalized.ts';
import { frameworkOf } from '../../../../src/toolchain/move/packages.ts';

const SOURCE = `module dice::dice;
public struct Die has copy, drop, store { sides: u64, worn: bool }
public struct Pair<T> has copy, drop { one: T, other: T }
public enum Throw has copy, drop { Missed, Hit { points: u64 } }
public fun sides(die: &Die): u64 { die.sides }
public fun points(throw: &Throw): u64 { match (throw) { Throw::Missed => 3, Throw::Hit { points } => *points } }
public fun pair(): Pair<u64> { Pair { one: 1, other: 2 } }
public fun many(): vector<u64> { vector[1, 2, 3] }
public fun bytes(): vector<u8> { b"bytes" }
fun own(): u64 { sides(&Die { sides: 6, worn: false }) }
public fun called(): u64 { own() }
`;

async function declared(source: string): Promise<ReadonlyMap<string, string>> {
  await initMovePackageBuilder();
  const files = { 'Move.toml': '[package]\nname = "dice"\nedition = "2024"\n', 'sources/dice.move': source };
  const { fetcher } = frameworkOf({});
  const result = await dumpMovePackage({ files, fetcher, network: 'testnet', silenceWarnings: true });
  if ('error' in result) throw new Error(result.error);
  const [module = ''] = result.modules;
  return declarationsOf(Uint8Array.from(Buffer.from(module, 'base64')));
}

/** The names of the declarations that differ. */
async function changes(source: string): Promise<string[]> {
  const [before, after] = [await declared(SOURCE), await declared(source)];
  const names = new Set([...before.keys(), ...after.keys()]);
  return [...names].filter((name) => before.get(name) !== after.get(name));
}

test('another order of the declarations changes nothing', async () => {
  const [head = '', ...lines] = SOURCE.trim().split('\n');
  const extra = 'fun aaa(): vector<u128> { vector[7, 8] }';
  expect(await changes([head, ...lines.reverse()].join('\n'))).toEqual([]);
  // Neither do other entries in the tables.
  expect(await changes(`${[head, extra, ...lines].join('\n')}\n`)).toEqual(['function dice::aaa']);
});

test.each([
  ['a constant', 'b"bytes"', 'b"other"', 'function dice::bytes'],
  ['a number', 'vector[1, 2, 3]', 'vector[1, 2, 4]', 'function dice::many'],
  ['an instruction', '{ own() }', '{ own() + 0 }', 'function dice::called'],
  ['the function that it calls', '{ own() }', '{ pair().one }', 'function dice::called'],
  ['a branch', '=> 3', '=> 4', 'function dice::points'],
  ['a visibility', '\nfun own', '\npublic fun own', 'function dice::own'],
  ['a variant', 'Missed, Hit', 'Lost, Hit', 'type dice::Throw'],
])('%s changes what it is in', async (_, from, to, name) => {
  const source = SOURCE.replace(from, to).replaceAll(to === 'Lost, Hit' ? '::Missed' : '', (match) =>
    match === '' ? '' : '::Lost',
  );
  expect(await changes(source)).toContain(name);
});
