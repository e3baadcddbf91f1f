/** Tests the view Enclave with the server of `make dev ATTEST=emulated`, and with enclaves that deceive. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Browser, Page } from 'playwright';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { EmulatedNsm } from '../../../src/testing/emulated_nsm.ts';
import { inspect, launch, openPage, type Running, readVerdict, startEnclave } from './console.ts';
import { createDocument, debugNsm, serve, serveEnclave } from './enclaves.ts';

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

const linkTo = (url: string) => `${dev.console}#/enclave?url=${encodeURIComponent(url)}`;
const file = (name: string, content: string | Uint8Array) => ({
  name,
  mimeType: 'application/octet-stream',
  buffer: Buffer.from(content),
});

/** Opens the form, which collapses when it is sent. */
async function open(page: Page): Promise<void> {
  if (!(await page.locator('.collapsible').evaluate((details) => details.hasAttribute('open')))) {
    await page.click('.collapsible > summary');
  }
}

async function attest(page: Page): Promise<void> {
  await open(page);
  await page.click('button[type=submit]');
  await page.waitForSelector('.verdict');
}

/** Opens a page that has attested an enclave, under the root of its NSM, with the expected registers. */
async function openAttested(url: string, nsm: EmulatedNsm, pcrs = nsm.pcrsFile()) {
  const opened = await openPage(browser, linkTo(url), [url]);
  const files = [file('dev-root.pem', nsm.rootPem()), ...(pcrs === '' ? [] : [file('nitro.pcrs', pcrs)])];
  await opened.page.setInputFiles('input[type=file]', files);
  await attest(opened.page);
  return opened;
}

describe('the enclave of make dev', () => {
  test('is trusted under the root of the command that started it, and the page asks no host before a click', async () => {
    const { page, origins } = await openPage(browser, linkTo(enclave), [enclave]);
    expect(await page.inputValue('input >> nth=0')).toBe(enclave);
    const button = page.locator('button[type=submit]');
    expect(await button.textContent()).toBe(`Attest ${new URL(enclave).host}`);
    await page.waitForTimeout(300);
    expect(origins()).toEqual([new URL(dev.console).origin]);
    await inspect(page, 'empty');
    await page.waitForSelector('text=dev.pcrs');
    expect(await page.textContent('form ~ .hint')).toMatch(
      /^Root and registers are those of sui-enclave dev/,
    );
    await attest(page);
    expect(await readVerdict(page)).toEqual({
      title: 'Trusted, under a development root',
      tone: 'warning',
      code: '',
    });
    expect(await page.locator('.registers .ds-tag').allTextContents()).toEqual(['match', 'match', 'match']);
    expect(await page.locator('.chain > li').count()).toBe(5);
    expect(await page.textContent('.facts')).toContain('weather');
    await page.click('text=All 41 rules');
    expect(await page.locator('details .rules > li').count()).toBe(41);
    expect(await page.locator('details .rules [data-state=passed]').count()).toBe(41);
    await inspect(page, 'trusted');
  });

  test('is not trusted under the root that is built in', async () => {
    const { page } = await openPage(browser, linkTo(enclave), [enclave]);
    for (const name of ['dev-root.pem', 'dev.pcrs']) await page.click(`[aria-label="Remove ${name}"]`);
    await attest(page);
    expect(await readVerdict(page)).toMatchObject({
      title: 'Unknown root: AWS did not attest this',
      tone: 'danger',
      code: expect.stringMatching(/^CHAIN_ROOT: /),
    });
    // Dropping the root on the page later changes the verdict, without a request.
    await page.setInputFiles('input[type=file]', join(dev.folder, 'dev-root.pem'));
    await page.waitForSelector('text=Genuine, but compared with nothing');
    await page.setInputFiles('input[type=file]', join(dev.folder, 'dev.pcrs'));
    await page.waitForSelector('text=Trusted, under a development root');
    await open(page);
    await page.click('[aria-label="Remove dev-root.pem"]');
    await page.waitForSelector('text=Unknown root');
  });

  test('can be used with the keyboard alone', async () => {
    const { page } = await openPage(browser, linkTo(enclave), [enclave]);
    const focused = () =>
      page.evaluate(() => document.activeElement?.textContent || document.activeElement?.id);
    await page.keyboard.press('Tab');
    expect(await focused()).toBe('Skip to the content');
    await page.keyboard.press('Enter');
    expect(await focused()).toMatch(/^Enclave/);
    await page.keyboard.press('Tab');
    expect(await focused()).toBe('Address, root and registers');
    await page.keyboard.press('Tab');
    await page.keyboard.press('Tab');
    expect(await focused()).toMatch(/^Attest /);
    await page.keyboard.press('Enter');
    expect(await readVerdict(page)).toMatchObject({ tone: 'warning' });
    // The focus moves on over the fields and the copy buttons to the rules.
    for (let tabs = 0; tabs < 40 && (await focused()) !== 'All 41 rules'; tabs += 1) {
      await page.keyboard.press('Tab');
    }
    await page.keyboard.press('Enter');
    expect(await page.locator('details[open] .rules > li').count()).toBe(41);
  });
});

