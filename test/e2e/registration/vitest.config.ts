import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: { include: ['test/e2e/registration/*.judge.ts'], testTimeout: 120_000 },
});
