/** Login, salt, address, proof and signature in a real browser, against a real OpenID provider and the real salt service. */
import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import type { Server } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseSerializedSignature } from '@mysten/sui/cryptography';
import { type Browser, type BrowserContext, chromium, type Page } from 'playwright';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { loadApplication } from '../../../src/app.ts';
import { boot, type RunningServer } from '../../../src/boot.ts';
import { readConfig } from '../../../src/config.ts';
import { createLog } from '../../../src/log.ts';
import { CLIENTS, createPageServer, createProverStandIn, listen, startProvider } from './servers.ts';

let browser: Browser;
let origin: string;
let salt: RunningServer;
let saltLog = '';
const servers: Server[] = [];

/** The salt service, which asks the provider for its keys under a name of app.yaml. */
async function startSalt(issuer: string): Promise<RunningServer> {
  const folder = mkdtempSync(join(tmpdir(), 'sui-enclave-walk-'));
  const seed = join(folder, 'seed');
  writeFileSync(seed, randomBytes(32).toString('hex'), { mode: 0o600 });
  const jwks_url = 'https://id.walk.example/jwks';
  const clients = Object.values(CLIENTS).map(({ clientId }) => ({
    issuer,
    client_id: clientId,
    seed: 1,
    jwks_url,
  }));
  const env = {
    APP: 'salt',
    PORT: '0',
    LOG_LEVEL: 'trace',
    CORS_ORIGINS: origin,
    SALT_CLIENTS: JSON.stringify(clients),
    SALT_SEED_FILE: seed,
  };
  const { module, manifest } = await loadApplication(new URL('../../../src/apps/', import.meta.url), 'salt');
  const log = createLog('trace', { write: (line) => (saltLog += line) });
  const server = await boot({
    config: readConfig(env),
    env,
    log,
    module,
    manifest: { ...manifest, endpoints: [...manifest.endpoints, 'id.walk.example'] },
    origins: { 'id.walk.example': issuer },
  });
  rmSync(folder, { recursive: true });
  return server;
}

beforeAll(async () => {
  let settings = {};
  const page = await createPageServer(() => settings as never);
  origin = await listen(page);
  const redirectUri = `${origin}/back`;
  const { server: provider, issuer } = await startProvider(redirectUri);
  const prover = createProverStandIn();
  salt = await startSalt(issuer);
  settings = { issuer, saltUrl: salt.url, proverUrl: await listen(prover), redirectUri, clients: CLIENTS };
  servers.push(page, provider, prover);
  browser = await chromium.launch({
    executablePath: process.env['CHROMIUM'] ?? '/usr/bin/chromium',
    // Chromium's own sandbox does not start for root; the pages are this project's.
    args: process.getuid?.() === 0 ? ['--no-sandbox'] : [],
  });
});

afterAll(async () => {
  await browser?.close();
  await salt?.close();
  for (const server of servers) {
    server.closeAllConnections();
    server.close();
  }
});

async function open(context: BrowserContext): Promise<Page> {
  const page = await context.newPage();
  await page.goto(origin);
  await ready(page);
  return page;
}

async function newContext(): Promise<BrowserContext> {
  const context = await browser.newContext();
  onTestFinished(() => context.close());
  return context;
}

async function ready(page: Page): Promise<void> {
  await page.waitForFunction(() => document.querySelector('#ready')?.textContent === 'yes');
}

const shown = (page: Page, name: string) => page.textContent(`#${name}`);

/** What of the page's storages outlives the session. */
const persisted = (page: Page) =>
  page.evaluate(async () => ({
    local: Object.keys(localStorage),
    cookies: document.cookie,
    databases: (await indexedDB.databases()).length,
  }));
const NOTHING = { local: [], cookies: '', databases: 0 };

/** Through the provider's own pages: a name, and consent. */
async function logIn(page: Page, how: keyof typeof CLIENTS, name: string): Promise<void> {
  await page.click(`#${how}`);
  await page.fill('input[name=login]', name);
  await page.fill('input[name=password]', 'any');
  await page.click('button[type=submit]');
  await page.click('button[type=submit]');
  await page.waitForURL((url) => url.origin === origin);
  await ready(page);
  expect(await shown(page, 'error')).toBe('');
}

