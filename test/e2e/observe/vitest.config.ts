import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';

/** `make test-observe`: promtool, and the programs whose figures it reads. */
export default defineConfig({
  test: {
    root: fileURLToPath(new URL('../../..', import.meta.url)),
    include: ['test/e2e/observe/*.observe.ts'],
    testTimeout: 60_000,
    hookTimeout: 60_000,
  },
});
