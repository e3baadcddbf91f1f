/**
 * `make play`: a user logs in to the example dapp and mints an object, and then uses the wallet and the
 * console.
 */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { request } from 'node:http';
import { connect, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { GrpcStatusCode, GrpcTypes } from '@mysten/sui/grpc';
import type { Browser, Locator, Page } from 'playwright';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { frame, trailer } from '../../../src/devnet/grpc_web.ts';
import { builtProver } from '../../../src/toolchain/prover/artifacts.ts';
import { launch } from '../console/console.ts';

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));
const READING = /^−?\d+\.\d °C$/;
const PORTS = 14;

/** An entry of the deployment file that play did not create. */
const ELSEWHERE = {
  package: `0x${'e'.repeat(64)}`,
  original: `0x${'e'.repeat(64)}`,
  registrars: [],
  enclaves: [],
};

let play: ChildProcess;
let ended: Promise<unknown>;
let output = '';
let browser: Browser;
let firstPort: number;
let deployments: string;

/**
 * Returns the first of several consecutive free ports. They are below the range from which the system assigns
 * ports to other programs.
 */
async function findFreePorts(): Promise<number> {
  const first = 20_000 + PORTS * Math.floor(800 * Math.random());
  const servers = Array.from({ length: PORTS }, (_, n) => createServer().listen(first + n, '127.0.0.1'));
  const attempts = await Promise.allSettled(servers.map((server) => once(server, 'listening')));
  await Promise.all(servers.map((server) => new Promise((resolve) => server.close(resolve))));
  return attempts.every(({ status }) => status === 'fulfilled') ? first : await findFreePorts();
}

/** Returns the address of a part, from a line of its own or from a row of the banner. */
const url = (name: string) => new RegExp(`^ *${name}:? +(\\S+)$`, 'm').exec(output)?.[1] ?? '';

/** Starts play in a terminal of its own, as a person does. */
async function startPlay(): Promise<void> {
  output = '';
  const env = { ...process.env, PORT: String(firstPort), DEPLOYMENTS: deployments };
  const command = 'exec make --no-print-directory play';
  play = spawn('script', ['-qec', command, '/dev/null'], { cwd: ROOT, env, detached: true });
  ended = once(play, 'close');
  play.stdout?.on('data', (chunk) => (output += String(chunk).replaceAll('\r', '')));
  await vi.waitFor(() => expect(output).toContain('Ctrl-C ends it'), 280_000);
}

/** Presses a key in the terminal, and waits until the terminal prints the line. */
async function press(key: string, line: string): Promise<void> {
  const before = output.length;
  play.stdin?.write(key);
  await expect.poll(() => output.slice(before)).toContain(line);
}

beforeAll(async () => {
  firstPort = await findFreePorts();
  deployments = mkdtempSync(join(tmpdir(), 'play-'));
  const file = { network: 'localnet', chain: '0badc0de', applications: { elsewhere: ELSEWHERE } };
  writeFileSync(join(deployments, 'localnet.json'), JSON.stringify(file));
  await startPlay();
  browser = await launch();
}, 300_000);

afterAll(async () => {
  await browser?.close();
  play?.stdin?.end();
  killPlay();
  rmSync(deployments, { recursive: true });
});

/** Kills `make play` itself. The program that provides its terminal then ends too. */
function killPlay(): void {
  spawnSync('pkill', ['-KILL', '-P', String(play.pid)]);
}

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

/** Connects with the page's own wallet, in the window that the wallet opens. */
async function connectDapp(page: Page): Promise<void> {
  await page.getByRole('button', { name: 'Connect' }).click();
  const opened = page.waitForEvent('popup');
  await page.getByText('Local login (this app only)').click();
  await logIn(await opened);
  await page.getByText(/^0x\S+ gets the object/).waitFor();
}