describe('a separate verdict is shown for', () => {
  test('wrong registers', async () => {
    const nsm = new EmulatedNsm();
    const otherPcrs = nsm.pcrsFile().replace(/^(.*)PCR2$/m, `${'ab'.repeat(48)} PCR2`);
    const { page } = await openAttested(await serveEnclave(nsm), nsm, otherPcrs);
    expect(await readVerdict(page)).toMatchObject({
      title: 'Wrong registers: it runs another image',
      code: expect.stringMatching(/^POLICY_PCRS: /),
    });
    expect(await page.locator('.registers .ds-tag').allTextContents()).toEqual([
      'match',
      'match',
      'mismatch',
    ]);
    expect(await page.locator('.registers .expected code').textContent()).toBe('ab'.repeat(48));
    expect(await page.textContent('.panel:has(.facts)')).toContain('attested, but not accepted');
    await inspect(page, 'wrong-registers');
  });

  test('debug mode', async () => {
    const nsm = debugNsm();
    const { page } = await openAttested(await serveEnclave(nsm), nsm, '');
    expect(await readVerdict(page)).toMatchObject({
      title: 'Debug mode: its host can read everything in it',
      code: expect.stringMatching(/^POLICY_DEBUG: /),
    });
    expect(await page.locator('.registers .ds-tag').allTextContents()).toEqual(['debug', 'debug', 'debug']);
    await inspect(page, 'debug');
  });

  test('an expired document', async () => {
    const nsm = new EmulatedNsm(() => Date.now() - 4 * 3_600_000);
    const { page } = await openAttested(await serveEnclave(nsm), nsm);
    expect(await readVerdict(page)).toMatchObject({
      title: 'Expired: a certificate is no longer valid',
      code: expect.stringMatching(/^CERTIFICATE_EXPIRED: /),
    });
    expect(await page.locator('.registers .ds-tag').first().textContent()).toBe('only claimed: match');
    expect(await page.textContent('.panel:has(.facts)')).toContain('only claimed: the document');
    expect(await page.locator('.chain > li').last().getAttribute('data-state')).toBe('expired');
    expect(await page.textContent('.chain > li:last-child')).toMatch(/expired (59 min|1 h)/);
    expect(await page.locator('details .rules [data-state="not reached"]').count()).toBeGreaterThan(10);
    await inspect(page, 'expired');
  });

  test('a document that was changed', async () => {
    const nsm = new EmulatedNsm();
    const url = await serveEnclave(nsm, (document) => {
      // The changed byte is in the module's name, which the signature covers.
      const index = document.indexOf('i-0development');
      document.write('j', index);
      return document;
    });
    const { page } = await openAttested(url, nsm);
    expect(await readVerdict(page)).toMatchObject({
      title: 'Tampered with: the signature does not match',
      code: expect.stringMatching(/^COSE_SIGNATURE_MISMATCH: /),
    });
  });

  test('an answer to another request', async () => {
    const nsm = new EmulatedNsm();
    const { page } = await openAttested(
      await serveEnclave(nsm, () => createDocument(nsm, 'aa'.repeat(32))),
      nsm,
    );
    expect(await readVerdict(page)).toMatchObject({
      title: 'Replayed: it answers another request',
      code: expect.stringMatching(/^POLICY_NONCE: /),
    });
  });

  test('bytes that are not a document', async () => {
    const nsm = new EmulatedNsm();
    const { page } = await openAttested(await serveEnclave(nsm, () => Buffer.from('<html>')), nsm);
    expect(await readVerdict(page)).toMatchObject({ title: 'Not an attestation document', tone: 'danger' });
  });

  test('a document from a file, which may be of any age', async () => {
    const { page, origins } = await openPage(browser, dev.console);
    const nsm = new EmulatedNsm();
    await page.setInputFiles('input[type=file]', [
      file('dev-root.pem', nsm.rootPem()),
      file('nitro.pcrs', nsm.pcrsFile()),
      file('document.bin', await createDocument(nsm, '00')),
    ]);
    expect(await readVerdict(page)).toMatchObject({ title: 'Trusted, under a development root' });
    expect(await page.textContent('.verdict')).toContain('not requested just now');
    expect(origins()).toEqual([new URL(dev.console).origin]);
  });

  test('an enclave that is down', async () => {
    const { page } = await openPage(browser, linkTo('http://127.0.0.1:9'), ['http://127.0.0.1:9']);
    await attest(page);
    expect(await readVerdict(page)).toMatchObject({ title: 'No answer to verify', tone: 'danger' });
    await inspect(page, 'down');
  });

  test('an enclave that refuses, or answers with something else', async () => {
    let answer = '';
    let status = 503;
    const url = await serve((_, response) => response.writeHead(status).end(answer));
    const { page } = await openPage(browser, linkTo(url), [url]);
    await attest(page);
    expect(await page.textContent('.verdict')).toContain('status 503');
    status = 200;
    for (const [text, words] of [
      ['<html>', 'is not JSON'],
      ['{}', 'has no attestation document'],
      ['x'.repeat(1_048_577), 'more than 1048576 bytes'],
    ] as const) {
      answer = text;
      await attest(page);
      await page.waitForSelector(`.verdict:has-text("${words}")`);
    }
  });
});

