import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';

const root = fileURLToPath(new URL('../..', import.meta.url));
process.env['NODE_COMPILE_CACHE'] ??= `${root}build/compile-cache`;

/** `make test-e2e`: what runs the project's own commands as processes, as a reader of the READMEs does. */
export default defineConfig({
  test: {
    root,
    include: ['test/e2e/**/*.test.ts'],
    testTimeout: 60_000,
    hookTimeout: 60_000,
  },
});
