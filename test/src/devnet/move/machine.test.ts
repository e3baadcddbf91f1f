/** Checks that the machine behaves like Sui's own Move VM, which runs the same functions in unit tests. */
import { dumpMovePackage, initMovePackageBuilder, testMovePackage } from '@zktx.io/sui-move-builder/full';
import { expect, test } from 'vitest';
import { MoveAbort, PrimitiveError } from '../../../../src/devnet/failures.ts';
import { ChainCode } from '../../../../src/devnet/move/code.ts';
import { frameworkPackage } from '../../../../src/devnet/move/framework.ts';
import { Machine } from '../../../../src/devnet/move/machine.ts';
import type { Native } from '../../../../src/devnet/move/program.ts';
import { parseType } from '../../../../src/devnet/move/types.ts';
import { createVector, Int, reference, type Value } from '../../../../src/devnet/move/values.ts';
import { chooseFramework } from '../../../../src/toolchain/move/packages.ts';

const SELF = `0x${'0'.repeat(61)}ca5`;
const TYPES = [8, 16, 32, 64, 128, 256] as const;
const OPERATORS = ['+', '-', '*', '/', '%', '&', '|', '^', '<', '<=', '>', '>=', '==', '!='];

const GENERAL = `
module cases::general;

public enum Shape has copy, drop { Dot, Square { side: u64 }, Box(u64, u64) }
public struct Pair<A, B> has copy, drop { left: A, right: B }
public struct Heap has drop { items: vector<Pair<u8, vector<u64>>> }

fun area(shape: &Shape): u64 {
    match (shape) {
        Shape::Dot => 0,
        Shape::Square { side } => *side * *side,
        Shape::Box(width, height) => *width * *height,
    }
}

fun grow(shape: &mut Shape, by: u64) {
    match (shape) {
        Shape::Dot => (),
        Shape::Square { side } => *side = *side + by,
        Shape::Box(width, _) => *width = *width + by,
    }
}

public fun shapes(a: u64, b: u64): u64 {
    let mut all = vector[Shape::Dot, Shape::Square { side: a }, Shape::Box(a, b)];
    let mut total = 0;
    let mut i = 0;
    while (i < all.length()) {
        grow(&mut all[i], i);
        total = total * 7 + area(&all[i]);
        i = i + 1;
    };
    total
}

fun swap<A: drop + copy, B: drop + copy>(pair: &Pair<A, B>): Pair<B, A> {
    let Pair { left, right } = *pair;
    Pair { left: right, right: left }
}

public fun generics(a: u64, b: u64): u64 {
    let pair = Pair { left: vector[a, b], right: Pair { left: b as u8, right: true } };
    let Pair { left: Pair { left, right }, right: list } = swap(&pair);
    if (right && pair.left == list) (left as u64) + list[0] else 0
}

/// A copy does not change with the original.
public fun copies(a: u64, b: u64): u64 {
    let mut heap = Heap { items: vector[Pair { left: 1, right: vector[a] }] };
    let before = heap.items[0];
    heap.items[0].right.push_back(b);
    let held = &mut heap.items[0];
    held.left = 9;
    *&mut held.right[0] = b;
    (before.left as u64) * 1000 + before.right.length() * 100 + (heap.items[0].left as u64) + heap.items[0].right[0]
}

fun bump(value: &mut u64, by: u64): u64 {
    *value = *value + by;
    *value
}

public fun references(a: u64, b: u64): u64 {
    let mut local = a;
    let first = bump(&mut local, b);
    let second = bump(&mut local, first);
    local * 3 + second
}

public fun fibonacci(n: u64, _: u64): u64 {
    if (n < 2) n else fibonacci(n - 1, 0) + fibonacci(n - 2, 0)
}

public fun vectors(a: u64, b: u64): u64 {
    let mut v = vector[];
    let mut i = 0;
    while (i < a) {
        v.push_back(i * b);
        i = i + 1;
    };
    v.reverse();
    v.swap(0, a - 1);
    let last = v.pop_back();
    last * 100 + v.remove(1) + v[0] + v.length()
}

public fun outside(a: u64, b: u64): u64 { vector[a][b] }

public fun empty(_: u64, _: u64): u64 { vector<u64>[].pop_back() }

public fun asserted(a: u64, b: u64): u64 {
    assert!(a < b, a + 40);
    b
}

public fun loops(a: u64, b: u64): u64 {
    let mut n = 0;
    let found = 'outer: loop {
        loop {
            n = n + 1;
            if (n % a == 0) break;
            if (n > b) break 'outer n * 2;
        };
        if (n > 20) break n;
    };
    found
}

public fun option(a: u64, b: u64): u64 {
    let some = std::option::some(a);
    let none = std::option::none<u64>();
    some.destroy_with_default(b) * 10 + none.destroy_with_default(b)
}

public fun constants(a: u64, _: u64): u64 {
    let table: vector<vector<u8>> = vector[b"one", b"three", x""];
    table[a].length() + (@0xab.to_bytes()[31] as u64)
}
use fun sui::address::to_bytes as address.to_bytes;
`;
const GENERAL_CALLS: readonly (readonly [name: string, a: number, b: number])[] = [
  ...(['shapes', 'generics', 'copies', 'references', 'asserted', 'option'] as const).flatMap(
    (name) =>
      [
        [name, 3, 5],
        [name, 5, 3],
      ] as const,
  ),
  ['fibonacci', 12, 0],
  ['vectors', 6, 2],
  ['vectors', 0, 0],
  ['outside', 7, 0],
  ['outside', 7, 1],
  ['empty', 0, 0],
  ['loops', 7, 3],
  ['loops', 6, 100],
  ['loops', 0, 1],
  ['constants', 1, 0],
  ['constants', 3, 0],
];

