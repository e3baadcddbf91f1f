/** Move packages that probe the rules of transactions, as sources and as bytecode. */
import { dumpMovePackage, initMovePackageBuilder } from '@zktx.io/sui-move-builder/full';
import { readModule } from '../../../src/devnet/bytecode/module_bytecode.ts';
import { chooseFramework } from '../../../src/toolchain/move/packages.ts';

const PROBE = `
module own::probe;

use std::string::String;
use sui::clock::Clock;
use sui::event;
use sui::random::Random;

#[error(code = 7)]
const EEmpty: vector<u8> = b"It is empty";

public struct Thing has key, store { id: UID, n: u64 }
/// Without store: nothing but this module transfers it.
public struct Pinned has key { id: UID, n: u64 }
public struct Box has key, store { id: UID, thing: Thing }
public struct Noted has copy, drop { n: u64 }
public struct Potato { n: u64 }

public fun thing(n: u64, ctx: &mut TxContext): Thing { Thing { id: object::new(ctx), n } }
public fun two(ctx: &mut TxContext): (Thing, Thing) { (thing(1, ctx), thing(2, ctx)) }
public fun pinned(n: u64, ctx: &mut TxContext): Pinned { Pinned { id: object::new(ctx), n } }
public fun potato(n: u64): Potato { Potato { n } }
public fun eat(potato: Potato) { let Potato { n: _ } = potato; }

public fun read(thing: &Thing) { event::emit(Noted { n: thing.n }) }
public fun write(thing: &mut Thing, n: u64) { thing.n = n; event::emit(Noted { n }) }
public fun both(one: &mut Thing, other: &Thing) { one.n = other.n }
public fun swap(one: &mut Thing, other: &mut Thing) { let n = one.n; one.n = other.n; other.n = n }
public fun look(_: &Thing, other: &Thing) { read(other) }
public fun absorb(into: &mut Thing, thing: Thing) { into.n = into.n + thing.n; take(thing) }
public fun take_then_read(thing: Thing, other: &Thing) { read(other); take(thing) }
public fun take(thing: Thing) { let Thing { id, n } = thing; id.delete(); event::emit(Noted { n }) }
public fun wrap(thing: Thing, ctx: &mut TxContext): Box { Box { id: object::new(ctx), thing } }
public fun unwrap(box: Box): Thing { let Box { id, thing } = box; id.delete(); thing }
public fun take_all(mut things: vector<Thing>) { while (!things.is_empty()) take(things.pop_back()); things.destroy_empty() }
public fun share(thing: Thing) { transfer::public_share_object(thing) }
public fun freeze_it(thing: Thing) { transfer::public_freeze_object(thing) }
public fun share_pinned(pinned: Pinned) { transfer::share_object(pinned) }
public fun end_pinned(pinned: Pinned) { let Pinned { id, n: _ } = pinned; id.delete() }
public fun join(_: &Pinned, _: &Clock) {}

entry fun draw(random: &Random, ctx: &mut TxContext): Thing { let mut generator = random.new_generator(ctx); thing(generator.generate_bytes(1).length(), ctx) }
entry fun enter(n: u64) { event::emit(Noted { n }) }
entry fun enter_clock(clock: &Clock) { assert!(clock.timestamp_ms() > 0, 3) }
entry fun enter_pinned(pinned: &mut Pinned) { pinned.n = pinned.n + 1 }
entry fun enter_thing(thing: &Thing) { read(thing) }
entry fun enter_potato(potato: Potato) { eat(potato) }

public fun bump(n: &mut u64) { *n = *n + 1 }
public fun is(n: u64, expected: u64) { assert!(n == expected, 4) }
public fun texts(texts: vector<String>) { event::emit(Noted { n: texts.length() }) }
public fun maybe(text: Option<String>) { event::emit(Noted { n: if (text.is_some()) 1 else 0 }) }
public fun bytes(bytes: vector<u8>) { event::emit(Noted { n: bytes.length() }) }
public fun generic<T: store>() {}
public fun shout(times: u64) { let mut n = 0; while (n < times) { event::emit(Noted { n }); n = n + 1 } }
public fun subtract(a: u64, b: u64): u64 { a - b }
public fun item(at: u64): u64 { vector[1u64, 2][at] }
public fun bare(n: u64) { assert!(n > 0) }
public fun named(n: u64) { assert!(n > 0, EEmpty) }
public fun coded(n: u64) { assert!(n > 0, 12) }
public fun zero(n: u64) { assert!(n > 0, 0) }
public fun divide(n: u64): u64 { 1 / n }
public fun narrow(n: u64): u8 { (n + 255) as u8 }
public fun peek(thing: &Thing): &u64 { &thing.n }
#[allow(unused_function)]
fun hidden() {}
`;

