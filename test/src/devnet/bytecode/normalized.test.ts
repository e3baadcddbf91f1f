/** Declarations are compared independently of the order of tables. */
import { beforeAll, expect, test } from 'vitest';
import { listDeclarations } from '../../../../src/devnet/bytecode/normalized.ts';
import { compileVariants } from './compile_variants.ts';

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

const [HEAD = '', ...LINES] = SOURCE.trim().split('\n');
const REVERSED = [HEAD, ...LINES.toReversed()].join('\n');
/** Source whose bytecode has additional entries in its tables. */
const EXTENDED = `${[HEAD, 'fun aaa(): vector<u128> { vector[7, 8] }', ...LINES].join('\n')}\n`;

const CHANGES = [
  ['a constant', 'b"bytes"', 'b"other"', 'function dice::bytes'],
  ['a number', 'vector[1, 2, 3]', 'vector[1, 2, 4]', 'function dice::many'],
  ['an instruction', '{ own() }', '{ own() + 0 }', 'function dice::called'],
  ['the function that it calls', '{ own() }', '{ pair().one }', 'function dice::called'],
  ['a branch', '=> 3', '=> 4', 'function dice::points'],
  ['a visibility', '\nfun own', '\npublic fun own', 'function dice::own'],
  ['a variant', 'Missed, Hit', 'Lost, Hit', 'type dice::Throw'],
] as const;

function changeSource(from: string, to: string): string {
  return SOURCE.replace(from, to).replaceAll(to === 'Lost, Hit' ? '::Missed' : '', (match) =>
    match === '' ? '' : '::Lost',
  );
}

/** Declarations of each source, by the source's text. */
let declarationsBySource: ReadonlyMap<string, ReadonlyMap<string, string>>;
beforeAll(async () => {
  const sources = [SOURCE, REVERSED, EXTENDED, ...CHANGES.map(([, from, to]) => changeSource(from, to))];
  const modules = await compileVariants(sources);
  declarationsBySource = new Map(
    modules.map((module, index) => [sources[index] ?? '', listDeclarations(module)]),
  );
});

/** Returns the names of the declarations that differ from those of `SOURCE`. */
function listChangedNames(source: string): string[] {
  const [before, after] = [declarationsBySource.get(SOURCE), declarationsBySource.get(source)];
  if (before === undefined || after === undefined) throw new Error(`not compiled: ${source}`);
  const names = new Set([...before.keys(), ...after.keys()]);
  return [...names].filter((name) => before.get(name) !== after.get(name));
}

test('another order of the declarations changes no text', () => {
  expect(REVERSED).not.toBe(SOURCE.trim());
  expect(listChangedNames(REVERSED)).toEqual([]);
  expect(listChangedNames(EXTENDED)).toEqual(['function dice::aaa']);
});

test.each(CHANGES)('a change of %s changes the text of the declaration', (_, from, to, name) => {
  expect(listChangedNames(changeSource(from, to))).toContain(name);
});