describe.each(Object.keys(CLIENTS) as (keyof typeof CLIENTS)[])('a login by %s', (how) => {
  test('leads to salt, address and signature, survives a reload, and leaves nothing behind', async () => {
    const context = await newContext();
    const page = await open(context);
    await logIn(page, how, 'alice');
    expect(await shown(page, 'subject')).toBe('alice');
    const address = await shown(page, 'address');
    expect(address).toMatch(/^0x[0-9a-f]{64}$/);
    expect(BigInt((await shown(page, 'salt')) ?? '') < 2n ** 128n).toBe(true);
    // No token in the address bar, nor in the history.
    expect(page.url()).toBe(`${origin}/`);
    expect(await persisted(page)).toEqual(NOTHING);
    expect(await page.evaluate(() => Object.keys(sessionStorage))).toEqual(['sui-enclave/zklogin/login']);

    await page.reload();
    await ready(page);
    expect(await shown(page, 'address')).toBe(address);

    await page.click('#prove');
    await page.waitForFunction(() => document.querySelector('#signature')?.textContent !== '');
    const signature = (await shown(page, 'signature')) ?? '';
    const parsed = parseSerializedSignature(signature);
    expect(parsed.signatureScheme).toBe('ZkLogin');

    await page.reload();
    await ready(page);
    expect(await shown(page, 'signature')).toBe(signature);
    expect(await shown(page, 'address')).toBe(address);
    expect(await persisted(page)).toEqual(NOTHING);

    // Another tab is another session.
    const other = await open(context);
    expect(await shown(other, 'address')).toBe('');
    expect(await shown(other, 'signature')).toBe('');
  });
});

describe('users', () => {
  test('have one address each, by whichever session they come back', async () => {
    const addresses: Record<string, (string | null)[]> = {};
    for (const name of ['alice', 'bob', 'alice']) {
      const page = await open(await newContext());
      await logIn(page, 'implicit', name);
      addresses[name] = [...(addresses[name] ?? []), await shown(page, 'address')];
    }
    const [first, again] = addresses['alice'] ?? [];
    expect(again).toBe(first);
    expect(addresses['bob']?.[0]).not.toBe(first);
  });

  test('have another address at another client', async () => {
    const addresses = new Set<string | null>();
    for (const how of Object.keys(CLIENTS) as (keyof typeof CLIENTS)[]) {
      const page = await open(await newContext());
      await logIn(page, how, 'alice');
      addresses.add(await shown(page, 'address'));
    }
    expect(addresses.size).toBe(3);
  });
});

test('a user who says no is told so', async () => {
  const page = await open(await newContext());
  await page.click('#implicit');
  await page.click('text=Cancel');
  await page.waitForURL((url) => url.origin === origin);
  await ready(page);
  expect(await shown(page, 'error')).toBe('ZKLOGIN_PROVIDER_REFUSED');
});

test('an answer that was used is refused when it comes again', async () => {
  const page = await open(await newContext());
  let back = '';
  page.on('framenavigated', (frame) => {
    if (frame.url().includes('id_token=')) back = frame.url();
  });
  await logIn(page, 'implicit', 'alice');
  expect(back).toContain('id_token=');
  await page.goto('about:blank');
  await page.goto(back);
  await ready(page);
  expect(await shown(page, 'error')).toBe('ZKLOGIN_NO_LOGIN');
});

test('a page of another origin can not read a salt', async () => {
  const page = await (await newContext()).newPage();
  const elsewhere = origin.replace('127.0.0.1', 'localhost');
  await page.goto(elsewhere);
  const asked = (url: string) =>
    page.evaluate(
      (target) =>
        fetch(`${target}/get_salt`, {
          method: 'POST',
          headers: { 'content-type': 'application/json' },
          body: '{"token":"x"}',
        }).then(
          (response) => response.status,
          (error) => error.name,
        ),
      url,
    );
  expect(await asked(salt.url)).toBe('TypeError');
  await page.goto(origin);
  expect(await asked(salt.url)).toBe(400);
});

test('the salt service has logged no token, subject or salt', () => {
  expect(saltLog).toContain('gave a salt');
  expect(saltLog).not.toMatch(/alice|bob|eyJ/);
});
