/**
 * Tests zkLogin as a wallet of the Wallet Standard in headless Chromium, against a real OpenID provider:
 * login windows, redirects, signatures, and pages that interfere.
 */
import { Ed25519Keypair } from '@mysten/sui/keypairs/ed25519';
import { type Browser, type BrowserContext, chromium, type Page } from 'playwright';
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { chooseVerifier } from '../../../src/devnet/node.ts';
import { verifyZkLogin } from '../../../src/devnet/zklogin.ts';
import { CLIENTS } from '../../../src/toolchain/dev/wallet/servers.ts';
import type { Outcome } from './standard_page.ts';
import { type DappServices, startDappServices } from './standard_services.ts';

const EPOCH = 100n;
const SPONSOR = new Ed25519Keypair();

let browser: Browser;
let services: DappServices;

/** Launches Chromium. @param ignored Playwright's default arguments that it leaves out */
async function launch(ignored: string[] = []): Promise<Browser> {
  return await chromium.launch({
    executablePath: process.env['CHROMIUM'] ?? '/usr/bin/chromium',
    // Chromium's own sandbox does not start for root; the pages are this project's.
    args: process.getuid?.() === 0 ? ['--no-sandbox'] : [],
    ignoreDefaultArgs: ignored,
  });
}

beforeAll(async () => {
  services = await startDappServices();
  services.node.verify = async (...signed) => {
    const [data, signature, signer, scope] = signed;
    if (signer !== SPONSOR.toSuiAddress()) return await verifyZkLogin.call(services.node, ...signed);
    return await chooseVerifier(scope)(data, signature, { address: signer });
  };
  services.node.ledger.give(SPONSOR.toSuiAddress(), 10_000_000_000n);
  browser = await launch();
});

afterAll(async () => {
  await browser?.close();
  services?.close();
});

beforeEach(() => {
  services.node.epoch = EPOCH;
  Object.assign(services, {
    clients: [CLIENTS.implicit],
    sponsorKey: null,
    openerPolicy: null,
    proverIsBroken: false,
    keepsAnswer: false,
  });
});

async function newContext(parent: Browser = browser): Promise<BrowserContext> {
  const context = await parent.newContext();
  context.setDefaultTimeout(20_000);
  const failures: string[] = [];
  context.on('weberror', (error) => failures.push(error.error().message));
  context.on('request', (request) => {
    const { hostname, href } = new URL(request.url());
    if (!['127.0.0.1', 'localhost', ''].includes(hostname)) failures.push(href);
  });
  onTestFinished(async () => {
    await context.close();
    expect(failures).toEqual([]);
  });
  // Playwright gives every page the focus, but in a real browser only one window has it. With this variable,
  // a test takes the focus from a page.
  await context.addInitScript(() => {
    Document.prototype.hasFocus = () => !Reflect.has(globalThis, 'userIsElsewhere');
  });
  return context;
}

async function open(context: BrowserContext, query = ''): Promise<Page> {
  const page = await context.newPage();
  await page.goto(`${services.origin}/dapp${query}`);
  await waitForDapp(page);
  return page;
}

async function waitForDapp(page: Page): Promise<void> {
  await page.waitForFunction(() => globalThis.dapp !== undefined);
}

/** Clicks a connect button, and waits for the window. */
async function openWindow(page: Page, wallet = 0): Promise<Page> {
  const opened = page.waitForEvent('popup');
  await page.click(`#connect-${wallet}`);
  const popup = await opened;
  await popup.waitForURL((url) => url.origin === services.issuer);
  return popup;
}

/**
 * Logs in on the provider's pages with a name, and consents. The provider asks for both only the first time.
 */
async function logIn(popup: Page, name = 'alice'): Promise<void> {
  await popup.fill('input[name=login]', name);
  await popup.fill('input[name=password]', 'any');
  await popup.click('button[type=submit]');
  await popup.click('button[type=submit]');
}

async function readOutcome(page: Page): Promise<Outcome> {
  await page.waitForFunction(() => globalThis.dapp?.connected != null);
  return (await page.evaluate(() => globalThis.dapp?.connected)) ?? {};
}

