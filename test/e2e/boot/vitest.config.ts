import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';

/** `make test-boot`. One machine at a time: emulation fills the processors. */
export default defineConfig({
  test: {
    root: fileURLToPath(new URL('../../..', import.meta.url)),
    include: ['test/e2e/boot/**/*.boot.ts'],
    globalSetup: ['test/e2e/boot/setup.ts'],
    fileParallelism: false,
    testTimeout: 180_000,
    hookTimeout: 180_000,
  },
});
