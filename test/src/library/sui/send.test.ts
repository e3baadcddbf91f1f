/** Tests the waits of `sendTransaction`, against a node whose reads lag behind execution. */
import { SuiGraphQLClient } from '@mysten/sui/graphql';
import { SuiGrpcClient } from '@mysten/sui/grpc';
import { Transaction, TransactionDataBuilder } from '@mysten/sui/transactions';
import { toBase58 } from '@mysten/sui/utils';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { mayHaveExecuted } from '../../../../src/library/client/index.ts';
import {
  applicationType,
  createEnclaveConfig,
  NotVisibleError,
  parsePcrs,
  readConfig,
  type SignedTransaction,
  sendTransaction,
  toSuiError,
  UnknownOutcomeError,
} from '../../../../src/library/sui/index.ts';
import { listObjectIds } from '../../../../src/library/sui/inputs.ts';
import { ChainFixture, PACKAGE } from '../../cli/sui/chain_fixture.ts';

const DIGEST = toBase58(new Uint8Array(32).fill(5));

let fixture: ChainFixture;
let client: SuiGrpcClient;
beforeEach(async () => {
  fixture = await ChainFixture.start();
  client = new SuiGrpcClient({ network: 'localnet', baseUrl: fixture.node.url });
});
afterEach(() => fixture.close());

type Options = Pick<SignedTransaction, 'waitMs' | 'lookUpMs' | 'signal'>;

async function sign(tx: Transaction) {
  tx.setSender(fixture.address);
  const transaction = await tx.build({ client }).catch((error: unknown) => {
    throw toSuiError(error);
  });
  const { signature } = await fixture.admin.signTransaction(transaction);
  return { transaction, signatures: [signature], include: { effects: true } as const };
}

async function send(tx: Transaction, options: Options = {}) {
  return await sendTransaction(client, { ...(await sign(tx)), ...options });
}

/** Creates a config. @returns its id */
async function createConfig(options: Options = {}): Promise<string> {
  const tx = new Transaction();
  createEnclaveConfig(tx, {
    enclavePackage: PACKAGE,
    application: applicationType(PACKAGE, 'weather', 'WEATHER'),
    capId: fixture.publish(),
    name: 'weather',
    image: parsePcrs(fixture.nsm.pcrsFile()),
  });
  const { effects } = await send(tx, options);
  const created = effects.changedObjects.find(({ idOperation }) => idOperation === 'Created');
  return created?.objectId ?? '';
}

const countExecuted = () => fixture.node.ledger.executed.length;