test('a long request shows its progress, and can be cancelled', async () => {
  const url = await serve(() => {});
  const { page } = await openPage(browser, linkTo(url), [url]);
  await page.click('button[type=submit]');
  await page.waitForSelector(`text=Asking ${new URL(url).host}`);
  await inspect(page, 'loading');
  await page.click('text=Cancel');
  await page.waitForSelector('text=Nothing to see yet');
  expect(await page.locator('.verdict').count()).toBe(0);
});

describe('a hostile link', () => {
  test.each([
    ['javascript:alert(1)', /not javascript:/],
    ['data:text/html,<script>alert(1)</script>', /not data:/],
    ['https://bank.example@127.0.0.1', /user name/],
  ])('with %s is refused, and nothing is sent', async (url, reason) => {
    const { page, origins } = await openPage(browser, linkTo(url));
    expect(await page.isDisabled('button[type=submit]')).toBe(true);
    expect(await page.locator('.problem').textContent()).toMatch(reason);
    await page.locator('input').first().press('Enter');
    await page.waitForTimeout(200);
    expect(origins()).toEqual([new URL(dev.console).origin]);
  });

  test('can name neither root nor registers', async () => {
    const { page } = await openPage(
      browser,
      `${linkTo('https://enclave.example')}&roots=x&pcrs=${'00'.repeat(48)}`,
    );
    expect(await page.locator('.chip').allTextContents()).toEqual(['root AWS Nitro, built in']);
  });
});

test('a hostile name of a file is shown as text', async () => {
  const nsm = new EmulatedNsm();
  const hostile = '<img src=x onerror=alert(1)>\u202egnp';
  const url = await serveEnclave(nsm);
  const { page } = await openPage(browser, linkTo(url), [url]);
  await page.setInputFiles('input[type=file]', [file(`${hostile}.pcrs`, nsm.pcrsFile())]);
  await page.waitForSelector('.chip');
  const chip = (await page.locator('.chip').last().textContent()) ?? '';
  expect(chip).toContain('<img src=x onerror=alert(1)>\\u{202e}gnp');
  expect(await page.locator('main img').count()).toBe(0);
});

test('a view whose code can not be loaded shows an error, and the other views continue', async () => {
  const { page } = await openPage(browser, dev.console);
  await page.route('**/assets/view-*.js', (route) => route.abort());
  await page.click('nav >> text=Chain');
  expect(await readVerdict(page)).toMatchObject({ title: 'This view has failed', tone: 'danger' });
  await page.click('nav >> text=Enclave');
  await page.waitForSelector('text=Nothing to see yet');
  expect(await page.title()).toBe('Enclave · sui-enclave console');
});

