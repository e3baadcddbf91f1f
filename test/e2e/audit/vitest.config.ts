import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';

/** `make test-audit`: audits of honest and of lying configs, on a model of Sui and with git behind https on loopback. */
export default defineConfig({
  test: {
    root: fileURLToPath(new URL('../../..', import.meta.url)),
    include: ['test/e2e/audit/*.audit.ts'],
    testTimeout: 60_000,
    hookTimeout: 120_000,
  },
});
