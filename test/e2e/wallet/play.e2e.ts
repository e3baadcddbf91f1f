/**
 * `make play`: from a login to an object, in the example dapp, and what the wallet and the console make of
 * it.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { connect, createServer } from 'node:net';
import { fileURLToPath } from 'node:url';
import type { Browser, Page } from 'playwright';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { builtProver } from '../../../src/toolchain/prover/artifacts.ts';
import { launch } from '../console/console.ts';

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));
const READING = /^−?\d+\.\d °C$/;

let play: ChildProcess;
let ended: Promise<unknown>;
let output = '';
let browser: Browser;

/** The first of ten free ports, below those that the system gives to others meanwhile. */
async function freePorts(): Promise<number> {
  const first = 20_000 + 10 * Math.floor(1000 * Math.random());
  const servers = Array.from({ length: 10 }, (_, n) => createServer().listen(first + n, '127.0.0.1'));
  const tried = await Promise.allSettled(servers.map((server) => once(server, 'listening')));
  await Promise.all(servers.map((server) => new Promise((resolve) => server.close(resolve))));
  return tried.every(({ status }) => status === 'fulfilled') ? first : await freePorts();
}

const url = (name: string) => new RegExp(`^${name}: +(\\S+)$`, 'm').exec(output)?.[1] ?? '';

beforeAll(async () => {
  const env = { ...process.env, PORT: String(await freePorts()) };
  play = spawn('make', ['--no-print-directory', 'play'], { cwd: ROOT, env, detached: true });
  ended = once(play, 'close');
  for (const stream of [play.stdout, play.stderr]) stream?.on('data', (chunk) => (output += chunk));
  await vi.waitFor(() => expect(output).toMatch(/^Console: .*^Dapp: |^Dapp: .*^Console: /ms), 110_000);
  browser = await launch();
}, 120_000);

afterAll(async () => {
  await browser?.close();
  try {
    process.kill(-(play.pid as number), 'SIGKILL');
  } catch {
    // It has ended.
  }
});

async function open(address: string): Promise<Page> {
  const page = await browser.newPage();
  await page.goto(address);
  return page;
}

/** Logs in on the provider's own pages. */
async function logIn(window: Page): Promise<void> {
  await window.fill('input[name=login]', 'ada');
  await window.fill('input[name=password]', 'any');
  await window.click('button[type=submit]');
  await window.click('button[type=submit]');
}

/** Connects by the page's own wallet, in the window that it opens. */
async function connectDapp(page: Page): Promise<void> {
  await page.getByRole('button', { name: 'Connect' }).click();
  const opened = page.waitForEvent('popup');
  await page.getByText('Local login (this app only)').click();
  await logIn(await opened);
  await page.getByText(/^Minted for 0x/).waitFor();
}

test('a user of the dapp logs in, and mints what an enclave has signed, by a proof of this login', async () => {
  const page = await open(url('Dapp'));
  await page.getByText(/^Registers \w{8}… match$/).waitFor();
  await page.getByRole('button', { name: 'Ask the enclave' }).click();
  const reading = await page.getByText(READING).innerText();
  await connectDapp(page);
  await page.getByRole('button', { name: 'Get SUI for gas' }).click();
  await page.getByText('SUI is on its way').waitFor();
  await page.getByRole('button', { name: `Mint ${reading}` }).click();
  const question = page.getByRole('dialog', { name: 'Sign this transaction?' });
  await question.getByRole('button', { name: 'Sign', exact: true }).click();
  const card = page.getByRole('listitem').filter({ hasText: 'TemperatureNFT' });
  await card.getByText(reading, { exact: true }).waitFor();
  // Without make prover-dev SIZE=small the proof is a fake, and the node does not check it.
  expect(output.includes('DEVELOPMENT KEY')).toBe(builtProver('small') !== undefined);
});

/**
 * Has the page's own wallet sign messages, as any script of the page can.
 *
 * @returns how many were signed so far
 */
async function askToSign(page: Page, texts: readonly string[]): Promise<() => Promise<number>> {
  await page.evaluate((texts) => {
    interface Registered {
      readonly name: string;
      readonly accounts: readonly unknown[];
      readonly features: Record<string, { signPersonalMessage(input: object): Promise<unknown> }>;
    }
    const wallets: Registered[] = [];
    const register = (...all: Registered[]) => wallets.push(...all);
    window.dispatchEvent(new CustomEvent('wallet-standard:app-ready', { detail: { register } }));
    const wallet = wallets.find(({ accounts }) => accounts.length > 0);
    const signed: string[] = [];
    Object.assign(globalThis, { signed });
    for (const text of texts) {
      const message = new TextEncoder().encode(text);
      wallet?.features['sui:signPersonalMessage']
        ?.signPersonalMessage({ message, account: wallet.accounts[0] })
        .then(() => signed.push(text))
        .catch(() => {});
    }
  }, texts);
  return async () => await page.evaluate(() => Reflect.get(globalThis, 'signed').length);
}

