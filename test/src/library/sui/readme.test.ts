/**
 * Runs the snippets of src/library/sui/README.md for contracts, events and the extension, unchanged, against
 * a loopback node.
 */
import { readFileSync } from 'node:fs';
import { stripTypeScriptTypes } from 'node:module';
import * as bcsModule from '@mysten/sui/bcs';
import * as grpc from '@mysten/sui/grpc';
import * as transactions from '@mysten/sui/transactions';
import { Transaction } from '@mysten/sui/transactions';
import { ed25519 } from '@noble/curves/ed25519.js';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import * as client from '../../../../src/library/client/index.ts';
import * as sui from '../../../../src/library/sui/index.ts';
import { ChainFixture, PACKAGE } from '../../cli/sui/chain_fixture.ts';
import { startServer } from '../../server/support.ts';

const read = (path: string) => readFileSync(new URL(`../../../../${path}`, import.meta.url), 'utf8');
const README = read('src/library/sui/README.md');
const MODULES: Readonly<Record<string, object>> = {
  '@mysten/sui/bcs': bcsModule,
  '@mysten/sui/grpc': grpc,
  '@mysten/sui/transactions': transactions,
  'sui-enclave/client': client,
  'sui-enclave/sui': sui,
};

let fixture: ChainFixture;
let capId: string;
let configId: string;
beforeAll(async () => {
  fixture = await ChainFixture.start();
  capId = fixture.publish();
  configId = await fixture.config(capId);
});
afterAll(() => fixture.close());

/**
 * Runs the snippet below a heading.
 *
 * @param bindings variables that the snippet expects to exist
 * @param variable name of the snippet's variable whose value is returned
 */
async function run(heading: string, bindings: object, variable: string): Promise<unknown> {
  const section = README.split(/^#+ /m).find((part) => part.startsWith(heading)) ?? '';
  const [, snippet = ''] = /^```ts\n(.*?)^```$/ms.exec(section) ?? [];
  const imported = [...snippet.matchAll(/^import \{ (.*) \} from '(.*)';\n/gm)].flatMap(
    ([, names = '', from = '']) =>
      names
        .split(', ')
        .filter((name) => !name.startsWith('type '))
        .map((name) => [name, Reflect.get(MODULES[from] ?? {}, name)] as const),
  );
  const code = snippet
    .replace(/^import .*\n/gm, '')
    .replaceAll('https://fullnode.testnet.sui.io:443', fixture.node.url);
  const scope = { ...Object.fromEntries(imported), ...bindings };
  const body = stripTypeScriptTypes(`async () => {\n${code}\nreturn ${variable};\n}`);
  return await new Function(...Object.keys(scope), `return (${body})()`)(...Object.values(scope));
}

test('the snippet passes the signed bytes of an answer to the parameters of the contract on the page', async () => {
  const { once } = JSON.parse(read('test/vectors/bcs.json'));
  const [{ public_key: publicKey, signature }] = once.keys;
  const { nonce, recipient, points, timestamp_ms: timestampMs } = once;
  const bytes = (hex: string) => new Uint8Array(Buffer.from(hex, 'hex'));
  const data = { nonce: bytes(nonce), recipient: `0x${recipient}`, points: BigInt(points) };
  // The answer is from the test vectors, in the form that the client returns.
  const answer = { data, intent: 3, timestampMs, signature: bytes(signature), publicKey: bytes(publicKey) };
  const call = async () => answer;
  const suiClient = new grpc.SuiGrpcClient({ network: 'custom', baseUrl: fixture.node.url });
  const rewardsId = `0x${'1'.repeat(64)}`;
  const bindings = { client: { call }, appPackage: PACKAGE, suiClient, rewardsId, configId };
  const tx = await run('Submit to your contract', bindings, 'tx');

  const { inputs, commands } = (tx as Transaction).getData();
  const args = (commands[0]?.MoveCall?.arguments ?? []).map((argument) => {
    const input = 'Input' in argument ? inputs[argument.Input] : undefined;
    const id = input?.UnresolvedObject?.objectId ?? input?.Object?.SharedObject?.objectId;
    return id ?? Buffer.from(input?.Pure?.bytes ?? '', 'base64');
  });
  const [, parameters = ''] = /public fun award\((.*?)\) \{/s.exec(README) ?? [];
  const names = [...parameters.matchAll(/(\w+): /g)].map(([, name]) => name);
  expect(names).toHaveLength(args.length + 1);
  const argumentsByName = Object.fromEntries(names.map((name, index) => [name, args[index]]));
  expect(argumentsByName).toMatchObject({
    rewards: rewardsId,
    enclave: sui.enclaveAddress({ id: configId, enclavePackage: PACKAGE }, 0n, answer.publicKey),
    config: configId,
    clock: `0x${'6'.padStart(64, '0')}`,
    ctx: undefined,
  });
  const field = (name: string) => argumentsByName[name] as Uint8Array;
  const message = [Buffer.of(3), ...['timestamp_ms', 'order', 'recipient', 'points'].map(field)];
  expect(Buffer.concat(message).toString('hex')).toBe(once.bytes);
  const [length, ...sig] = field('sig');
  expect(length).toBe(64);
  expect(ed25519.verify(Uint8Array.from(sig), Buffer.concat(message), bytes(publicKey))).toBe(true);
});

test('the extension builds a transaction that the node accepts', async () => {
  const tx = (await run('As an extension', { configId }, 'tx')) as Transaction;
  tx.setSender(fixture.address);
  const node = new grpc.SuiGrpcClient({ network: 'custom', baseUrl: fixture.node.url });
  const { inputs } = Transaction.from(await tx.build({ client: node })).getData();
  expect(inputs[0]?.Object?.SharedObject?.objectId).toBe(configId);
});

test('the snippet reads all events, and keeps the cursor', async () => {
  const server = await startServer({ nsm: fixture.nsm });
  const enclaveId = await fixture.register(configId, capId, server.url);
  const log = vi.fn();
  const bindings = { enclavePackage: PACKAGE, console: { log } };
  expect(await run('Events', bindings, 'cursor')).toEqual(expect.any(String));
  expect(log.mock.calls).toEqual([[enclaveId, configId, capId]]);
});
