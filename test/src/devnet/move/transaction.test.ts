/** Executes transactions with a package of an application's author, as the loopback node does. */
import { bcs } from '@mysten/sui/bcs';
import { normalizeSuiAddress } from '@mysten/sui/utils';
import { dumpMovePackage, initMovePackageBuilder } from '@zktx.io/sui-move-builder/full';
import { beforeAll, expect, test } from 'vitest';
import { readModule } from '../../../../src/devnet/bytecode/module_bytecode.ts';
import { packageDigest } from '../../../../src/devnet/bytecode/package_digest.ts';
import type { Argument, Command } from '../../../../src/devnet/commands.ts';
import { Changes, clockAt, Ledger, type LedgerObject, RANDOM } from '../../../../src/devnet/ledger.ts';
import { moveEngine } from '../../../../src/devnet/move/transaction.ts';
import { chooseFramework } from '../../../../src/toolchain/move/packages.ts';
import { UpgradeCap } from '../structs.ts';

const SENDER = `0x${'5e'.repeat(32)}`;
const NOW = 1_800_000_000_000;
const DEPENDENCIES = ['0x1', '0x2'].map((id) => normalizeSuiAddress(id));

const SOURCE = `
module own::shop;

use std::string::String;
use sui::bag::{Self, Bag};
use sui::clock::Clock;
use sui::coin::{Self, Coin};
use sui::dynamic_field as df;
use sui::dynamic_object_field as dof;
use sui::event;
use sui::random::Random;
use sui::sui::SUI;
use sui::table::{Self, Table};
use sui::vec_map::{Self, VecMap};

#[error(code = 7)]
const ESoldOut: vector<u8> = b"There is none left";

public struct SHOP has drop {}
public struct Empty() has copy, drop, store;
public struct Key(u64, String) has copy, drop, store;
public enum Size has copy, drop, store { Small, Large { by: u8 }, Made(u64, bool) }
public struct Box<T: store> has key, store { id: UID, content: T, sizes: vector<Size> }
public struct Shop has key {
    id: UID,
    stock: Table<String, u64>,
    things: Bag,
    notes: VecMap<u8, Option<String>>,
    till: sui::balance::Balance<SUI>,
    opened_ms: u64,
}
public struct Sold<phantom T> has copy, drop { name: String, left: u64 }
public struct Rolled has copy, drop { value: u64, all: vector<u64> }
public struct Receipt { name: String }

fun init(otw: SHOP, ctx: &mut TxContext) {
    assert!(sui::types::is_one_time_witness(&otw));
    let mut shop = Shop {
        id: object::new(ctx),
        stock: table::new(ctx),
        things: bag::new(ctx),
        notes: vec_map::empty(),
        till: sui::balance::zero(),
        opened_ms: 0,
    };
    shop.stock.add(b"tea".to_string(), 3);
    df::add(&mut shop.id, Empty(), 1u64);
    transfer::share_object(shop);
    transfer::freeze_object(Box { id: object::new(ctx), content: 5u16, sizes: vector[Size::Large { by: 3 }] });
}

public fun order(shop: &mut Shop, name: String, payment: Coin<SUI>, clock: &Clock): Receipt {
    let left = shop.stock.borrow_mut(name);
    if (*left == 0) abort ESoldOut;
    *left = *left - 1;
    shop.opened_ms = clock.timestamp_ms();
    shop.till.join(payment.into_balance());
    event::emit(Sold<u8> { name, left: *left });
    Receipt { name }
}

public fun boxed<T: store + drop>(receipt: Receipt, content: T, ctx: &mut TxContext): Box<T> {
    let Receipt { name: _ } = receipt;
    Box { id: object::new(ctx), content, sizes: vector[Size::Small, Size::Made(9, true)] }
}

entry fun keep(shop: &mut Shop, box: Box<u64>, ctx: &TxContext) {
    let key = Key(box.content, ctx.sender().to_string());
    shop.things.add(key, box);
    *df::borrow_mut<Empty, u64>(&mut shop.id, Empty()) = 8;
}

public fun give_back(shop: &mut Shop, content: u64, ctx: &mut TxContext) {
    let box: Box<u64> = shop.things.remove(Key(content, ctx.sender().to_string()));
    shop.notes.insert(1, std::option::some(b"back".to_string()));
    transfer::public_transfer(box, ctx.sender());
    transfer::public_transfer(coin::take(&mut shop.till, 5, ctx), @0x7);
}

/// Puts a box into a field, and changes it there.
entry fun hang(shop: &mut Shop, box: Box<u64>) {
    dof::add(&mut shop.id, b"hook", box);
    let held: &mut Box<u64> = dof::borrow_mut(&mut shop.id, b"hook");
    held.content = held.content + 1;
}

entry fun unhook(shop: &mut Shop, ctx: &TxContext) {
    assert!(dof::exists_(&shop.id, b"hook") && !dof::exists_(&shop.id, b"other"));
    let box: Box<u64> = dof::remove(&mut shop.id, b"hook");
    transfer::public_transfer(box, ctx.sender());
}

public fun unpack<T: store + drop>(box: Box<T>): T {
    let Box { id, content, sizes: _ } = box;
    id.delete();
    content
}

entry fun roll(random: &Random, ctx: &mut TxContext) {
    let mut generator = random.new_generator(ctx);
    let mut all = vector[1u64, 2, 3, 4, 5, 6];
    generator.shuffle(&mut all);
    event::emit(Rolled { value: generator.generate_u64_in_range(1, 6), all });
}

public fun subtract(a: u64, b: u64): u64 { a - b }

public fun forever() { loop {} }

public fun grow() {
    let mut v = vector[0u64];
    loop v.push_back(1);
}

public fun shout(times: u64) {
    let mut i = 0;
    while (i < times) {
        event::emit(Sold<u8> { name: b"loud".to_string(), left: i });
        i = i + 1;
    }
}

use fun text_of as address.to_string;
fun text_of(_: address): String { b"sender".to_string() }
`;
const UPGRADED = SOURCE.replace('a - b }', 'a - b + 1000 }').replace('b"There is none left"', 'b"Sold out"');

