/** The service of `make dev-sui`: its account, faucet and ports, and its answers to unknown calls. */
import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { requestSuiFromFaucetV2 } from '@mysten/sui/faucet';
import { SuiGrpcClient } from '@mysten/sui/grpc';
import { Ed25519Keypair } from '@mysten/sui/keypairs/ed25519';
import { Transaction } from '@mysten/sui/transactions';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { isModelChain } from '../../../../../src/cli/sui/network.ts';
import { computeDigest, type LedgerObject } from '../../../../../src/devnet/ledger.ts';
import { certificatesFromPem } from '../../../../../src/library/attestation/index.ts';
import { main } from '../../../../../src/toolchain/dev/sui/main.ts';
import { type DevSui, startDevSui } from '../../../../../src/toolchain/dev/sui/service.ts';
import { call } from '../../../cli/run.ts';

const folder = mkdtempSync(join(tmpdir(), 'dev-sui-'));
const file = (name: string) => join(folder, name);
const start = (settings: { port?: number; faucetPort?: number } = {}, env = {}) =>
  startDevSui({ port: 0, faucetPort: 0, folder: pathToFileURL(`${folder}/`), env, ...settings });

let service: DevSui;
let client: SuiGrpcClient;
beforeAll(async () => {
  service = await start();
  client = new SuiGrpcClient({ network: 'localnet', baseUrl: service.node.url });
});
afterAll(async () => {
  await service.close();
  rmSync(folder, { recursive: true });
});

const readBalance = async (owner: string) => (await client.core.getBalance({ owner })).balance.balance;

describe('the account', () => {
  test('has SUI, and a key that only its owner can read', async () => {
    const { address, keyFile = '' } = service.account;
    expect(keyFile).toBe(file('dev-sui.key'));
    expect(statSync(keyFile).mode & 0o777).toBe(0o600);
    const key = Ed25519Keypair.fromSecretKey(readFileSync(keyFile, 'utf8').trim());
    expect(key.toSuiAddress()).toBe(address);
    expect(await readBalance(address)).toBe('1000000000000');
  });

  test('stays the same at the next start, which has another chain', async () => {
    const next = await start();
    await next.close();
    expect(next.account).toEqual(service.account);
    expect(next.node.chainId).not.toBe(service.node.chainId);
    expect([next, service].every(({ node }) => isModelChain(node.chainId))).toBe(true);
  });

  test('is the one of SUI_PRIVATE_KEY, if that is set', async () => {
    const key = new Ed25519Keypair();
    const next = await start({}, { SUI_PRIVATE_KEY: key.getSecretKey() });
    await next.close();
    expect(next.account).toEqual({ address: key.toSuiAddress(), keyFile: undefined });
    expect(next.node.ledger.coins(key.toSuiAddress())).toHaveLength(1);
    await expect(start({}, { SUI_PRIVATE_KEY: 'foo' })).rejects.toMatchObject({ code: 'SIGNER' });
  });

  test('is refused if others can read its key, or the file has no key, without repeating the file', async () => {
    const { keyFile = '' } = service.account;
    const keyText = readFileSync(keyFile, 'utf8');
    chmodSync(keyFile, 0o644);
    await expect(start()).rejects.toThrow('chmod 600');
    writeFileSync(keyFile, keyText.slice(0, -5));
    chmodSync(keyFile, 0o600);
    const error = await start().catch((thrown: Error) => thrown);
    expect(String(error)).toMatch(/does not hold an Ed25519 key/);
    expect(String(error)).not.toContain(keyText.slice(20, 40));
    writeFileSync(keyFile, keyText);
  });
});

test('the service makes the root that make dev ATTEST=emulated signs with, and pins it', () => {
  expect(service.note).toMatch(/a new root, out\/dev-root\.pem/);
  const [root] = certificatesFromPem(readFileSync(file('dev-root.pem'), 'utf8'));
  expect(Buffer.from(service.node.executor.root)).toEqual(Buffer.from(root ?? []));
  expect(existsSync(file('dev.pcrs'))).toBe(true);
});