/** Reads the dialog: its message, the place of the click, and the element with the focus. */
async function readQuestion(page: Page, text: string) {
  const dialog = page.getByRole('dialog', { name: 'Sign this message?' }).filter({ hasText: text });
  await dialog.waitFor();
  const sign = dialog.getByRole('button', { name: 'Sign', exact: true });
  const box = await sign.boundingBox();
  if (box === null) throw new Error('there is no button');
  const [x, y] = [box.x + box.width / 2, box.y + box.height / 2];
  return { dialog, sign, x, y, focused: await page.evaluate(() => document.activeElement?.textContent) };
}

/**
 * Moves the clock until the wallet's own pause is over, and no more than the half second of the question's.
 */
async function readNextQuestion(page: Page, text: string) {
  const dialog = page.getByRole('dialog', { name: 'Sign this message?' }).filter({ hasText: text });
  const isAsked = async () => {
    await page.clock.runFor(50);
    return await dialog.isVisible();
  };
  await expect.poll(isAsked, { timeout: 30_000, interval: 250 }).toBe(true);
  return await readQuestion(page, text);
}

test('neither clicks in one place nor a key held down answer a question that was not read', async () => {
  const page = await open(url('Dapp'));
  await connectDapp(page);
  // The page's timers stand still, unless the test moves them.
  await page.clock.install();
  await page.clock.pauseAt(Date.now() + 60_000);
  const signed = await askToSign(page, ['first', 'second', 'third', 'fourth']);
  const { sign, x, y, focused } = await readQuestion(page, 'first');
  expect(focused).toBe("Don't sign");
  await page.mouse.click(x, y);
  await page.clock.runFor(499);
  expect(await sign.isEnabled()).toBe(false);
  await page.clock.runFor(1);
  await expect.poll(() => sign.isEnabled()).toBe(true);
  await page.mouse.dblclick(x, y);
  await expect.poll(signed).toBe(1);
  const { dialog: second } = await readNextQuestion(page, 'second');
  await page.keyboard.down('Escape');
  await second.waitFor({ state: 'detached' });
  const { dialog: third } = await readNextQuestion(page, 'third');
  await page.keyboard.down('Escape');
  expect(await third.isVisible()).toBe(true);
  await page.keyboard.up('Escape');
  // The button that refuses has the focus.
  await page.keyboard.down('Enter');
  await third.waitFor({ state: 'detached' });
  const { dialog: fourth } = await readNextQuestion(page, 'fourth');
  await page.keyboard.down('Enter');
  expect(await fourth.isVisible()).toBe(true);
  await page.keyboard.up('Enter');
  await page.screenshot({ path: `${ROOT}build/console/dapp-question.png` });
  for (let click = 0; click < 5; click++) await page.mouse.click(x, y);
  await page.clock.runFor(300);
  await page.mouse.click(x, y);
  await page.keyboard.press('Escape');
  await fourth.waitFor({ state: 'detached' });
  expect(await signed()).toBe(1);
});

test('the console shows both enclaves as registered, and the wallet has an enclave to ask', async () => {
  const console = await open(url('Console'));
  await console.click('text=List the ledger');
  await console.getByText('TemperatureNFT').first().waitFor();
  const enclave = await open(url('Enclave'));
  await enclave.getByRole('heading', { level: 1 }).first().waitFor();
  const wallet = await open(url('Wallet'));
  await wallet.getByRole('button', { name: /^Log in with/ }).click();
  await logIn(wallet);
  await expect.poll(() => wallet.getByRole('button', { name: 'Ask' }).isEnabled()).toBe(true);
});

test('an invalid request ends none of its parts', async () => {
  const first = Number(new URL(url('Wallet')).port);
  const ports = Array.from({ length: 10 }, (_, n) => first + n);
  const broken = [
    'GET http://[ HTTP/1.1\r\nHost: x\r\n\r\n',
    'POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n{"jwt"',
    '\0\xff',
  ];
  for (const [port, text] of ports.flatMap((port) => broken.map((text) => [port, text] as const))) {
    const socket = connect(port, '127.0.0.1').on('error', () => {});
    await once(socket, 'connect');
    const closed = once(socket, 'close');
    socket.write(text, 'latin1', () => setTimeout(() => socket.resetAndDestroy(), 20));
    await closed;
  }
  for (const name of ['Dapp', 'Wallet', 'Console']) expect((await fetch(url(name))).status).toBe(200);
  expect(play.exitCode).toBe(null);
});

test('Ctrl-C ends all of it', async () => {
  const addresses = ['Dapp', 'Wallet', 'Console'].map(url);
  process.kill(-(play.pid as number), 'SIGINT');
  await ended;
  for (const address of addresses) await expect(fetch(address)).rejects.toThrow('fetch failed');
  expect(output).not.toContain('has ended');
});
