/** `npm run test:prover`: the small circuit, its generators and proofs, as `make prover-dev SIZE=small` has built them. */
import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    root: new URL('../../..', import.meta.url).pathname,
    include: ['test/prover/circuit/*.prover.ts'],
    // One after the other: each takes a gigabyte, or every core.
    fileParallelism: false,
    testTimeout: 120_000,
    hookTimeout: 120_000,
  },
});
