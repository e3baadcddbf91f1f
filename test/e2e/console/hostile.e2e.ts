/** Tests the console with a storage, links, enclaves and nodes that are hostile, slow or broken. */
import { setTimeout as pause } from 'node:timers/promises';
import type { Browser, Page } from 'playwright';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { EmulatedNsm } from '../../../src/testing/emulated_nsm.ts';
import { ChainFixture } from '../../src/cli/sui/chain_fixture.ts';
import { launch, openPage, type Running, readVerdict, startEnclave } from './console.ts';
import { serve, serveEnclave } from './enclaves.ts';

let browser: Browser;
let dev: Running;
let enclave: string;

beforeAll(async () => {
  browser = await launch();
  [dev, enclave] = await startEnclave();
});

afterAll(async () => {
  await browser?.close();
  await dev?.close();
});

const OTHER_ADDRESS = 'http://127.0.0.1:9';
const BUILT_IN = ['root AWS Nitro, built in'];
const linkTo = (fields: Record<string, string>, view = 'enclave') =>
  `${dev.console}#/${view}?${new URLSearchParams(fields)}`;
const file = (name: string, content: string) => ({
  name,
  mimeType: 'application/octet-stream',
  buffer: Buffer.from(content),
});
const chips = (page: Page) => page.locator('.chip').allTextContents();
const addressField = (page: Page) => page.locator('input >> nth=0');

/** Creates a gate at which an answer waits until the test opens it. */
function createGate() {
  const { promise, resolve } = Promise.withResolvers<void>();
  return { opened: promise, open: resolve };
}

describe('a session storage', () => {
  test.each([
    ['is forbidden', "Object.defineProperty(window, 'sessionStorage', { get: fail })"],
    ['is full', 'Object.assign(Storage.prototype, { setItem: fail })'],
    ['removes nothing', 'Object.assign(Storage.prototype, { removeItem: fail })'],
  ])('that %s changes nothing except what a reload keeps', async (_, breakage) => {
    const nsm = new EmulatedNsm();
    const url = await serveEnclave(nsm);
    const { page } = await openPage(browser, dev.console, [url]);
    await page
      .context()
      .addInitScript(`function fail() { throw new DOMException('denied', 'SecurityError'); } ${breakage};`);
    await page.goto(linkTo({ url }));
    await page.reload();
    await page.setInputFiles('input[type=file]', [file('dev-root.pem', nsm.rootPem())]);
    await page.waitForSelector('.chip:has-text("dev-root.pem")');
    await page.click('button[type=submit]');
    expect(await readVerdict(page)).toMatchObject({ title: 'Genuine, but compared with nothing' });
    await page.click('.collapsible > summary');
    await addressField(page).fill(OTHER_ADDRESS);
    await expect.poll(() => chips(page)).toEqual(BUILT_IN);
  });

  const name = 'x';
  const zeros = [0, 1, 2].map((index) => `${'0'.repeat(96)} PCR${index}`).join('\n');
  test.each([
    'x',
    '5',
    '[]',
    { files: 5 },
    { files: [], removed: 5 },
    { files: [null], removed: [] },
    { files: [{ kind: 'document', name, texts: ['00'] }], removed: [] },
    { files: [{ kind: 'registers', name: 5, texts: [] }], removed: [] },
    { files: [{ kind: 'registers', name, texts: [null] }], removed: [] },
    { files: [{ kind: 'registers', name, texts: ['<b> PCR0'] }], removed: [] },
    { files: [{ kind: 'registers', name, images: [{ pcr0: '<b>' }] }], removed: [] },
    { files: [{ kind: 'registers', name, texts: [zeros] }], removed: [] },
    { files: [{ kind: 'roots', name: {}, texts: ['00'] }], removed: [] },
    { files: [{ kind: 'roots', name, texts: ['zz'] }], removed: [] },
    { files: [{ kind: 'roots', name, texts: [5] }], removed: [] },
    { files: [{ kind: 'roots', name, texts: '00' }], removed: [] },
    { address: 'https://other.example/', files: [{ kind: 'roots', name, texts: ['00'] }], removed: [] },
  ])('with content that the page has not written counts as empty: %j', async (content) => {
    const address = `${OTHER_ADDRESS}/`;
    const text = typeof content === 'string' ? content : JSON.stringify({ address, ...content });
    const { page } = await openPage(browser, dev.console, [OTHER_ADDRESS]);
    await page
      .context()
      .addInitScript(`sessionStorage.setItem('sui-enclave.expected', ${JSON.stringify(text)})`);
    await page.goto(linkTo({ url: address }));
    await page.reload();
    await page.waitForSelector('h1:text-is("Enclave")');
    expect(await chips(page)).toEqual(BUILT_IN);
    await page.click('button[type=submit]');
    expect(await readVerdict(page)).toMatchObject({ title: 'No answer to verify' });
  });

  test('loses root and registers by a link to another address, even if nothing is sent there', async () => {
    const nsm = new EmulatedNsm();
    const { page } = await openPage(browser, linkTo({ url: OTHER_ADDRESS }));
    await page.setInputFiles('input[type=file]', [file('dev-root.pem', nsm.rootPem())]);
    await page.waitForSelector('.chip:has-text("dev-root.pem")');
    for (const url of ['http://127.0.0.1:10', OTHER_ADDRESS]) {
      await page.goto(linkTo({ url }));
      await page.waitForFunction((value) => document.querySelector('input')?.value === value, url);
      expect(await chips(page)).toEqual(BUILT_IN);
    }
  });

  test('remembers which files of the page’s own server the user has removed', async () => {
    const { page } = await openPage(browser, linkTo({ url: enclave }));
    await page.click('[aria-label="Remove dev-root.pem"]');
    await page.reload();
    await page.waitForSelector('.chip:has-text("dev.pcrs")');
    await page.click('nav >> text=Call');
    await page.waitForSelector('h1:text-is("Call")');
    await page.waitForSelector('.chip:has-text("dev.pcrs")');
    expect(await page.locator('.chip:has-text("dev-root.pem")').count()).toBe(0);
  });
});

