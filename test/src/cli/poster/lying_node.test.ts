/** Tests that a lying node can only delay values, and make a poster sign a few transactions. */
import { GrpcTypes } from '@mysten/sui/grpc';
import { expect, onTestFinished, test, vi } from 'vitest';
import type { LoopbackNode } from '../../../../src/devnet/node.ts';
import { type Lie, LyingNode } from '../keeper/lying_node.ts';
import { BUDGET, MINUTE, PosterFixture } from './poster_fixture.ts';

vi.setConfig({ testTimeout: 120_000 });

/** Starts a lying node that ends with the test. */
async function startLyingNode(node: LoopbackNode): Promise<LyingNode> {
  const lyingNode = await LyingNode.start(node);
  onTestFinished(() => lyingNode.close());
  return lyingNode;
}

/** Returns a lie that changes the effects of a transaction. */
const withEffects =
  (change: (effects: GrpcTypes.TransactionEffects) => void): Lie =>
  (answer) => {
    const response = GrpcTypes.GetTransactionResponse.fromBinary(answer);
    if (response.transaction?.effects) change(response.transaction.effects);
    return GrpcTypes.GetTransactionResponse.toBinary(response);
  };

test('if a node swallows transactions and claims success, the poster sends the same bytes again and raises an alert', async () => {
  const fixture = await PosterFixture.start();
  const enclave = await fixture.enclave();
  const lyingNode = await startLyingNode(fixture.chain.node);
  const poster = await fixture.poster([enclave], { content: { node: lyingNode.url } });
  lyingNode.swallows = true;
  expect(await poster.outcome()).toEqual([['sent'], []]);
  expect(await poster.outcome()).toEqual([[], ['NODE_CONTRADICTS']]);
  expect(await poster.outcome()).toEqual([[], ['NODE_CONTRADICTS']]);
  expect([new Set(lyingNode.digests).size, poster.spent(), fixture.board().writes]).toEqual([1, BUDGET, 0]);
  lyingNode.swallows = false;
  expect(await poster.outcome()).toEqual([['posted'], []]);
  expect(fixture.board().writes).toBe(1);
});

test('a poster with two nodes stops using the node that contradicts itself', async () => {
  const fixture = await PosterFixture.start();
  const enclave = await fixture.enclave();
  const { node } = fixture.chain;
  const lyingNode = await startLyingNode(node);
  const poster = await fixture.poster([enclave], { content: { node: [lyingNode.url, node.url] } });
  lyingNode.swallows = true;
  expect(await poster.outcome()).toEqual([['sent'], []]);
  expect(await poster.outcome()).toEqual([[], ['NODE_CONTRADICTS']]);
  expect(await poster.outcome()).toEqual([['posted'], []]);
  expect([fixture.board().writes, poster.spent()]).toEqual([1, BUDGET]);
});

test.each<[string, Lie]>([
  [
    'with another digest',
    withEffects((effects) => {
      effects.transactionDigest = 'Bkd7jcQDdu9EGZfBFxAeZ1PxWkGUe6ctaCsdAMrSbEqr';
    }),
  ],
  [
    'without a change of the gas coin',
    withEffects((effects) => {
      effects.changedObjects = [];
    }),
  ],
])('a poster does not believe a node that shows effects %s', async (_, lie) => {
  const fixture = await PosterFixture.start();
  const enclave = await fixture.enclave();
  const lyingNode = await startLyingNode(fixture.chain.node);
  const poster = await fixture.poster([enclave], { content: { node: lyingNode.url } });
  lyingNode.lies.set('GetTransaction', lie);
  // The coin changed, so the transaction is over, but nothing proves that it wrote the value.
  expect(await poster.outcome()).toEqual([['sent'], []]);
  expect(await poster.outcome()).toEqual([['moved'], ['COIN_MOVED']]);
});

test('a node that claims a wrong version of the coin blocks the coin for two epochs', async () => {
  const fixture = await PosterFixture.start();
  const enclave = await fixture.enclave();
  const { node } = fixture.chain;
  const poster = await fixture.poster([enclave]);
  const defaultLie = node.lie;
  node.lie = (object) => (/::coin::Coin</.test(object.type) ? { ...object, version: 1000n } : object);
  expect(await poster.outcome()).toEqual([['sent'], ['SEND_FAILED']]);
  node.lie = defaultLie;
  fixture.pass(MINUTE, enclave);
  expect(await poster.outcome()).toEqual([[], ['SEND_FAILED', 'COINS_IN_FLIGHT']]);
  expect(await poster.outcome()).toEqual([[], ['NODE_CONTRADICTS', 'SEND_FAILED', 'COINS_IN_FLIGHT']]);
  node.epoch += 2n;
  expect(await poster.outcome()).toEqual([
    ['expired', 'posted'],
    ['NODE_CONTRADICTS', 'EXPIRED'],
  ]);
});

test('a node that lies consistently makes the poster sign for no more than gas_an_hour', async () => {
  const fixture = await PosterFixture.start();
  const enclave = await fixture.enclave();
  const { node } = fixture.chain;
  const lyingNode = await startLyingNode(node);
  const content = { node: lyingNode.url, gas_an_hour: Number(3n * BUDGET) };
  const poster = await fixture.poster([enclave], { content });
  let version = 1000n;
  node.lie = (object) => (/::coin::Coin</.test(object.type) ? { ...object, version } : object);
  lyingNode.swallows = true;
  for (let round = 0; round < 8; round += 1) {
    await poster.outcome();
    // The coin seems to have changed, as if the transaction had been executed.
    version += 1n;
    fixture.pass(MINUTE, enclave);
  }
  expect([lyingNode.digests.length, lyingNode.signedMist, poster.spent()]).toEqual([
    3,
    3n * BUDGET,
    3n * BUDGET,
  ]);
  expect(fixture.board().writes).toBe(0);
});
