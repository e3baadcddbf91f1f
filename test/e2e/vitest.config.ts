import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';

/** `make test-e2e`: what runs the project's own commands as processes, as a reader of the READMEs does. */
export default defineConfig({
  test: {
    root: fileURLToPath(new URL('../..', import.meta.url)),
    include: ['test/e2e/**/*.test.ts'],
    testTimeout: 60_000,
    hookTimeout: 60_000,
  },
});