const ledger = new Ledger();
let packageId: string;

/** Compiles `shop` to the bytecode that the Sui CLI publishes. */
async function compileShop(source: string): Promise<Uint8Array[]> {
  await initMovePackageBuilder();
  const { fetcher } = chooseFramework({});
  const files = {
    'Move.toml': '[package]\nname = "own"\nedition = "2024"\n\n[addresses]\nown = "0x0"\n',
    'sources/shop.move': source,
  };
  const output = await dumpMovePackage({ files, fetcher, network: 'testnet', silenceWarnings: true });
  if ('error' in output) throw new Error(output.error);
  const modules = output.modules.map((module) => Uint8Array.from(Buffer.from(module, 'base64')));
  return modules.filter((module) => readModule(module).name === 'shop');
}

interface Tx {
  readonly inputs?: readonly (Uint8Array | LedgerObject | undefined)[];
  readonly commands: readonly Command[];
  readonly gasCoin?: LedgerObject;
}

async function execute({ inputs = [], commands, gasCoin }: Tx) {
  const changes = new Changes(ledger, `transaction ${ledger.clock}`);
  const context = { changes, sender: SENDER, nowMs: NOW, epoch: 3n, root: new Uint8Array() };
  // An undefined input means the clock.
  const resolvedInputs = inputs.map((input) => {
    if (input instanceof Uint8Array) return input;
    const object = input ?? clockAt(NOW);
    return { object, isMutable: input !== undefined && object.owner.kind !== 'immutable' };
  });
  const { packages } = ledger;
  const executed = await moveEngine({ ...context, inputs: resolvedInputs, commands, gasCoin, packages });
  if (executed.status.success) {
    ledger.commit(`transaction ${ledger.clock}`, changes);
    const { published } = executed;
    if (published) ledger.packages.set(published.id, published);
  }
  return { ...executed, changes };
}

const call = (name: string, args: readonly Argument[], typeArguments: readonly string[] = []): Command => {
  const [module = '', fn = ''] = name.split('::');
  const id = module === 'shop' ? packageId : '0x2';
  return { kind: 'call', call: { package: id, module, function: fn, typeArguments }, args: [...args] };
};
const input = (index: number): Argument => ({ input: index });
const commandResult = (command: number, nested = 0): Argument => ({ result: command, nested });
const text = (value: string) => bcs.string().serialize(value).toBytes();
const u64 = (value: number) => bcs.u64().serialize(value).toBytes();
const address = (value: string) => bcs.Address.serialize(value).toBytes();