const BASE = `
module own::base;
public struct BASE has drop {}
public struct Old has drop, store {}
fun init(otw: BASE, ctx: &mut TxContext) {
    transfer::public_transfer(sui::package::claim(otw, ctx), ctx.sender())
}
public fun value(): u64 { 1 }
public fun generic<T: drop>() {}
public fun is(expected: u64) { assert!(value() == expected, value()) }
entry fun roll() {}
`;
const BASE_2 = `${BASE.replace('{ 1 }', '{ 2 }')}
public struct Later has drop, store {}
public struct Added has copy, drop { n: u64 }
public struct Kept has key, store { id: UID }
public fun keep(ctx: &mut TxContext) { transfer::public_transfer(Kept { id: object::new(ctx) }, ctx.sender()) }
public fun end(kept: Kept) { let Kept { id } = kept; id.delete() }
public fun publishes<T>(publisher: &sui::package::Publisher) { assert!(publisher.from_module<T>(), 9) }
public fun announce() { sui::event::emit(Added { n: value() }) }
`;
const MID = `
module own::mid;
public fun is(expected: u64) { assert!(base::base::value() == expected, base::base::value()) }
public fun generic<T: drop>(expected: u64) { is(expected) }
`;
const TOP = `
module own::top;
public fun is(expected: u64) { mid::mid::is(expected) }
`;

export const SOURCES = { probe: PROBE, base: BASE, base_2: BASE_2, mid: MID, top: TOP } as const;

const COMPILED = new Map<string, Promise<readonly Uint8Array[]>>();

/**
 * Compiles a package for a test of a node.
 *
 * @param packages sources and ids of other packages, by the names of their addresses in the source
 * @returns the package's own modules
 */
export function compileProbe(
  source: string,
  packages: Readonly<Record<string, { readonly source: string; readonly id: string }>> = {},
  env: Readonly<Record<string, string | undefined>> = process.env,
): Promise<readonly Uint8Array[]> {
  const key = JSON.stringify([source, packages]);
  const compiled = COMPILED.get(key) ?? compile(source, packages, env);
  COMPILED.set(key, compiled);
  return compiled;
}

async function compile(
  source: string,
  packages: Parameters<typeof compileProbe>[1] & object,
  env: Readonly<Record<string, string | undefined>>,
): Promise<readonly Uint8Array[]> {
  await initMovePackageBuilder();
  const addresses = Object.entries(packages).map(([name, { id }]) => `${name} = "${id}"`);
  const dependencies = Object.entries(packages).map(([name, dependency]) => [
    `sources/${name}.move`,
    dependency.source.replace('module own::', `module ${name}::`),
  ]);
  const files = {
    'Move.toml': `[package]\nname = "own"\nedition = "2024"\n\n[addresses]\nown = "0x0"\n${addresses.join('\n')}\n`,
    'sources/own.move': source,
    ...Object.fromEntries(dependencies),
  };
  const { fetcher } = chooseFramework(env);
  const compiled = await dumpMovePackage({ files, fetcher, network: 'testnet', silenceWarnings: true });
  if ('error' in compiled) throw new Error(compiled.error);
  const modules = compiled.modules.map((module) => Uint8Array.from(Buffer.from(module, 'base64')));
  return modules.filter((module) => /^0x0+$/.test(readModule(module).address));
}
