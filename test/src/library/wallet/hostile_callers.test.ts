/**
 * Tests callers whose values differ each time they are read. The wallet must sign exactly what it showed the
 * user.
 */
import { Transaction, TransactionDataBuilder } from '@mysten/sui/transactions';
import { fromBase64, toBase64 } from '@mysten/sui/utils';
import type { WalletAccount } from '@mysten/wallet-standard';
import { describe, expect, test } from 'vitest';
import type { ConfirmRequest } from '../../../../src/library/wallet/index.ts';
import type { SponsorRequest } from '../../../../src/library/zklogin/index.ts';
import {
  CHAIN,
  client,
  connectAccount,
  createEmptyTransaction,
  createTransfer,
  node,
  SPONSOR,
  useSigning,
} from './signing.ts';

useSigning();

const HONEST = new TextEncoder().encode('Log in to the dapp');
const HOSTILE = new TextEncoder().encode('Give all to Mallory');

/** Returns a function that returns one value after the other, and then the last value again and again. */
function createSequence<Value>(...values: Value[]): () => Value {
  return () => (values.length > 1 ? values.shift() : values[0]) as Value;
}

/**
 * The bytes of the hostile message. Their first copy is hostile, and later copies have the honest message.
 */
class TwoFaced extends Uint8Array {
  readonly #copy: () => Uint8Array = createSequence<Uint8Array>(this as never, Uint8Array.from(HONEST));
  override slice(): never {
    return this.#copy() as never;
  }
  override subarray(): never {
    return this.#copy() as never;
  }
  override get length(): number {
    return HONEST.length;
  }
  override [Symbol.iterator](): ArrayIterator<number> {
    return HONEST[Symbol.iterator]();
  }
}

/** Returns the messages that were shown, copied in a way that no class can override. */
function listShown(requests: readonly ConfirmRequest[]): string[] {
  return requests.map((request) =>
    toBase64(new Uint8Array(request.kind === 'message' ? request.message : request.bytes)),
  );
}

describe('a message', () => {
  const patched = (): Uint8Array => {
    const bytes = Uint8Array.from(HOSTILE);
    return Object.assign(bytes, { slice: createSequence<Uint8Array>(bytes, HONEST) as never });
  };
  const proxied = (): Uint8Array => {
    const bytes = Uint8Array.from(HOSTILE);
    const copy = createSequence<Uint8Array>(bytes, HONEST);
    const proxy: Uint8Array = new Proxy(bytes, {
      get: (_, name): unknown => {
        if (name === 'slice') return (): Uint8Array => (copy() === bytes ? proxy : HONEST);
        const value: unknown = Reflect.get(bytes, name);
        return typeof value === 'function' ? value.bind(bytes) : value;
      },
    });
    return proxy;
  };
  const shared = (): Uint8Array => {
    const bytes = new Uint8Array(new SharedArrayBuffer(HONEST.length));
    bytes.set(HONEST);
    return bytes;
  };
  const resizable = (): Uint8Array => {
    const bytes = new Uint8Array(new ArrayBuffer(HONEST.length, { maxByteLength: 1024 }));
    bytes.set(HONEST);
    return bytes;
  };

  test.each<[string, () => Uint8Array, (message: Uint8Array) => void]>([
    ['of a class with methods of its own', () => new TwoFaced(HOSTILE), () => {}],
    ['with methods of its own', patched, () => {}],
    ['behind a proxy', proxied, () => {}],
    ['in shared memory', shared, (bytes) => bytes.fill(0)],
    ['in a buffer that shrinks', resizable, ({ buffer }) => (buffer as ArrayBuffer).resize(0)],
    [
      'whose buffer is transferred',
      () => Uint8Array.from(HONEST),
      ({ buffer }) => void structuredClone(buffer, { transfer: [buffer as ArrayBuffer] }),
    ],
  ])('%s is signed as it was shown', async (_, make, change) => {
    const message = make();
    const requests: ConfirmRequest[] = [];
    const { account, signMessage } = await connectAccount({
      confirm: async (request: ConfirmRequest) => {
        change(message);
        requests.push(request);
        return true;
      },
    });
    const { bytes, signature } = await signMessage({ message, account, chain: CHAIN });
    expect(listShown(requests)).toEqual([bytes]);
    await node.verify(fromBase64(bytes), signature, account.address, 'PersonalMessage');
  });

  test.each([
    ['an object with the prototype of bytes', () => Object.create(Uint8Array.prototype)],
    [
      'a view outside its buffer',
      () => {
        const buffer = new ArrayBuffer(8, { maxByteLength: 8 });
        const view = new Uint8Array(buffer, 4, 4);
        buffer.resize(2);
        return view;
      },
    ],
  ])('that is %s is refused before it is shown', async (_, make) => {
    const { account, signMessage, requests } = await connectAccount();
    await expect(signMessage({ message: make(), account, chain: CHAIN })).rejects.toMatchObject({
      code: 'ZKLOGIN_OPTION',
    });
    expect(requests).toEqual([]);
  });
});

