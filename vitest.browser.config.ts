/**
 * `npm run test:browser`: the attestation's tests in headless Chromium, and the client against an enclave on
 * loopback. The browser is Debian's `chromium`, or the one that CHROMIUM names.
 */
import { playwright } from '@vitest/browser-playwright';
import { defineConfig, type Plugin } from 'vitest/config';

/**
 * Certificates and documents are made in Node: a page gets the modules that make them as the data that they
 * export.
 */
const casesAsData: Plugin = {
  name: 'attestation-cases-as-data',
  enforce: 'pre',
  async load(id) {
    if (!/\/test\/src\/library\/attestation\/cases\/(index|real)\.ts$/.test(id)) return null;
    const exported: Record<string, unknown> = await import(id);
    return Object.entries(exported)
      .map(([name, value]) => `export const ${name} = ${JSON.stringify(value)};`)
      .join('\n');
  },
};

export default defineConfig({
  plugins: [casesAsData],
  test: {
    include: [
      'test/src/library/attestation/{verify,attacks,result}.test.ts',
      'test/e2e/browser/*.browser.ts',
    ],
    globalSetup: ['test/e2e/browser/enclave.ts'],
    testTimeout: 60_000,
    browser: {
      enabled: true,
      headless: true,
      screenshotFailures: false,
      provider: playwright({
        launchOptions: {
          executablePath: process.env['CHROMIUM'] ?? '/usr/bin/chromium',
          // Chromium's own sandbox does not start for root; the pages are this project's.
          args: process.getuid?.() === 0 ? ['--no-sandbox'] : [],
        },
      }),
      instances: [{ browser: 'chromium' }],
    },
  },
});
