/**
 * Tests the view Chain with `make dev-sui` and the enclave of `make dev`, and with a node that tests can
 * change.
 */
import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import type { Browser, Page } from 'playwright';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { ConfigContent } from '../../../src/library/sui/structs.ts';
import { DevelopmentTrust } from '../../../src/testing/development_trust.ts';
import { ChainFixture } from '../../src/cli/sui/chain_fixture.ts';
import { inspect, launch, openPage, type Running, readVerdict, start, startEnclave } from './console.ts';
import { createDocument, serveEnclave } from './enclaves.ts';

let browser: Browser;
let sui: Running;
let node: string;

beforeAll(async () => {
  browser = await launch();
  sui = await start('sui/main.ts', { FAUCET_PORT: '0', LAG_MS: '0' }, /^http\S+ {2}a MODEL/m);
  node = /^(http\S+) {2}a MODEL/m.exec(sui.output)?.[1] ?? '';
});

afterAll(async () => {
  await browser?.close();
  await sui?.close();
});

const linkTo = (url: string, config = '') =>
  `${sui.console}#/chain?node=${encodeURIComponent(url)}&config=${config}`;

async function submitForm(page: Page): Promise<void> {
  await page.click('button[type=submit] >> nth=0');
  await page.waitForSelector('.verdict, .facts');
}

/** Returns the texts of the status lights in a panel. */
const readLights = (page: Page, title: string) =>
  page.locator(`.panel:has(h3:text-is("${title}")) .cards .ds-tag`).allTextContents();

async function askEnclave(page: Page, url: string): Promise<void> {
  await page.fill('.panel:has(h3:text-is("Ask an enclave")) input', url);
  await page.click(`text=Ask ${new URL(url).host}`);
  await page.waitForSelector(`.cards strong:text-is("${new URL(url).host}")`);
}

describe('the chain of make dev-sui', () => {
  let dev: Running;
  let enclave: string;
  let config: string;

  /** Runs a command of the admin as a process. */
  async function run(name: string, ...args: string[]): Promise<Record<string, string>> {
    const env = {
      PATH: process.env['PATH'] ?? '',
      SUI_PRIVATE_KEY: readFileSync(join(sui.folder, 'dev-sui.key'), 'utf8').trim(),
      DEPLOYMENTS: join(sui.folder, 'deployments'),
    };
    const argv = ['src/cli/main.ts', name, ...args, '--network', 'localnet', '--rpc-url', node, '--json'];
    return JSON.parse((await promisify(execFile)(process.execPath, argv, { env })).stdout);
  }

  beforeAll(async () => {
    [dev, enclave] = await startEnclave({ OUT: sui.folder });
    await run('publish', 'weather');
    config = (await run('create_config', 'weather', '--pcrs', join(sui.folder, 'dev.pcrs')))['config'] ?? '';
    await run('register_enclave', enclave, '--root', join(sui.folder, 'dev-root.pem'));
  });

  afterAll(async () => {
    await dev?.close();
  });

  test('shows the config, its holder, its enclave and its events, and asks no host before a click', async () => {
    const { nsm } = DevelopmentTrust.load(pathToFileURL(`${sui.folder}/`), 'weather');
    const otherEnclave = await serveEnclave(nsm);
    const { page, origins } = await openPage(browser, linkTo(node, config), [node, enclave, otherEnclave]);
    await page.waitForTimeout(200);
    expect(origins()).toEqual([new URL(sui.console).origin]);
    await submitForm(page);
    expect(await page.textContent('.panel:has(.facts) h3')).toBe('Config “weather”');
    expect(await readLights(page, 'Enclaves')).toEqual(['registered']);
    expect(await page.locator('.events > li p:first-child').allTextContents()).toEqual([
      'An enclave was registered at version 0',
      'The config was created as “weather”, version 0',
    ]);
    // The enclave answers, but this page does not know the development root.
    await askEnclave(page, enclave);
    expect(await readLights(page, 'Ask an enclave')).toEqual(['not trusted']);
    await page.click('text=Use the development root of this machine');
    await page.waitForSelector('text=under a root that you gave');
    await page.click(`text=Ask ${new URL(enclave).host}`);
    await page.waitForSelector('text=It answers with a registered key');
    expect(await readLights(page, 'Ask an enclave')).toEqual(['registered']);
    // The other enclave has the same image under the same root, but a key that is not registered.
    await page.fill('.panel:has(h3:text-is("Ask an enclave")) input', otherEnclave);
    await page.click('text=Use the development root of this machine');
    await askEnclave(page, otherEnclave);
    await page.waitForSelector('text=its key is not registered');
    expect(await readLights(page, 'Ask an enclave')).toEqual(['unknown key', 'registered']);
    await inspect(page, 'chain');
    // The view of the enclave has the same registers.
    await page.click('text=Compare an enclave with this config');
    await page.waitForSelector('h1:text-is("Enclave")');
    // The field has the address that was asked last. The root belongs to that address alone.
    expect(await page.inputValue('input >> nth=0')).toBe(otherEnclave);
    await page.fill('input >> nth=0', enclave);
    expect(await page.locator('.chip').count()).toBe(1);
    await page.click('button:has-text("Read from")');
    await page.waitForSelector('.chip:has-text("expected registers")');
    await page.click('text=Use the development root of this machine');
    await page.waitForSelector('.chip:has-text("dev-root.pem")');
    await page.click('button[type=submit]');
    expect(await readVerdict(page)).toMatchObject({ title: 'Trusted, under a development root' });
  });

  test('lists transactions, events and objects', async () => {
    const { page } = await openPage(browser, linkTo(node), [node]);
    await page.click('text=List the ledger');
    await page.waitForSelector('.events > li');
    const panel = (title: string) => page.locator(`.panel:has(h3:text-is("${title}"))`);
    expect(await panel('Transactions').locator('.register').allTextContents()).toEqual([
      expect.stringContaining('enclave::register_enclave'),
      expect.stringContaining('enclave::create_enclave_config'),
      expect.stringContaining('Publish'),
    ]);
    expect(await panel('Events').locator('li p a').first().textContent()).toBe('EnclaveRegistered<WEATHER>');
    expect(await panel('Objects').locator('li p a').allTextContents()).toContain('UpgradeCap');
    await panel('Objects').locator('li:has-text("UpgradeCap") summary').click();
    expect(await panel('Objects').textContent()).toMatch(/0x0*2::package::UpgradeCap/);
    await inspect(page, 'ledger');
    // The links go from a transaction to its object, and back to the transaction.
    await panel('Transactions').locator('a:has-text("enclave::create_enclave_config")').click();
    await page.waitForSelector('ul.events');
    await page.click('ul.events a:has-text("EnclaveConfig<WEATHER>")');
    await page.waitForSelector('h3:text-is("EnclaveConfig<WEATHER>")');
    expect(await page.textContent('.facts')).toContain(config);
    const fact = (name: string) => page.textContent(`.facts dt:text-is("${name}") + dd`);
    expect([await fact('name'), await fact('config_version')]).toEqual(['weather', '0']);
    expect(page.url()).toContain(`id=${config}`);
    await inspect(page, 'object');
    // After a reload, the page asks no host before a click, and then shows the same object.
    await page.reload();
    await page.waitForSelector('text=Nothing to see yet');
    await page.click('text=Show from');
    await page.waitForSelector('h3:text-is("EnclaveConfig<WEATHER>")');
    await page.click('text=List the ledger');
    await page.click('text=Look at this config');
    expect(await page.inputValue('input >> nth=1')).toBe(config);
  });
});

