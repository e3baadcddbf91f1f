/** Tests a connected wallet's signatures on a node that checks everything in them except the proof. */
import { setImmediate as turn } from 'node:timers/promises';
import { parseTransactionEffectsBcs } from '@mysten/sui/client';
import { Transaction, TransactionDataBuilder } from '@mysten/sui/transactions';
import { fromBase64, toBase64 } from '@mysten/sui/utils';
import { publicKeyFromSuiBytes } from '@mysten/sui/verify';
import type { WalletAccount } from '@mysten/wallet-standard';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import type { ConfirmRequest } from '../../../../src/library/wallet/index.ts';
import type { SponsoredTransaction, SponsorRequest } from '../../../../src/library/zklogin/index.ts';
import {
  CHAIN,
  client,
  connectAccount,
  createEmptyTransaction,
  createTransfer,
  node,
  page,
  RECIPIENT,
  SPONSOR,
  useSigning,
} from './signing.ts';
import { disconnect, FakeNode } from './support.ts';

useSigning();

describe('the account', () => {
  test('has a public key that dapp-kit reads, and can not be changed', async () => {
    const { account } = await connectAccount();
    const bytes = new Uint8Array(account.publicKey);
    expect(publicKeyFromSuiBytes(bytes, { address: account.address }).toSuiAddress()).toBe(account.address);
    Object.assign(account.publicKey, { 0: 0 });
    expect(new Uint8Array(account.publicKey)).toEqual(bytes);
    expect(() => Object.assign(account, { address: '0x1' })).toThrow(TypeError);
    expect(account.features).toEqual([
      'sui:signTransaction',
      'sui:signAndExecuteTransaction',
      'sui:signPersonalMessage',
    ]);
  });
});

describe('signTransaction', () => {
  test('signs exactly the bytes that the user was shown', async () => {
    const { wallet, account, sign, requests } = await connectAccount();
    const { bytes, signature } = await sign({ transaction: createTransfer(), account, chain: CHAIN });
    expect(requests).toEqual([
      {
        kind: 'transaction',
        wallet: wallet.name,
        address: account.address,
        chain: CHAIN,
        bytes: fromBase64(bytes),
        transaction: Transaction.from(bytes).getData(),
      },
    ]);
    expect(requests[0]).toMatchObject({ transaction: { sender: account.address, commands: [{}, {}] } });
    const { Transaction: executed } = await client.core.executeTransaction({
      transaction: fromBase64(bytes),
      signatures: [signature],
    });
    expect(executed?.digest).toBe(TransactionDataBuilder.getDigestFromBytes(fromBase64(bytes)));
  });

  test('also accepts the bytes of a built transaction', async () => {
    const { account, sign } = await connectAccount();
    const transaction = new Transaction();
    transaction.setSender(account.address);
    const built = toBase64(await transaction.build({ client }));
    const { bytes } = await sign({ transaction: { toJSON: async () => built }, account, chain: CHAIN });
    expect(bytes).toBe(built);
  });

  test('is not fooled by a confirm that changes its arguments', async () => {
    const { account, sign } = await connectAccount({
      confirm: async (request: ConfirmRequest) => {
        if (request.kind === 'transaction') request.bytes.fill(0);
        return true;
      },
    });
    const { bytes } = await sign({ transaction: createTransfer(), account, chain: CHAIN });
    expect(Transaction.from(bytes).getData().sender).toBe(account.address);
  });

  test('refuses another account, chain or sender, and a value that is not a transaction, before it asks the user', async () => {
    const { account, sign, requests } = await connectAccount();
    const transaction = createTransfer();
    const otherAccount: WalletAccount = {
      ...account,
      publicKey: account.publicKey,
      address: `0x${'2'.repeat(64)}`,
    };
    const all = { transaction, account, chain: CHAIN } as const;
    await expect(sign({ ...all, account: otherAccount })).rejects.toMatchObject({ code: 'ZKLOGIN_OPTION' });
    await expect(sign({ ...all, chain: 'sui:mainnet' })).rejects.toMatchObject({ code: 'ZKLOGIN_OPTION' });
    await expect(sign({ ...all, transaction: createTransfer(otherAccount.address) })).rejects.toMatchObject({
      code: 'ZKLOGIN_SENDER',
    });
    await expect(sign({ ...all, transaction: { toJSON: async () => '{}' } })).rejects.toMatchObject({
      code: 'ZKLOGIN_OPTION',
    });
    expect(requests).toEqual([]);
  });

  test('accepts its own address as the sender in upper case, too', async () => {
    const { account, sign } = await connectAccount();
    const json = JSON.parse(await createTransfer(account.address).toJSON());
    json.sender = json.sender.toUpperCase().replace('0X', '0x');
    const transaction = { toJSON: async () => JSON.stringify(json) };
    await expect(sign({ transaction, account, chain: CHAIN })).resolves.toBeDefined();
  });

  test('passes on an error that the dapp throws while it builds the transaction', async () => {
    const { account, sign } = await connectAccount();
    const error = new Error('of the dapp');
    const transaction = { toJSON: () => Promise.reject(error) };
    await expect(sign({ transaction, account, chain: CHAIN })).rejects.toBe(error);
  });
});