test('a user of the dapp logs in, and mints a signed reading with the proof of this login', async () => {
  const page = await open(url('Dapp'));
  await page.getByText(/^Registers \w{8}… match$/).waitFor();
  await page.getByRole('button', { name: 'Ask the enclave' }).click();
  const reading = await page.getByText(READING).innerText();
  await connectDapp(page);
  expect(await page.getByText(/^Minted for/).count()).toBe(0);
  await page.getByText(/pays the gas from its 0\.0000 SUI/).waitFor();
  await page.getByRole('button', { name: 'Get SUI for gas' }).click();
  // The button works again when the SUI has arrived.
  await page.getByText(/pays the gas from its [1-9]\d*\.\d{4} SUI/).waitFor();
  await page.getByRole('button', { name: 'Get SUI for gas', disabled: false }).waitFor();
  await page.getByRole('button', { name: `Mint ${reading}` }).click();
  const question = page.getByRole('dialog', { name: 'Sign this transaction?' });
  await question.getByRole('button', { name: 'Sign', exact: true }).click();
  const card = page.getByRole('listitem').filter({ hasText: 'TemperatureNFT' });
  await card.getByText(reading, { exact: true }).waitFor();
  const toast = page.getByRole('status').filter({ hasText: /^Minted for 0x/ });
  await toast.waitFor();
  await expect.poll(() => isInView(page, card)).toBe(true);
  // The object is on the chain: a reload lists it, and does not mention the mint.
  const [objectPage] = await Promise.all([
    page.waitForEvent('popup'),
    toast.getByRole('link', { name: /^object 0x/ }).click(),
  ]);
  await objectPage.getByRole('button', { name: /^Show from / }).click();
  await objectPage.getByRole('heading', { name: 'TemperatureNFT' }).waitFor();
  await objectPage.close();
  await page.reload();
  await page.getByRole('listitem').filter({ hasText: 'TemperatureNFT' }).waitFor();
  expect(await page.getByText(/^Minted for/).count()).toBe(0);
  // Without make prover-dev SIZE=small the proof is a fake, and the node does not check it.
  expect(output.includes('DEVELOPMENT KEY')).toBe(builtProver('small') !== undefined);
});

test('the page reports a login as canceled after the user has closed its window', async () => {
  const page = await open(url('Dapp'));
  await page.getByRole('button', { name: 'Connect' }).click();
  const opened = page.waitForEvent('popup');
  await page.getByText('Local login (this app only)').click();
  await (await opened).close();
  // A window counts as closed only while the user is on the page.
  await page.bringToFront();
  await page.getByText('You canceled the request').waitFor();
});

test('the page reports that a session has expired, without a click', async () => {
  const page = await open(url('Dapp'));
  await connectDapp(page);
  const systemState = GrpcTypes.SystemState.create({ epoch: 1_000_000n, epochStartTimestampMs: 1n });
  const epoch = GrpcTypes.Epoch.create({ epoch: 1_000_000n, systemState });
  const message = frame(0, GrpcTypes.GetEpochResponse.toBinary({ epoch }));
  await page.route('**/sui.rpc.v2.LedgerService/GetEpoch', (route) =>
    route.fulfill({
      body: Buffer.concat([message, trailer(GrpcStatusCode.OK)]),
      headers: { 'content-type': 'application/grpc-web+proto', 'access-control-allow-origin': '*' },
    }),
  );
  await page.evaluate(() => document.dispatchEvent(new Event('visibilitychange')));
  await page.getByText('Your session has expired').waitFor();
  await page.screenshot({ path: join(ROOT, 'build/console/dapp-expired.png') });
  await page.getByRole('button', { name: 'Connect' }).waitFor();
});

async function isInView(page: Page, element: Locator): Promise<boolean> {
  const box = await element.boundingBox();
  const height = page.viewportSize()?.height ?? 0;
  return box !== null && box.y >= 0 && box.y + box.height <= height;
}

test("dapp-kit's list of wallets is not clipped on a narrow screen", async () => {
  const page = await open(url('Dapp'));
  await page.setViewportSize({ width: 390, height: 844 });
  await page.getByRole('button', { name: 'Connect' }).click();
  const row = page.getByText('Local login (this app only)');
  await row.waitFor();
  const clipped = await row.evaluate((element) => {
    const problems: string[] = [];
    for (let node: Element | null = element; node !== null; ) {
      const { left, right } = node.getBoundingClientRect();
      if (left < 0 || right > innerWidth || node.scrollWidth > node.clientWidth + 1) {
        problems.push(
          `${node.tagName}.${node.className} ${left} ${right} ${node.scrollWidth} ${node.clientWidth}`,
        );
      }
      const root = node.getRootNode();
      node = node.parentElement ?? (root instanceof ShadowRoot ? root.host : null);
    }
    return problems;
  });
  await page.screenshot({ path: join(ROOT, 'build/console/dapp-connect-390.png') });
  expect(clipped).toEqual([]);
});

/**
 * Asks the page's own wallet to sign messages, as any script of the page can.
 *
 * @returns a function that returns the number of signatures so far
 */
