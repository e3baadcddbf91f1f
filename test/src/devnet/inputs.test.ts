/** Inputs that the loopback node refuses before it executes a transaction. */
import { SuiGrpcClient } from '@mysten/sui/grpc';
import { Inputs, Transaction } from '@mysten/sui/transactions';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { Changes, type LedgerObject } from '../../../src/devnet/ledger.ts';
import { ChainFixture } from '../cli/sui/chain_fixture.ts';

const SOMEONE = `0x${'5'.repeat(64)}`;

let fixture: ChainFixture;
let client: SuiGrpcClient;
let coins: LedgerObject[];
beforeEach(async () => {
  fixture = await ChainFixture.start();
  client = new SuiGrpcClient({ network: 'localnet', baseUrl: fixture.node.url });
  const { ledger } = fixture.node;
  ledger.give(fixture.address, 1_000_000_000n);
  coins = ledger.coins(fixture.address).map(({ object }) => object);
});
afterEach(() => fixture.close());

async function build(add: (tx: Transaction) => void): Promise<Uint8Array<ArrayBuffer>> {
  const tx = new Transaction();
  tx.setSender(fixture.address);
  add(tx);
  return await tx.build({ client });
}

async function send(transaction: Uint8Array<ArrayBuffer>): Promise<unknown> {
  const { signature } = await fixture.admin.signTransaction(transaction);
  return await client.executeTransaction({ transaction, signatures: [signature] });
}

async function fetchReference({ id: objectId }: LedgerObject) {
  const { object } = await client.getObject({ objectId });
  return { objectId, version: object.version, digest: object.digest };
}

/** Builds a transaction without a node. The sender's first coin pays for it. */
async function buildOffline(add: (tx: Transaction) => void, budget = 10_000_000) {
  const [coin] = coins as [LedgerObject];
  const payment = [await fetchReference(coin)];
  return await build((tx) => {
    tx.setGasPrice(1000);
    tx.setGasBudget(budget);
    tx.setGasPayment(payment);
    tx.setExpiration({ None: true });
    add(tx);
  });
}

const callTimestamp = (tx: Transaction, clock: Parameters<Transaction['object']>[0]) =>
  tx.moveCall({ target: '0x2::clock::timestamp_ms', arguments: [tx.object(clock)] });

test('a missing shared object is not taken for the clock', async () => {
  const shared = { objectId: SOMEONE, initialSharedVersion: '1', mutable: false };
  const bytes = await buildOffline((tx) => callTimestamp(tx, Inputs.SharedObjectRef(shared)));
  await expect(send(bytes)).rejects.toThrow(/Could not find the referenced object/);
});

test('the clock is refused as a mutable argument', async () => {
  const shared = { objectId: '0x6', initialSharedVersion: '1', mutable: true };
  const bytes = await buildOffline((tx) => callTimestamp(tx, Inputs.SharedObjectRef(shared)));
  await expect(send(bytes)).rejects.toThrow(/immutable parameter expected/);
});

test('an owned object that is passed as a shared object is refused', async () => {
  const [, otherCoin] = coins as [LedgerObject, LedgerObject];
  const shared = { objectId: otherCoin.id, initialSharedVersion: '1', mutable: true };
  const bytes = await buildOffline((tx) =>
    tx.transferObjects([tx.object(Inputs.SharedObjectRef(shared))], SOMEONE),
  );
  await expect(send(bytes)).rejects.toThrow(/is not shared/);
});

test('an object that is passed twice, or that also pays for gas, is refused', async () => {
  const [gasCoin, otherCoin] = coins as [LedgerObject, LedgerObject];
  const sendTwice = async (object: LedgerObject, isDoubled: boolean) => {
    const reference = await fetchReference(object);
    const bytes = await buildOffline((tx) => {
      tx.transferObjects([tx.object(Inputs.ObjectRef(reference))], SOMEONE);
      // The SDK would merge two equal inputs, so a plugin adds the second one.
      tx.addBuildPlugin(async (data, _, next) => {
        const [input] = data.inputs;
        if (isDoubled && input !== undefined) data.inputs.push(structuredClone(input));
        await next();
      });
    });
    return await send(bytes);
  };
  await expect(sendTwice(otherCoin, true)).rejects.toThrow(/cannot appear more than one/);
  await expect(sendTwice(gasCoin, false)).rejects.toThrow(/cannot appear more than one/);
});

test('an object in a dynamic field, which belongs to another object, is refused', async () => {
  const { ledger } = fixture.node;
  const [, otherCoin] = coins as [LedgerObject, LedgerObject];
  const changes = new Changes(ledger, 'a child');
  changes.write({ ...otherCoin, owner: { kind: 'object', address: SOMEONE } });
  ledger.commit('a child', changes);
  await expect(build((tx) => tx.transferObjects([tx.object(otherCoin.id)], SOMEONE))).rejects.toThrow(
    /is owned by object 0x5{64}/,
  );
});

test('a budget above the balance of the coin is refused', async () => {
  const { ledger } = fixture.node;
  const [coin] = coins as [LedgerObject];
  const bytes = await buildOffline((tx) => callTimestamp(tx, '0x6'), Number(ledger.balanceOf(coin)) + 1);
  await expect(send(bytes)).rejects.toThrow(/is lower than the needed amount/);
});

test('commands may spend only the part of the gas coin that exceeds the budget', async () => {
  const { ledger } = fixture.node;
  const [coin] = coins as [LedgerObject];
  const [budget, balance] = [10_000_000, Number(ledger.balanceOf(coin))];
  const spend = (amount: number) => async () => {
    const bytes = await buildOffline((tx) => {
      const [split] = tx.splitCoins(tx.gas, [amount]);
      tx.transferObjects([split], SOMEONE);
    }, budget);
    const { signature } = await fixture.admin.signTransaction(bytes);
    const { $kind, FailedTransaction: failed } = await client.executeTransaction({
      transaction: bytes,
      signatures: [signature],
    });
    return failed?.status.error?.message ?? $kind;
  };
  expect(await spend(balance - budget + 1)()).toBe('InsufficientCoinBalance in command 0');
  const newBalance = Number(ledger.balanceOf(ledger.objects.get(coin.id) as LedgerObject));
  expect(await spend(newBalance - budget)()).toBe('Transaction');
});