function findInLedger(name: string): LedgerObject {
  const object = [...ledger.objects.values()].findLast(({ type }) => type.includes(name));
  if (object === undefined) throw new Error(`the ledger has no ${name}`);
  return object;
}

function coin(): LedgerObject {
  const object = ledger.objects.get(ledger.give(SENDER, 100n));
  if (object === undefined) throw new Error('no coin');
  return object;
}

function findError({ status }: Awaited<ReturnType<typeof execute>>) {
  const { errorDetails, description, command } = status.error ?? {};
  const abort = errorDetails?.oneofKind === 'abort' ? errorDetails.abort : undefined;
  return {
    description,
    command,
    ...(abort && {
      constant: abort.cleverError?.constantName,
      code: abort.cleverError?.errorCode,
      text: abort.cleverError?.value.oneofKind === 'rendered' && abort.cleverError.value.rendered,
      functionName: abort.location?.functionName,
      abortCode: abort.abortCode,
    }),
  };
}

beforeAll(async () => {
  const { status, published } = await execute({
    inputs: [address(SENDER)],
    commands: [
      { kind: 'publish', modules: await compileShop(SOURCE), dependencies: DEPENDENCIES },
      { kind: 'transfer', objects: [commandResult(0)], to: input(0) },
    ],
  });
  expect(status).toMatchObject({ success: true });
  packageId = published?.id ?? '';
});

test('init has made a shared object with a table, a dynamic field and a frozen object', () => {
  expect(findInLedger('::shop::Shop').owner).toMatchObject({ kind: 'shared' });
  expect(findInLedger('::shop::Box<u16>').owner).toEqual({ kind: 'immutable' });
  expect([...ledger.objects.values()].filter(({ owner }) => owner.kind === 'object')).toHaveLength(2);
});

test('a chain of calls splits a coin, changes a table, emits an event, passes a value on and transfers an object', async () => {
  const { status, events, changes } = await execute({
    inputs: [u64(30), findInLedger('::shop::Shop'), text('tea'), undefined, u64(77), address(SENDER)],
    gasCoin: coin(),
    commands: [
      { kind: 'split', coin: { gas: true }, amounts: [input(0)] },
      call('shop::order', [input(1), input(2), commandResult(0), input(3)]),
      call('shop::boxed', [commandResult(1), input(4)], ['u64']),
      { kind: 'transfer', objects: [commandResult(2)], to: input(5) },
    ],
  });
  expect(status).toMatchObject({ success: true });
  expect(events).toEqual([
    {
      type: expect.stringMatching(/::shop::Sold<u8>$/),
      content: Uint8Array.from([...text('tea'), ...u64(2)]),
      command: 1,
    },
  ]);
  const box = findInLedger('::shop::Box<u64>');
  expect(box).toMatchObject({ owner: { kind: 'address', address: SENDER } });
  // The bytes are the content, then Small, and Made(9, true).
  expect([...box.content.subarray(32)]).toEqual([...u64(77), 2, 0, 2, ...u64(9), 1]);
  // The transaction writes the table's entry, the shop, the coin and the box. The coin that paid is deleted.
  expect([...changes.written.values()].map(({ type }) => type.split('::')[2]?.split('<')[0]).sort()).toEqual([
    'Box',
    'Coin',
    'Field',
    'Shop',
  ]);
});

test('an object moves into a bag and out again, and is deleted when it is unpacked', async () => {
  const box = findInLedger('::shop::Box<u64>');
  const keeping = await execute({
    inputs: [findInLedger('::shop::Shop'), box],
    commands: [call('shop::keep', [input(0), input(1)])],
  });
  expect(keeping.status).toMatchObject({ success: true });
  expect(ledger.objects.has(box.id)).toBe(false);
  const givingBack = await execute({
    inputs: [findInLedger('::shop::Shop'), u64(77)],
    commands: [call('shop::give_back', [input(0), input(1)])],
  });
  expect(givingBack.status).toMatchObject({ success: true });
  expect(findInLedger('::shop::Box<u64>').id).toBe(box.id);
  expect(ledger.coins(`0x${'7'.padStart(64, '0')}`)).toMatchObject([{ balance: 5n }]);
  const unpacking = await execute({
    inputs: [findInLedger('::shop::Box<u64>')],
    commands: [call('shop::unpack', [input(0)], ['u64'])],
  });
  expect([...unpacking.changes.deleted]).toEqual([box.id]);
});

