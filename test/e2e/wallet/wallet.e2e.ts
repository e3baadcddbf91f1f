/**
 * Login, salt, address, proof and signature in a real browser, against a real OpenID provider and the real salt service,
 * first with a fake of the proving service, which can fail.
 */
import { type Browser, type BrowserContext, chromium, type Page } from 'playwright';
import { afterAll, afterEach, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { CLIENTS, type How } from '../../../src/commands/dev/wallet/servers.ts';
import { startWalletServices, type WalletServices } from '../../../src/commands/dev/wallet/services.ts';
import { builtProver } from '../../../src/commands/prover/artifacts.ts';
import { createLog } from '../../../src/service/log.ts';
import { freePorts } from '../../src/commands/dev/wallet/free_ports.ts';

const WAYS = Object.keys(CLIENTS) as How[];
const EPOCH = 100n;
const SEED = 'ab'.repeat(32);

let browser: Browser;
let services: WalletServices;
let log = '';
const keptLog = () => createLog('trace', { write: (line) => (log += line) });

beforeAll(async () => {
  services = await startWalletServices({ log: keptLog(), seed: SEED });
  browser = await chromium.launch({
    executablePath: process.env['CHROMIUM'] ?? '/usr/bin/chromium',
    // Chromium's own sandbox does not start for root; the pages are this project's.
    args: process.getuid?.() === 0 ? ['--no-sandbox'] : [],
  });
});

afterAll(async () => {
  await browser?.close();
  await services?.close();
});

afterEach(() => {
  services.proverIsBroken = false;
  services.node.epoch = EPOCH;
});

async function open(context: BrowserContext, how: How = 'implicit'): Promise<Page> {
  const page = await context.newPage();
  await page.goto(`${services.origin}/?how=${how}`);
  await ready(page);
  return page;
}

async function newContext(): Promise<BrowserContext> {
  const context = await browser.newContext();
  const outside: string[] = [];
  context.on('request', (request) => {
    const { hostname, href } = new URL(request.url());
    if (!/^(127\.0\.0\.1|(.+\.)?localhost)$/.test(hostname)) outside.push(href);
  });
  onTestFinished(async () => {
    await context.close();
    expect(outside).toEqual([]);
  });
  return context;
}

async function ready(page: Page): Promise<void> {
  await page.waitForFunction(() => document.querySelector('#ready')?.textContent === 'yes');
}

const shown = (page: Page, name: string) => page.textContent(`#${name}`);

/** The part of the page's storages that outlives the session. */
const persisted = (page: Page) =>
  page.evaluate(async () => ({
    local: Object.keys(localStorage),
    cookies: document.cookie,
    databases: (await indexedDB.databases()).length,
  }));
const NOTHING = { local: [], cookies: '', databases: 0 };

/** The keys in the session storage. */
const kept = (page: Page) => page.evaluate(() => Object.keys(sessionStorage));

/** Through the provider's own pages: a name, and consent. */
async function logIn(page: Page, name: string): Promise<void> {
  await page.click('#login');
  await page.fill('input[name=login]', name);
  await page.fill('input[name=password]', 'any');
  await page.click('button[type=submit]');
  await page.click('button[type=submit]');
  await page.waitForURL((url) => url.origin === services.origin);
  await ready(page);
}

async function logInWhole(page: Page, name: string): Promise<string | null> {
  await logIn(page, name);
  expect(await shown(page, 'error')).toBe('');
  expect(await shown(page, 'status')).toBe('You can sign until epoch 102 ends.');
  return await shown(page, 'address');
}

/** The digest of a transaction that the node has executed, and so has found well signed. */
async function send(page: Page): Promise<string> {
  const before = await shown(page, 'digest');
  await page.click('#send');
  await page.waitForFunction((old) => document.querySelector('#digest')?.textContent !== old, before);
  const digest = (await shown(page, 'digest')) ?? '';
  expect(services.node.ledger.executed).toContain(digest);
  return digest;
}

describe.each(WAYS)('a login by %s', (how) => {
  test('leads to an address that can send, survives a reload, and leaves nothing behind', async () => {
    const context = await newContext();
    const page = await open(context, how);
    expect(await shown(page, 'status')).toBe('You are not logged in.');
    const address = await logInWhole(page, 'alice');
    expect(address).toMatch(/^0x[0-9a-f]{64}$/);
    // The token is neither in the address bar nor in the history.
    expect(page.url()).toBe(`${services.origin}/`);
    expect(await persisted(page)).toEqual(NOTHING);
    expect(await kept(page)).toEqual(['sui-enclave/zklogin/session']);
    const first = await send(page);

    await page.reload();
    await ready(page);
    expect(await shown(page, 'address')).toBe(address);
    expect(await send(page)).not.toBe(first);
    expect(await persisted(page)).toEqual(NOTHING);

    // Another tab is another session.
    const other = await open(context, how);
    expect(await shown(other, 'status')).toBe('You are not logged in.');
    expect(await shown(other, 'address')).toBe('');

    await page.click('#logout');
    expect(await shown(page, 'status')).toBe('You have logged out.');
    expect(await kept(page)).toEqual([]);
  });

  test('continues after a missing proof, by a reload and by trying again', async () => {
    const page = await open(await newContext(), how);
    services.proverIsBroken = true;
    await logIn(page, 'alice');
    expect(await shown(page, 'error')).toMatch(/^ZKLOGIN_REFUSED /);
    const address = await shown(page, 'address');
    expect(address).toMatch(/^0x[0-9a-f]{64}$/);
    expect(page.url()).toBe(`${services.origin}/`);

    await page.reload();
    await ready(page);
    expect(await shown(page, 'error')).toMatch(/^ZKLOGIN_REFUSED /);
    expect(await kept(page)).toEqual(['sui-enclave/zklogin/login']);

    services.proverIsBroken = false;
    await page.click('#again');
    await page.waitForFunction(() => document.querySelector('#status')?.textContent?.includes('102'));
    expect(await shown(page, 'error')).toBe('');
    expect(await shown(page, 'address')).toBe(address);
    await send(page);
  });
});

test('a login that is given up leaves nothing', async () => {
  const page = await open(await newContext());
  services.proverIsBroken = true;
  await logIn(page, 'alice');
  await page.click('#cancel');
  expect(await shown(page, 'status')).toBe('You are not logged in.');
  expect(await kept(page)).toEqual([]);
});

test('a session that has expired asks for a login, and is renewed by it', async () => {
  const page = await open(await newContext());
  const address = await logInWhole(page, 'alice');
  services.node.epoch = EPOCH + 3n;
  await page.click('#send');
  await page.waitForFunction(() => document.querySelector('#error')?.textContent !== '');
  expect(await shown(page, 'error')).toMatch(/^ZKLOGIN_EXPIRED /);
  await page.reload();
  await ready(page);
  expect(await shown(page, 'status')).toBe('Your session has expired.');
  // The provider still knows the user, and asks for nothing but consent.
  await page.click('#login');
  await page.click('button[type=submit]');
  await page.waitForURL((url) => url.origin === services.origin);
  await ready(page);
  expect(await shown(page, 'status')).toBe('You can sign until epoch 105 ends.');
  expect(await shown(page, 'address')).toBe(address);
  await send(page);
});

describe('users', () => {
  test('keep one address each across sessions', async () => {
    const addresses: Record<string, (string | null)[]> = {};
    for (const name of ['alice', 'bob', 'alice']) {
      const page = await open(await newContext());
      addresses[name] = [...(addresses[name] ?? []), await logInWhole(page, name)];
    }
    const [first, again] = addresses['alice'] ?? [];
    expect(again).toBe(first);
    expect(addresses['bob']?.[0]).not.toBe(first);
  });

  test('have another address at another client', async () => {
    const addresses = new Set<string | null>();
    for (const how of WAYS) {
      addresses.add(await logInWhole(await open(await newContext(), how), 'alice'));
    }
    expect(addresses.size).toBe(3);
  });
});

test('a user who refuses sees that, and one who comes back without an answer can begin again', async () => {
  const page = await open(await newContext());
  await page.click('#login');
  await page.click('text=Cancel');
  await page.waitForURL((url) => url.origin === services.origin);
  await ready(page);
  expect(await shown(page, 'error')).toMatch(/^ZKLOGIN_PROVIDER_REFUSED .*access_denied/);
  await page.goto(`${services.origin}/back`);
  await ready(page);
  expect(await shown(page, 'error')).toBe('');
  expect(await shown(page, 'status')).toBe('You are not logged in.');
});

test('an answer that was used has no effect when it comes again, in this tab or another', async () => {
  const context = await newContext();
  const page = await open(context);
  let back = '';
  page.on('framenavigated', (frame) => {
    if (frame.url().includes('id_token=')) back = frame.url();
  });
  const address = await logInWhole(page, 'alice');
  expect(back).toContain('id_token=');
  await page.goto('about:blank');
  await page.goto(back);
  await ready(page);
  expect(await shown(page, 'address')).toBe(address);
  expect(await kept(page)).toEqual(['sui-enclave/zklogin/session']);

  const other = await context.newPage();
  await other.goto(back);
  await ready(other);
  expect(await shown(other, 'status')).toBe('You are not logged in.');
  await other.click('#login');
  await other.waitForURL((url) => url.origin === services.issuer);
  await other.goto(back);
  await ready(other);
  expect(await shown(other, 'error')).toMatch(/^ZKLOGIN_STATE /);
});

test('a user has the same address at the next run, on the same ports with the same seed', async () => {
  const first = services;
  onTestFinished(() => {
    services = first;
  });
  const ports = await freePorts();
  const addresses = new Set<string | null>();
  for (const seed of [SEED, SEED, 'cd'.repeat(32)]) {
    services = await startWalletServices({ log: keptLog(), ports, seed });
    addresses.add(await logInWhole(await open(await newContext()), 'alice'));
    await services.close();
  }
  expect(addresses.size).toBe(2);
});

test('a page of another host cannot read a salt, one of this machine can', async () => {
  const page = await (await newContext()).newPage();
  await page.goto(services.origin.replace('127.0.0.1', 'wallet.localhost'));
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
  expect(await asked(services.saltUrl)).toBe('TypeError');
  for (const origin of [services.origin, services.origin.replace('127.0.0.1', 'localhost')]) {
    await page.goto(origin);
    expect(await asked(services.saltUrl)).toBe(400);
  }
});

const prover = builtProver('small');
/** Without make prover-dev SIZE=small these are skipped; CI runs them after make test-prover, which builds it. */
describe.skipIf(!prover)('with the real proving service', () => {
  let withFake: WalletServices;

  beforeAll(async () => {
    withFake = services;
    services = await startWalletServices({ log: keptLog(), seed: SEED, ...(prover && { prover }) });
  });

  afterAll(async () => {
    await services.close();
    services = withFake;
  });

  test.each(WAYS)('a login by %s ends in a proof of this very login, and can send', async (how) => {
    const page = await open(await newContext(), how);
    expect(await logInWhole(page, 'alice')).toMatch(/^0x[0-9a-f]{64}$/);
    await send(page);
  });

  test('the Sui node refuses a wrong proof, and the page reports that', async () => {
    const page = await open(await newContext());
    await logInWhole(page, 'alice');
    await page.evaluate(() => {
      const key = 'sui-enclave/zklogin/session';
      const session = JSON.parse(sessionStorage.getItem(key) ?? '');
      const { a, c } = session.inputs.proofPoints;
      Object.assign(session.inputs.proofPoints, { a: c, c: a });
      sessionStorage.setItem(key, JSON.stringify(session));
    });
    await page.reload();
    await ready(page);
    await page.click('#send');
    await page.waitForFunction(() => document.querySelector('#error')?.textContent !== '');
    expect(await shown(page, 'error')).toMatch(/^ZKLOGIN_PROOF .*Groth16 proof verify failed/);
    expect(await shown(page, 'digest')).toBe('');
  });
});

test('neither salt service nor proving service has logged a token, subject or salt', () => {
  expect(log).toContain('issued a salt');
  expect(log).not.toMatch(/alice|bob|eyJ/);
});
