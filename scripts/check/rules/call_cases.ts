/** Cases of entry functions that are not public, of coins, of limits, and of failures in code. */
import { type Case, object } from './case.ts';

export const CALL_CASES: readonly Case[] = [
  {
    name: 'an entry function',
    outcome: 'done',
    build: (tx, { call }) => call(tx, 'enter', [tx.pure.u64(1)]),
  },
  {
    name: 'an entry function with a clock and a value that is not shared yet',
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
    name: 'an entry function with a clock beside a value that was shared before',
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
    name: 'an entry function with a value that a later command must consume',
    outcome: 'InvalidArgumentToPrivateEntryFunction at 1.0',
    build(tx, { call }) {
      const pinned = call(tx, 'pinned', [tx.pure.u64(1)]);
      call(tx, 'enter_pinned', [pinned]);
      call(tx, 'share_pinned', [pinned]);
    },
  },
  {
    name: 'an entry function that consumes a value without drop',
    outcome: 'done',
    build: (tx, { call }) => call(tx, 'enter_potato', [call(tx, 'potato', [tx.pure.u64(1)])]),
  },
  {
    name: 'an entry function with the bytes from which a value without drop was made',
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
    name: 'an entry function with an argument of an earlier call that consumed a shared object',
    outcome: 'InvalidArgumentToPrivateEntryFunction at 1.0',
    needs: ['shared', 'thing'],
    build(tx, { call }, [shared, thing]) {
      call(tx, 'absorb', [object(tx, thing), object(tx, shared)]);
      call(tx, 'enter_thing', [object(tx, thing)]);
    },
  },
  {
    name: 'an entry function after a call that consumed a shared object without its argument',
    outcome: 'done',
    needs: ['shared', 'thing'],
    effects: ['deleted', 'changed'],
    build(tx, { call }, [shared, thing]) {
      call(tx, 'take', [object(tx, shared)]);
      call(tx, 'enter_thing', [object(tx, thing)]);
    },
  },
  {
    name: 'a split of more than a coin has',
    outcome: 'InsufficientCoinBalance',
    build(tx, { sender }) {
      const [coin] = tx.splitCoins(tx.gas, [tx.pure.u64(2n ** 63n)]);
      tx.transferObjects([coin], sender);
    },
  },
  {
    name: 'the gas coin, by value',
    outcome: 'InvalidGasCoinUsage at 1.1',
    build(tx) {
      const [coin] = tx.splitCoins(tx.gas, [tx.pure.u64(1)]);
      tx.mergeCoins(coin, [tx.gas]);
    },
  },
  {
    name: 'a merge of a coin into itself',
    outcome: 'CannotMoveBorrowedValue at 1.1',
    build(tx) {
      const [coin] = tx.splitCoins(tx.gas, [tx.pure.u64(1)]);
      tx.mergeCoins(coin, [coin]);
    },
  },
  {
    name: 'a transfer of an object that was made with a random number',
    outcome: 'done',
    build(tx, { call, sender }) {
      tx.transferObjects([call(tx, 'draw', [tx.object.random()])], sender);
    },
  },
  {
    name: 'a call after a random number',
    outcome: /^refused: .*Commands following a command with Random/,
    build(tx, { call, sender }) {
      const thing = call(tx, 'draw', [tx.object.random()]);
      call(tx, 'read', [thing]);
      tx.transferObjects([thing], sender);
    },
  },
  {
    name: 'the maximum number of commands',
    outcome: 'done',
    build(tx, { call }) {
      const n = tx.pure.u64(1);
      for (let count = 0; count < 1023; count += 1) call(tx, 'is', [n, n]);
    },
  },
  {
    name: 'one command more than the maximum',
    outcome: /^refused: .*maximum commands in a programmable transaction is 1024/,
    build(tx, { call }) {
      const n = tx.pure.u64(1);
      for (let count = 0; count < 1024; count += 1) call(tx, 'is', [n, n]);
    },
  },
  { name: 'the maximum number of events', outcome: 'done', build: buildShout(1024) },
  { name: 'one event more than the maximum', outcome: 'abort event::emit 0', build: buildShout(1025) },
  {
    name: 'an overflow',
    outcome: 'abort probe::subtract 0',
    build: (tx, { call }) => call(tx, 'subtract', [tx.pure.u64(1), tx.pure.u64(2)]),
  },
  {
    name: 'an index outside a vector',
    outcome: 'abort probe::item 0',
    build: (tx, { call }) => call(tx, 'item', [tx.pure.u64(2)]),
  },
  {
    name: 'an abort with 0',
    outcome: 'abort probe::zero 0',
    build: (tx, { call }) => call(tx, 'zero', [tx.pure.u64(0)]),
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

function buildShout(times: number): Case['build'] {
  return (tx, { call }) => call(tx, 'shout', [tx.pure.u64(times)]);
}
