import { defineConfig } from 'vitest/config';

// Processes that tests start compile this project's modules once.
process.env['NODE_COMPILE_CACHE'] ??= `${import.meta.dirname}/build/compile-cache`;

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    exclude: ['test/e2e/**'],
    globalSetup: ['test/natives.ts'],
    testTimeout: 20_000,
  },
});
