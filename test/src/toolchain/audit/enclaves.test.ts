/** A hostile node's list of enclaves may never end. */
import { setImmediate } from 'node:timers/promises';
import type { EnclaveConfig } from 'sui-enclave/sui/objects';
import { expect, test } from 'vitest';
import type { Chain } from '../../../../src/cli/sui/chain.ts';
import { askEnclaves } from '../../../../src/toolchain/audit/enclaves.ts';

test('an audit does not wait for a list of enclaves that never ends', async () => {
  let pages = 0;
  const core = {
    async listDynamicFields({ signal }: { signal?: AbortSignal }) {
      await setImmediate();
      signal?.throwIfAborted();
      pages += 1;
      return { dynamicFields: [], hasNextPage: true, cursor: String(pages) };
    },
    getObjects: async () => ({ objects: [] }),
  };
  const chain = { client: { core } } as unknown as Chain;
  const config = { id: `0x${'a'.repeat(64)}` } as EnclaveConfig;
  await expect(askEnclaves([], config, chain, undefined, 100)).rejects.toMatchObject({
    code: 'NOT_FULLY_CHECKED',
    message: expect.stringContaining('within 0.1 seconds'),
  });
  expect(pages).toBeGreaterThan(1);
});
