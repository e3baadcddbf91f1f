/** Connects wallets to a node that checks everything in their signatures except the proof. */
import { SuiGrpcClient } from '@mysten/sui/grpc';
import { Ed25519Keypair } from '@mysten/sui/keypairs/ed25519';
import { Transaction } from '@mysten/sui/transactions';
import { afterAll, beforeAll, beforeEach, vi } from 'vitest';
import { chooseVerifier, LoopbackNode } from '../../../../src/devnet/node.ts';
import { verifyZkLogin } from '../../../../src/devnet/zklogin.ts';
import { usePage } from './page.ts';
import { connect, createRedirect, handOver, type RegisterOverrides, register } from './support.ts';

export const CHAIN = 'sui:localnet';
export const RECIPIENT = `0x${'9'.repeat(64)}`;
export const SPONSOR = new Ed25519Keypair();

export let node: LoopbackNode;
export let client: SuiGrpcClient;
export let page: ReturnType<typeof usePage>;

/** Gives each test of the file a node and a page. */
export function useSigning(): void {
  page = usePage();
  beforeAll(async () => {
    node = await LoopbackNode.start(new Uint8Array());
    client = new SuiGrpcClient({ network: 'localnet', baseUrl: node.url });
    node.ledger.give(SPONSOR.toSuiAddress(), 1_000_000_000n);
  });
  afterAll(() => node.close());
  beforeEach(() => {
    node.epoch = 100n;
    node.verify = async function (this: LoopbackNode, ...signed) {
      const [data, signature, sender, scope] = signed;
      if (sender !== SPONSOR.toSuiAddress()) return await verifyZkLogin.call(this, ...signed);
      return await chooseVerifier(scope)(data, signature, { address: sender });
    };
  });
}

/** Connects a wallet, and gives its address SUI. */
export async function connectAccount(options: RegisterOverrides = {}) {
  const registered = register({ client, ...options });
  const { wallet } = registered;
  const accounts = connect(wallet);
  const url = await vi.waitFor(
    () => page.current.latest.sentTo[0]?.url ?? Promise.reject(new Error('blank')),
    60_000,
  );
  await handOver(createRedirect(url));
  const [account] = (await accounts).accounts;
  if (account === undefined) throw new Error('no account');
  node.ledger.give(account.address, 1_000_000_000n);
  const { features } = wallet;
  return {
    ...registered,
    account,
    sign: features['sui:signTransaction'].signTransaction,
    execute: features['sui:signAndExecuteTransaction'].signAndExecuteTransaction,
    signMessage: features['sui:signPersonalMessage'].signPersonalMessage,
  };
}

/** Wraps a transaction as dapp-kit does. */
export const wrapTransaction = (transaction: Transaction) => ({
  toJSON: async () => await transaction.toJSON(),
});
export const createTransfer = (sender?: string) => {
  const transaction = new Transaction();
  if (sender !== undefined) transaction.setSender(sender);
  transaction.transferObjects([transaction.splitCoins(transaction.gas, [1])], RECIPIENT);
  return wrapTransaction(transaction);
};
export const createEmptyTransaction = () => wrapTransaction(new Transaction());
