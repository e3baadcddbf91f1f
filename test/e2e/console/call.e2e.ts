/** Tests the view Call with the enclave of `make dev`, its contract on `make dev-sui`, and hosts that lie. */
import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { ed25519 } from '@noble/curves/ed25519.js';
import type { Browser, Page } from 'playwright';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { WeatherResponse } from '../../../src/apps/weather/types.ts';
import { inspect, launch, openPage, type Running, readVerdict, start, startEnclave } from './console.ts';
import { createHost, type ForgedAnswer, serve } from './enclaves.ts';

let browser: Browser;
let sui: Running;
let dev: Running;
let enclave: string;
let node: string;
let appPackage: string;

beforeAll(async () => {
  browser = await launch();
  sui = await start('sui/main.ts', { FAUCET_PORT: '0', LAG_MS: '0' }, /^http\S+ {2}a MODEL/m);
  node = /^(http\S+) {2}a MODEL/m.exec(sui.output)?.[1] ?? '';
  [dev, enclave] = await startEnclave({ OUT: sui.folder });
  const publish = ['src/cli/main.ts', 'publish', 'weather', '--network', 'localnet', '--rpc-url', node];
  const { stdout } = await promisify(execFile)(process.execPath, [...publish, '--json'], {
    env: {
      PATH: process.env['PATH'] ?? '',
      SUI_PRIVATE_KEY: readFileSync(join(sui.folder, 'dev-sui.key'), 'utf8').trim(),
      DEPLOYMENTS: join(sui.folder, 'deployments'),
    },
  });
  appPackage = JSON.parse(stdout).package;
});

afterAll(async () => {
  await browser?.close();
  await dev?.close();
  await sui?.close();
});

/** Opens a page with the form of the enclave at a URL, with root and registers of `make dev`. */
async function openForm(url: string, ...allowed: string[]) {
  const opened = await openPage(browser, `${dev.console}#/call?url=${encodeURIComponent(url)}`, [
    url,
    ...allowed,
  ]);
  const { page } = opened;
  const files = ['dev-root.pem', 'dev.pcrs'].map((name) => join(sui.folder, name));
  await page.setInputFiles('input[type=file]', files);
  await page.waitForSelector('.chip:has-text("dev.pcrs")');
  await page.click('text=Load the form from');
  await page.waitForSelector('summary:has-text("Form of"), .verdict');
  return opened;
}

async function call(page: Page, location = 'San Francisco'): Promise<void> {
  const form = page.locator('.collapsible:has(summary:has-text("Form of"))');
  if (!(await form.evaluate((details) => details.hasAttribute('open'))))
    await form.locator('summary').click();
  await page.fill('input[placeholder=text]', location);
  await page.click(`.buttons button:has-text("Call ")`);
  await page.waitForSelector('h3:text-is("What the host saw")');
}

const panel = (page: Page, title: string) => page.locator(`.panel:has(h3:text-is("${title}"))`);

/** Starts a host that changes the answers of one endpoint of the enclave of `make dev`. */
const lyingHost = (endpoint: string, forge: (answer: string) => ForgedAnswer) =>
  createHost(enclave, (path, text) => (path === endpoint ? forge(text) : undefined));