describe('a node whose reads lag behind', () => {
  test('shows a transaction before sendTransaction returns, so that the next one can be built', async () => {
    fixture.node.lagMs = 100;
    const config = await createConfig();
    expect(await readConfig(client, config)).toMatchObject({ id: config });
    const { status } = await send(new Transaction());
    expect(status.success).toBe(true);
  });

  test('makes the next transaction fail if the caller does not wait', async () => {
    fixture.node.lagMs = 60_000;
    const config = await createConfig({ waitMs: 0 });
    await expect(readConfig(client, config)).rejects.toMatchObject({ code: 'SUI_OBJECT_NOT_FOUND' });
    await expect(send(new Transaction())).rejects.toMatchObject({ code: 'SUI_OBJECT_CHANGED' });
  });

  test('delays sendTransaction by waitMs at most; the error has the digest of the executed transaction', async () => {
    fixture.node.lagMs = 60_000;
    const error = await send(new Transaction(), { waitMs: 30 }).catch((thrown) => thrown);
    const [digest = '?'] = fixture.node.ledger.executed.slice(-1);
    expect(error).toBeInstanceOf(NotVisibleError);
    expect(error).toMatchObject({
      code: 'SUI_NOT_VISIBLE',
      digest,
      message: expect.stringContaining(`${digest} was executed`),
    });
  });

  test('can not end the wait by naming another transaction, or put its digest into the error', async () => {
    fixture.node.lagMs = 60_000;
    const bytes = await sign(new Transaction());
    expect(fixture.node.ledger.executed).toContain('gift');
    const { core } = client;
    const executeTransaction = async (options: Parameters<typeof core.executeTransaction>[0]) => {
      const { Transaction: honest } = await core.executeTransaction(options);
      return { $kind: 'Transaction', Transaction: { ...honest, digest: 'gift' } };
    };
    const waitForTransaction = core.waitForTransaction.bind(core);
    const lying = { core: { executeTransaction, waitForTransaction } } as unknown as SuiGrpcClient;
    await expect(sendTransaction(lying, { ...bytes, waitMs: 30 })).rejects.toMatchObject({
      code: 'SUI_NOT_VISIBLE',
      digest: TransactionDataBuilder.getDigestFromBytes(bytes.transaction),
    });
  });

  test('is asked about the bytes that were sent, even if the caller changes its array during the call', async () => {
    const request = await sign(new Transaction());
    const digest = TransactionDataBuilder.getDigestFromBytes(request.transaction);
    fixture.node.faults.set('ExecuteTransaction', 'executes, and does not answer');
    const sent = sendTransaction(client, request);
    request.transaction.fill(0);
    expect((await sent).digest).toBe(digest);
  });

  test('delays sendTransaction by waitMs at most even if it does not answer reads', async () => {
    fixture.node.faults.set('GetTransaction', 'hang');
    await expect(send(new Transaction(), { waitMs: 30 })).rejects.toMatchObject({ code: 'SUI_NOT_VISIBLE' });
  });

  test('delays sendTransaction no longer once the signal is aborted; the error has the digest', async () => {
    fixture.node.lagMs = 60_000;
    const controller = new AbortController();
    const sending = send(new Transaction(), { signal: controller.signal }).catch((thrown) => thrown);
    await expect.poll(() => fixture.node.calls).toContain('GetTransaction');
    controller.abort(new Error('the user left'));
    const error = await sending;
    expect(error).toMatchObject({
      code: 'SUI_NOT_VISIBLE',
      digest: fixture.node.ledger.executed.at(-1),
      cause: controller.signal.reason,
    });
  });

  test('shows a failed transaction before sendTransaction throws, since it has changed the gas coin', async () => {
    const failing = async (options: Options = {}) => {
      const bytes = await sign(new Transaction());
      fixture.node.executor.gasNeeded = 1_000_000_000n;
      await expect(sendTransaction(client, { ...bytes, ...options })).rejects.toMatchObject({
        code: 'SUI_GAS',
      });
      fixture.node.executor.gasNeeded = undefined;
    };
    fixture.node.lagMs = 100;
    await failing();
    await send(new Transaction());
    fixture.node.lagMs = 60_000;
    await failing({ waitMs: 30 });
  });
});

test.each(['the user left', null, 42])(
  'sendTransaction keeps the digest if a signal ends the send with %o, which a GraphQL client throws unchanged',
  async (reason) => {
    const controller = new AbortController();
    const fetch: typeof globalThis.fetch = async (_, init) => {
      controller.abort(reason);
      init?.signal?.throwIfAborted();
      throw new Error('the client has not passed the signal on');
    };
    const graphql = new SuiGraphQLClient({ network: 'custom', url: 'http://127.0.0.1:9', fetch });
    const bytes = await sign(new Transaction());
    await expect(sendTransaction(graphql, { ...bytes, signal: controller.signal })).rejects.toMatchObject({
      code: 'SUI_UNKNOWN_OUTCOME',
      digest: TransactionDataBuilder.getDigestFromBytes(bytes.transaction),
      cause: reason,
    });
  },
);

test.each<[string, object]>([
  ['waitMs', { waitMs: -1 }],
  ['waitMs', { waitMs: Number.NaN }],
  ['waitMs', { waitMs: 1.5 }],
  ['waitMs', { waitMs: Number.POSITIVE_INFINITY }],
  ['waitMs', { waitMs: '100' }],
  ['lookUpMs', { lookUpMs: 2 ** 31 }],
])('sendTransaction refuses an invalid %s before it sends anything: %o', async (name, options) => {
  const before = countExecuted();
  await expect(send(new Transaction(), options)).rejects.toMatchObject({
    code: 'SUI_VALUE',
    message: expect.stringContaining(`"${name}"`),
  });
  expect(countExecuted()).toBe(before);
});

test('mayHaveExecuted recognises the errors of transactions that were executed, or may have been', () => {
  expect(mayHaveExecuted(new NotVisibleError('digest', 'after 1 ms'))).toBe(true);
  expect(mayHaveExecuted(new UnknownOutcomeError('digest', 'no answer'))).toBe(true);
  expect(
    mayHaveExecuted(toSuiError(Object.assign(new Error('no'), { code: 'UNAVAILABLE', methodName: 'x' }))),
  ).toBe(false);
});