/** Opens a page, and logs its user in. */
async function connectPage() {
  const context = await newContext();
  const page = await open(context);
  const popup = await openWindow(page);
  const closed = popup.waitForEvent('close');
  await logIn(popup);
  const { addresses: [address = ''] = [] } = await readOutcome(page);
  await closed;
  expect(address).toMatch(/^0x[0-9a-f]{64}$/);
  services.node.ledger.give(address, 1_000_000_000n);
  return { context, page, address };
}

const readAccounts = (page: Page) => page.evaluate(() => globalThis.dapp?.accounts());
const readChanges = (page: Page) => page.evaluate(() => globalThis.dapp?.changes);
const send = (page: Page, wallet = 0) => page.evaluate((index) => globalThis.dapp?.send(index), wallet);
const connectSilently = (page: Page) => page.evaluate(() => globalThis.dapp?.connectSilently(0));
const readSessionKeys = (page: Page) => page.evaluate(() => Object.keys(sessionStorage));

/** Returns the content of each place in which the page could have kept a token. */
const readTraces = (page: Page) =>
  page.evaluate(async () =>
    JSON.stringify([
      location.href,
      (Reflect.get(globalThis, 'navigation')?.entries() ?? []).map(({ url }: { url: string | null }) => url),
      history.state,
      { ...sessionStorage },
      { ...localStorage },
      document.cookie,
      (await indexedDB.databases()).length,
    ]),
  );
const TOKEN = /eyJ[\w-]+\.eyJ/;

