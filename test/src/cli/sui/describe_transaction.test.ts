/** Tests the text that a dry run prints about a transaction. */
import { Transaction } from '@mysten/sui/transactions';
import { expect, test } from 'vitest';
import { describeTransaction } from '../../../../src/cli/sui/describe_transaction.ts';

const id = (digit: string) => `0x${digit.repeat(64)}`;

test('describeTransaction writes each command on one line, with its arguments', () => {
  const tx = new Transaction();
  const [coin] = tx.splitCoins(tx.gas, [7n]);
  const returnedValue = tx.moveCall({
    target: `${id('a')}::module::function`,
    typeArguments: [`${id('a')}::module::T`],
    arguments: [
      tx.object(id('b')),
      tx.pure.string('a text'),
      tx.pure.u64(1_744_683_300_000n),
      tx.pure.bool(true),
      tx.pure.vector('u8', [1, 2, 3, 0xff]),
      tx.pure.address(id('c')),
      tx.object.clock(),
      tx.pure.vector('u8', Array(200).fill(1)),
    ],
  });
  tx.mergeCoins(tx.gas, [tx.object(id('d'))]);
  tx.makeMoveVec({ elements: [tx.object(id('e'))] });
  tx.publish({ modules: [[1], [2]], dependencies: [id('1')] });
  tx.upgrade({ modules: [[1]], dependencies: [id('1')], package: id('a'), ticket: returnedValue });
  tx.transferObjects([coin as NonNullable<typeof coin>, returnedValue], id('f'));
  expect(describeTransaction(tx)).toEqual([
    'SplitCoins(gas coin) into 7',
    `MoveCall ${id('a')}::module::function<${id('a')}::module::T>(${id('b')}, "a text", 1744683300000, 1, 0x010203ff, ${id('c')}, 0x${'6'.padStart(64, '0')}, 202 bytes)`,
    `MergeCoins(${id('d')}) into gas coin`,
    `MakeMoveVec(${id('e')})`,
    `Publish(2 modules) with ${id('1')}`,
    `Upgrade(1 module) of ${id('a')} by result 1, with ${id('1')}`,
    `TransferObjects(result 0.0, result 1) to ${id('f')}`,
  ]);
});

test.each([
  ['a text of seven letters, which is as long as a u64', 'weather', '"weather"'],
  ['a text that would control the terminal', '\u001b[2J', '0x1b5b324a'],
  ['an empty text', '', '0'],
])('describeTransaction shows %s', (_, value, described) => {
  const tx = new Transaction();
  tx.moveCall({ target: `${id('a')}::m::f`, arguments: [tx.pure.string(value)] });
  expect(describeTransaction(tx)).toEqual([`MoveCall ${id('a')}::m::f(${described})`]);
});
