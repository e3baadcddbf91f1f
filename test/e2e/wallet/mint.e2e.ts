/**
 * Mints an object from an enclave's answer, under a zkLogin address. The settings of the wallet's page have
 * the addresses of a chain and an enclave.
 */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { SuiGrpcClient } from '@mysten/sui/grpc';
import type { Browser, Page } from 'playwright';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { createLog } from '../../../src/service/log.ts';
import { type Admin, adminOn, publishWeather } from '../../../src/toolchain/dev/sui/admin.ts';
import { type DevSui, startDevSui } from '../../../src/toolchain/dev/sui/service.ts';
import type { WalletEnclave } from '../../../src/toolchain/dev/wallet/page_server.ts';
import { startWalletServices } from '../../../src/toolchain/dev/wallet/services.ts';
import { type Artifacts, builtProver } from '../../../src/toolchain/prover/artifacts.ts';
import { inspect, launch, type Running, start } from '../console/console.ts';
import { button, logIn, newContext, problem, readAddress, readFailure, ready } from './wallet_page.ts';

let browser: Browser;
let folder: string;
let dev: Running;
let sui: DevSui;
let enclave: WalletEnclave;
let admin: Admin;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'wallet-'));
  browser = await launch();
  dev = await start('main.ts', { ATTEST: 'emulated', OUT: folder }, /npx --offline sui-enclave verify \S+/);
  const url = /npx --offline sui-enclave verify (\S+)/.exec(dev.output)?.[1] ?? '';
  sui = await startDevSui({ port: 0, faucetPort: 0, folder: pathToFileURL(`${folder}/`), env: {} });
  admin = adminOn(sui, join(folder, 'deployments'));
  const ids = await publishWeather(admin, join(folder, 'dev.pcrs'));
  const rootPem = readFileSync(join(folder, 'dev-root.pem'), 'utf8');
  enclave = { url, rootPem, ...ids };
});

afterAll(async () => {
  await browser?.close();
  await sui?.close();
  await dev?.close();
  rmSync(folder, { recursive: true });
});

/** Starts the services, and logs in to the wallet's page. @param prover undefined for a fake */
async function openWallet(prover: Artifacts | undefined): Promise<Page> {
  const services = await startWalletServices({
    log: createLog('silent'),
    seed: 'ab'.repeat(32),
    chain: sui,
    enclave: () => enclave,
    ...(prover && { prover }),
  });
  onTestFinished(() => services.close());
  const page = await (await newContext(browser)).newPage();
  await page.goto(services.origin);
  await ready(page);
  await logIn(page, 'alice');
  await page.locator('main[data-step=open]').waitFor({ timeout: 50_000 });
  return page;
}

test('the page reports an unregistered enclave by the code of the error, and does not offer to mint', async () => {
  const page = await openWallet(undefined);
  await button(page, 'Ask').click();
  await problem(page).waitFor();
  expect(await readFailure(page)).toMatch(/^CLIENT_NOT_REGISTERED /);
  expect(await button(page, 'Mint it').count()).toBe(0);
  await inspect(page, 'wallet-not-registered');
});

/** Uses the real prover if it is built. CI runs this test after make test-prover, which builds it. */
test('the answer of a registered enclave becomes an object of the user', { timeout: 120_000 }, async () => {
  await admin('register_enclave', enclave.url, '--root', join(folder, 'dev-root.pem'));
  const page = await openWallet(builtProver('small'));
  await button(page, 'Ask').click();
  const mint = button(page, 'Mint it');
  await mint.waitFor();
  // The user has no SUI for the gas.
  expect(await mint.isEnabled()).toBe(false);
  await button(page, 'Get 10 SUI').click();
  await expect.poll(() => mint.isEnabled()).toBe(true);
  await inspect(page, 'wallet-asked');
  await mint.click();
  await expect.poll(() => page.textContent('main')).toContain('a WeatherNFT');
  await inspect(page, 'wallet-minted');

  const address = (await readAddress(page)) ?? '';
  const client = new SuiGrpcClient({ network: 'localnet', baseUrl: sui.node.url });
  const type = `${enclave.packageId}::weather::WeatherNFT`;
  const { objects } = await client.core.listOwnedObjects({ owner: address, type });
  expect(objects).toHaveLength(1);
  expect(await page.textContent('main')).toContain(objects[0]?.objectId);
  expect(await page.textContent('.history li')).toContain('executed');
});
