/** `make play`: from a login to an object, in the example dapp, and what the wallet and the console make of it. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { connect, createServer } from 'node:net';
import { fileURLToPath } from 'node:url';
import type { Browser, Page } from 'playwright';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { builtProver } from '../../../src/commands/prover/artifacts.ts';
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

/** By the provider's own pages. */
async function logIn(window: Page): Promise<void> {
  await window.fill('input[name=login]', 'ada');
  await window.fill('input[name=password]', 'any');
  await window.click('button[type=submit]');
  await window.click('button[type=submit]');
}

test('a user of the dapp logs in, and mints what an enclave has signed, by a proof of this login', async () => {
  const page = await open(url('Dapp'));
  await page.getByText(/^Registers \w{8}… match$/).waitFor();
  await page.getByRole('button', { name: 'Ask the enclave' }).click();
  const reading = await page.getByText(READING).innerText();
  await page.getByRole('button', { name: 'Connect' }).click();
  const opened = page.waitForEvent('popup');
  await page.getByText('Local login (this app only)').click();
  await logIn(await opened);
  await page.getByText(/^Minted for 0x/).waitFor();
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

test('what is no request ends none of its parts', async () => {
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
