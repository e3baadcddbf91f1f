import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    testTimeout: 20_000,
    // Nothing in a test may depend on the developer's own settings.
    env: { NO_PROXY: '', HTTP_PROXY: '', HTTPS_PROXY: '', LOG_LEVEL: '', RUST_LOG: '' },
  },
});