interface Case {
  /** Name of a function in the module `cases`. */
  readonly name: string;
  readonly args: readonly Int[];
  /** Last expression of the function. */
  readonly body?: string;
}

/** Returns the limits of a type, values next to them, and some values in between. */
function listOperands(bits: number): bigint[] {
  const max = 2n ** BigInt(bits) - 1n;
  return [0n, 1n, 3n, max / 3n, max - 1n, max];
}

function createArithmeticCases(): Case[] {
  return TYPES.flatMap((bits) => {
    const values = listOperands(bits);
    const pairs = values.flatMap((left, i) =>
      values.filter((_, j) => (i + j) % 2 === 0 || j < 2).map((right) => [left, right] as const),
    );
    const operations = OPERATORS.flatMap((operator, index) =>
      pairs
        .filter((_, pairIndex) => (pairIndex + index) % 3 === 0)
        .map(([left, right]) => ({
          name: `op_${index}_u${bits}`,
          args: [new Int(bits, left), new Int(bits, right)],
          body: `a ${operator} b`,
        })),
    );
    const shifts = ['<<', '>>'].flatMap((operator, index) =>
      [0, 1, bits - 1, bits]
        .filter((by) => by < 256)
        .map((by) => ({
          name: `shift_${index}_u${bits}`,
          args: [new Int(bits, values[4] ?? 0n), new Int(8, BigInt(by))],
          body: `a ${operator} b`,
        })),
    );
    const casts = TYPES.flatMap((to) =>
      [3n, 2n ** BigInt(bits) - 1n].map((value) => ({
        name: `cast_u${bits}_u${to}`,
        args: [new Int(bits, value)],
        body: `a as u${to}`,
      })),
    );
    return [...operations, ...shifts, ...casts];
  });
}

const CASES: readonly Case[] = [
  ...createArithmeticCases(),
  ...GENERAL_CALLS.map(([name, a, b]) => ({
    name,
    args: [new Int(64, BigInt(a)), new Int(64, BigInt(b))],
  })),
];

