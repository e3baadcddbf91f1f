/** `npm run test:console`: the console in headless Chromium (Debian's, or the one that CHROMIUM names). */
import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    root: fileURLToPath(new URL('../../..', import.meta.url)),
    include: ['test/e2e/console/*.e2e.ts'],
    testTimeout: 60_000,
    hookTimeout: 60_000,
    // Each has a browser and servers of its own, and CI has two cores.
    maxWorkers: 2,
  },
});