describe('signAndExecuteTransaction', () => {
  test('sends what the user was shown, and returns bytes, signature, digest and effects', async () => {
    const { account, execute, requests } = await connectAccount();
    const executed = await execute({ transaction: createTransfer(), account, chain: CHAIN });
    expect(node.ledger.executed).toContain(executed.digest);
    expect(requests).toMatchObject([{ kind: 'transaction', bytes: fromBase64(executed.bytes) }]);
    expect(TransactionDataBuilder.getDigestFromBytes(fromBase64(executed.bytes))).toBe(executed.digest);
    // dapp-kit reads the effects in this way.
    const effects = parseTransactionEffectsBcs(fromBase64(executed.effects));
    expect(effects).toMatchObject({ transactionDigest: executed.digest, status: { success: true } });
    const [created] = effects.changedObjects.filter(({ idOperation }) => idOperation === 'Created');
    const { object } = await client.core.getObject({ objectId: created?.objectId ?? '' });
    expect(object).toMatchObject({ digest: created?.outputDigest, owner: { AddressOwner: RECIPIENT } });
    await node.verify(fromBase64(executed.bytes), executed.signature, account.address);
  });

  test('shows the transaction that a sponsor has completed, and lets the sponsor pay', async () => {
    const { account, execute, requests } = await connectAccount({ sponsor: SPONSOR });
    const { digest, signature } = await execute({
      transaction: createEmptyTransaction(),
      account,
      chain: CHAIN,
    });
    expect(node.ledger.executed).toContain(digest);
    expect(requests).toMatchObject([
      { transaction: { sender: account.address, gasData: { owner: SPONSOR.toSuiAddress() } } },
    ]);
    expect(fromBase64(signature)[0]).toBe(5);
  });

  test('is not fooled by a sponsor that changes its bytes while the user reads', async () => {
    const sponsored: SponsoredTransaction[] = [];
    const { account, execute } = await connectAccount({
      sponsor: async ({ kind, sender }: SponsorRequest) => {
        const transaction = Transaction.fromKind(kind);
        transaction.setSender(sender);
        transaction.setGasOwner(SPONSOR.toSuiAddress());
        const bytes = await transaction.build({ client });
        const { signature } = await SPONSOR.signTransaction(bytes);
        sponsored.push({ transaction: bytes, signature });
        return { transaction: bytes, signature };
      },
      confirm: async () => {
        sponsored[0]?.transaction.fill(0);
        return true;
      },
    });
    const { digest } = await execute({ transaction: createEmptyTransaction(), account, chain: CHAIN });
    expect(node.ledger.executed).toContain(digest);
  });

  test('sends nothing if the user does not confirm, even after the sponsor has signed', async () => {
    const { account, execute } = await connectAccount({ sponsor: SPONSOR, confirm: async () => false });
    const before = node.ledger.executed.length;
    await expect(
      execute({ transaction: createEmptyTransaction(), account, chain: CHAIN }),
    ).rejects.toMatchObject({
      code: 'ZKLOGIN_NOT_CONFIRMED',
    });
    expect(node.ledger.executed).toHaveLength(before);
  });
});