/** Returns a module with a function for each case, which returns BCS so that values are compared as bytes. */
function formatCases(): string {
  const functions = new Map(
    CASES.flatMap(({ name, args, body }) => {
      const parameters = args.map(({ bits }, index) => `${'ab'[index]}: u${bits}`).join(', ');
      const argumentNames = args.map((_, index) => 'ab'[index]).join(', ');
      const value = body ?? `cases::general::${name}(${argumentNames})`;
      return [[name, `public fun ${name}(${parameters}): vector<u8> { std::bcs::to_bytes(&(${value})) }`]];
    }),
  );
  return `module cases::cases;\n${[...functions.values()].join('\n')}`;
}

const FILES = {
  'Move.toml': `[package]\nname = "cases"\nedition = "2024"\n\n[addresses]\ncases = "${SELF}"\n`,
  'sources/general.move': GENERAL,
  'sources/cases.move': formatCases(),
};

/** Runs a case in the machine. @returns a unit test that passes if the VM has the same outcome */
async function createUnitTest(code: ChainCode, { name, args }: Case, index: number): Promise<string> {
  const natives: Record<string, Native> = {
    'bcs::to_bytes': ({ args: [value], types: [type] }) => [
      createVector(code.codec.encode(reference(value).value, type ?? parseType('u8'))),
    ],
  };
  const program = { native: (native: string) => natives[native], codec: code.codec };
  const link = code.linker(new Map([[SELF, SELF]]));
  const machine = new Machine(program, 1_000_000);
  const call = `cases::cases::${name}(${args.map(({ bits, value }) => `${value}u${bits}`).join(', ')})`;
  const run = (outcome: string, body: string) => `#[test${outcome}]\nfun t${index}() { ${body} }`;
  try {
    const linkedFunction = code.function(SELF, 'cases', name);
    const [returnValue] = await machine.call(linkedFunction, [], args as readonly Value[], link);
    const bytes = code.codec.encode(returnValue as Value, parseType('vector<u8>'));
    // The first byte is the length of the vector.
    return run('', `assert!(${call} == x"${Buffer.from(bytes.subarray(1)).toString('hex')}");`);
  } catch (error) {
    if (error instanceof MoveAbort) {
      const { module } = error.location;
      return run(`, expected_failure(abort_code = ${error.code}, location = cases::${module})`, `${call};`);
    }
    if (!(error instanceof PrimitiveError)) throw error;
    const { message } = error;
    const kind = message.includes('index')
      ? 'vector_error, minor_status = 1'
      : message.includes('empty')
        ? 'vector_error, minor_status = 2'
        : 'arithmetic_error';
    return run(`, expected_failure(${kind}, location = cases::${error.location.module})`, `${call};`);
  }
}

test(`${CASES.length} calls have the same results, or the same failures, as in the Move VM`, async () => {
  await initMovePackageBuilder();
  const { fetcher } = chooseFramework({});
  const options = { fetcher, network: 'testnet', ansiColor: false, silenceWarnings: true } as const;
  const compiled = await dumpMovePackage({ files: FILES, ...options });
  if ('error' in compiled) throw new Error(compiled.error);
  const modules = compiled.modules.map((module) => Uint8Array.from(Buffer.from(module, 'base64')));
  const packages = new Map([[SELF, { original: SELF, modules, dependencies: [] }]]);
  const code = new ChainCode(packages, frameworkPackage());
  const tests = await Promise.all(CASES.map((testCase, index) => createUnitTest(code, testCase, index)));
  const text = `#[test_only]\nmodule cases::compare;\n${tests.join('\n')}`;
  // Some calls have results, and some fail.
  expect(text.match(/expected_failure/g)?.length).toBeGreaterThan(CASES.length / 10);
  expect(text.match(/assert!/g)?.length).toBeGreaterThan(CASES.length / 3);
  const run = await testMovePackage({ files: { ...FILES, 'tests/compare.move': text }, ...options });
  if ('error' in run) throw new Error(run.error);
  expect(run.output.match(/^\[ FAIL.*$/gm)).toBe(null);
  expect(run.output).toContain(`Test result: OK. Total tests: ${CASES.length}; passed: ${CASES.length}`);
});
