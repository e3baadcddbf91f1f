/** `npm run test:prover`: the small circuit, its generators and proofs, as `make prover-dev SIZE=small` builds them. */
import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    root: fileURLToPath(new URL('../../../../', import.meta.url)),
    include: [
      'test/src/prover/{circuit,backend,frontend}/*.prover.ts',
      'test/src/toolchain/dev/prover/*.prover.ts',
    ],
    // Each needs up to 2 GB of memory. A minute on an idle machine can be ten on a busy one.
    maxWorkers: 2,
    testTimeout: 900_000,
    hookTimeout: 900_000,
  },
});
