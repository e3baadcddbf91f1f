/** `npm run test:prover`: the small circuit, its generators and proofs, as `make prover-dev SIZE=small` has built them. */
import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    root: new URL('../../..', import.meta.url).pathname,
    include: ['test/prover/circuit/*.prover.ts'],
    // Each takes up to two gigabytes.
    maxWorkers: 2,
    testTimeout: 300_000,
    hookTimeout: 300_000,
  },
});
