/** Tests that a wallet notices the expiry of its session without a signature. */
import { setImmediate as turn } from 'node:timers/promises';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { usePage } from './page.ts';
import { connect, createRedirect, disconnect, FakeNode, handOver, register } from './support.ts';

const page = usePage();

beforeEach(() => void vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] }));
afterEach(() => void vi.useRealTimers());

async function connectWallet(options: { onExpired?: (address: string) => void } = {}) {
  const node = new FakeNode();
  const registered = register({ client: node.client, ...options });
  const accounts = connect(registered.wallet);
  await turn();
  await handOver(createRedirect(page.current.latest.sentTo[0]?.url ?? new URL('about:blank')));
  await accounts;
  node.epochRequests = 0;
  return { node, ...registered };
}

async function pass(minutes: number): Promise<void> {
  await vi.advanceTimersByTimeAsync(minutes * 60_000);
  await turn();
}

test('a wallet asks for the epoch once a minute, and tells the dapp when the session has expired', async () => {
  const { node, wallet, changes } = await connectWallet();
  await pass(3);
  expect(node.epochRequests).toBe(3);
  expect(wallet.accounts).toHaveLength(1);
  node.epoch = 103;
  await pass(1);
  expect(wallet.accounts).toEqual([]);
  expect(changes.at(-1)).toEqual([]);
  await pass(10);
  expect(node.epochRequests).toBe(4);
});

test('onExpired is called once when a session has expired, and not when the user disconnects', async () => {
  const expired: string[] = [];
  const { node, wallet } = await connectWallet({ onExpired: (address) => void expired.push(address) });
  const [account] = wallet.accounts;
  node.epoch = 103;
  await pass(1);
  page.current.document.dispatchEvent(new Event('visibilitychange'));
  await pass(3);
  expect(expired).toEqual([account?.address]);
  await disconnect(wallet);
  expect(expired).toHaveLength(1);

  const { wallet: otherWallet } = await connectWallet({ onExpired: (address) => void expired.push(address) });
  await disconnect(otherWallet);
  await pass(3);
  expect(expired).toHaveLength(1);
});

test('a wallet keeps its account if the node does not answer', async () => {
  const { node, wallet } = await connectWallet();
  node.isDown = true;
  await pass(5);
  expect(wallet.accounts).toHaveLength(1);
});

test.each([
  ['disconnected', ({ wallet }: Awaited<ReturnType<typeof connectWallet>>) => disconnect(wallet)],
  ['unregistered', ({ unregister }: Awaited<ReturnType<typeof connectWallet>>) => unregister()],
])('a wallet no longer asks for the epoch once it is %s', async (_, end) => {
  const connection = await connectWallet();
  await end(connection);
  page.current.document.dispatchEvent(new Event('visibilitychange'));
  await pass(5);
  expect(connection.node.epochRequests).toBe(0);
});

test('a wallet does not ask for the epoch when its page goes to the background', async () => {
  const { node } = await connectWallet();
  page.current.document.visibilityState = 'hidden';
  page.current.document.dispatchEvent(new Event('visibilitychange'));
  await turn();
  expect(node.epochRequests).toBe(0);
});

test('a listener that throws stops neither the wallet nor other listeners', async () => {
  const { node, wallet } = await connectWallet();
  const uncaught: unknown[] = [];
  const queue = vi.spyOn(globalThis, 'queueMicrotask').mockImplementation((report) => {
    try {
      report();
    } catch (error) {
      uncaught.push(error);
    }
  });
  const accountCounts: number[] = [];
  const { on } = wallet.features['standard:events'];
  on('change', () => {
    throw new Error('of the dapp');
  });
  const off = on('change', ({ accounts }) => accountCounts.push(accounts?.length ?? -1));
  node.epoch = 103;
  await pass(1);
  queue.mockRestore();
  expect(accountCounts).toEqual([0]);
  expect(uncaught).toEqual([expect.objectContaining({ message: 'of the dapp' })]);
  off();
  await disconnect(wallet);
  expect(accountCounts).toEqual([0]);
});