test('an object in a dynamic object field stays an object, which belongs to the field', async () => {
  const { changes } = await execute({
    inputs: [findInLedger('::shop::Shop'), coin(), text('tea'), undefined, u64(7), address(SENDER)],
    commands: [
      call('shop::order', [input(0), input(2), input(1), input(3)]),
      call('shop::boxed', [commandResult(0), input(4)], ['u64']),
      call('shop::hang', [input(0), commandResult(1)]),
    ],
  });
  const box = findInLedger('::shop::Box<u64>');
  const field = findInLedger('dynamic_object_field::Wrapper');
  expect(changes.written.has(box.id)).toBe(true);
  expect(box.owner).toEqual({ kind: 'object', address: field.id });
  expect([...box.content.subarray(32, 40)]).toEqual([...u64(8)]);
  const unhooking = await execute({
    inputs: [findInLedger('::shop::Shop')],
    commands: [call('shop::unhook', [input(0)])],
  });
  expect(unhooking.status).toMatchObject({ success: true });
  expect(findInLedger('::shop::Box<u64>')).toMatchObject({
    id: box.id,
    owner: { kind: 'address', address: SENDER },
  });
  expect(ledger.objects.has(field.id)).toBe(false);
});

test("an abort has the name, code and text of the module's error, and the command's number", async () => {
  const order = (from: number) => call('shop::order', [input(0), input(1), input(from), input(2)]);
  const execution = await execute({
    inputs: [findInLedger('::shop::Shop'), text('tea'), undefined, coin(), coin(), u64(1), address(SENDER)],
    commands: [
      order(3),
      call('shop::boxed', [commandResult(0), input(5)], ['u64']),
      order(4),
      call('shop::boxed', [commandResult(2), input(5)], ['u64']),
      { kind: 'transfer', objects: [commandResult(1), commandResult(3)], to: input(6) },
    ],
  });
  expect(findError(execution)).toMatchObject({
    constant: 'ESoldOut',
    code: 7n,
    text: 'There is none left',
    functionName: 'order',
    command: 2n,
  });
});

test.each([
  ['an underflow', call.bind(null, 'shop::subtract', [input(0), input(1)]), /MovePrimitiveRuntimeError/],
  [
    'a wrong type argument',
    call.bind(null, 'shop::unpack', [input(2)], ['u8']),
    /arg_idx: 0, kind: TypeMismatch/,
  ],
  ['an unknown type', call.bind(null, 'shop::unpack', [input(2)], ['0x2::no::Type']), /TypeNotFound/],
  [
    'a type without the ability',
    call.bind(null, 'shop::unpack', [input(2)], ['0x2::clock::Clock']),
    /ConstraintNotSatisfied/,
  ],
  ['an unknown function', call.bind(null, 'shop::nothing', []), /FunctionNotFound/],
  ['too few arguments', call.bind(null, 'shop::subtract', [input(0)]), /ArityMismatch/],
  ['a value of another size', call.bind(null, 'shop::subtract', [input(3), input(0)]), /InvalidBCSBytes/],
  [
    'an immutable object by value',
    call.bind(null, 'shop::unpack', [input(2)], ['u16']),
    /InvalidObjectByValue/,
  ],
])('%s is refused as a node refuses it', async (_, command, description) => {
  const inputs = [u64(1), u64(2), findInLedger('::shop::Box<u16>'), text('x')];
  expect(findError(await execute({ inputs, commands: [command()] })).description).toMatch(description);
});

test('a transaction can call a private entry function, and random values are in their range', async () => {
  const { status, events } = await execute({ inputs: [RANDOM], commands: [call('shop::roll', [input(0)])] });
  expect(status).toMatchObject({ success: true });
  const Rolled = bcs.struct('Rolled', { value: bcs.u64(), all: bcs.vector(bcs.u64()) });
  const { value, all } = Rolled.parse(events?.[0]?.content ?? new Uint8Array());
  expect(Number(value)).toBeGreaterThanOrEqual(1);
  expect(Number(value)).toBeLessThanOrEqual(6);
  expect([...all].sort()).toEqual(['1', '2', '3', '4', '5', '6']);
});

