/**
 * Tests login, salt, address, proof and signature in a real browser, against a real OpenID provider and the
 * real salt service. The first tests use a fake of the proving service, which can fail.
 */
import type { Browser, BrowserContext, Page } from 'playwright';
import { afterAll, afterEach, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { createLog } from '../../../src/service/log.ts';
import { CLIENTS, type LoginFlow } from '../../../src/toolchain/dev/wallet/servers.ts';
import { startWalletServices, type WalletServices } from '../../../src/toolchain/dev/wallet/services.ts';
import { builtProver } from '../../../src/toolchain/prover/artifacts.ts';
import { findFreePorts } from '../../src/toolchain/dev/wallet/free_ports.ts';
import { inspect, launch } from '../console/console.ts';
import {
  button,
  LOG_IN,
  logIn,
  newContext,
  passProvider,
  prepare,
  problem,
  readAddress,
  readFailure,
  readStep,
  ready,
} from './wallet_page.ts';

const FLOWS = Object.keys(CLIENTS) as LoginFlow[];
const EPOCH = 100n;
const SEED = 'ab'.repeat(32);

let browser: Browser;
let services: WalletServices;
let log = '';
const createRecordedLog = () => createLog('trace', { write: (line) => (log += line) });

beforeAll(async () => {
  services = await startWalletServices({ log: createRecordedLog(), seed: SEED });
  browser = await launch();
});

afterAll(async () => {
  await browser?.close();
  await services?.close();
});

afterEach(() => {
  services.proverIsBroken = false;
  services.node.epoch = EPOCH;
});

async function open(context: BrowserContext, responseMode: LoginFlow = 'implicit'): Promise<Page> {
  const page = await context.newPage();
  await page.goto(services.origin);
  await ready(page);
  await page.check(`input[value=${responseMode}]`);
  return page;
}

/** Returns the part of the page's storages that outlives the session. */
const readPersistent = (page: Page) =>
  page.evaluate(async () => ({
    local: Object.keys(localStorage),
    cookies: document.cookie,
    databases: (await indexedDB.databases()).length,
  }));
const NOTHING = { local: [], cookies: '', databases: 0 };

/** Returns the keys in the session storage. */
const readSessionKeys = (page: Page) => page.evaluate(() => Object.keys(sessionStorage));

async function completeLogin(page: Page, name: string): Promise<string | null> {
  await logIn(page, name);
  expect(await problem(page).count()).toBe(0);
  expect(await page.textContent('main')).toContain('It can sign until epoch 102 ends.');
  return await readAddress(page);
}

/** Sends a transaction, which the node must execute. @returns its digest */
async function send(page: Page): Promise<string> {
  const digests = page.locator('[data-digest]');
  const before = await digests.count();
  await prepare(page);
  await button(page, 'Send').click();
  await expect.poll(() => digests.count()).toBe(before + 1);
  const digest = (await digests.first().getAttribute('data-digest')) ?? '';
  expect(services.node.ledger.executed).toContain(digest);
  return digest;
}

describe.each(FLOWS)('a login by %s', (responseMode) => {
  test('gives an address that can send, survives a reload, and leaves nothing behind', async () => {
    const context = await newContext(browser);
    const page = await open(context, responseMode);
    expect(await readStep(page)).toBe('none');
    const address = await completeLogin(page, 'alice');
    expect(address).toMatch(/^0x[0-9a-f]{64}$/);
    // The token is neither in the address bar nor in the history.
    expect(page.url()).toBe(`${services.origin}/`);
    expect(await readPersistent(page)).toEqual(NOTHING);
    expect(await readSessionKeys(page)).toEqual(['sui-enclave/zklogin/session']);
    const first = await send(page);

    await page.reload();
    await ready(page);
    expect(await readAddress(page)).toBe(address);
    expect(await send(page)).not.toBe(first);
    expect(await readPersistent(page)).toEqual(NOTHING);

    // Another tab is another session.
    const otherPage = await open(context, responseMode);
    expect(await readStep(otherPage)).toBe('none');
    expect(await otherPage.locator('[data-address]').count()).toBe(0);

    await button(page, 'Log out').click();
    expect(await readStep(page)).toBe('none');
    expect(await page.locator('[data-address]').count()).toBe(0);
    expect(await readSessionKeys(page)).toEqual([]);
  });

  test('continues after a missing proof, by a reload and by trying again', async () => {
    const page = await open(await newContext(browser), responseMode);
    services.proverIsBroken = true;
    await logIn(page, 'alice');
    expect(await readFailure(page)).toMatch(/^ZKLOGIN_REFUSED /);
    expect(await readStep(page)).toBe('proof');
    const shownAddress = await page.locator('[data-state=done] code').textContent();
    expect(shownAddress).toMatch(/^0x[0-9a-f]{6}…[0-9a-f]{6}$/);
    expect(page.url()).toBe(`${services.origin}/`);

    await page.reload();
    await ready(page);
    expect(await readFailure(page)).toMatch(/^ZKLOGIN_REFUSED /);
    expect(await readSessionKeys(page)).toEqual(['sui-enclave/zklogin/login']);

    services.proverIsBroken = false;
    await button(page, 'Try again').click();
    await page.locator('main[data-step=open]').waitFor();
    expect(await problem(page).count()).toBe(0);
    expect(await page.locator('[data-address]').textContent()).toBe(shownAddress);
    await send(page);
  });
});

describe('only the buttons that can do something are enabled', () => {
  /** Returns the names of the enabled buttons, without those that copy. */
  const listEnabled = async (page: Page) => await page.locator('button:enabled:not(.copy)').allTextContents();

  test('before and during a login', async () => {
    const page = await open(await newContext(browser));
    expect(await listEnabled(page)).toEqual([LOG_IN]);
    services.proverIsBroken = true;
    await logIn(page, 'alice');
    expect(await listEnabled(page)).toEqual(['Try again', 'Cancel']);
  });

  test('in a session', async () => {
    const page = await open(await newContext(browser));
    const name = `new ${Math.random()}`;
    await completeLogin(page, name);
    const balance = page.locator('output');
    await expect.poll(() => balance.textContent()).toBe('0 SUI');
    const always = ['Get 10 SUI', 'Log out'];
    expect(await listEnabled(page)).toEqual(always);
    const recipient = page.getByLabel('To', { exact: true });
    const amount = page.getByLabel('Amount in SUI');
    await recipient.fill(`0x${'5'.repeat(64)}`);
    await amount.fill('1');
    // There is no SUI to send.
    expect(await listEnabled(page)).toEqual(always);
    await button(page, 'Get 10 SUI').click();
    await expect.poll(() => listEnabled(page)).toEqual(['Get 10 SUI', 'Log out', 'Send']);
    for (const invalidAmount of ['10', '0', '-1', '1e3', '0.0000000001', '1,5', '']) {
      await amount.fill(invalidAmount);
      expect([invalidAmount, await listEnabled(page)]).toEqual([invalidAmount, always]);
    }
    await amount.fill('9.5');
    expect(await listEnabled(page)).toContain('Send');
    await recipient.fill('0x5');
    expect(await listEnabled(page)).toEqual(always);
    // There is no enclave.
    expect(await page.textContent('main')).toContain('make play starts this wallet together with an enclave');
  });
});

test('the page is accessible and fits narrow screens, in each of its states', {
  timeout: 120_000,
}, async () => {
  const page = await open(await newContext(browser));
  await inspect(page, 'wallet-login');
  // The proving service does not answer.
  await page.route(services.proverUrl, () => undefined);
  await passProvider(page, 'alice');
  await page.locator('main[data-step=proof]').waitFor();
  await inspect(page, 'wallet-proving');
  await button(page, 'Cancel').click();
  await page.locator('main[data-step=none]').waitFor();
  await page.unroute(services.proverUrl);
  // Without cookies, the provider asks for the name again.
  await page.context().clearCookies();
  services.proverIsBroken = true;
  await logIn(page, 'alice');
  await inspect(page, 'wallet-no-proof');
  services.proverIsBroken = false;
  await button(page, 'Try again').click();
  await page.locator('main[data-step=open]').waitFor();
  await send(page);
  await prepare(page);
  await page.getByLabel('To', { exact: true }).fill('0x5');
  await page.click('summary');
  await inspect(page, 'wallet-open');
  services.node.epoch = EPOCH + 3n;
  await page.reload();
  await ready(page);
  await inspect(page, 'wallet-expired');
});

test('a balance that the node does not return is not shown as 0, and nothing can be sent', async () => {
  const page = await open(await newContext(browser));
  await completeLogin(page, 'alice');
  services.node.faults.set('GetBalance', 'reset');
  onTestFinished(() => services.node.faults.clear());
  await page.reload();
  await ready(page);
  await expect.poll(() => page.textContent('output')).toMatch(/^The node did not answer/);
  await page.getByLabel('To', { exact: true }).fill(`0x${'5'.repeat(64)}`);
  await page.getByLabel('Amount in SUI').fill('1');
  expect(await button(page, 'Send').isEnabled()).toBe(false);
});

test('holding Enter down sends once, even after a failure', async () => {
  const page = await open(await newContext(browser));
  await completeLogin(page, 'alice');
  await prepare(page);
  services.node.faults.set('SimulateTransaction', { status: 'UNAVAILABLE', message: 'try later' });
  onTestFinished(() => services.node.faults.clear());
  const attempts = page.getByRole('listitem').filter({ hasText: 'Send 0.25 SUI' });
  await page.getByLabel('Amount in SUI').focus();
  await page.keyboard.down('Enter');
  await problem(page).waitFor();
  await expect.poll(() => button(page, 'Send').isEnabled()).toBe(true);
  for (let repeat = 0; repeat < 5; repeat++) await page.keyboard.down('Enter');
  await page.keyboard.up('Enter');
  services.node.faults.clear();
  // Pressing Enter again sends again.
  await page.keyboard.press('Enter');
  await expect.poll(() => page.getByLabel('Amount in SUI').inputValue()).toBe('');
  expect(await attempts.count()).toBe(2);
});

test('a login that the user cancels leaves nothing in the session storage', async () => {
  const page = await open(await newContext(browser));
  services.proverIsBroken = true;
  await logIn(page, 'alice');
  await button(page, 'Cancel').click();
  await page.locator('main[data-step=none]').waitFor();
  expect(await problem(page).count()).toBe(0);
  expect(await readSessionKeys(page)).toEqual([]);
});

test('an expired session asks for a login, which renews the session', async () => {
  const page = await open(await newContext(browser));
  const address = await completeLogin(page, 'alice');
  await prepare(page);
  services.node.epoch = EPOCH + 3n;
  await button(page, 'Send').click();
  await page.locator('main[data-step=expired]').waitFor();
  expect(await page.textContent('.verdict .code')).toBe('ZKLOGIN_EXPIRED');
  await page.reload();
  await ready(page);
  expect(await page.textContent('h1')).toBe('Your session has expired');
  // The provider still knows the user, and asks only for consent.
  await button(page, LOG_IN).click();
  await page.click('button[type=submit]');
  await page.waitForURL((url) => url.origin === services.origin);
  await ready(page);
  expect(await page.textContent('main')).toContain('It can sign until epoch 105 ends.');
  expect(await readAddress(page)).toBe(address);
  await send(page);
});

describe('users', () => {
  test('keep one address each across sessions', async () => {
    const addresses: Record<string, (string | null)[]> = {};
    for (const name of ['alice', 'bob', 'alice']) {
      const page = await open(await newContext(browser));
      addresses[name] = [...(addresses[name] ?? []), await completeLogin(page, name)];
    }
    const [first, again] = addresses['alice'] ?? [];
    expect(again).toBe(first);
    expect(addresses['bob']?.[0]).not.toBe(first);
  });

  test('have a different address for each client', async () => {
    const addresses = new Set<string | null>();
    for (const responseMode of FLOWS) {
      addresses.add(await completeLogin(await open(await newContext(browser), responseMode), 'alice'));
    }
    expect(addresses.size).toBe(3);
  });
});

test('the page reports a login that the user refused, and offers a login to a user who comes back without an answer', async () => {
  const page = await open(await newContext(browser));
  await button(page, LOG_IN).click();
  await page.click('text=Cancel');
  await page.waitForURL((url) => url.origin === services.origin);
  await ready(page);
  expect(await readFailure(page)).toMatch(/^ZKLOGIN_PROVIDER_REFUSED .*access_denied/);
  await page.goto(`${services.origin}/back`);
  await ready(page);
  expect(await problem(page).count()).toBe(0);
  expect(await readStep(page)).toBe('none');
});

test('an answer that was already used has no effect when it arrives again, in this tab or another', async () => {
  const context = await newContext(browser);
  const page = await open(context);
  let back = '';
  page.on('framenavigated', (frame) => {
    if (frame.url().includes('id_token=')) back = frame.url();
  });
  const address = await completeLogin(page, 'alice');
  expect(back).toContain('id_token=');
  await page.goto('about:blank');
  await page.goto(back);
  await ready(page);
  expect(await readAddress(page)).toBe(address);
  expect(await readSessionKeys(page)).toEqual(['sui-enclave/zklogin/session']);

  const otherPage = await context.newPage();
  await otherPage.goto(back);
  await ready(otherPage);
  expect(await readStep(otherPage)).toBe('none');
  await button(otherPage, LOG_IN).click();
  await otherPage.waitForURL((url) => url.origin === services.issuer);
  await otherPage.goto(back);
  await ready(otherPage);
  expect(await readFailure(otherPage)).toMatch(/^ZKLOGIN_STATE /);
});

test('a user has the same address in the next run, if it has the same ports and the same seed', async () => {
  const earlierServices = services;
  onTestFinished(() => {
    services = earlierServices;
  });
  const ports = await findFreePorts();
  const addresses = new Set<string | null>();
  for (const seed of [SEED, SEED, 'cd'.repeat(32)]) {
    services = await startWalletServices({ log: createRecordedLog(), ports, seed });
    addresses.add(await completeLogin(await open(await newContext(browser)), 'alice'));
    await services.close();
  }
  expect(addresses.size).toBe(2);
});

test('the page refuses a form that is longer than an answer can be, or that does not declare its length', async () => {
  const post = async (body: RequestInit['body']) =>
    (await fetch(`${services.origin}/back`, { method: 'POST', body, duplex: 'half' } as RequestInit)).status;
  expect(await post('state=x')).toBe(200);
  expect(await post('x'.repeat(65_537))).toBe(413);
  expect(await post(new Blob(['state=x']).stream())).toBe(413);
});

test('a page of another host cannot read a salt, and a page of this machine can', async () => {
  const page = await (await newContext(browser)).newPage();
  await page.goto(services.origin.replace('127.0.0.1', 'wallet.localhost'));
  const fetchStatus = (url: string) =>
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
  expect(await fetchStatus(services.saltUrl)).toBe('TypeError');
  for (const origin of [services.origin, services.origin.replace('127.0.0.1', 'localhost')]) {
    await page.goto(origin);
    expect(await fetchStatus(services.saltUrl)).toBe(400);
  }
});

const prover = builtProver('small');
/**
 * Needs the prover of make prover-dev SIZE=small. CI runs these tests after make test-prover, which builds
 * it.
 */
describe.skipIf(!prover)('with the real proving service', () => {
  let withFake: WalletServices;

  beforeAll(async () => {
    withFake = services;
    services = await startWalletServices({ log: createRecordedLog(), seed: SEED, ...(prover && { prover }) });
  });

  afterAll(async () => {
    await services.close();
    services = withFake;
  });

  test.each(FLOWS)('a login by %s gets a proof of its own, and can send', async (responseMode) => {
    const page = await open(await newContext(browser), responseMode);
    expect(await completeLogin(page, 'alice')).toMatch(/^0x[0-9a-f]{64}$/);
    await send(page);
  });

  test('the Sui node refuses a wrong proof, and the page reports that', async () => {
    const page = await open(await newContext(browser));
    await completeLogin(page, 'alice');
    await page.evaluate(() => {
      const key = 'sui-enclave/zklogin/session';
      const session = JSON.parse(sessionStorage.getItem(key) ?? '');
      const { a, c } = session.inputs.proofPoints;
      Object.assign(session.inputs.proofPoints, { a: c, c: a });
      sessionStorage.setItem(key, JSON.stringify(session));
    });
    await page.reload();
    await ready(page);
    await prepare(page);
    await button(page, 'Send').click();
    await problem(page).waitFor();
    expect(await readFailure(page)).toMatch(/^ZKLOGIN_PROOF .*Groth16 proof verify failed/);
    expect(await page.locator('[data-digest]').count()).toBe(0);
  });
});

test('neither salt service nor proving service has logged a token, subject or salt', () => {
  expect(log).toContain('issued a salt');
  expect(log).not.toMatch(/alice|bob|eyJ/);
});
