/** Cases of arguments that a network accepts or refuses. */
import type { Transaction, TransactionArgument } from '@mysten/sui/transactions';
import { type Call, type Case, object } from './case.ts';

const [LAST_SIZE, FIRST_REFUSED] = [16_383, 16_384];

/** Creates a pure input of the given size: a vector with its length before it. */
function createVector(tx: Transaction, bytes: number) {
  return tx.pure.vector('u8', new Array(bytes - 2 - (bytes > FIRST_REFUSED + 1 ? 1 : 0)).fill(1));
}

/**
 * Calls a function with an argument that the SDK itself would refuse: builds a valid call, and then replaces
 * its argument.
 */
function callWith(tx: Transaction, call: Call, argument: TransactionArgument): void {
  call(tx, 'is', [tx.pure.u64(1), tx.pure.u64(1)]);
  tx.addBuildPlugin(async (data, _, next) => {
    const [first] = data.commands;
    if (first?.MoveCall) first.MoveCall.arguments[0] = argument as never;
    await next();
  });
}

export const ARGUMENT_CASES: readonly Case[] = [
  {
    name: 'an object of another type',
    outcome: 'TypeMismatch at 0.0',
    needs: ['pinned'],
    build: (tx, { call }, [id]) => call(tx, 'read', [object(tx, id)]),
  },
  {
    name: 'an input that does not exist',
    outcome: /^(IndexOutOfBounds at 0\.0|refused)/,
    build: (tx, { call }) => callWith(tx, call, { $kind: 'Input', Input: 9 }),
  },
  {
    name: 'the result of a later command',
    outcome: /^(IndexOutOfBounds at 0\.0|refused)/,
    build: (tx, { call }) => callWith(tx, call, { $kind: 'Result', Result: 3 }),
  },
  {
    name: 'two results of a command as one argument',
    outcome: 'InvalidResultArity at 1.0',
    build(tx, { call }) {
      call(tx, 'two');
      call(tx, 'take', [{ $kind: 'Result', Result: 0 }]);
    },
  },
  {
    name: 'the third result of a command with two results',
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
    name: 'an option with two values',
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
    build: (tx, { call }) => call(tx, 'bytes', [createVector(tx, LAST_SIZE)]),
  },
  {
    name: 'an argument one byte larger than the largest',
    outcome: /^refused: .*maximum pure argument size is 16384/,
    build: (tx, { call }) => call(tx, 'bytes', [createVector(tx, FIRST_REFUSED)]),
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
    name: 'a type that does not exist',
    outcome: 'TypeNotFound of type 0',
    build: (tx, { call, packageId }) => call(tx, 'generic', [], [`${packageId}::probe::Nothing`]),
  },
  {
    name: 'a type without a required ability',
    outcome: 'ConstraintNotSatisfied of type 0',
    build: (tx, { call, packageId }) => call(tx, 'generic', [], [`${packageId}::probe::Noted`]),
  },
  {
    name: 'a function that does not exist',
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
];