test('a result without drop that no command uses is refused', async () => {
  const inputs = [findInLedger('::shop::Shop'), text('tea'), coin(), undefined];
  const order = call('shop::order', [0, 1, 2, 3].map(input));
  const { description } = findError(await execute({ inputs, commands: [order] }));
  expect(description).toBe('UnusedValueWithoutDrop { result_idx: 0, secondary_idx: 0 }');
});

test('bytecode that no compiler made fails its transaction, but not the node', async () => {
  const [module = new Uint8Array()] = await compileShop(SOURCE);
  const publish = (bytes: Uint8Array) =>
    execute({
      inputs: [address(SENDER)],
      commands: [
        { kind: 'publish', modules: [bytes], dependencies: DEPENDENCIES },
        { kind: 'transfer', objects: [commandResult(0)], to: input(0) },
      ],
    });
  const cutPublication = await publish(module.subarray(0, 300));
  expect(findError(cutPublication).description).toMatch(/^VMVerificationOrDeserializationError: /);
  // The change makes `init` call a missing function of the framework.
  const offset = Buffer.from(module).indexOf('is_one_time_witness');
  const renamedPublication = await publish(Uint8Array.from(module).fill(0x78, offset, offset + 2));
  expect(findError(renamedPublication).description).toMatch(/^VMInvariantViolation: .*xx_one_time_witness/);
});

test('a call of a function that the stub lacks is refused as UNIMPLEMENTED, with its name', async () => {
  const kiosk = execute({ commands: [call('kiosk::new', [])] });
  await expect(kiosk).rejects.toMatchObject({
    status: 'UNIMPLEMENTED',
    message: expect.stringMatching(/0x2::kiosk::new/),
  });
});

test('the engine ends a call that never ends, a call that fills the memory, and a call with too many events', async () => {
  const isOutOfGas = { description: 'InsufficientGas' };
  for (const name of ['shop::forever', 'shop::grow']) {
    expect(findError(await execute({ commands: [call(name, [])] })), name).toMatchObject(isOutOfGas);
  }
  const shout = (times: number) =>
    execute({ inputs: [u64(times)], commands: [call('shop::shout', [input(0)])] });
  // Sui allows 1024 events, so the last one aborts.
  expect(findError(await shout(1025))).toMatchObject({ functionName: 'emit', abortCode: 0n });
  const { status, events } = await shout(1024);
  expect(status).toMatchObject({ success: true });
  expect(events).toHaveLength(1024);
});

test('an upgrade runs the new code with the types of the first version, and a failed upgrade changes nothing', async () => {
  const cap = findInLedger('::package::UpgradeCap');
  const modules = await compileShop(UPGRADED);
  const upgrade = (digest: Uint8Array): Tx => ({
    inputs: [cap, bcs.u8().serialize(0).toBytes(), bcs.byteVector().serialize(digest).toBytes()],
    commands: [
      call('package::authorize_upgrade', [0, 1, 2].map(input)),
      { kind: 'upgrade', modules, dependencies: DEPENDENCIES, packageId, ticket: commandResult(0) },
      call('package::commit_upgrade', [input(0), commandResult(1)]),
    ],
  });
  const digest = packageDigest(modules, DEPENDENCIES);
  const otherUpgrade = await execute(upgrade(new Uint8Array(32)));
  expect(findError(otherUpgrade)).toMatchObject({
    command: 1n,
    description: expect.stringMatching(/DigestDoesNotMatch/),
  });
  const { status, published } = await execute(upgrade(digest));
  expect(status).toMatchObject({ success: true });
  expect(published?.original).toBe(packageId);
  expect(UpgradeCap.parse(findInLedger('::package::UpgradeCap').content)).toMatchObject({
    package: published?.id,
    version: '2',
  });
  const inputs = [u64(1), u64(2)];
  const oldCall = await execute({ inputs, commands: [call('shop::subtract', [input(0), input(1)])] });
  expect(oldCall.status.success).toBe(false);
  packageId = published?.id ?? '';
  expect(
    (await execute({ inputs: [u64(2), u64(1)], commands: [call('shop::subtract', [input(0), input(1)])] }))
      .status,
  ).toMatchObject({ success: true });
});
