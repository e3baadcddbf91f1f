import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';

/** `make test-deploy`: HAProxy and processes on loopback. */
export default defineConfig({
  test: {
    root: fileURLToPath(new URL('../../..', import.meta.url)),
    include: ['test/e2e/deploy/*.deploy.ts'],
    testTimeout: 60_000,
    hookTimeout: 60_000,
  },
});