async function askToSign(page: Page, texts: readonly string[]): Promise<() => Promise<number>> {
  await page.evaluate((texts) => {
    interface RegisteredWallet {
      readonly name: string;
      readonly accounts: readonly unknown[];
      readonly features: Record<string, { signPersonalMessage(request: object): Promise<unknown> }>;
    }
    const wallets: RegisteredWallet[] = [];
    const register = (...all: RegisteredWallet[]) => wallets.push(...all);
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

/**
 * Returns the open dialog, its button that signs, the middle of that button, and the text of the focused
 * element. The wallet prepares several calls at once, so their dialogs open in any order.
 */
async function readQuestion(page: Page) {
  const open = page.getByRole('dialog', { name: 'Sign this message?' });
  const text = await open.locator('blockquote').innerText();
  const dialog = open.filter({ hasText: text });
  const sign = dialog.getByRole('button', { name: 'Sign', exact: true });
  const box = await sign.boundingBox();
  if (box === null) throw new Error('there is no button');
  const [x, y] = [box.x + box.width / 2, box.y + box.height / 2];
  return { dialog, sign, x, y, focused: await page.evaluate(() => document.activeElement?.textContent) };
}

/**
 * Moves the clock until the wallet's pause is over and its next question opens. The clock stays within the
 * half second in which the question does not accept an answer.
 */
async function readNextQuestion(page: Page) {
  const dialog = page.getByRole('dialog', { name: 'Sign this message?' });
  const isAsked = async () => {
    await page.clock.runFor(50);
    return await dialog.isVisible();
  };
  await expect.poll(isAsked, { interval: 250 }).toBe(true);
  return await readQuestion(page);
}

test('a question that has just opened ignores further clicks in the same place and a key that is held down', async () => {
  const page = await open(url('Dapp'));
  await connectDapp(page);
  // The page's timers stand still until the test moves them.
  await page.clock.install();
  await page.clock.pauseAt(Date.now() + 60_000);
  const signed = await askToSign(page, ['first', 'second', 'third', 'fourth']);
  const { sign, x, y, focused } = await readQuestion(page);
  expect(focused).toBe("Don't sign");
  await page.mouse.click(x, y);
  await page.clock.runFor(499);
  expect(await sign.isEnabled()).toBe(false);
  await page.clock.runFor(1);
  await expect.poll(() => sign.isEnabled()).toBe(true);
  await page.mouse.dblclick(x, y);
  await expect.poll(signed).toBe(1);
  const { dialog: second } = await readNextQuestion(page);
  await page.keyboard.down('Escape');
  await second.waitFor({ state: 'detached' });
  const { dialog: third } = await readNextQuestion(page);
  await page.keyboard.down('Escape');
  expect(await third.isVisible()).toBe(true);
  await page.keyboard.up('Escape');
  // The button that refuses has the focus.
  await page.keyboard.down('Enter');
  await third.waitFor({ state: 'detached' });
  const { dialog: fourth } = await readNextQuestion(page);
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

test('the ledger lists the minted object, the console opens, and the wallet can ask the enclave', async () => {
  const console = await open(url('Ledger'));
  await console.click('text=List the ledger');
  await console.getByText('TemperatureNFT').first().waitFor();
  const enclave = await open(url('Console'));
  await enclave.getByRole('heading', { level: 1 }).first().waitFor();
  const wallet = await open(url('Wallet'));
  await wallet.getByRole('button', { name: /^Log in with/ }).click();
  await logIn(wallet);
  await expect.poll(() => wallet.getByRole('button', { name: 'Ask' }).isEnabled()).toBe(true);
});

/**
 * Asks the enclave, and returns the states of the four steps once the page shows the answer or its refusal.
 */
async function readSteps(page: Page): Promise<string[]> {
  const ask = page.getByRole('button', { name: 'Ask the enclave' });
  const refusal = page.getByRole('alert').filter({ hasText: 'What answers is not the enclave' }).first();
  await expect.poll(async () => (await ask.isEnabled()) || (await refusal.isVisible())).toBe(true);
  if (await ask.isEnabled()) {
    await ask.click();
    await page.getByText(READING).or(refusal).first().waitFor();
  }
  await page.locator('.proof.waiting').first().waitFor({ state: 'detached' });
  const classes = await page
    .locator('.proof')
    .evaluateAll((steps) => steps.map(({ className }) => className));
  return classes.map((name) => name.replace('proof ', ''));
}

const HONEST = ['proven', 'proven', 'proven', 'proven'];

test.each([
  ['Changed answer', ['checked', 'checked', 'wrong', 'missing'], 'no attested key signed these values'],
  ['Another image', ['wrong', 'missing', 'missing', 'missing'], 'the registers are those of another image'],
  ['Unregistered key', ['checked', 'checked', 'checked', 'wrong'], 'the key is not registered'],
])('%s: the page explains the refusal, and shows no green tick', async (name, steps, refusal) => {
  const page = await open(url('Dapp'));
  expect(await readSteps(page)).toEqual(HONEST);
  await page.getByRole('link', { name }).click();
  expect(await readSteps(page)).toEqual(steps);
  await page.locator('.refusal').filter({ hasText: refusal }).waitFor();
  expect(await page.getByRole('button', { name: /^Mint/ }).isDisabled()).toBe(true);
  for (const [width, height] of [
    [1280, 800],
    [390, 844],
  ] as const) {
    await page.setViewportSize({ width, height });
    expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBe(width);
    await page.screenshot({
      path: `${ROOT}build/console/play-${name.replace(' ', '-')}-${width}.png`,
      fullPage: true,
    });
  }
});

/** Mints the reading that the page shows, and confirms it if the page asks. */
async function mintReading(page: Page): Promise<void> {
  await page.getByRole('button', { name: /^Mint / }).click();
  const question = page.getByRole('dialog', { name: 'Sign this transaction?' });
  const refusal = page.getByRole('alert').filter({ hasText: 'The contract refused the reading' });
  await question.or(refusal).first().waitFor();
  if (await question.isVisible()) await question.getByRole('button', { name: 'Sign', exact: true }).click();
}

test('Old answer: the contract refuses an answer that a host repeats, once the clock of the chain has moved', async () => {
  const page = await open(url('Dapp'));
  await connectDapp(page);
  await page.getByRole('button', { name: 'Get SUI for gas' }).click();
  await page.getByText(/pays the gas from its [1-9]/).waitFor();
  await page.getByRole('link', { name: 'Old answer' }).click();
  await expect.poll(() => readSteps(page)).toEqual(HONEST);
  await press('c', 'The clock of the chain is 2 hours ahead');
  expect(await readSteps(page)).toEqual(HONEST);
  await mintReading(page);
  await page
    .locator('.refusal')
    .filter({ hasText: 'The contract on Sui refuses it: it was signed too long ago' })
    .waitFor();
  expect(await page.locator('.proof.proven').count()).toBe(0);
  await page.getByLabel('Place').fill('Oslo');
  const answerStates: (string | undefined)[] = [];
  const readAnswered = async () => {
    const steps = await readSteps(page);
    answerStates.push(steps[2]);
    return steps;
  };
  await expect.poll(readAnswered).toEqual(['checked', 'checked', 'wrong', 'missing']);
  // Until the refusal is shown, the answer may be missing, but is never accepted.
  expect(answerStates).not.toContain('proven');
  await page.locator('.refusal').filter({ hasText: 'it answers another question' }).waitFor();
  await press('m', 'Mended');
}, 300_000);

test('keys of the terminal restart an enclave, change the config, and repair both', async () => {
  const page = await open(url('Dapp'));
  expect(await readSteps(page)).toEqual(HONEST);
  await press('u', 'The config allows another image');
  await page.reload();
  expect(await readSteps(page)).toEqual(['checked', 'checked', 'checked', 'wrong']);
  await press('m', 'Mended');
  await page.reload();
  expect(await readSteps(page)).toEqual(HONEST);
  await press('r', 'Enclave 1 has restarted');
  await page.reload();
  expect(await readSteps(page)).toEqual(['checked', 'checked', 'checked', 'wrong']);
  await press('m', 'Mended');
  await page.reload();
  expect(await readSteps(page)).toEqual(HONEST);
  await press('m', 'Mended');
}, 300_000);

test('the printed status command finds its ids in the deployment file, and play keeps other entries of the file', () => {
  const { applications, chain } = JSON.parse(readFileSync(join(deployments, 'localnet.json'), 'utf8'));
  expect(chain).toBe('0badc0de');
  expect(applications.elsewhere).toEqual(ELSEWHERE);
  const [line = ''] = /^ +npx --offline sui-enclave status .*$/m.exec(output) ?? [];
  const { stdout, status } = spawnSync('sh', ['-c', line], {
    cwd: ROOT,
    encoding: 'utf8',
    env: { ...process.env, DEPLOYMENTS: deployments },
  });
  expect([status, stdout]).toEqual([0, expect.stringMatching(/^OK: contracts accept every key/)]);
});

const listPorts = () => Array.from({ length: PORTS }, (_, n) => firstPort + n);

/**
 * Sends a request. @returns the status, and whether a page of this origin may read the answer, or null if the
 * server closes the connection
 */
async function ask(port: number, path: string, method: string, headers: Record<string, string>, body = '') {
  return await new Promise<{ status: number | undefined; isReadable: boolean } | null>((resolve) => {
    const sent = request({ host: '127.0.0.1', port, path, method, headers });
    const answer = (response: { statusCode?: number | undefined; headers: Record<string, unknown> }) => {
      const allowed = response.headers['access-control-allow-origin'];
      sent.destroy();
      const isReadable = allowed !== undefined && (allowed === '*' || allowed === headers['origin']);
      resolve({ status: response.statusCode, isReadable });
    };
    sent
      .on('response', answer)
      .on('upgrade', answer)
      .on('error', () => resolve(null))
      .end(body);
  });
}

test('a page of another site changes nothing, under its own name or a name that resolves to this machine', async () => {
  const ledger = async () => await (await fetch(`${url('Sui node')}/model/ledger`)).text();
  const before = await ledger();
  const form = { 'content-type': 'application/x-www-form-urlencoded' };
  const recipient = `{"FixedAmountRequest":{"recipient":"0x${'a'.repeat(64)}"}}`;
  for (const port of listPorts()) {
    const here = `127.0.0.1:${port}`;
    const answers = await Promise.all([
      ask(port, '/', 'POST', { host: here, origin: 'http://attacker.example', ...form }, 'a=b'),
      ask(port, '/v2/gas', 'POST', { host: here, origin: 'null', 'content-type': 'text/plain' }, recipient),
      ask(
        port,
        '/v2/gas',
        'POST',
        { host: 'attacker.example', origin: 'http://attacker.example' },
        recipient,
      ),
      ask(
        port,
        '/process_data',
        'POST',
        { host: `attacker.example:${port}`, origin: `http://attacker.example:${port}` },
        '{"payload":{"location":"Oslo"}}',
      ),
      ask(port, '/', 'GET', {
        host: here,
        origin: 'http://attacker.example',
        connection: 'upgrade',
        upgrade: 'websocket',
        'sec-websocket-version': '13',
        'sec-websocket-key': 'AAAAAAAAAAAAAAAAAAAAAA==',
      }),
    ]);
    for (const answer of answers) {
      expect([port, answer?.isReadable ?? false]).toEqual([port, false]);
      expect([port, answer?.status ?? 403]).toEqual([port, expect.toSatisfy((status) => status >= 400)]);
    }
  }
  expect(await ledger()).toBe(before);
});

test('invalid requests on 2,000 connections end no part of play', async () => {
  const broken = [
    'GET http://[ HTTP/1.1\r\nHost: x\r\n\r\n',
    'POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n{"jwt"',
    'GET /broken/changed/../../package.json HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n',
    '\0\xff',
  ];
  const attack = async (port: number, text: string) => {
    const socket = connect(port, '127.0.0.1').on('error', () => {});
    const closed = once(socket, 'close');
    socket.once('connect', () =>
      socket.write(text, 'latin1', () => setTimeout(() => socket.resetAndDestroy(), 20)),
    );
    await closed;
  };
  const ports = listPorts();
  for (let round = 0; round < 36; round++) {
    await Promise.all(ports.flatMap((port) => broken.map((text) => attack(port, text))));
  }
  for (const name of ['Dapp', 'Wallet', 'Console', 'Ledger'])
    expect((await fetch(url(name))).status).toBe(200);
  expect((await fetch(`${url('Dapp')}broken/changed/../../package.json`)).status).toBe(404);
  expect(play.exitCode).toBe(null);
  const page = await open(url('Dapp'));
  expect(await readSteps(page)).toEqual(HONEST);
}, 300_000);

test('play starts again after it was killed', async () => {
  killPlay();
  await ended;
  await startPlay();
  const page = await open(url('Dapp'));
  expect(await readSteps(page)).toEqual(HONEST);
}, 300_000);

test('Ctrl-C ends every part of play, and play does not report a part that ended early', async () => {
  const addresses = ['Dapp', 'Wallet', 'Console'].map(url);
  play.stdin?.write('\x03');
  await ended;
  for (const address of addresses) await expect(fetch(address)).rejects.toThrow('fetch failed');
  expect(output).not.toContain('has ended');
});
