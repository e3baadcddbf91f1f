/** Transactions that a network accepts and refuses, with their outcomes (`outcomeOf`), by the rule that they try. */
import type { Transaction, TransactionArgument } from '@mysten/sui/transactions';
import { createdIn, type Sent, type World } from './world.ts';

/** What the cases have at hand: a package, objects of an account, and shared ones. */
export interface Probe {
  readonly world: World;
  readonly packageId: string;
  readonly sender: string;
  /** Calls a function of the probe. */
  readonly call: Call;
}

type Call = (
  tx: Transaction,
  name: string,
  args?: readonly TransactionArgument[],
  types?: readonly string[],
) => ReturnType<Transaction['moveCall']>;

export interface Case {
  readonly name: string;
  readonly outcome: string | RegExp;
  /** Builds the transaction. Objects that it needs are made by `needs`. */
  build(tx: Transaction, probe: Probe, ids: readonly string[]): void;
  /** Of each: what it is, and therefore whose. */
  readonly needs?: readonly ('thing' | 'shared' | 'frozen' | 'pinned')[];
  /** What the effects have of the objects that it needs. */
  readonly effects?: readonly ('deleted' | 'gone' | 'changed' | 'untouched')[];
}

export function probeOf(world: World, packageId: string): Probe {
  const call: Call = (tx, name, args = [], types = []) =>
    tx.moveCall({
      target: `${packageId}::probe::${name}`,
      arguments: [...args],
      typeArguments: [...types],
    });
  return { world, packageId, sender: world.address, call };
}

/** Makes what a case needs. */
export async function makeObjects(
  { world, call, sender }: Probe,
  needs: NonNullable<Case['needs']>,
): Promise<string[]> {
  const ids: string[] = [];
  for (const need of needs) {
    const made = await world.send((tx) => {
      const object = call(tx, need === 'pinned' ? 'pinned' : 'thing', [tx.pure.u64(5)]);
      if (need === 'thing') tx.transferObjects([object], sender);
      if (need === 'shared') call(tx, 'share', [object]);
      if (need === 'frozen') call(tx, 'freeze_it', [object]);
      if (need === 'pinned') call(tx, 'share_pinned', [object]);
    });
    if (made.outcome !== 'done') throw new Error(`making a ${need} object ended: ${made.outcome}`);
    ids.push(createdIn(made, need === 'pinned' ? '::probe::Pinned' : '::probe::Thing'));
  }
  return ids;
}

/** What the effects of a transaction say of an object. */
export function effectOn(id: string, { changed }: Sent): NonNullable<Case['effects']>[number] {
  const change = changed.find(({ objectId }) => objectId === id);
  if (change === undefined) return 'untouched';
  if (change.outputState !== 'DoesNotExist') return 'changed';
  return change.idOperation === 'Deleted' ? 'deleted' : 'gone';
}

const object = (tx: Transaction, id = '') => tx.object(id);
const [LAST_SIZE, FIRST_REFUSED] = [16_383, 16_384];

/** A pure input of so many bytes: a vector with its length before it. */
function vectorOf(tx: Transaction, bytes: number) {
  return tx.pure.vector('u8', new Array(bytes - 2 - (bytes > FIRST_REFUSED + 1 ? 1 : 0)).fill(1));
}

/** The SDK itself refuses such an argument: it takes the place of another later. */
function callWith(tx: Transaction, call: Call, argument: TransactionArgument): void {
  call(tx, 'is', [tx.pure.u64(1), tx.pure.u64(1)]);
  tx.addBuildPlugin(async (data, _, next) => {
    const [first] = data.commands;
    if (first?.MoveCall) first.MoveCall.arguments[0] = argument as never;
    await next();
  });
}