describe('an answer', () => {
  test('of an enclave is not shown under another address, even if it arrives late', async () => {
    const nsm = new EmulatedNsm();
    const answerGate = createGate();
    const url = await serveEnclave(nsm, async (document) => {
      await answerGate.opened;
      return document;
    });
    const { page } = await openPage(browser, linkTo({ url }), [url]);
    await page.click('button[type=submit]');
    await page.waitForSelector('.progress:has-text("Asking")');
    await addressField(page).fill(OTHER_ADDRESS);
    answerGate.open();
    await pause(500);
    expect(await page.locator('.verdict').count()).toBe(0);
    expect(await page.locator('.progress').first().textContent()).toBe('');
    await addressField(page).fill(url);
    await page.click('button[type=submit]');
    expect(await readVerdict(page)).toMatchObject({ title: 'Unknown root: AWS did not attest this' });
    await page.click('.collapsible > summary');
    await addressField(page).fill(OTHER_ADDRESS);
    expect(await page.locator('.verdict').count()).toBe(0);
    // A file for the other address is not compared with the document of the first one.
    await page.setInputFiles('input[type=file]', [file('dev-root.pem', nsm.rootPem())]);
    await page.waitForSelector('.chip:has-text("dev-root.pem")');
    expect(await page.locator('.verdict').count()).toBe(0);
  });

  test('that gives the form of one host is not used to call another address', async () => {
    const schema = await (await fetch(new URL('schema', enclave))).text();
    const foreignHost = await serve((_, response) =>
      response.setHeader('content-type', 'application/json').end(schema),
    );
    const { page } = await openPage(browser, linkTo({ url: foreignHost }, 'call'), [foreignHost]);
    await page.click('text=Load the form from');
    await page.waitForSelector(`button:text-is("Call ${new URL(foreignHost).host}")`);
    await page.click('.collapsible > summary >> nth=0');
    await addressField(page).fill(enclave);
    await page.waitForSelector('.chip:has-text("dev-root.pem")');
    expect(await page.locator('button:has-text("Call ")').count()).toBe(0);
  });

  test('of an enclave that streams without an end is cut off, and its request is cancelled', async () => {
    const url = await serve((_, response) => {
      response.setHeader('content-type', 'application/json');
      const writeMore = () =>
        void (response.write('x'.repeat(100_000))
          ? setImmediate(writeMore)
          : response.once('drain', writeMore));
      writeMore();
      response.on('close', () => response.destroy());
    });
    const { page } = await openPage(browser, linkTo({ url }), [url]);
    await page.click('button[type=submit]');
    await page.waitForSelector('.verdict:has-text("more than 1048576 bytes")');
  });
});

describe('an answer of a node', () => {
  let fixture: ChainFixture;
  let config: string;
  let node: string;
  beforeEach(async () => {
    fixture = await ChainFixture.start();
    fixture.node.servesPages = true;
    config = await fixture.config(fixture.publish());
    node = fixture.node.url;
  });
  afterEach(() => fixture.close());

  test('is not shown under another node or config', async () => {
    const { page } = await openPage(browser, linkTo({ node, config }, 'chain'), [node]);
    const field = (label: string) => page.locator(`label:has-text("${label}") + input`).first();
    for (const [label, value] of [
      ['Node', OTHER_ADDRESS],
      ['Config', '0x5'],
    ] as const) {
      await page.goto(linkTo({ node, config }, 'chain'));
      await page.reload();
      await page.click('text=Read from');
      await page.waitForSelector('.facts');
      await field(label).fill(value);
      expect(await page.locator('.facts').count()).toBe(0);
    }
  });

  test('that arrives late is not shown under another node', async () => {
    const answerGate = createGate();
    const slow = await serve(async (_, response) => {
      await answerGate.opened;
      const ledger = { model: true, counts: {}, transactions: [], objects: [], events: [] };
      response.setHeader('content-type', 'application/json').end(JSON.stringify(ledger));
    });
    const { page } = await openPage(browser, linkTo({ node: slow }, 'chain'), [slow]);
    await page.click('text=List the ledger of');
    await page.waitForSelector('.progress:has-text("Asking")');
    await page.locator('label:has-text("Node") + input').fill(OTHER_ADDRESS);
    answerGate.open();
    await pause(500);
    expect(await page.locator('h3:text-is("Transactions")').count()).toBe(0);
  });

  test('about registers is not used for another enclave', async () => {
    const { page } = await openPage(browser, linkTo({ url: 'https://enclave.example', node, config }), [
      node,
    ]);
    const answerGate = createGate();
    await page.route(`${node}/**`, async (route) => {
      await answerGate.opened;
      await route.continue().catch(() => {});
    });
    await page.click('text=Read from');
    await page.waitForSelector('.progress:has-text("Reading the config")');
    await addressField(page).fill(OTHER_ADDRESS);
    answerGate.open();
    await pause(500);
    expect(await chips(page)).toEqual(BUILT_IN);
  });
});

