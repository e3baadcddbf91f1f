/**
 * Serves the page of src/library/zklogin/README.md as a developer does on their own port, with the services
 * of make dev-wallet.
 */
import { createServer } from 'node:http';
import { fileURLToPath } from 'node:url';
import { chromium } from 'playwright';
import { rolldown } from 'rolldown';
import { expect, onTestFinished, test } from 'vitest';
import { createLog } from '../../../src/service/log.ts';
import { listen } from '../../../src/toolchain/dev/wallet/servers.ts';
import { startWalletServices } from '../../../src/toolchain/dev/wallet/services.ts';
import type { Addresses } from './readme/my_wallet.ts';

async function servePage(addresses: Addresses): Promise<string> {
  const bundle = await rolldown({
    input: fileURLToPath(new URL('./readme/page.ts', import.meta.url)),
    platform: 'browser',
    logLevel: 'silent',
  });
  const { output } = await bundle.generate({ format: 'esm', codeSplitting: false });
  await bundle.close();
  const html = `<!doctype html><title>wallet</title><link rel="icon" href="data:,">
    <script type="application/json" id="addresses">${JSON.stringify(addresses)}</script>
    <button id="login">log in</button><button id="send">send</button><output></output>
    <script type="module" src="/page.js"></script>`;
  const server = createServer(({ url }, response) => {
    if (url === '/page.js') response.setHeader('content-type', 'text/javascript').end(output[0].code);
    else response.setHeader('content-type', 'text/html').end(html);
  });
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return await listen(server);
}

test('the page of the README logs in and sends a transaction, from an origin that is not registered', async () => {
  const services = await startWalletServices({ log: createLog('silent'), seed: 'ab'.repeat(32) });
  onTestFinished(() => services.close());
  const { issuer, saltUrl: salt, proverUrl: prover, node } = services;
  const origin = await servePage({ issuer, salt, prover, node: node.url });
  const browser = await chromium.launch({
    executablePath: process.env['CHROMIUM'] ?? '/usr/bin/chromium',
    args: process.getuid?.() === 0 ? ['--no-sandbox'] : [],
  });
  onTestFinished(() => browser.close());
  const page = await browser.newPage();
  await page.goto(origin.replace('127.0.0.1', 'localhost'));
  const output = page.locator('output');
  await expect.poll(() => output.textContent()).toBe('You are not logged in.');
  await page.click('#login');
  await page.fill('input[name=login]', 'alice');
  await page.fill('input[name=password]', 'any');
  await page.click('button[type=submit]');
  await page.click('button[type=submit]');
  await expect.poll(() => output.textContent()).toMatch(/^0x[0-9a-f]{64} until 102$/);
  const [address = ''] = (await output.textContent())?.split(' ') ?? [];
  node.ledger.give(address, 1_000_000_000n);
  await page.click('#send');
  await expect.poll(() => page.title()).not.toBe('wallet');
  expect(node.ledger.executed).toContain(await page.title());
});
