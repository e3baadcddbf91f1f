import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';

/** `make test-units`: the units of the parent instance under systemd. */
export default defineConfig({
  test: {
    root: fileURLToPath(new URL('../../..', import.meta.url)),
    include: ['test/e2e/units/*.units.ts'],
    globalSetup: ['test/e2e/units/setup.ts'],
    // A machine each would be slower on two processors.
    maxWorkers: 1,
    testTimeout: 120_000,
    hookTimeout: 60_000,
  },
});