describe.each(Object.entries(CLIENTS))('a login in a window, by %s', (_, client) => {
  test('gives an account that signs, closes the window, and leaves no token', async () => {
    services.clients = [client];
    const { page, address } = await connectPage();
    expect(await readChanges(page)).toEqual([[0, [address]]]);
    expect(page.url()).toBe(`${services.origin}/dapp`);
    expect(await readTraces(page)).not.toMatch(TOKEN);
    expect((await readSessionKeys(page)).map((key) => key.replace(/.*\//, ''))).toEqual(['session']);
    const { digest = '' } = (await send(page)) ?? {};
    expect(services.node.ledger.executed).toContain(digest);
    expect(await page.evaluate(() => globalThis.dapp?.questions)).toMatchObject([{ kind: 'transaction' }]);
  });
});

test('a login succeeds although the provider hides its window from the page (COOP same-origin)', async () => {
  services.openerPolicy = 'same-origin';
  const page = await open(await newContext());
  // The page keeps a handle of the window, as the wallet does.
  await page.evaluate(() => {
    const { open } = window;
    window.open = (...openArguments) => {
      const opened = open(...openArguments);
      Object.assign(globalThis, { handle: opened });
      return opened;
    };
  });
  const popup = await openWindow(page);
  await page.evaluate(() => Object.assign(globalThis, { userIsElsewhere: true }));
  // The window seems closed for longer than the wallet waits while the user is on the page.
  await page.waitForFunction(() => Reflect.get(globalThis, 'handle').closed === true);
  expect(popup.isClosed()).toBe(false);
  await page.waitForTimeout(3000);
  await logIn(popup);
  expect((await readOutcome(page)).addresses).toHaveLength(1);
  expect(await popup.evaluate(() => document.body.innerText).catch(() => 'closed')).toMatch(
    /closed|You can close this window/,
  );
});

test("the provider can't navigate the page", async () => {
  const page = await open(await newContext());
  const popup = await openWindow(page);
  expect(await popup.evaluate(() => window.opener)).toBeNull();
});

test('a login fails with its own code if the user closes the window, and can begin again', async () => {
  const page = await open(await newContext());
  const popup = await openWindow(page);
  await popup.close();
  expect(await readOutcome(page)).toMatchObject({ code: 'ZKLOGIN_CLOSED' });
  expect(await readSessionKeys(page)).toEqual([]);
  const second = await openWindow(page);
  await logIn(second);
  expect((await readOutcome(page)).addresses).toHaveLength(1);
});

test('a login fails with the same code if the user cancels at the provider', async () => {
  const page = await open(await newContext());
  const popup = await openWindow(page);
  await popup.click('text=Cancel');
  expect(await readOutcome(page)).toMatchObject({ code: 'ZKLOGIN_CLOSED' });
  await expect.poll(() => popup.isClosed()).toBe(true);
});

test('the answer to an abandoned login is dropped, and its window says so', async () => {
  const page = await open(await newContext());
  const abandoned = await openWindow(page);
  const latest = await openWindow(page);
  await logIn(abandoned);
  await abandoned.waitForFunction(() => document.body.innerText.includes('no longer waits'));
  expect(abandoned.url()).toBe(`${services.origin}/back`);
  expect(await readTraces(abandoned)).not.toMatch(TOKEN);
  expect(await page.evaluate(() => globalThis.dapp?.connected)).toBeNull();
  await page.evaluate(() => globalThis.dapp?.disconnect(0));
  expect(await readOutcome(page)).toMatchObject({ code: 'ZKLOGIN_CLOSED' });
  await latest.close();
});

describe('an answer in the wrong place', () => {
  /** Logs in, and returns the URL of the redirect page, which does not pass the answer on. */
  async function logInAndKeepAnswer(page: Page) {
    services.keepsAnswer = true;
    const popup = await openWindow(page);
    await logIn(popup);
    await popup.waitForURL((url) => url.pathname === '/back');
    const back = popup.url();
    expect(back).toMatch(TOKEN);
    services.keepsAnswer = false;
    return { back, popup };
  }

  test('counts once: in a second tab, it has no effect, and its token leaves the address bar', async () => {
    const context = await newContext();
    const page = await open(context);
    const { back, popup } = await logInAndKeepAnswer(page);
    const later = await context.newPage();
    await later.goto(back);
    expect((await readOutcome(page)).addresses).toHaveLength(1);
    const secondTab = await context.newPage();
    await secondTab.goto(back);
    await secondTab.waitForFunction(() => document.body.innerText.includes('no longer waits'), null, {
      timeout: 10_000,
    });
    expect(secondTab.url()).toBe(`${services.origin}/back`);
    expect(await readTraces(secondTab)).not.toMatch(TOKEN);
    expect(await readChanges(page)).toHaveLength(1);
    await popup.close();
  });

  test('of another login is refused', async () => {
    const context = await newContext();
    const { back } = await logInAndKeepAnswer(await open(context));
    const otherContext = await newContext();
    const page = await open(otherContext);
    const popup = await openWindow(page);
    const url = new URL(back);
    const fragment = new URLSearchParams(url.hash.slice(1));
    const state = await page.evaluate(() => JSON.parse(Object.values(sessionStorage)[0] ?? '{}').state);
    fragment.set('state', state);
    url.hash = fragment.toString();
    await popup.goto(url.href);
    expect(await readOutcome(page)).toMatchObject({ code: 'ZKLOGIN_NONCE' });
    expect(await readSessionKeys(page)).toEqual([]);
  });

  test('has no effect in a window message from another origin or from this one', async () => {
    const context = await newContext();
    const foreignPage = await context.newPage();
    await foreignPage.goto(services.foreignOrigin);
    const opened = foreignPage.waitForEvent('popup');
    await foreignPage.evaluate((url) => {
      Object.assign(globalThis, { target: window.open(url) });
    }, `${services.origin}/dapp`);
    const page = await opened;
    await waitForDapp(page);
    const { back } = await logInAndKeepAnswer(page);
    await foreignPage.evaluate((answer) => {
      const message = { kind: 'answer', answer };
      Reflect.get(globalThis, 'target').postMessage(message, '*');
    }, back);
    await page.evaluate((answer) => window.postMessage({ kind: 'answer', answer }, location.origin), back);
    // The message goes to a channel of the same name, in another origin.
    await foreignPage.evaluate((answer) => {
      const state = new URLSearchParams(new URL(answer).hash.slice(1)).get('state');
      new BroadcastChannel(`sui-enclave/wallet/${state}`).postMessage({ kind: 'answer', answer });
    }, back);
    await page.waitForTimeout(300);
    expect(await page.evaluate(() => globalThis.dapp?.connected)).toBeNull();
    expect(await readAccounts(page)).toEqual([[]]);
  });

  test('has no effect on a channel of a tab of this origin that does not know the state', async () => {
    const context = await newContext();
    const page = await open(context);
    const { back } = await logInAndKeepAnswer(page);
    const otherPage = await open(context);
    await otherPage.evaluate((answer) => {
      for (const name of ['sui-enclave/wallet/', 'sui-enclave/wallet/null', 'sui-enclave/wallet']) {
        new BroadcastChannel(name).postMessage({ kind: 'answer', answer });
      }
    }, back);
    // A tab that knows the state sends something else.
    await otherPage.evaluate((answer) => {
      const state = new URLSearchParams(new URL(answer).hash.slice(1)).get('state');
      const channel = new BroadcastChannel(`sui-enclave/wallet/${state}`);
      for (const message of [null, 'x', { kind: 'taken' }, { kind: 'answer', answer: 1 }]) {
        channel.postMessage(message);
      }
    }, back);
    await page.waitForTimeout(300);
    expect(await page.evaluate(() => globalThis.dapp?.connected)).toBeNull();
    const later = await context.newPage();
    await later.goto(back);
    expect((await readOutcome(page)).addresses).toHaveLength(1);
  });
});

describe('a browser that blocks the window', () => {
  let blocking: Browser;
  beforeAll(async () => {
    blocking = await launch(['--disable-popup-blocking']);
  });
  afterAll(() => blocking?.close());

  test('goes to the provider and back in the same tab, and then connects without a question', async () => {
    const context = await newContext(blocking);
    const page = await context.newPage();
    await page.goto(`${services.origin}/dapp?connect`);
    await page.waitForURL((url) => url.origin === services.issuer);
    await logIn(page);
    await page.waitForURL((url) => url.pathname === '/dapp');
    expect(page.url()).toBe(`${services.origin}/dapp?connect`);
    expect(context.pages()).toHaveLength(1);
    // Unlike a page with dapp-kit, this page then connects without a click.
    await waitForDapp(page);
    const { addresses = [] } = await readOutcome(page);
    expect(addresses).toHaveLength(1);
    expect(await readChanges(page)).toEqual([[0, addresses]]);
    expect(await readTraces(page)).not.toMatch(TOKEN);
    expect((await readSessionKeys(page)).map((key) => key.replace(/.*\//, ''))).toEqual(['session']);
  });

  test('lets a user who goes back from the provider begin again in a window', async () => {
    const page = await open(await newContext(blocking));
    await page.evaluate(() => {
      // A browser blocks the window of a page without a click in the same way.
      window.open = () => null;
    });
    await page.click('#connect-0');
    await page.waitForURL((url) => url.origin === services.issuer);
    await page.goBack();
    await waitForDapp(page);
    expect(await readAccounts(page)).toEqual([[]]);
    expect(await readSessionKeys(page)).toContain('sui-enclave/wallet/redirect');
    await logIn(await openWindow(page));
    expect((await readOutcome(page)).addresses).toHaveLength(1);
  });
});

test('a session that has expired refuses signatures, and its account disappears', async () => {
  const { page, address } = await connectPage();
  services.node.epoch = EPOCH + 3n;
  expect(await send(page)).toMatchObject({ code: 'ZKLOGIN_EXPIRED' });
  expect(await readAccounts(page)).toEqual([[]]);
  expect(await readChanges(page)).toEqual([
    [0, [address]],
    [0, []],
  ]);
  expect(await page.evaluate(() => globalThis.dapp?.questions)).toEqual([]);
  expect(page.context().pages()).toHaveLength(1);
  expect(await connectSilently(page)).toEqual({ addresses: [] });
});

test('the wallet makes only signatures that the user confirms', async () => {
  const { page } = await connectPage();
  const before = services.node.ledger.executed.length;
  const results = await page.evaluate(async () => {
    const { dapp } = globalThis;
    if (dapp === undefined) return [];
    dapp.confirms = false;
    return [await dapp.send(0), await dapp.sign(0), await dapp.signMessage(0, 'hello')];
  });
  const refused = { code: 'ZKLOGIN_NOT_CONFIRMED', message: expect.any(String) };
  expect(results).toEqual([refused, refused, refused]);
  expect(services.node.ledger.executed).toHaveLength(before);
  const signed = await page.evaluate(async () => {
    if (globalThis.dapp === undefined) return null;
    globalThis.dapp.confirms = true;
    return await globalThis.dapp.signMessage(0, 'hello');
  });
  expect(signed).toEqual({ bytes: Buffer.from('hello').toString('base64') });
});

test('two providers are two wallets, with an account each', async () => {
  services.clients = [CLIENTS.implicit, CLIENTS.code];
  const page = await open(await newContext());
  expect(await page.evaluate(() => globalThis.dapp?.names)).toEqual([
    'wallet-implicit (this app only)',
    'wallet-code (this app only)',
  ]);
  await logIn(await openWindow(page, 0));
  await readOutcome(page);
  const second = await openWindow(page, 1);
  // The provider knows the user, and asks only for consent.
  await second.click('button[type=submit]');
  await page.waitForFunction(() => globalThis.dapp?.accounts().every((list) => list.length === 1));
  const [[first = ''] = [], [otherAddress = ''] = []] = (await readAccounts(page)) ?? [];
  expect(first).not.toBe(otherAddress);
  for (const [index, address] of [first, otherAddress].entries()) {
    services.node.ledger.give(address, 1_000_000_000n);
    expect(services.node.ledger.executed).toContain((await send(page, index))?.digest);
  }
  await page.evaluate(() => globalThis.dapp?.disconnect(0));
  expect(await readAccounts(page)).toEqual([[], [otherAddress]]);
});

test('a sponsor pays for the gas, and the question to the user names the sponsor', async () => {
  services.sponsorKey = SPONSOR.getSecretKey();
  const { page, address } = await connectPage();
  const before = services.node.ledger.coins(address);
  const { digest } = (await send(page)) ?? {};
  expect(services.node.ledger.executed).toContain(digest);
  expect(services.node.ledger.coins(address)).toEqual(before);
  expect(await page.evaluate(() => globalThis.dapp?.questions)).toMatchObject([
    { gasOwner: SPONSOR.toSuiAddress() },
  ]);
});

test('a reload keeps the session, another tab has none, and disconnect removes it', async () => {
  const { page, context, address } = await connectPage();
  await page.reload();
  await waitForDapp(page);
  expect(await connectSilently(page)).toEqual({ addresses: [address] });
  expect(services.node.ledger.executed).toContain((await send(page))?.digest);
  expect(await connectSilently(await open(context))).toEqual({ addresses: [] });
  await page.evaluate(() => globalThis.dapp?.disconnect(0));
  expect(await readSessionKeys(page)).toEqual([]);
  expect(await connectSilently(page)).toEqual({ addresses: [] });
  await page.reload();
  await waitForDapp(page);
  expect(await connectSilently(page)).toEqual({ addresses: [] });
});

test('a login whose proof has failed continues at the next click, without a window', async () => {
  const page = await open(await newContext());
  services.proverIsBroken = true;
  await logIn(await openWindow(page));
  expect(await readOutcome(page)).toMatchObject({ code: 'ZKLOGIN_REFUSED' });
  services.proverIsBroken = false;
  await page.click('#connect-0');
  expect((await readOutcome(page)).addresses).toHaveLength(1);
  expect(page.context().pages()).toHaveLength(1);
});

test('a page in a frame of another page registers no wallet', async () => {
  const context = await newContext();
  const errors: string[] = [];
  context.removeAllListeners('weberror');
  context.on('weberror', (error) => errors.push(error.error().message));
  const outer = await context.newPage();
  await outer.goto(`${services.foreignOrigin}/frame`);
  await expect.poll(() => errors).toEqual([expect.stringMatching(/^the page is in a frame/)]);
});