describe('a call of the enclave of make dev', () => {
  test('shows what was signed, byte by byte, and by which key', async () => {
    const { page, origins } = await openPage(
      browser,
      `${dev.console}#/call?url=${encodeURIComponent(enclave)}`,
      [],
    );
    await page.waitForTimeout(200);
    expect(origins()).toEqual([new URL(dev.console).origin]);

    const { page: formPage } = await openForm(enclave);
    expect(await formPage.textContent('.panel:has(summary:has-text("Form of"))')).toContain(
      'as told by the host',
    );
    expect(await formPage.textContent('.panel:has(summary:has-text("Form of"))')).toContain(
      'Well-formed Unicode (no lone surrogate); at most 256 bytes of UTF-8; must name a place',
    );
    await call(formPage);
    expect(await readVerdict(formPage)).toMatchObject({
      title: 'Signed, under a development root',
      tone: 'warning',
    });
    const top = await formPage
      .locator('.verdict')
      .first()
      .evaluate((verdict) => verdict.getBoundingClientRect().top);
    expect(top).toBeLessThan(300);
    // The form is collapsed once it is sent.
    expect(
      await formPage.locator('details:has(summary:has-text("Form of"))').getAttribute('open'),
    ).toBeNull();
    const bytes = (await panel(formPage, 'Signed bytes').locator('.signed code').allTextContents()).join('');
    const message = WeatherResponse.message.parse(Buffer.from(bytes, 'hex'));
    expect(message).toMatchObject({ intent: 0, payload: { location: 'San Francisco' } });
    expect(await panel(formPage, 'Signed bytes').locator('.fields strong').allTextContents()).toEqual([
      'intent',
      'timestamp_ms',
      'payload.location',
      'payload.temperature',
    ]);
    const [signature = '', key = ''] = await panel(formPage, 'Signature').locator('code').allTextContents();
    const { pk } = (await (await fetch(`${enclave}/health_check`)).json()) as { pk: string };
    expect(key).toBe(pk);
    const signed = ed25519.verify(
      Buffer.from(signature, 'hex'),
      Buffer.from(bytes, 'hex'),
      Buffer.from(key, 'hex'),
    );
    expect(signed).toBe(true);
    expect(await panel(formPage, 'Move call').textContent()).toContain(`0x${signature}`);
    expect(await panel(formPage, 'What the host saw').textContent()).toContain('San Francisco');
    await inspect(formPage, 'call');
  });

  test('that is sealed shows the host only sizes', async () => {
    const { page } = await openForm(enclave);
    await page.check('input[type=checkbox]');
    await call(page);
    expect(await readVerdict(page)).toMatchObject({ title: 'Signed, under a development root' });
    const hostText = (await panel(page, 'What the host saw').textContent()) ?? '';
    expect(hostText).toContain('only sizes');
    expect(hostText).toMatch(/\/sealed \d+ bytes sent, \d+ received/);
    expect(hostText).not.toContain('San Francisco');
  });

  test('that the enclave refuses leads to a verdict with the text of the refusal, which is not signed', async () => {
    const { page } = await openForm(enclave);
    await call(page, ' ');
    expect(await readVerdict(page)).toMatchObject({
      title: expect.stringMatching(/^The enclave refused the request with status 4\d\d$/),
      tone: 'warning',
    });
    expect(await page.textContent('.verdict')).toContain('which is not signed');
  });

  test('returns the struct that the contract on chain reads', async () => {
    const { page } = await openForm(enclave, node);
    await page.click('text=Compare the type with a contract');
    await page.fill('input[placeholder="0x…::weather"]', `${appPackage}::weather`);
    await page.fill('input[placeholder^="https://fullnode"]', node);
    await page.click('button:has-text("Compare at")');
    await page.waitForSelector('text=The contract reads the same struct');
    await page.fill('input[placeholder="0x…::weather"]', `${appPackage}::nothing`);
    await page.click('button:has-text("Compare at")');
    await page.waitForSelector('.problem');
  });
});

