/** Builds examples/dapp, and opens it in headless Chromium. */

import { existsSync, globSync, readFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import { createRequire } from 'node:module';
import type { AddressInfo } from 'node:net';
import { extname, join } from 'node:path';
import { text } from 'node:stream/consumers';
import type { Browser, BrowserContextOptions, Page } from 'playwright';
import { parsePcrs } from '../../../src/library/attestation/image.ts';
import { quantity } from '../../../src/library/wording.ts';
import { expectEqual, launchBrowser, run, type Steps } from './support.ts';

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
export const MEDIA_TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html',
  '.js': 'text/javascript',
  '.css': 'text/css',
  '.json': 'application/json',
  '.svg': 'image/svg+xml',
};

const DEGREES = /^−?\d+\.\d °C$/;
const WHOLE = /^\d+ °C$/;

/** Addresses of all servers that the page needs. */
export interface DappServers {
  readonly enclave: string;
  /** URL of an enclave with the same registers, whose key is not registered. */
  readonly unregistered: string;
  readonly node: string;
  readonly faucet: string;
  readonly appPackage: string;
  readonly configId: string;
  /** Registers in the format of `out/nitro.pcrs`. */
  readonly pcrs: string;
  readonly root: string;
  readonly login: { readonly issuer: string; readonly saltUrl: string; readonly proverUrl: string };
}

/** Enters a name on the provider's page, and consents. */
export async function logInAtProvider(page: Page): Promise<void> {
  await page.fill('input[name=login]', 'ada');
  await page.fill('input[name=password]', 'any');
  await page.click('button[type=submit]');
  await page.click('button[type=submit]');
}

export async function listen(server: Server): Promise<string> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** Creates a host that forwards an enclave's answers, unchanged or with a change. */
function createHost(enclave: () => string, change: (answer: string) => string = (answer) => answer): Server {
  return createServer(async (request, response) => {
    response
      .setHeader('access-control-allow-origin', '*')
      .setHeader('access-control-allow-headers', '*')
      .setHeader('content-type', 'application/json');
    if (request.method === 'OPTIONS') return void response.end();
    const method = request.method ?? 'GET';
    const headers = { 'content-type': 'application/json' };
    const body = method === 'POST' ? await text(request) : null;
    const answer = await fetch(enclave() + request.url, { method, headers, body });
    response.end(change(await answer.text()));
  });
}