describe('signPersonalMessage', () => {
  test('signs exactly the message that the user was shown, even if the caller changes its bytes', async () => {
    const message = new TextEncoder().encode('hello');
    const { account, wallet, signMessage, requests } = await connectAccount({
      confirm: async (request: ConfirmRequest) => {
        message.fill(0);
        requests.push(structuredClone(request));
        if (request.kind === 'message') request.message.fill(0);
        return true;
      },
    });
    const { bytes, signature } = await signMessage({ message, account, chain: CHAIN });
    const hello = new TextEncoder().encode('hello');
    expect(requests).toEqual([
      { kind: 'message', wallet: wallet.name, address: account.address, chain: CHAIN, message: hello },
    ]);
    expect(bytes).toBe(toBase64(hello));
    await node.verify(hello, signature, account.address, 'PersonalMessage');
  });

  test('refuses a value that is not a message', async () => {
    const { account, signMessage } = await connectAccount();
    await expect(signMessage({ message: 'hello' as never, account })).rejects.toMatchObject({
      code: 'ZKLOGIN_OPTION',
    });
  });
});

describe('confirm', () => {
  test.each<[string, () => unknown]>([
    ['resolves to false', async () => false],
    ['resolves to undefined', async () => undefined],
    ['resolves to a truthy value other than true', async () => 'yes'],
    ['rejects', () => Promise.reject(new Error('no dialog'))],
    ['throws', () => JSON.parse('')],
  ])('prevents the signature if it %s', async (_, confirm) => {
    const { account, signMessage } = await connectAccount({ confirm: confirm as never });
    const signed = signMessage({ message: new Uint8Array(1), account });
    await expect(signed).rejects.toMatchObject({ code: 'ZKLOGIN_NOT_CONFIRMED' });
  });

  test('also prevents the signature of a transaction', async () => {
    const { account, sign } = await connectAccount({ confirm: async () => false });
    const signed = sign({ transaction: createTransfer(), account, chain: CHAIN });
    await expect(signed).rejects.toMatchObject({ code: 'ZKLOGIN_NOT_CONFIRMED' });
  });

  /** Creates dialogs that the test answers. */
  function createDialogs() {
    const open: ((answer: boolean) => void)[] = [];
    const confirm = () => new Promise<boolean>((resolve) => open.push(resolve));
    const waitForDialogs = async (count: number) => await expect.poll(() => open).toHaveLength(count);
    return { open, confirm, waitForDialogs };
  }

  test('is called for one signature at a time, in order, and half a second after the previous answer', async () => {
    const { open, confirm, waitForDialogs } = createDialogs();
    // This node's answers arrive in the same turn.
    const { account, signMessage } = await connectAccount({ confirm, client: new FakeNode().client });
    vi.useFakeTimers({ toFake: ['setTimeout'] });
    onTestFinished(() => void vi.useRealTimers());
    const first = signMessage({ message: Uint8Array.of(1), account });
    await waitForDialogs(1);
    const second = signMessage({ message: Uint8Array.of(2), account });
    await turn();
    expect(open).toHaveLength(1);
    open[0]?.(false);
    await expect(first).rejects.toMatchObject({ code: 'ZKLOGIN_NOT_CONFIRMED' });
    await vi.advanceTimersByTimeAsync(499);
    await turn();
    expect(open).toHaveLength(1);
    await vi.advanceTimersByTimeAsync(1);
    await waitForDialogs(2);
    open[1]?.(true);
    expect((await second).bytes).toBe(toBase64(Uint8Array.of(2)));
  });

  test('has no effect after the signal was aborted', async () => {
    const { open, confirm, waitForDialogs } = createDialogs();
    const { account, execute } = await connectAccount({ confirm });
    const before = node.ledger.executed.length;
    const controller = new AbortController();
    const sent = execute({
      transaction: createEmptyTransaction(),
      account,
      chain: CHAIN,
      signal: controller.signal,
    });
    sent.catch(() => {});
    await waitForDialogs(1);
    controller.abort(new Error('left'));
    await expect(sent).rejects.toThrow('left');
    open[0]?.(true);
    await waitForDialogs(1);
    expect(node.ledger.executed).toHaveLength(before);
  });

  test('has no effect after a disconnect', async () => {
    const { open, confirm, waitForDialogs } = createDialogs();
    const { account, wallet, signMessage } = await connectAccount({ confirm });
    const signed = signMessage({ message: Uint8Array.of(1), account });
    signed.catch(() => {});
    await waitForDialogs(1);
    await disconnect(wallet);
    open[0]?.(true);
    await expect(signed).rejects.toMatchObject({ code: 'ZKLOGIN_NO_SESSION' });
  });
});