test('no page can frame the console, and the console is small', async () => {
  const response = await fetch(dev.console);
  const policy = response.headers.get('content-security-policy') ?? '';
  expect(policy).toContain("frame-ancestors 'none'");
  expect(policy).toContain("require-trusted-types-for 'script'");
  expect(policy).not.toContain('unsafe');
  const html = await response.text();
  expect(html).toContain('http-equiv="Content-Security-Policy"');
  expect(html).not.toMatch(/<style|style=|<script>/);

  const { page } = await openPage(browser, dev.console);
  const resourcePaths = await page.evaluate(() =>
    performance.getEntriesByType('resource').map(({ name }) => new URL(name).pathname),
  );
  const { gzipSync } = await import('node:zlib');
  const sizes = resourcePaths
    .filter((path) => /\.(js|css)$/.test(path))
    .map((path) => gzipSync(readFileSync(join('out/console', path)), { level: 9 }).length);
  expect(sizes.length).toBeGreaterThan(1);
  expect(sizes.reduce((sum, size) => sum + size)).toBeLessThanOrEqual(180 * 1024);
  // The page loads the client of Sui only when it needs it.
  expect(resourcePaths.some((path) => /read|chain/.test(path))).toBe(false);
});

describe('the form', () => {
  test('keeps its fields over a change of the view, Back and a reload; a reload drops the verdict and sends nothing', async () => {
    const nsm = new EmulatedNsm();
    const url = await serveEnclave(nsm);
    const { page } = await openPage(browser, dev.console, [url]);
    await page.fill('input >> nth=0', url);
    await page.setInputFiles('input[type=file]', [
      file('dev-root.pem', nsm.rootPem()),
      file('nitro.pcrs', nsm.pcrsFile()),
    ]);
    await attest(page);
    expect(await readVerdict(page)).toMatchObject({ title: 'Trusted, under a development root' });
    await page.click('nav >> text=Call');
    await page.waitForSelector('h1:text-is("Call")');
    expect(await page.inputValue('input >> nth=0')).toBe(url);
    await page.waitForSelector('.chip:has-text("nitro.pcrs")');
    await page.click('nav >> text=Chain');
    await page.fill('label:has-text("Node") + input', 'http://127.0.0.1:9');
    await page.goBack();
    await page.waitForSelector('h1:text-is("Call")');
    expect(await page.inputValue('input >> nth=0')).toBe(url);
    await page.goForward();
    await page.waitForSelector('h1:text-is("Chain")');
    expect(await page.inputValue('label:has-text("Node") + input')).toBe('http://127.0.0.1:9');
    await page.click('nav >> text=Enclave');
    let requests = 0;
    page.on('request', (request) => {
      if (request.url().startsWith(url)) requests += 1;
    });
    await page.reload();
    await page.waitForSelector('.chip:has-text("nitro.pcrs")');
    expect([await page.locator('.verdict').count(), requests]).toEqual([0, 0]);
    await attest(page);
    expect(await readVerdict(page)).toMatchObject({ title: 'Trusted, under a development root' });
    expect(requests).toBe(1);
  });

  test('drops root and registers by a link to another enclave', async () => {
    const nsm = new EmulatedNsm();
    const [url, otherUrl] = [await serveEnclave(nsm), await serveEnclave(nsm)];
    const { page } = await openPage(browser, linkTo(url), [url, otherUrl]);
    await page.setInputFiles('input[type=file]', [file('dev-root.pem', nsm.rootPem())]);
    await page.waitForSelector('.chip:has-text("dev-root.pem")');
    await page.goto(linkTo(otherUrl));
    await page.waitForFunction((value) => document.querySelector('input')?.value === value, otherUrl);
    expect(await page.locator('.chip').allTextContents()).toEqual(['root AWS Nitro, built in']);
    await attest(page);
    expect(await readVerdict(page)).toMatchObject({ title: 'Unknown root: AWS did not attest this' });
    // They are dropped for the first address too.
    await page.goto(linkTo(url));
    await page.waitForFunction((value) => document.querySelector('input')?.value === value, url);
    expect(await page.locator('.chip').allTextContents()).toEqual(['root AWS Nitro, built in']);
  });

  test('drops root and registers when the address is changed by hand', async () => {
    const { page } = await openPage(browser, linkTo(enclave), []);
    await page.waitForSelector('.chip:has-text("dev.pcrs")');
    await page.setInputFiles('input[type=file]', [file('other.pcrs', new EmulatedNsm().pcrsFile())]);
    await page.waitForSelector('.chip:has-text("other.pcrs")');
    await page.fill('input >> nth=0', `${enclave}0`);
    expect(await page.locator('.chip').allTextContents()).toEqual(['root AWS Nitro, built in']);
    expect(await page.locator('text=which has started this enclave').count()).toBe(0);
    await page.fill('input >> nth=0', enclave);
    await page.waitForSelector('.chip:has-text("dev.pcrs")');
    expect(await page.locator('.chip:has-text("other.pcrs")').count()).toBe(0);
  });
});