describe('a separate verdict is shown for', () => {
  test('an answer that the host changed', async () => {
    const host = await lyingHost('/process_data', (text) => ({
      text: text.replace('San Francisco', 'San Fransisco'),
    }));
    const { page } = await openForm(host);
    await call(page);
    expect(await readVerdict(page)).toMatchObject({
      title: 'Tampered with: no attested key signed these bytes',
      tone: 'danger',
      code: expect.stringMatching(/^CLIENT_SIGNATURE: /),
    });
    await inspect(page, 'tampered');
  });

  test('an answer that another key signed', async () => {
    const secret = ed25519.utils.randomSecretKey();
    const host = await lyingHost('/process_data', (text) => {
      const { response } = JSON.parse(text);
      const { intent, timestamp_ms, data } = response;
      const payload = { ...data, temperature: 99 };
      const bytes = WeatherResponse.message.serialize({ intent, timestamp_ms, payload }).toBytes();
      const signature = Buffer.from(ed25519.sign(bytes, secret)).toString('hex');
      return {
        text: JSON.stringify({ response: { intent, timestamp_ms, data: payload }, signature }),
        headers: { 'x-enclave-key': Buffer.from(ed25519.getPublicKey(secret)).toString('hex') },
      };
    });
    const { page } = await openForm(host);
    await call(page);
    expect(await readVerdict(page)).toMatchObject({
      title: 'Another key: the answer is signed, but not by an attested key',
      code: expect.stringMatching(/^CLIENT_SIGNATURE: /),
    });
  });

  test('a schema whose fields differ from those that the contract reads', async () => {
    const host = await lyingHost('/schema', (text) => {
      const schema = JSON.parse(text);
      const [type] = schema.signs;
      return { text: JSON.stringify({ ...schema, signs: [{ ...type, fields: type.fields.toReversed() }] }) };
    });
    const { page } = await openForm(host, node);
    await page.click('text=Compare the type with a contract');
    await page.fill('input[placeholder="0x…::weather"]', `${appPackage}::weather`);
    await page.fill('input[placeholder^="https://fullnode"]', node);
    await page.click('button:has-text("Compare at")');
    await page.waitForSelector('.verdict');
    expect(await readVerdict(page)).toMatchObject({
      title: 'The schema differs from the contract',
      tone: 'danger',
    });
    expect(await page.textContent('.verdict')).toContain(
      'is signed as temperature, but on chain it is location',
    );
    // The bytes of that type are not the bytes that the enclave signed.
    await call(page);
    expect(await page.locator('.verdict h2').allTextContents()).toEqual([
      'The schema differs from the contract',
      'Tampered with: no attested key signed these bytes',
    ]);
    await inspect(page, 'lying-schema');
  });

  test('a schema that only renames a field, so that the signature holds', async () => {
    const rename = (text: string) => text.replaceAll('"temperature"', '"humidity"');
    const host = await createHost(enclave, (path, text) =>
      path === '/schema' || path === '/process_data' ? { text: rename(text) } : undefined,
    );
    const { page } = await openForm(host, node);
    await call(page);
    expect(await readVerdict(page)).toMatchObject({ tone: 'warning' });
    await page.click('text=Compare the type with a contract');
    await page.fill('input[placeholder="0x…::weather"]', `${appPackage}::weather`);
    await page.fill('input[placeholder^="https://fullnode"]', node);
    await page.click('button:has-text("Compare at")');
    await page.waitForSelector('text=The contract would not accept this answer');
    expect(await page.locator('.verdict h2').allTextContents()).toEqual([
      'The schema differs from the contract',
      'The schema differs from the contract',
    ]);
  });

  test('an enclave without a schema, and a schema that can not be used', async () => {
    let answer = '{"error":"no","code":"SCHEMA_NOT_FOUND"}';
    let status = 404;
    const url = await serve((_, response) => response.writeHead(status).end(answer));
    const { page } = await openForm(url);
    expect(await readVerdict(page)).toMatchObject({ title: 'There is no form', tone: 'danger' });
    status = 200;
    answer = JSON.stringify({ version: 1, signs: [], endpoints: [], inputs: { a: 'x'.repeat(70_000) } });
    await page.click('text=Load the form from');
    await page.waitForSelector('.verdict:has-text("more than 65536 bytes")');
  });
});

test('hostile texts of a schema and an answer are shown as text', async () => {
  const hostile = '<img src=x onerror=alert(1)>\u202egnp';
  const host = await lyingHost('/schema', (text) => {
    const schema = JSON.parse(text);
    schema.inputs['POST /process_data'].properties.payload.properties.location.description =
      hostile.repeat(200);
    return { text: JSON.stringify(schema) };
  });
  const { page } = await openForm(host);
  const hint =
    (await page.locator('.panel:has(summary:has-text("Form of")) .field .hint').textContent()) ?? '';
  expect(hint).toContain('<img src=x onerror=alert(1)>\\u{202e}gnp');
  expect(hint.length).toBeLessThan(1000);
  await call(page, hostile);
  expect(await page.locator('main img').count()).toBe(0);
  await inspect(page, 'hostile-schema');
});
