/** Controls the wallet's page in headless Chromium through the elements that a user sees. */
import type { Browser, BrowserContext, Page } from 'playwright';
import { expect, onTestFinished } from 'vitest';

/** Opens a context, and checks after the test that no request left this machine and no policy was broken. */
export async function newContext(browser: Browser): Promise<BrowserContext> {
  const context = await browser.newContext();
  const outside: string[] = [];
  const violations: string[] = [];
  context.on('request', (request) => {
    const { hostname, href } = new URL(request.url());
    if (!/^(127\.0\.0\.1|(.+\.)?localhost)$/.test(hostname)) outside.push(href);
  });
  context.on('console', (message) => {
    if (/Content Security Policy|Trusted/i.test(message.text())) violations.push(message.text());
  });
  onTestFinished(async () => {
    await context.close();
    expect({ outside, violations }).toEqual({ outside: [], violations: [] });
  });
  return context;
}

/** Waits until the page expects input from its user. */
export async function ready(page: Page): Promise<void> {
  await page
    .locator('main:is([data-step=none], [data-step=open], [data-step=expired], [data-failed=true])')
    .waitFor();
}

export const readStep = (page: Page) => page.getAttribute('main', 'data-step');
/** Returns the whole address. The page shows only its beginning and its end. */
export const readAddress = (page: Page) => page.getAttribute('[data-address]', 'data-address');
export const button = (page: Page, name: string) => page.getByRole('button', { name, exact: true });
export const problem = (page: Page) => page.locator('[role=alert] .verdict');
export const LOG_IN = 'Log in with oidc-provider';

/** Returns the error's code and message. */
export async function readFailure(page: Page): Promise<string> {
  const [code, message] = [problem(page).locator('.code'), problem(page).locator('p').first()];
  return `${await code.textContent()} ${await message.textContent()}`;
}

/** Logs in on the provider's own pages with a name and consent. */
export async function logIn(page: Page, name: string): Promise<void> {
  await passProvider(page, name);
  await ready(page);
}

export async function passProvider(page: Page, name: string): Promise<void> {
  const { origin } = new URL(page.url());
  await button(page, LOG_IN).click();
  await page.fill('input[name=login]', name);
  await page.fill('input[name=password]', 'any');
  await page.click('button[type=submit]');
  await page.click('button[type=submit]');
  await page.waitForURL((url) => url.origin === origin);
}

/** Fills in the form of a transfer that the balance covers. */
export async function prepare(page: Page): Promise<void> {
  const balance = page.locator('output');
  await expect.poll(() => balance.textContent()).toMatch(/SUI$/);
  if ((await balance.textContent()) === '0 SUI') {
    await button(page, 'Get 10 SUI').click();
    await expect.poll(() => balance.textContent()).toBe('10 SUI');
  }
  await page.getByLabel('To', { exact: true }).fill(`0x${'5'.repeat(64)}`);
  await page.getByLabel('Amount in SUI').fill('0.25');
}