describe('a node that lies', () => {
  const serveLedger = (ledger: Record<string, unknown>) =>
    serve((_, response) => {
      response
        .setHeader('content-type', 'application/json')
        .end(JSON.stringify({ model: true, counts: { transactions: 1 }, ...ledger }));
    });

  test('can not block the page by a long name', async () => {
    const node = await serveLedger({ objects: [{ id: '0x5', type: 'a'.repeat(900_000) }] });
    const { page } = await openPage(browser, linkTo({ node }, 'chain'), [node]);
    await page.click('text=List the ledger of');
    await page.waitForSelector('h3:text-is("Objects")', { timeout: 5000 });
    expect(await page.locator('.events a').first().textContent()).toHaveLength(201);
  });

  test('can put hostile texts into every field of a ledger, which the page shows as text', async () => {
    const text = '<img src=x onerror=alert(1)>\u202e';
    const node = await serveLedger({
      counts: { transactions: -1, objects: 1e300, events: 'x' },
      transactions: [
        { digest: text, sender: text, atMs: -1e300, calls: [text, null, {}], failure: text, gas: '-5' },
        { calls: 5 },
        null,
        5,
      ],
      objects: [{ id: text, type: text, version: text, owner: text }, {}],
      events: [{ type: text, digest: text, sender: text }, {}],
    });
    const { page, origins } = await openPage(browser, linkTo({ node }, 'chain'), [node]);
    await page.click('text=List the ledger of');
    await page.waitForSelector('h3:text-is("Objects")');
    for (const link of await page.locator('.events a:visible').all()) await link.click();
    expect(await page.locator('h3:text-is("Objects")').count()).toBe(1);
    expect(await page.locator('main img').count()).toBe(0);
    expect(await page.textContent('main')).not.toContain('\u202e');
    expect(origins()).toEqual([new URL(dev.console).origin, node]);
  });
});

describe('a link', () => {
  test.each([
    ['invalid UTF-8 in a field', '#/enclave?url=%E0%A4%A&node=%ff%fe&config=%00%0a'],
    ['URLs that run code', '#/chain?node=javascript:alert(1)&id=data:text/html,x&config=%3Cimg%20src%3Dx%3E'],
    ['110 KB', `#/chain?url=${'a'.repeat(100_000)}&node=${'%F0%9F%92'.repeat(1000)}`],
    ['a field twice', '#/call?url=https://user:secret@enclave.example/&url=https://enclave.example'],
    ['a password in the URL', '#/call?url=https://user:secret@enclave.example/'],
    ['half a surrogate pair', '#/enclave?url=\ud800'],
    ['names of a prototype', '#/__proto__?constructor=x'],
    ['5000 hash signs', '#'.repeat(5000)],
  ])('with %s sends nothing, and breaks no view', async (_, hash) => {
    const { page, origins } = await openPage(browser, `${dev.console}${hash}`);
    await page.waitForSelector('h1');
    await page.waitForTimeout(200);
    expect(await page.locator('.verdict').count()).toBe(0);
    expect(origins()).toEqual([new URL(dev.console).origin]);
    expect(await page.locator('button[type=submit] >> nth=0').isDisabled()).toBe(true);
  });

  test('to a foreign enclave gets neither root nor registers of the page’s own server', async () => {
    const { host, port } = new URL(enclave);
    for (const url of [
      `http://localhost:${port}`,
      `${enclave}/x`,
      `http://${host}.example`,
      `https://${host}`,
    ]) {
      const { page } = await openPage(browser, linkTo({ url }));
      await page.waitForTimeout(200);
      expect(await chips(page)).toEqual(BUILT_IN);
    }
  });
});

test('a field accepts each typed text, even when the browser refuses to change the address so often', async () => {
  const { page } = await openPage(browser, dev.console);
  await page.context().addInitScript(() => {
    Object.assign(History.prototype, {
      replaceState() {
        throw new DOMException('too many calls', 'SecurityError');
      },
    });
  });
  await page.reload();
  await addressField(page).fill('https://enclave.example');
  expect(await page.textContent('button[type=submit]')).toBe('Attest enclave.example');
});