describe('the faucet', () => {
  test("gives 10 SUI to the recipient that Sui's own client names", async () => {
    const recipient = new Ed25519Keypair().toSuiAddress();
    await requestSuiFromFaucetV2({ host: service.faucetUrl, recipient });
    await requestSuiFromFaucetV2({ host: service.faucetUrl, recipient });
    expect(await readBalance(recipient)).toBe('20000000000');
  });

  test.each([
    ['{"FixedAmountRequest":{"recipient":"0x12zz"}}', 400],
    ['{"FixedAmountRequest":{"recipient":5}}', 400],
    ['{}', 400],
    ['null', 400],
    ['not json', 400],
  ])('refuses %.50s, and says what it expects', async (body, status) => {
    const answer = await fetch(`${service.faucetUrl}/v2/gas`, { method: 'POST', body });
    expect(answer.status).toBe(status);
    expect(JSON.stringify(await answer.json())).toMatch(/FixedAmountRequest/);
  });

  test('names its path to a request for another path', async () => {
    const answer = await fetch(`${service.faucetUrl}/gas`);
    expect([answer.status, await answer.text()]).toEqual([404, expect.stringContaining('POST /v2/gas')]);
  });
});

describe('an unknown call', () => {
  test('of gRPC is UNIMPLEMENTED, and the error names the method', async () => {
    await expect(client.stateService.getCoinInfo({ coinType: '0x2::sui::SUI' })).rejects.toMatchObject({
      code: 'UNIMPLEMENTED',
      message: expect.stringContaining('sui.rpc.v2.StateService/GetCoinInfo'),
    });
  });

  test('of JSON-RPC or a browser has status 415, and the answer names SuiGrpcClient', async () => {
    for (const request of [
      {},
      { method: 'POST', body: '{}', headers: { 'content-type': 'application/json' } },
    ]) {
      const answer = await fetch(service.node.url, request);
      expect([answer.status, await answer.text()]).toEqual([415, expect.stringContaining('SuiGrpcClient')]);
    }
  });
});

test('the execution refuses an object of another owner, even if no simulation came before', async () => {
  const thief = new Ed25519Keypair();
  const { node, account } = service;
  node.ledger.give(thief.toSuiAddress(), 1_000_000_000n);
  const reference = (object: LedgerObject) => ({
    objectId: object.id,
    version: String(object.version),
    digest: computeDigest(object),
  });
  const [stolen] = node.ledger.owned(account.address);
  const [gas] = node.ledger.owned(thief.toSuiAddress());
  if (!stolen || !gas) throw new Error('no coins');
  const tx = new Transaction();
  tx.setSender(thief.toSuiAddress());
  tx.setGasPayment([reference(gas)]);
  tx.setGasBudget(5_000_000);
  tx.setGasPrice(1000);
  tx.transferObjects([tx.objectRef(reference(stolen))], thief.toSuiAddress());
  tx.setExpiration({ None: true });
  const { bytes, signature } = await thief.signTransaction(await tx.build());
  const sent = client.executeTransaction({
    transaction: Buffer.from(bytes, 'base64'),
    signatures: [signature],
  });
  await expect(sent).rejects.toThrow(/not signed by the correct sender|correct%20sender/);
  expect(node.ledger.owned(account.address)).toContainEqual(stolen);
});

test('only pages of this machine may call the node and the faucet', async () => {
  for (const url of [service.node.url, service.faucetUrl]) {
    for (const [origin, expected] of [
      ['http://localhost:5173', 204],
      ['https://attacker.example', 403],
    ] as const) {
      const { status, headers } = await fetch(url, { method: 'OPTIONS', headers: { origin } });
      const allowed = expected === 204 ? origin : null;
      expect([status, headers.get('access-control-allow-origin')]).toEqual([expected, allowed]);
    }
  }
});

describe('a port', () => {
  test.each(['port', 'faucetPort'] as const)(
    'that is in use is refused by its number and its setting: %s',
    async (name) => {
      const holder = createServer();
      await new Promise<void>((resolve) => {
        holder.listen(0, '127.0.0.1', resolve);
      });
      onTestFinished(() => void holder.close());
      const { port } = holder.address() as AddressInfo;
      const setting = name === 'port' ? 'PORT' : 'FAUCET_PORT';
      await expect(start({ [name]: port })).rejects.toThrow(
        `can't listen on port ${port}: EADDRINUSE. Set ${setting} to another port`,
      );
    },
  );

  test.each([
    [{ PORT: 'x' }, 'PORT must be an integer from 0 to 65535'],
    [{ FAUCET_PORT: '70000' }, 'FAUCET_PORT must be an integer'],
    [{ PORT: '9123' }, 'PORT and FAUCET_PORT must differ'],
  ])('in %j is refused in one line', async (env, message) => {
    const { status, stderr } = await call(main, [], { env: { ...env, OUT: folder } });
    expect({ status, stderr }).toEqual({
      status: 1,
      stderr: expect.stringContaining(`sui-enclave dev-sui: ${message}`),
    });
    expect(stderr.trimEnd()).not.toContain('\n');
  });
});
