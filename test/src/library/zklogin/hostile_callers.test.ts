/** Tests callers and sponsors whose values differ each time they are read. */
import { Signer } from '@mysten/sui/cryptography';
import type { Ed25519Keypair } from '@mysten/sui/keypairs/ed25519';
import { Transaction } from '@mysten/sui/transactions';
import { fromBase64, toBase64 } from '@mysten/sui/utils';
import { verifyPersonalMessageSignature } from '@mysten/sui/verify';
import { describe, expect, test } from 'vitest';
import type { SponsoredTransaction, SponsorRequest } from '../../../../src/library/zklogin/index.ts';
import {
  address,
  buildSpending,
  buildTransaction,
  openSession,
  setUp,
  setUpSponsor,
} from './open_session.ts';

const STRANGER = `0x${'2'.repeat(64)}`;

describe('bytes to sign', () => {
  test('that change during the call are signed and returned in their original form', async () => {
    const { session } = openSession();
    const [bytes, hostile] = [await buildTransaction(), await buildTransaction(STRANGER)];
    const before = toBase64(bytes);
    const signed = session.signTransaction(bytes);
    bytes.set(hostile);
    expect((await signed).bytes).toBe(before);
  });

  test('of a class that returns another buffer are refused if their real sender is another address', async () => {
    const { session } = openSession();
    const honest = await buildTransaction();
    class TwoFaced extends Uint8Array {
      override get buffer() {
        return honest.buffer as never;
      }
    }
    const hostile = new TwoFaced(await buildTransaction(STRANGER));
    await expect(session.signTransaction(hostile)).rejects.toMatchObject({ code: 'ZKLOGIN_SENDER' });
  });

  test('of a message that changes during the call are returned in the form that was signed', async () => {
    const { client, session } = await setUp(8n);
    const message = new TextEncoder().encode('hello');
    const signed = session.signPersonalMessage(message);
    message.fill(0);
    const { bytes, signature } = await signed;
    expect(bytes).toBe(btoa('hello'));
    await verifyPersonalMessageSignature(fromBase64(bytes), signature, { address, client });
  });

  test.each([
    ['text', 'hello'],
    ['a list', [1, 2]],
    ['an object with the prototype of bytes', Object.create(Uint8Array.prototype)],
  ])('that are %s are refused', async (_, bytes) => {
    const { session } = openSession();
    for (const sign of [() => session.signTransaction(bytes), () => session.signPersonalMessage(bytes)]) {
      await expect(sign()).rejects.toMatchObject({ code: 'ZKLOGIN_OPTION' });
    }
  });
});

describe('a transaction', () => {
  test('whose class builds other bytes each time is signed in the approved form', async () => {
    const { client, session } = await setUp(8n);
    class Lying extends Transaction {
      override async build(options?: Parameters<Transaction['build']>[0]) {
        const hostile = new Transaction();
        hostile.setSender(address);
        hostile.transferObjects([hostile.gas], STRANGER);
        const honest = await super.build(options);
        return Object.assign(await hostile.build(options), { slice: () => honest });
      }
    }
    const approved: string[] = [];
    const approve = async (bytes: Uint8Array) => void approved.push(toBase64(new Uint8Array(bytes)));
    const { digest } = await session.execute(new Lying(), client, { approve });
    expect(approved.map((bytes) => Transaction.from(bytes).getData().commands.length)).toEqual([1]);
    expect(digest).toBe(await Transaction.from(approved[0] ?? '').getDigest());
  });

  test('that is changed during the approval is executed in the approved form', async () => {
    const { node, client, session } = await setUp(8n);
    const tx = new Transaction();
    const approve = async () => void tx.transferObjects([tx.gas], STRANGER);
    await session.execute(tx, client, { approve });
    expect(node.ledger.coins(STRANGER)).toEqual([]);
  });
});

describe('a sponsor', () => {
  test('can not change the transaction that its answer is compared with', async () => {
    const { node, client, session } = await setUpSponsor();
    const hostile = await buildSpending();
    const tx = Transaction.from(hostile);
    const sponsor = async ({ kind }: SponsorRequest): Promise<SponsoredTransaction> => {
      const otherKind = await tx.build({ onlyTransactionKind: true });
      kind.set(otherKind);
      return { transaction: hostile, signature: 'x' };
    };
    // The honest kind has the same length as the hostile one.
    const honest = new Transaction();
    honest.transferObjects([honest.gas], address);
    await expect(session.execute(honest, client, { sponsor })).rejects.toMatchObject({
      code: 'ZKLOGIN_SPONSOR',
    });
    expect(node.calls).not.toContain('ExecuteTransaction');
  });

  test('gets the checked bytes signed even if it changes its answer after the check', async () => {
    const { node, client, session, service } = await setUpSponsor();
    const hostile = await buildSpending();
    const sponsor = async (request: SponsorRequest): Promise<SponsoredTransaction> => {
      const { transaction: honest, signature } = await service(request);
      let reads = 0;
      return {
        signature,
        // The wallet reads the answer's type, its form and its copy.
        get transaction() {
          reads += 1;
          return reads < 3 ? honest : hostile;
        },
      };
    };
    const approved: Uint8Array[] = [];
    const approve = async (bytes: Uint8Array) => void approved.push(bytes);
    await session.execute(new Transaction(), client, { sponsor, approve });
    expect(approved.map((bytes) => Transaction.from(bytes).getData().commands)).toEqual([[]]);
    expect(node.calls).toContain('ExecuteTransaction');
  });

  /** A signer whose address changes, and that clears the bytes after it has signed them. */
  class Hostile extends Signer {
    readonly #key: Ed25519Keypair;
    readonly #addresses: string[];
    constructor(key: Ed25519Keypair, addresses: string[]) {
      super();
      this.#key = key;
      this.#addresses = addresses;
    }
    override getKeyScheme() {
      return this.#key.getKeyScheme();
    }
    override getPublicKey() {
      return this.#key.getPublicKey();
    }
    override toSuiAddress() {
      return this.#addresses.shift() ?? this.#key.toSuiAddress();
    }
    override async sign(bytes: Uint8Array) {
      return await this.#key.sign(bytes);
    }
    override async signTransaction(bytes: Uint8Array) {
      const signed = await this.#key.signTransaction(bytes);
      bytes.fill(0);
      return signed;
    }
  }

  test("with a key can not make the session pay by returning the session's address the second time", async () => {
    const { node, client, session, sponsor } = await setUpSponsor();
    node.ledger.give(address, 1_000_000_000n);
    const before = node.ledger.coins(address).map(({ balance }) => balance);
    const signer = new Hostile(sponsor, [sponsor.toSuiAddress(), address]);
    await session.execute(new Transaction(), client, { sponsor: signer });
    expect(node.ledger.coins(address).map(({ balance }) => balance)).toEqual(before);
  });

  test('with a key can not change the bytes that it has signed', async () => {
    const { node, client, session, sponsor } = await setUpSponsor();
    const { digest } = await session.execute(new Transaction(), client, {
      sponsor: new Hostile(sponsor, []),
    });
    expect(node.ledger.executed).toContain(digest);
  });
});