describe('a signal that is aborted', () => {
  test('ends the call before the user is asked', async () => {
    const { account, sign, execute, requests } = await connectAccount();
    const toJSON = vi.fn(createTransfer().toJSON);
    const signal = AbortSignal.abort(new Error('left'));
    const request = { account, chain: CHAIN, signal, transaction: { toJSON } } as const;
    await expect(sign(request)).rejects.toThrow('left');
    await expect(execute(request)).rejects.toThrow('left');
    expect(toJSON).not.toHaveBeenCalled();
    expect(requests).toEqual([]);
  });
});

describe('a session that has expired', () => {
  test('refuses every signature without a question, and removes the account', async () => {
    const { account, wallet, sign, execute, signMessage, requests, changes } = await connectAccount();
    node.epoch = 103n;
    const expired = { code: 'ZKLOGIN_EXPIRED' };
    await expect(sign({ transaction: createTransfer(), account, chain: CHAIN })).rejects.toMatchObject(
      expired,
    );
    expect(changes).toEqual([[account.address], []]);
    expect(wallet.accounts).toEqual([]);
    await expect(execute({ transaction: createTransfer(), account, chain: CHAIN })).rejects.toMatchObject(
      expired,
    );
    await expect(signMessage({ message: new Uint8Array(1), account })).rejects.toMatchObject(expired);
    expect(requests).toEqual([]);
    expect(changes).toHaveLength(2);
    expect(page.current.opened).toHaveLength(1);
  });

  test('is noticed when the page becomes visible', async () => {
    const { account, changes } = await connectAccount();
    node.epoch = 103n;
    page.current.document.dispatchEvent(new Event('visibilitychange'));
    await expect.poll(() => changes).toEqual([[account.address], []]);
  });

  test('is noticed by a signature that the user confirms too late', async () => {
    const { account, signMessage, changes } = await connectAccount({
      confirm: async () => {
        node.epoch = 103n;
        return true;
      },
    });
    await expect(signMessage({ message: new Uint8Array(1), account })).rejects.toMatchObject({
      code: 'ZKLOGIN_EXPIRED',
    });
    expect(changes).toEqual([[account.address], []]);
  });
});

test('a disconnected wallet signs nothing', async () => {
  const { wallet, account, sign, requests } = await connectAccount();
  await disconnect(wallet);
  await expect(sign({ transaction: createTransfer(), account, chain: CHAIN })).rejects.toMatchObject({
    code: 'ZKLOGIN_NO_SESSION',
  });
  expect(requests).toEqual([]);
});

test('no error of a wallet contains a key, token, proof or salt', async () => {
  const { account, wallet, sign, signMessage } = await connectAccount({ confirm: async () => false });
  const secrets = [...page.current.stored.values()].flatMap((text) => {
    const { secretKey, inputs } = JSON.parse(text);
    return [secretKey, inputs.addressSeed, inputs.proofPoints.a[0]];
  });
  expect(secrets).toHaveLength(3);
  const failures = [
    await sign({ transaction: createTransfer(), account, chain: CHAIN }).catch((error: Error) => error),
    await signMessage({ message: new Uint8Array(1), account, chain: 'sui:x' }).catch((error: Error) => error),
  ];
  for (const text of [...failures.map(String), JSON.stringify([wallet, failures])]) {
    for (const secret of secrets) expect(text).not.toContain(secret);
  }
});
