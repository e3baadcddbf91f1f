/** `npm run test:prover`: the small circuit, its generators and proofs, as `make prover-dev SIZE=small` has built them. */
import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    root: new URL('../../../../', import.meta.url).pathname,
    include: ['test/src/prover/circuit/*.prover.ts'],
    // Each takes up to two gigabytes. A minute on an idle machine is ten on a busy one.
    maxWorkers: 2,
    testTimeout: 900_000,
    hookTimeout: 900_000,
  },
});