export const CASES: readonly Case[] = [
  // Arguments.
  {
    name: 'an object of another type',
    outcome: 'TypeMismatch at 0.0',
    needs: ['pinned'],
    build: (tx, { call }, [id]) => call(tx, 'read', [object(tx, id)]),
  },
  {
    name: 'an input that is not there',
    outcome: /^(IndexOutOfBounds at 0\.0|refused)/,
    build: (tx, { call }) => callWith(tx, call, { $kind: 'Input', Input: 9 }),
  },
  {
    name: 'the result of a later command',
    outcome: /^(IndexOutOfBounds at 0\.0|refused)/,
    build: (tx, { call }) => callWith(tx, call, { $kind: 'Result', Result: 3 }),
  },
  {
    name: 'a result of several as one',
    outcome: 'InvalidResultArity at 1.0',
    build(tx, { call }) {
      call(tx, 'two');
      call(tx, 'take', [{ $kind: 'Result', Result: 0 }]);
    },
  },
  {
    name: 'a third result of two',
    outcome: 'SecondaryIndexOutOfBounds at 1.0',
    build(tx, { call }) {
      call(tx, 'two');
      call(tx, 'take', [{ $kind: 'NestedResult', NestedResult: [0, 2] }]);
    },
  },
  {
    name: 'bytes as an object',
    outcome: 'InvalidUsageOfPureArg at 0.0',
    build: (tx, { call }) => call(tx, 'read', [tx.pure.u64(1)]),
  },
  {
    name: 'bytes of another length',
    outcome: 'InvalidBCSBytes at 0.0',
    build: (tx, { call }) => call(tx, 'is', [tx.pure.u8(1), tx.pure.u64(1)]),
  },
  {
    name: 'bytes in a vector that are not UTF-8',
    outcome: 'InvalidBCSBytes at 0.0',
    build: (tx, { call }) => call(tx, 'texts', [tx.pure(Uint8Array.of(2, 1, 0x61, 1, 0xff))]),
  },
  {
    name: 'bytes in an option that are not UTF-8',
    outcome: 'InvalidBCSBytes at 0.0',
    build: (tx, { call }) => call(tx, 'maybe', [tx.pure(Uint8Array.of(1, 1, 0xff))]),
  },
  {
    name: 'an option of two',
    outcome: 'InvalidBCSBytes at 0.0',
    build: (tx, { call }) => call(tx, 'maybe', [tx.pure(Uint8Array.of(2, 1, 0x61, 1, 0x61))]),
  },
  {
    name: 'strings in a vector and in an option',
    outcome: 'done',
    build(tx, { call }) {
      call(tx, 'texts', [tx.pure.vector('string', ['a', 'ü'])]);
      call(tx, 'maybe', [tx.pure.option('string', 'ü')]);
    },
  },
  {
    name: 'the largest argument',
    outcome: 'done',
    build: (tx, { call }) => call(tx, 'bytes', [vectorOf(tx, LAST_SIZE)]),
  },
  {
    name: 'an argument of a byte more',
    outcome: /^refused: .*maximum pure argument size is 16384/,
    build: (tx, { call }) => call(tx, 'bytes', [vectorOf(tx, FIRST_REFUSED)]),
  },
  {
    name: 'a change of bytes that a later command sees',
    outcome: 'done',
    build(tx, { call }) {
      const n = tx.pure.u64(5);
      call(tx, 'bump', [n]);
      call(tx, 'is', [n, tx.pure.u64(6)]);
    },
  },
  {
    name: 'too few arguments',
    outcome: 'ArityMismatch',
    build: (tx, { call }) => call(tx, 'is', [tx.pure.u64(1)]),
  },
  {
    name: 'too few type arguments',
    outcome: 'TypeArityMismatch',
    build: (tx, { call }) => call(tx, 'generic'),
  },
  {
    name: 'a type that is not there',
    outcome: 'TypeNotFound of type 0',
    build: (tx, { call, packageId }) => call(tx, 'generic', [], [`${packageId}::probe::Nothing`]),
  },
  {
    name: 'a type without the ability',
    outcome: 'ConstraintNotSatisfied of type 0',
    build: (tx, { call, packageId }) => call(tx, 'generic', [], [`${packageId}::probe::Noted`]),
  },
  {
    name: 'a function that is not there',
    outcome: 'FunctionNotFound',
    build: (tx, { call }) => call(tx, 'nothing'),
  },
  {
    name: 'a private function',
    outcome: 'NonEntryFunctionInvoked',
    build: (tx, { call }) => call(tx, 'hidden'),
  },
  {
    name: 'a function that returns a reference',
    outcome: 'InvalidPublicFunctionReturnType',
    needs: ['thing'],
    build: (tx, { call }, [id]) => call(tx, 'peek', [object(tx, id)]),
  },
  {
    name: 'a later command is wrong, and the first would abort',
    outcome: 'TypeMismatch at 1.0',
    needs: ['pinned'],
    build(tx, { call }, [id]) {
      call(tx, 'coded', [tx.pure.u64(0)]);
      call(tx, 'read', [object(tx, id)]);
    },
  },
  // Values.
  {
    name: 'one object as &mut and as &',
    outcome: 'InvalidReferenceArgument at 0.0',
    needs: ['thing'],
    build: (tx, { call }, [id]) => call(tx, 'both', [object(tx, id), object(tx, id)]),
  },
  {
    name: 'one object twice as &mut',
    outcome: 'InvalidReferenceArgument at 0.0',
    needs: ['thing'],
    build: (tx, { call }, [id]) => call(tx, 'swap', [object(tx, id), object(tx, id)]),
  },
  {
    name: 'one object twice as &',
    outcome: 'done',
    needs: ['thing'],
    effects: ['changed'],
    build: (tx, { call }, [id]) => call(tx, 'look', [object(tx, id), object(tx, id)]),
  },
  {
    name: 'an object by value that is borrowed',
    outcome: 'CannotMoveBorrowedValue at 0.1',
    needs: ['thing'],
    build: (tx, { call }, [id]) => call(tx, 'absorb', [object(tx, id), object(tx, id)]),
  },
  {
    name: 'an object that is gone',
    outcome: 'ArgumentWithoutValue at 0.1',
    needs: ['thing'],
    build: (tx, { call }, [id]) => call(tx, 'take_then_read', [object(tx, id), object(tx, id)]),
  },
  {
    name: 'an object that an earlier command took',
    outcome: 'ArgumentWithoutValue at 1.0',
    needs: ['thing'],
    build(tx, { call }, [id]) {
      call(tx, 'take', [object(tx, id)]);
      call(tx, 'read', [object(tx, id)]);
    },
  },
  {
    name: 'a value that is left',
    outcome: 'UnusedValueWithoutDrop',
    build: (tx, { call }) => call(tx, 'thing', [tx.pure.u64(1)]),
  },
  {
    name: 'a vector of objects',
    outcome: 'done',
    needs: ['thing', 'thing'],
    effects: ['deleted', 'deleted'],
    build: (tx, { call }, ids) =>
      call(tx, 'take_all', [tx.makeMoveVec({ elements: ids.map((id) => object(tx, id)) })]),
  },
  {
    name: 'a vector of bytes without a type',
    outcome: 'InvalidMakeMoveVecNonObjectArgument at 0.0',
    build: (tx) => tx.makeMoveVec({ elements: [tx.pure.u64(1)] }),
  },
  {
    name: 'a transfer of an object without store',
    outcome: 'InvalidTransferObject at 1.0',
    build(tx, { call, sender }) {
      tx.transferObjects([call(tx, 'pinned', [tx.pure.u64(1)])], sender);
    },
  },
  {
    name: 'a transfer of nothing',
    outcome: /^refused: .*cannot have empty arguments/,
    build: (tx, { sender }) => tx.transferObjects([], sender),
  },
  // Objects.
  {
    name: 'a shared object, transferred',
    outcome: 'SharedObjectOperationNotAllowed',
    needs: ['shared'],
    build: (tx, { sender }, [id]) => tx.transferObjects([object(tx, id)], sender),
  },
  {
    name: 'a shared object, frozen',
    outcome: 'SharedObjectOperationNotAllowed',
    needs: ['shared'],
    build: (tx, { call }, [id]) => call(tx, 'freeze_it', [object(tx, id)]),
  },
  {
    name: 'a shared object, wrapped',
    outcome: 'SharedObjectOperationNotAllowed',
    needs: ['shared'],
    build: (tx, { call, sender }, [id]) => tx.transferObjects([call(tx, 'wrap', [object(tx, id)])], sender),
  },
  {
    name: 'a shared object, shared again',
    outcome: 'done',
    needs: ['shared'],
    effects: ['changed'],
    build: (tx, { call }, [id]) => call(tx, 'share', [object(tx, id)]),
  },
  {
    name: 'a shared object, deleted',
    outcome: 'done',
    needs: ['shared'],
    effects: ['deleted'],
    build: (tx, { call }, [id]) => call(tx, 'take', [object(tx, id)]),
  },
  {
    name: 'an owned object, shared',
    outcome: 'abort transfer::share_object_impl 0',
    needs: ['thing'],
    build: (tx, { call }, [id]) => call(tx, 'share', [object(tx, id)]),
  },
  {
    name: 'a frozen object, changed',
    outcome: 'InvalidObjectByMutRef at 0.0',
    needs: ['frozen'],
    build: (tx, { call }, [id]) => call(tx, 'write', [object(tx, id), tx.pure.u64(1)]),
  },
  {
    name: 'a frozen object, taken',
    outcome: 'InvalidObjectByValue at 0.0',
    needs: ['frozen'],
    build: (tx, { call }, [id]) => call(tx, 'take', [object(tx, id)]),
  },
  {
    name: 'a frozen object, read',
    outcome: 'done',
    needs: ['frozen'],
    effects: ['untouched'],
    build: (tx, { call }, [id]) => call(tx, 'read', [object(tx, id)]),
  },
  {
    name: 'a shared object, read: the node resolves it as immutable',
    outcome: 'done',
    needs: ['shared'],
    effects: ['untouched'],
    build: (tx, { call }, [id]) => call(tx, 'read', [object(tx, id)]),
  },
  {
    name: 'a shared object, changed',
    outcome: 'done',
    needs: ['shared'],
    effects: ['changed'],
    build: (tx, { call }, [id]) => call(tx, 'write', [object(tx, id), tx.pure.u64(1)]),
  },
  {
    name: 'a shared object as the transaction does not change it, changed',
    outcome: 'InvalidObjectByMutRef at 0.0',
    needs: ['shared'],
    build(tx, { call }, [id = '']) {
      tx.addBuildPlugin(async (data, _, next) => {
        await next();
        for (const input of data.inputs) {
          const shared = input.Object?.SharedObject;
          if (shared?.objectId === id) Object.assign(shared, { mutable: false });
        }
      });
      call(tx, 'write', [object(tx, id), tx.pure.u64(1)]);
    },
  },
  {
    name: 'the clock by its id',
    outcome: 'done',
    build: (tx, { call }) => call(tx, 'enter_clock', [tx.object('0x6')]),
  },
  {
    name: 'an object that is only read',
    outcome: 'done',
    needs: ['thing'],
    effects: ['changed'],
    build: (tx, { call }, [id]) => call(tx, 'read', [object(tx, id)]),
  },
  {
    name: 'an object, wrapped',
    outcome: 'done',
    needs: ['thing'],
    effects: ['gone'],
    build: (tx, { call, sender }, [id]) => tx.transferObjects([call(tx, 'wrap', [object(tx, id)])], sender),
  },
  {
    name: 'an object, wrapped and out again',
    outcome: 'done',
    needs: ['thing'],
    effects: ['changed'],
    build: (tx, { call, sender }, [id]) =>
      tx.transferObjects([call(tx, 'unwrap', [call(tx, 'wrap', [object(tx, id)])])], sender),
  },
  // Entry functions that are not public.
  {
    name: 'an entry function',
    outcome: 'done',
    build: (tx, { call }) => call(tx, 'enter', [tx.pure.u64(1)]),
  },
  {
    name: 'an entry function with a clock beside a value that is not shared yet',
    outcome: 'InvalidArgumentToPrivateEntryFunction at 2.0',
    build(tx, { call }) {
      const clock = tx.object.clock();
      const pinned = call(tx, 'pinned', [tx.pure.u64(1)]);
      call(tx, 'join', [pinned, clock]);
      call(tx, 'enter_clock', [clock]);
      call(tx, 'share_pinned', [pinned]);
    },
  },
  {
    name: 'an entry function with the clock first',
    outcome: 'done',
    build(tx, { call }) {
      const clock = tx.object.clock();
      const pinned = call(tx, 'pinned', [tx.pure.u64(1)]);
      call(tx, 'enter_clock', [clock]);
      call(tx, 'join', [pinned, clock]);
      call(tx, 'share_pinned', [pinned]);
    },
  },
  {
    name: 'an entry function with a clock beside a value that is shared by then',
    outcome: 'done',
    build(tx, { call }) {
      const clock = tx.object.clock();
      const pinned = call(tx, 'pinned', [tx.pure.u64(1)]);
      call(tx, 'join', [pinned, clock]);
      call(tx, 'share_pinned', [pinned]);
      call(tx, 'enter_clock', [clock]);
    },
  },
  {
    name: 'an entry function with a value that has to be got rid of',
    outcome: 'InvalidArgumentToPrivateEntryFunction at 1.0',
    build(tx, { call }) {
      const pinned = call(tx, 'pinned', [tx.pure.u64(1)]);
      call(tx, 'enter_pinned', [pinned]);
      call(tx, 'share_pinned', [pinned]);
    },
  },
  {
    name: 'an entry function that gets rid of it',
    outcome: 'done',
    build: (tx, { call }) => call(tx, 'enter_potato', [call(tx, 'potato', [tx.pure.u64(1)])]),
  },
  {
    name: 'an entry function with bytes of another potato',
    outcome: 'InvalidArgumentToPrivateEntryFunction at 1.0',
    build(tx, { call }) {
      const n = tx.pure.u64(1);
      const potato = call(tx, 'potato', [n]);
      call(tx, 'enter', [n]);
      call(tx, 'eat', [potato]);
    },
  },
  {
    name: 'an entry function with a new object that has store',
    outcome: 'done',
    build(tx, { call, sender }) {
      const thing = call(tx, 'thing', [tx.pure.u64(1)]);
      call(tx, 'enter_thing', [thing]);
      tx.transferObjects([thing], sender);
    },
  },
  {
    name: 'an entry function after a shared object was taken with its argument',
    outcome: 'InvalidArgumentToPrivateEntryFunction at 1.0',
    needs: ['shared', 'thing'],
    build(tx, { call }, [shared, thing]) {
      call(tx, 'absorb', [object(tx, thing), object(tx, shared)]);
      call(tx, 'enter_thing', [object(tx, thing)]);
    },
  },
  {
    name: 'an entry function after another shared object was taken',
    outcome: 'done',
    needs: ['shared', 'thing'],
    effects: ['deleted', 'changed'],
    build(tx, { call }, [shared, thing]) {
      call(tx, 'take', [object(tx, shared)]);
      call(tx, 'enter_thing', [object(tx, thing)]);
    },
  },
  // Coins.
  {
    name: 'more than a coin has',
    outcome: 'InsufficientCoinBalance',
    build(tx, { sender }) {
      const [coin] = tx.splitCoins(tx.gas, [tx.pure.u64(2n ** 63n)]);
      tx.transferObjects([coin], sender);
    },
  },
  {
    name: 'the coin that pays, by value',
    outcome: 'InvalidGasCoinUsage at 1.1',
    build(tx) {
      const [coin] = tx.splitCoins(tx.gas, [tx.pure.u64(1)]);
      tx.mergeCoins(coin, [tx.gas]);
    },
  },
  {
    name: 'a coin into itself',
    outcome: 'CannotMoveBorrowedValue at 1.1',
    build(tx) {
      const [coin] = tx.splitCoins(tx.gas, [tx.pure.u64(1)]);
      tx.mergeCoins(coin, [coin]);
    },
  },
  // Limits, and failures of code.
  { name: 'as many events as there may be', outcome: 'done', build: shout(1024) },
  { name: 'an event more', outcome: 'abort event::emit 0', build: shout(1025) },
  {
    name: 'an overflow',
    outcome: 'abort probe::subtract 0',
    build: (tx, { call }) => call(tx, 'subtract', [tx.pure.u64(1), tx.pure.u64(2)]),
  },
  {
    name: 'an index that is not there',
    outcome: 'abort probe::item 0',
    build: (tx, { call }) => call(tx, 'item', [tx.pure.u64(2)]),
  },
  {
    name: 'an assertion without a code',
    outcome: 'abort probe::bare assert',
    build: (tx, { call }) => call(tx, 'bare', [tx.pure.u64(0)]),
  },
  {
    name: 'an assertion with a code',
    outcome: 'abort probe::coded 12',
    build: (tx, { call }) => call(tx, 'coded', [tx.pure.u64(0)]),
  },
  {
    name: 'an assertion with a named error',
    outcome: /^abort probe::named (EEmpty|assert)$/,
    build: (tx, { call }) => call(tx, 'named', [tx.pure.u64(0)]),
  },
];

function shout(times: number): Case['build'] {
  return (tx, { call }) => call(tx, 'shout', [tx.pure.u64(times)]);
}