describe('a config', () => {
  let fixture: ChainFixture;
  let config: string;
  let capId: string;
  beforeEach(async () => {
    fixture = await ChainFixture.start();
    fixture.node.servesPages = true;
    capId = fixture.publish();
    config = await fixture.config(capId);
  });
  afterEach(() => fixture.close());

  test('has a status light for each enclave: stale, or silent if the enclave does not answer', async () => {
    const enclave = await serveEnclave(fixture.nsm);
    await fixture.register(config, capId, enclave);
    await fixture.rotate(config, capId);
    const { page } = await openPage(browser, linkTo(fixture.node.url, config), [
      fixture.node.url,
      enclave,
      'http://127.0.0.1:9',
    ]);
    await submitForm(page);
    expect(await readLights(page, 'Enclaves')).toEqual(['stale']);
    await askEnclave(page, 'http://127.0.0.1:9');
    expect(await readLights(page, 'Ask an enclave')).toEqual(['silent']);
    expect(await page.locator('.events > li p:first-child').first().textContent()).toMatch(
      /^New registers: version 1; enclaves of older versions are stale/,
    );
    await inspect(page, 'chain-stale');
  });

  test('is also read from a node without events, which the page reports', async () => {
    fixture.node.faults.set('ListEvents', { status: 'UNIMPLEMENTED', message: 'no' });
    const { page } = await openPage(browser, linkTo(fixture.node.url, config), [fixture.node.url]);
    await submitForm(page);
    expect(await page.textContent('.panel:has(h3:text-is("Time line"))')).toContain('offers no events');
    expect(await page.textContent('.panel:has(h3:text-is("Enclaves"))')).toContain(
      'No enclave is registered',
    );
  });

  test('with a hostile name is shown as text', async () => {
    fixture.node.lie = (object) => {
      if (!object.type.includes('::EnclaveConfig<')) return object;
      const name = '<img src=x onerror=alert(1)>\u202egnp\n';
      return {
        ...object,
        content: ConfigContent.serialize({ ...ConfigContent.parse(object.content), name }).toBytes(),
      };
    };
    const { page } = await openPage(browser, linkTo(fixture.node.url, config), [fixture.node.url]);
    await submitForm(page);
    expect(await page.textContent('.panel:has(.facts) h3')).toBe(
      'Config “<img src=x onerror=alert(1)>\\u{202e}gnp\\u{a}”',
    );
    expect(await page.locator('main img').count()).toBe(0);
    await inspect(page, 'hostile');
  });

  test('that does not exist, or at a node that is down, leads to a verdict', async () => {
    const { page } = await openPage(browser, linkTo(fixture.node.url, `0x${'1'.repeat(64)}`), [
      fixture.node.url,
    ]);
    await submitForm(page);
    expect(await readVerdict(page)).toMatchObject({ title: 'Nothing could be read', tone: 'danger' });
    expect(await page.textContent('.verdict')).toMatch(/0x1{64}/);
    fixture.node.close();
    await submitForm(page);
    expect(await readVerdict(page)).toMatchObject({ title: 'Nothing could be read' });
  });

  test('is not listed by a node that can not list its ledger', async () => {
    fixture.node.servesPages = false;
    const enclave = await serveEnclave(fixture.nsm, (_, nonce) => createDocument(fixture.nsm, nonce));
    const { page } = await openPage(browser, linkTo(enclave), [enclave]);
    await page.click('text=List the ledger');
    expect(await readVerdict(page)).toMatchObject({ title: 'Nothing could be read' });
    expect(await page.textContent('.verdict')).toContain('only the model of sui-enclave dev-sui');
  });
});