describe('a transaction that names a missing object', () => {
  const MISSING = { objectId: `0x${'7'.repeat(64)}`, version: '3', digest: DIGEST };
  /** Builds a transfer of an object without asking a node about the object, and signs it. */
  async function signTransfer(reference: typeof MISSING, payment?: (typeof MISSING)[]) {
    const tx = new Transaction();
    tx.setSender(fixture.address);
    tx.setGasPrice(1000);
    tx.setGasBudget(10_000_000);
    const { objects } = await client.core.listCoins({ owner: fixture.address });
    tx.setGasPayment(payment ?? objects.slice(0, 1));
    tx.transferObjects([tx.objectRef(reference)], fixture.address);
    const transaction = await tx.build();
    const { signature } = await fixture.admin.signTransaction(transaction);
    return { transaction, signatures: [signature] };
  }
  const publishCapability = async () => {
    const objectId = fixture.publish();
    const { object } = await client.core.getObject({ objectId });
    return { objectId, version: object.version, digest: object.digest };
  };
  const countSends = () => fixture.node.calls.filter((name) => name === 'ExecuteTransaction').length;

  test('is not sent: the error names the object', async () => {
    const bytes = await signTransfer(MISSING);
    await expect(sendTransaction(client, { ...bytes, lookUpMs: 0 })).rejects.toMatchObject({
      code: 'SUI_OBJECT_NOT_FOUND',
      objectId: MISSING.objectId,
      message: expect.stringContaining('nothing was sent'),
    });
    expect(countSends()).toBe(0);
  });

  test('is not sent if the object was deleted, or put into another object, after the build', async () => {
    const reference = await publishCapability();
    const bytes = await signTransfer(reference);
    fixture.node.ledger.objects.delete(reference.objectId);
    await expect(sendTransaction(client, { ...bytes, lookUpMs: 0 })).rejects.toMatchObject({
      code: 'SUI_OBJECT_NOT_FOUND',
      objectId: reference.objectId,
    });
    expect(countSends()).toBe(0);
  });

  test('is not sent if the coin that pays is missing', async () => {
    const bytes = await signTransfer(await publishCapability(), [MISSING]);
    await expect(sendTransaction(client, { ...bytes, lookUpMs: 0 })).rejects.toMatchObject({
      code: 'SUI_OBJECT_NOT_FOUND',
      objectId: MISSING.objectId,
    });
    expect(countSends()).toBe(0);
  });

  test('is sent once the node shows the object, if it only lags', async () => {
    const reference = await publishCapability();
    const bytes = await signTransfer(reference);
    const object = fixture.node.ledger.objects.get(reference.objectId);
    if (object === undefined) throw new Error('no capability');
    fixture.node.ledger.objects.delete(reference.objectId);
    const sending = sendTransaction(client, bytes);
    await expect.poll(() => fixture.node.calls.filter((name) => name === 'GetTransaction')).not.toEqual([]);
    fixture.node.ledger.objects.set(reference.objectId, object);
    expect((await sending).status.success).toBe(true);
  });

  test('is looked up, and not refused, if its own execution deleted the object', async () => {
    const reference = await publishCapability();
    const bytes = await signTransfer(reference);
    const first = await sendTransaction(client, bytes);
    fixture.node.ledger.objects.delete(reference.objectId);
    expect((await sendTransaction(client, bytes)).digest).toBe(first.digest);
    expect(countSends()).toBe(1);
  });

  test('is sent if the node does not answer whether the objects exist', async () => {
    const bytes = await signTransfer(await publishCapability());
    fixture.node.faults.set('BatchGetObjects', { status: 'UNAVAILABLE', message: 'later' });
    expect((await sendTransaction(client, bytes)).status.success).toBe(true);
  });

  test('may pay from the balance of an address, which is not an object', async () => {
    const reservation = toBase58(Uint8Array.from({ length: 32 }, (_, index) => (index < 12 ? 1 : 0xac)));
    const { transaction } = await signTransfer(await publishCapability(), [
      { ...MISSING, digest: reservation },
    ]);
    expect(listObjectIds(transaction)).not.toContain(MISSING.objectId);
  });

  test('causes an error with its digest if the signal ends the wait for the object', async () => {
    const controller = new AbortController();
    const bytes = await signTransfer(MISSING);
    const sending = sendTransaction(client, { ...bytes, signal: controller.signal }).catch((error) => error);
    await expect.poll(() => fixture.node.calls).toContain('GetTransaction');
    controller.abort(new Error('the user left'));
    expect(await sending).toMatchObject({
      code: 'SUI_UNKNOWN_OUTCOME',
      digest: TransactionDataBuilder.getDigestFromBytes(bytes.transaction),
    });
  });
});
