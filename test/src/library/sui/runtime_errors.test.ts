/**
 * Tests that a runtime error of an instruction causes a MoveRuntimeError, no matter who reports it. An abort
 * with the code 0 looks the same in some answers, but must cause a MoveAbortError.
 */
import { parseTransactionEffectsBcs, type SuiClientTypes } from '@mysten/sui/client';
import { SuiGrpcClient } from '@mysten/sui/grpc';
import { Transaction } from '@mysten/sui/transactions';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { compileProbe, SOURCES } from '../../../../scripts/check/rules/probe.ts';
import { World } from '../../../../scripts/check/rules/world.ts';
import { Chain } from '../../../../src/cli/sui/chain.ts';
import { LoopbackNode } from '../../../../src/devnet/node.ts';
import {
  buildTransaction,
  MoveRuntimeError,
  sendTransaction,
  toExecutionError,
} from '../../../../src/library/sui/index.ts';
import { executeSigned } from '../../../../src/library/sui/send.ts';
import { createRoot } from '../../../../src/testing/attestation_ca.ts';

let node: LoopbackNode;
let world: World;
let packageId: string;

beforeAll(async () => {
  node = await LoopbackNode.start(createRoot(new Date()).certificate);
  node.isFaucet = true;
  world = new World({ url: node.url, faucet: node.url });
  await world.fund();
  packageId = await world.publish(await compileProbe(SOURCES.probe));
});
afterAll(() => node.close());
beforeEach(() => {
  node.executor.isOld = false;
});

/** Builds a call of a function of `probe`, with arguments that make the function fail. */
function createFailing(name: string, budget?: number): Transaction {
  const tx = new Transaction();
  tx.setSender(world.address);
  if (budget !== undefined) tx.setGasBudget(budget);
  const values = { subtract: [1, 2], item: [2], divide: [0], narrow: [1], zero: [0] }[name] ?? [];
  tx.moveCall({
    target: `${packageId}::probe::${name}`,
    arguments: values.map((value) => tx.pure.u64(value)),
  });
  return tx;
}

/** Builds a call without a simulation by the node, and signs it. */
async function signCall(name: string) {
  const tx = createFailing(name, 100_000_000);
  tx.setGasPrice(1000);
  const { objects } = await world.client.core.listCoins({ owner: world.address });
  tx.setGasPayment(objects);
  const transaction = await tx.build();
  const { signature } = await world.key.signTransaction(transaction);
  return { transaction, signatures: [signature] };
}

async function catchError(work: Promise<unknown>): Promise<unknown> {
  return await work.then(
    () => undefined,
    (error: unknown) => error,
  );
}

const catchBuildError = (name: string, budget?: number) =>
  catchError(buildTransaction(world.client, createFailing(name, budget)));

/** Returns the error that a page reads in the effects from a wallet. */
async function readWalletError(name: string): Promise<unknown> {
  const { FailedTransaction: transaction } = await executeSigned(world.client, {
    ...(await signCall(name)),
    include: { effects: true } as const,
  });
  const { status } = parseTransactionEffectsBcs(transaction?.effects.bcs ?? new Uint8Array());
  return toExecutionError(status.error as SuiClientTypes.ExecutionError);
}

/** Returns the error in the form of a GraphQL service. */
function readGraphqlError(name: string): unknown {
  const location = `${packageId.slice(2)}::probe::${name} (function index 3) at offset 2`;
  const message = `Error in 1st command, Move Primitive Runtime Error. Location: ${location}. Arithmetic error, stack overflow, max value depth, etc.`;
  return toExecutionError({ $kind: 'Unknown', message, Unknown: null });
}

const runCommand = (name: string, values = {}) => {
  const options = { 'rpc-url': node.url, ...values };
  const chain = new Chain(options, { SUI_PRIVATE_KEY: world.key.getSecretKey() });
  return catchError(chain.submit(createFailing(name), { title: 'fail', fields: {} }));
};

const REPORTS: readonly (readonly [string, (name: string) => Promise<unknown> | unknown])[] = [
  ['executed', async (name) => catchError(sendTransaction(world.client, await signCall(name)))],
  ['read in the effects of a wallet', readWalletError],
  ['simulated', (name) => catchBuildError(name)],
  ['simulated with a budget', (name) => catchBuildError(name, 100_000_000)],
  [
    'estimated by Sui 1.63',
    (name) => {
      node.executor.isOld = true;
      return catchBuildError(name);
    },
  ],
  ['sent by a command', (name) => runCommand(name)],
  ['sent by a command with a budget', (name) => runCommand(name, { 'gas-budget': 100_000_000 })],
];

describe.each([
  ['subtract', 'an overflow'],
  ['item', 'an index out of bounds'],
  ['divide', 'a division by zero'],
  ['narrow', 'a cast that does not fit'],
])('the Move function %s, with %s,', (name) => {
  test.each([...REPORTS, ['reported by GraphQL', readGraphqlError] as const])(
    'fails with a MoveRuntimeError: %s',
    async (_, report) => {
      const error = await report(name);
      expect(error).toBeInstanceOf(MoveRuntimeError);
      expect(error).toMatchObject({
        code: 'SUI_MOVE_RUNTIME',
        // If the effects are in BCS, the client passes on the name of the failure, but not its place.
        location: report === readWalletError ? 'an unknown place' : `${packageId}::probe::${name}`,
        message: expect.stringContaining('overflow'),
      });
    },
  );
});

test.each(REPORTS)('an abort with the code 0 is reported as an abort: %s', async (_, report) => {
  expect(await report('zero')).toMatchObject({
    code: 'SUI_MOVE_ABORT',
    abort: 'probe::0',
    location: `${packageId}::probe::zero`,
  });
});

test('a place is not invented if it is missing, or is not a place in Move', () => {
  for (const message of [
    'MovePrimitiveRuntimeError(MoveLocationOpt(None)) in command 0',
    'MovePrimitiveRuntimeError(null)',
    'MovePrimitiveRuntimeError({"module":{"address":"0x2","name":"a\\u001b[2J"}})',
    'Move Primitive Runtime Error. Location: UNKNOWN. Arithmetic error, stack overflow, etc.',
  ]) {
    expect(toExecutionError({ $kind: 'Unknown', message, Unknown: null })).toMatchObject({
      code: 'SUI_MOVE_RUNTIME',
      location: 'an unknown place',
    });
  }
});

test('a text that merely contains the name of a runtime error is another failure', () => {
  for (const message of ['an error like MovePrimitiveRuntimeError(null)', 'MovePrimitiveRuntimeErrors']) {
    expect(toExecutionError({ $kind: 'Unknown', message, Unknown: null })).toMatchObject({
      code: 'SUI_EXECUTION',
    });
  }
});

test('the error of the first answer is thrown if the node does not answer a second time', async () => {
  const silent = new SuiGrpcClient({ network: 'localnet', baseUrl: node.url });
  silent.core.simulateTransaction = () => Promise.reject(new Error('the connection failed'));
  expect(await catchError(buildTransaction(silent, createFailing('zero')))).toMatchObject({
    code: 'SUI_MOVE_ABORT',
  });
});