/** @param folder of the installed example */
export function dappSteps(folder: string, servers: () => DappServers): Steps {
  const dist = join(folder, 'dist');
  let browser: Browser | undefined;

  function settings({ enclave, node, faucet, appPackage, configId, pcrs, root, login }: DappServers) {
    const { pcr0, pcr1, pcr2 } = parsePcrs(pcrs);
    return {
      enclave: { url: enclave, image: { pcr0, pcr1, pcr2 }, developmentRoots: root },
      sui: {
        network: 'localnet',
        nodeUrl: node,
        faucetUrl: faucet,
        packageId: appPackage,
        configId,
      },
      login: { name: 'Example', clientId: 'wallet-implicit', ...login },
    };
  }

  /**
   * Opens the built page with these settings until `look` is done. No request may leave this machine, and
   * the page may log no error.
   */
  async function open(
    settingsJson: unknown,
    look: (page: Page) => Promise<void>,
    options: BrowserContextOptions = {},
  ): Promise<void> {
    const server = createServer((request, response) => {
      const { pathname } = new URL(request.url ?? '/', 'http://page.invalid');
      const name = pathname === '/' ? '/index.html' : pathname;
      if (name === '/settings.json') {
        return void response.setHeader('content-type', 'application/json').end(JSON.stringify(settingsJson));
      }
      const file = join(dist, name);
      if (!existsSync(file)) return void response.writeHead(404).end();
      response.setHeader('content-type', MEDIA_TYPES[extname(name)] ?? '').end(readFileSync(file));
    });
    const url = await listen(server);
    browser ??= await launchBrowser();
    const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, ...options });
    const problems: string[] = [];
    context.on('request', (request) => {
      const { hostname, protocol } = new URL(request.url());
      if (hostname !== '127.0.0.1' && protocol !== 'data:') problems.push(request.url());
    });
    context.on('weberror', (error) => problems.push(String(error.error())));
    context.on('console', (message) => {
      // Chromium logs each failed request, and some tests of the page make requests fail.
      const isRequest = message.text().startsWith('Failed to load resource');
      if (message.type() === 'error' && !isRequest) problems.push(message.text());
    });
    try {
      const page = await context.newPage();
      await page.goto(url);
      await look(page);
      expectEqual(problems, []);
    } finally {
      await context.close();
      server.closeAllConnections();
      server.close();
    }
  }

  /** Checks the rules of WCAG 2.1 AA and axe's own recommendations. */
  async function expectAccessible(page: Page): Promise<void> {
    await page.evaluate(AXE);
    // During a transition, colours have less contrast than before and after it.
    await page.evaluate(`Promise.allSettled(document.getAnimations()
      .filter((animation) => animation instanceof CSSTransition).map(({ finished }) => finished))`);
    const violations = await page.evaluate(`axe.run().then(({ violations }) =>
      violations.map(({ id, nodes }) => id + ': ' + nodes.map(({ html }) => html).join(', ')))`);
    expectEqual(violations, []);
    const isTooWide = await page.evaluate('document.documentElement.scrollWidth > innerWidth');
    expectEqual(isTooWide, false);
  }

  /** Logs in on the provider's own pages, in the window that the wallet opens. */
  async function logIn(page: Page): Promise<void> {
    await page.getByRole('button', { name: 'Connect' }).click();
    const opened = page.waitForEvent('popup');
    await page.getByText('Example (this app only)').click();
    const popup = await opened;
    await logInAtProvider(popup);
    await page.getByText(/^0x\S+ gets the object/).waitFor();
  }

  const ask = (page: Page) => page.getByRole('button', { name: 'Ask the enclave' }).click();

  return {
    async 'examples/dapp is built, with a small page for the redirect'() {
      const vite = join(folder, 'node_modules/vite/bin/vite.js');
      await run(process.execPath, [vite, 'build', '--logLevel', 'error'], { cwd: folder });
      const page = readFileSync(join(dist, 'login.html'), 'utf8');
      const scripts = [...page.matchAll(/(?:src|href)="\.\/(assets\/[^"]+\.js)"/g)];
      const size = scripts.reduce((sum, [, file = '']) => sum + readFileSync(join(dist, file)).length, 0);
      expectEqual(size > 0 && size < 10_000, true);
      const modules = globSync('**/*.js', { cwd: dist }).map((file) =>
        readFileSync(join(dist, file), 'utf8'),
      );
      expectEqual(
        [
          modules.length > 0,
          modules.filter((code) => /["'`]node:https?["'`]|__vite-browser-external/.test(code)).length,
        ],
        [true, 0],
      );
      return quantity(size, 'byte');
    },

    async 'it shows attested weather, in light and dark, on wide and narrow screens'() {
      for (const colorScheme of ['light', 'dark'] as const) {
        for (const width of [1280, 390]) {
          const options = { colorScheme, viewport: { width, height: 844 } };
          await open(
            settings(servers()),
            async (page) => {
              await page.getByText(/^Registers \w{8}… match$/).waitFor();
              await ask(page);
              await page.getByText(DEGREES).waitFor();
              await page.getByText(/^Enclave 0x/).waitFor();
              await expectAccessible(page);
            },
            options,
          );
        }
      }
      return '4 pages without a violation';
    },

    async 'it has a message for a silent enclave, another image, a lying host, and an unregistered key'() {
      const pageSettings = settings(servers());
      const withUrl = (url: string) => ({ ...pageSettings, enclave: { ...pageSettings.enclave, url } });
      const { pcr0 } = pageSettings.enclave.image;
      const otherImage = {
        ...pageSettings.enclave.image,
        pcr0: `${pcr0.startsWith('0') ? '1' : '0'}${pcr0.slice(1)}`,
      };
      const host = createHost(
        () => servers().enclave,
        (answer) => answer.replace(/("tenths_plus_100000":"?)\d+/, '$1100999'),
      );
      const lyingUrl = await listen(host);
      const closedServer = createServer();
      const silentUrl = await listen(closedServer);
      closedServer.close();
      const cases: [pageSettings: unknown, title: string, asks: boolean][] = [
        [withUrl(silentUrl), 'The enclave does not answer', false],
        [
          { ...pageSettings, enclave: { ...pageSettings.enclave, image: otherImage } },
          'What answers is not the enclave',
          false,
        ],
        [withUrl(lyingUrl), 'What answers is not the enclave', true],
        [withUrl(servers().unregistered), 'The enclave is genuine, but Sui does not accept its key', true],
      ];
      for (const [caseSettings, title, asks] of cases) {
        await open(caseSettings, async (page) => {
          if (asks) await ask(page);
          await page.getByRole('alert').filter({ hasText: title }).waitFor();
          expectEqual(await page.getByRole('button', { name: /^Mint/ }).isDisabled(), true);
          const answer = page.getByText(DEGREES);
          // The page knows the registration before the answer arrives.
          if (title.startsWith('The enclave is genuine')) await answer.waitFor();
          else expectEqual(await answer.isVisible(), false);
          await expectAccessible(page);
        });
      }
      host.close();
      return quantity(cases.length, 'fault');
    },

    async 'it reports another key of the enclave until the user continues with it'() {
      const pageSettings = settings(servers());
      let enclave = servers().enclave;
      const host = createHost(() => enclave);
      const url = await listen(host);
      await open({ ...pageSettings, enclave: { ...pageSettings.enclave, url } }, async (page) => {
        const report = page.getByRole('alert').filter({ hasText: 'The enclave has another key' });
        await ask(page);
        await page.getByText(DEGREES).waitFor();
        expectEqual(await report.isVisible(), false);
        enclave = servers().unregistered;
        await ask(page);
        await report.waitFor();
        await page.getByText('attested when its answer arrived').waitFor();
        await ask(page);
        await page.getByText('The registry on Sui refuses it').waitFor();
        await report.getByRole('button', { name: 'Continue with the new key' }).click();
        await report.waitFor({ state: 'detached' });
      });
      host.close();
      return 'through another answer';
    },

    async 'it names a mistake in its settings'() {
      const pageSettings = settings(servers());
      await open({ ...pageSettings, sui: { ...pageSettings.sui, configId: '0x6' } }, async (page) => {
        await page.getByText('sui.configId: must be 0x and 64 hexadecimal digits').waitFor();
      });
      return 'by its path';
    },

    async 'it lists a login by pop-up as a wallet, which mints the reading after the user has seen the transaction'() {
      let minted = '';
      await open(settings(servers()), async (page) => {
        await ask(page);
        await page.getByText(DEGREES).waitFor();
        const reading = await page.getByText(DEGREES).innerText();
        await logIn(page);
        await page.getByRole('button', { name: 'Get SUI for gas' }).click();
        await page
          .getByText(/^0x\S+ gets the object, and pays the gas from its [1-9][\d.,]* SUI\.$/)
          .waitFor();
        const mint = page.getByRole('button', { name: `Mint ${reading}` });
        const question = page.getByRole('dialog', { name: 'Sign this transaction?' });
        await mint.click();
        await question.getByText(`Mint a TemperatureNFT: ${reading} in San Francisco`).waitFor();
        await question.getByText('paid by you').waitFor();
        // The button is enabled half a second after the dialog opens.
        await question.getByRole('button', { name: 'Sign', exact: true, disabled: false }).waitFor();
        await expectAccessible(page);
        await question.getByRole('button', { name: "Don't sign" }).click();
        await page.getByRole('alert').filter({ hasText: 'You did not sign' }).waitFor();
        await mint.click();
        await question.getByRole('button', { name: 'Sign', exact: true }).click();
        const card = page.getByRole('listitem').filter({ hasText: 'TemperatureNFT' });
        await card.getByText(reading, { exact: true }).waitFor();
        minted = await card.innerText();
        await expectAccessible(page);
        // The reloaded page still has the session, and connects again.
        await page.reload();
        await page.getByText(/^0x\S+ gets the object/).waitFor();
        await page.getByRole('radio', { name: 'Whole degrees' }).check();
        await ask(page);
        await page.getByText(WHOLE).waitFor();
        await page.getByRole('button', { name: /^Mint \d+ °C$/ }).click();
        await question.getByText(/^Mint a WeatherNFT: \d+ °C in San Francisco$/).waitFor();
        await question.getByRole('button', { name: 'Sign', exact: true }).click();
        await page.getByRole('listitem').filter({ hasText: 'WeatherNFT' }).waitFor();
      });
      return minted.split('\n').filter(Boolean).slice(0, 2).join(' in ');
    },

    async 'its pages close'() {
      await browser?.close();
      return 'with the browser';
    },
  };
}
