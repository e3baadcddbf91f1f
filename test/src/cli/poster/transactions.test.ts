/** The file with a poster's signed transactions, across restarts of its process. */
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Transaction } from '@mysten/sui/transactions';
import { beforeEach, expect, onTestFinished, test } from 'vitest';
import { describePost, type Pending, Transactions } from '../../../../src/cli/poster/transactions.ts';

const SENDER = `0x${'1'.repeat(64)}`;
const COIN = `0x${'c'.repeat(64)}`;

let path: string;
beforeEach(() => {
  const dir = mkdtempSync(join(tmpdir(), 'transactions-'));
  onTestFinished(() => rmSync(dir, { recursive: true, force: true }));
  path = join(dir, 'transactions.json');
});

/** Creates a signed transaction of a coin at a version. */
async function createPost(version: number, { coin = COIN, sender = SENDER, epoch = 7, at = 1000n } = {}) {
  const tx = new Transaction();
  tx.setSender(sender);
  tx.setGasOwner(sender);
  tx.setGasBudget(1);
  tx.setGasPrice(1);
  tx.setGasPayment([{ objectId: coin, version, digest: '11111111111111111111111111111111' }]);
  tx.setExpiration({ Epoch: epoch });
  const transaction = await tx.build();
  return describePost({ transaction, signature: 'AAAA', url: 'https://a.example', timestampMs: at }, sender);
}

const open = () => new Transactions(path, SENDER);

test('the file is created if it is missing, for its user alone', () => {
  expect([open().pending, open().newestMs]).toEqual([[], null]);
  expect(statSync(path).mode & 0o777).toBe(0o600);
});

test('the file keeps the transactions in flight and the newest time for the next process', async () => {
  const posts: Pending[] = [await createPost(3), await createPost(4, { coin: SENDER, at: 900n })];
  const transactions = open();
  for (const post of posts) transactions.add(post);
  const next = open();
  expect([next.pending, next.newestMs]).toEqual([posts, 1000n]);
  next.settle(posts[0]?.digest ?? '');
  expect([open().pending, open().newestMs]).toEqual([[posts[1]], 1000n]);
});

test('a coin remains in use at the version that a transaction names, until the transaction expires', async () => {
  const post = await createPost(3);
  open().add(post);
  const inFlight = open();
  expect([inFlight.isUsed(COIN, 3n), inFlight.isUsed(COIN, 9n), inFlight.isUsed(SENDER, 3n)]).toEqual([
    true,
    true,
    false,
  ]);
  inFlight.settle(post.digest);
  const settled = open();
  expect([settled.isUsed(COIN, 2n), settled.isUsed(COIN, 3n), settled.isUsed(COIN, 4n)]).toEqual([
    true,
    true,
    false,
  ]);
  expect([settled.expire(7n), settled.isUsed(COIN, 3n)]).toEqual([[], true]);
  expect([settled.expire(8n), open().isUsed(COIN, 3n)]).toEqual([[], false]);
});

test('a transaction expires after its last epoch', async () => {
  const post = await createPost(3);
  const transactions = open();
  transactions.add(post);
  expect(transactions.expire(7n)).toEqual([]);
  expect(transactions.expire(8n)).toEqual([post]);
  expect(open().pending).toEqual([]);
});

test.each<[string, (content: string) => string]>([
  ['is damaged', (content) => content.slice(1)],
  ['has an unknown property', (content) => content.replace('{', '{"more":1,')],
  ['has other bytes', (content) => content.replace(/"transaction":"[^"]{8}/, '"transaction":"')],
])('a file that %s is refused', async (_, corrupt) => {
  open().add(await createPost(3));
  writeFileSync(path, corrupt(readFileSync(path, 'utf8')));
  expect(open).toThrow(expect.objectContaining({ code: 'POSTER_FILE', exit: 2 }));
});

test('the file of another poster is refused', async () => {
  new Transactions(path, COIN).add(await createPost(3, { sender: COIN }));
  expect(open).toThrow(expect.objectContaining({ code: 'POSTER_FILE' }));
});

test('the state stays the same if the file can not be written', async () => {
  const transactions = open();
  const post = await createPost(3);
  rmSync(join(path, '..'), { recursive: true });
  expect(() => transactions.add(post)).toThrow(expect.objectContaining({ code: 'POSTER_FILE' }));
  expect([transactions.pending, transactions.isUsed(COIN, 3n)]).toEqual([[], false]);
});