describe('an account, chain or wallet', () => {
  const otherAddress = `0x${'2'.repeat(64)}`;

  /** Returns the wallet's account when it is compared, and another account when it is shown. */
  function changing(account: WalletAccount): WalletAccount {
    const address = createSequence(account.address, otherAddress);
    return Object.create(account, { address: { get: address } });
  }

  test('that changes after the wallet compared it is shown unchanged', async () => {
    const { account, sign, execute, signMessage, requests } = await connectAccount({ sponsor: SPONSOR });
    await signMessage({ message: HONEST, account: changing(account), chain: CHAIN });
    await sign({ transaction: createTransfer(), account: changing(account), chain: CHAIN });
    await execute({ transaction: createEmptyTransaction(), account: changing(account), chain: CHAIN });
    expect(requests.map(({ address }) => address)).toEqual(Array(3).fill(account.address));
  });

  test('is read once, so that a getter can not return another account later', async () => {
    const { account, sign, requests } = await connectAccount();
    const stranger = { ...account, publicKey: account.publicKey, address: otherAddress };
    const request = { transaction: createTransfer(), chain: CHAIN } as const;
    const changed = Object.defineProperty({ ...request, account }, 'account', {
      get: createSequence<WalletAccount>(account, stranger),
    });
    await sign(changed);
    expect(requests).toMatchObject([{ address: account.address, transaction: { sender: account.address } }]);
  });

  test('can not be renamed by a script of the page', async () => {
    const { wallet, account, signMessage, requests } = await connectAccount();
    const { name } = wallet;
    for (const change of [
      () => Object.assign(wallet, { name: 'Another wallet' }),
      () => Object.assign(wallet.chains, { 0: 'sui:mainnet' }),
    ]) {
      expect(change).toThrow(TypeError);
    }
    await signMessage({ message: HONEST, account, chain: CHAIN });
    expect(requests).toMatchObject([{ wallet: name, chain: CHAIN }]);
  });
});

describe('a transaction', () => {
  test('whose toJSON returns another transaction each time is read once', async () => {
    const { account, sign, execute, requests } = await connectAccount();
    for (const use of [sign, execute]) {
      const toJSON = createSequence(createTransfer().toJSON, createEmptyTransaction().toJSON);
      const { bytes } = await use({
        transaction: { toJSON: async () => await toJSON()() },
        account,
        chain: CHAIN,
      });
      expect(listShown(requests).at(-1)).toBe(bytes);
      expect(requests.at(-1)).toMatchObject({ transaction: { commands: [{}, {}] } });
    }
  });

  test('is refused if toJSON returns anything but a string, since an object could change', async () => {
    const { account, sign, requests } = await connectAccount();
    const data = JSON.parse(await createTransfer(account.address).toJSON());
    const text = Object.assign(new String('{}'), { startsWith: () => false });
    for (const value of [{ getData: () => data }, fromBase64('AAAA'), text, 5, null]) {
      const transaction = { toJSON: async (): Promise<string> => value as never };
      await expect(sign({ transaction, account, chain: CHAIN })).rejects.toMatchObject({
        code: 'ZKLOGIN_OPTION',
      });
    }
    expect(requests).toEqual([]);
  });

  test('from a sponsor whose bytes return false copies is signed as it was shown', async () => {
    const { account, execute, requests } = await connectAccount({
      sponsor: async ({ kind, sender }: SponsorRequest) => await sponsorship(kind, sender),
    });
    const { bytes, digest } = await execute({ transaction: createEmptyTransaction(), account, chain: CHAIN });
    expect(listShown(requests)).toEqual([bytes]);
    expect(TransactionDataBuilder.getDigestFromBytes(fromBase64(bytes))).toBe(digest);
  });

  async function sponsorship(kind: Uint8Array, sender: string) {
    const transaction = Transaction.fromKind(kind);
    transaction.setSender(sender);
    transaction.setGasOwner(SPONSOR.toSuiAddress());
    const honest = await transaction.build({ client });
    const { signature } = await SPONSOR.signTransaction(honest);
    class Lying extends Uint8Array {
      override slice() {
        return honest as never;
      }
    }
    return { transaction: new Lying(honest), signature };
  }
});
