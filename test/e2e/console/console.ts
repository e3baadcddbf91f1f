/** Opens the console in headless Chromium, with checks for every test. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type Browser, type BrowserContextOptions, chromium, type Page } from 'playwright';
import { expect, onTestFinished, vi } from 'vitest';

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));
const SHOTS = join(ROOT, 'build/console');
const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

/** A development command as a process, with a folder of its own. */
export interface Running {
  readonly output: string;
  /** The address of its console, up to the fragment. */
  readonly console: string;
  readonly folder: string;
  close(): Promise<void>;
}

/**
 * Starts a development command. @param entry its path below src/toolchain/dev @param ready matches its output
 * once it answers
 */
export async function start(entry: string, env: Record<string, string>, ready: RegExp): Promise<Running> {
  const folder = mkdtempSync(join(tmpdir(), 'console-'));
  const child = spawn(process.execPath, [`src/toolchain/dev/${entry}`], {
    cwd: ROOT,
    env: { PATH: process.env['PATH'] ?? '', PORT: '0', OUT: folder, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (chunk) => {
      output += chunk;
    });
  }
  const address = /^Console: {2}(http:\S+?)#/m;
  await vi.waitUntil(() => ready.test(output) && address.test(output), { timeout: 30_000 });
  return {
    output,
    console: address.exec(output)?.[1] ?? '',
    folder,
    async close() {
      const ended = once(child, 'close');
      child.kill('SIGTERM');
      await ended;
      rmSync(folder, { recursive: true });
    },
  };
}

/**
 * Starts the server with an emulated NSM. @param env variables in addition to `ATTEST` @returns the process,
 * and the server's address
 */
export async function startEnclave(env: Record<string, string> = {}): Promise<[Running, string]> {
  const address = /npx --offline sui-enclave verify (\S+)/;
  const dev = await start('main.ts', { ATTEST: 'emulated', ...env }, address);
  return [dev, address.exec(dev.output)?.[1] ?? ''];
}

export async function launch(): Promise<Browser> {
  return await chromium.launch({
    executablePath: process.env['CHROMIUM'] ?? '/usr/bin/chromium',
    // Chromium's own sandbox does not start for root; the pages are this project's.
    args: process.getuid?.() === 0 ? ['--no-sandbox'] : [],
  });
}

export interface OpenedPage {
  readonly page: Page;
  /** Returns the origins to which the page has sent requests, in the order of the first requests. */
  readonly origins: () => string[];
}

/**
 * Opens a page at an address. After the test, checks that the page has not violated its content security
 * policy, has thrown no error, and has sent requests only to its own origin and to the allowed ones.
 */
export async function openPage(
  browser: Browser,
  address: string,
  allowed: readonly string[] = [],
  options: BrowserContextOptions = {},
): Promise<OpenedPage> {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, ...options });
  await context.addInitScript(() => {
    const cspViolations: string[] = [];
    Object.assign(globalThis, { violations: cspViolations });
    document.addEventListener('securitypolicyviolation', (event) => {
      cspViolations.push(`${event.violatedDirective} ${event.blockedURI} ${event.sample}`);
    });
  });
  const requestedOrigins = new Set<string>();
  const errors: string[] = [];
  context.on('request', (request) => requestedOrigins.add(new URL(request.url()).origin));
  const page = await context.newPage();
  page.on('pageerror', (error) => errors.push(error.message));
  page.on('console', (message) => {
    if (/Content Security Policy|Trusted/i.test(message.text())) errors.push(message.text());
  });
  onTestFinished(async () => {
    const violations = await page.evaluate(() => Reflect.get(globalThis, 'violations'));
    await context.close();
    expect({ violations, errors }).toEqual({ violations: [], errors: [] });
    const pageOrigin = new URL(address).origin;
    expect([...requestedOrigins].filter((origin) => ![pageOrigin, ...allowed].includes(origin))).toEqual([]);
  });
  await page.goto(address);
  await page.waitForSelector('h1');
  return { page, origins: () => [...requestedOrigins] };
}

/** Reads the verdict's title, tone and code. */
export async function readVerdict(page: Page): Promise<{ title: string; tone: string; code: string }> {
  const verdict = page.locator('.verdict').first();
  await verdict.waitFor();
  return {
    title: (await verdict.locator('h2').textContent()) ?? '',
    tone: (await verdict.getAttribute('data-tone')) ?? '',
    code: (await verdict.locator('.code').allTextContents()).join(''),
  };
}

const WIDTHS = [1280, 390] as const;
const SCHEMES = ['light', 'dark'] as const;

/**
 * Takes a screenshot in each width and scheme, and checks that the page does not scroll horizontally at 360
 * px. Checks WCAG 2.1 AA by axe in each width once and in each scheme once: these checks take most of the
 * time, and no rule depends on both the width and the scheme.
 */
export async function inspect(page: Page, name: string): Promise<void> {
  mkdirSync(SHOTS, { recursive: true });
  await page.evaluate(AXE);
  for (const colorScheme of SCHEMES) {
    await page.emulateMedia({ colorScheme });
    for (const width of WIDTHS) {
      await page.setViewportSize({ width, height: 900 });
      const isChecked = (width === 1280) === (colorScheme === 'light');
      if (isChecked) expect(await readViolations(page), `${name}, ${width}, ${colorScheme}`).toEqual([]);
      await page.screenshot({ path: join(SHOTS, `${name}-${width}-${colorScheme}.png`), fullPage: true });
    }
  }
  await page.setViewportSize({ width: 360, height: 800 });
  expect(await page.evaluate(() => document.documentElement.scrollWidth), `${name} at 360 px`).toBe(360);
  await page.setViewportSize({ width: 1280, height: 900 });
}

async function readViolations(page: Page): Promise<string[]> {
  return await page.evaluate(async () => {
    const axe = Reflect.get(globalThis, 'axe');
    const tags = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa'];
    const { violations } = await axe.run(document, { runOnly: tags, resultTypes: ['violations'] });
    return violations.map(
      ({ id, nodes }: { id: string; nodes: { target: string[] }[] }) =>
        `${id}: ${nodes.map(({ target }) => target.join(' ')).join(', ')}`,
    );
  });
}
