/** Opens the node on which the rules of transactions are tried: the node that the URLs name, or a model. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { UsageError } from '../../../src/cli/command.ts';
import { startDevSui } from '../../../src/toolchain/dev/sui/service.ts';

export interface NodeUrls {
  readonly url: string;
  readonly faucet: string;
}

export interface OpenNode {
  readonly urls: NodeUrls;
  close(): Promise<void>;
}

/** Starts a model if no URL is given. @throws UsageError if only one of the two URLs is given */
export async function openNode({
  url,
  faucet,
}: {
  readonly url: string | undefined;
  readonly faucet: string | undefined;
}): Promise<OpenNode> {
  if (url !== undefined && faucet !== undefined) return { urls: { url, faucet }, close: async () => {} };
  if (url !== undefined || faucet !== undefined)
    throw new UsageError('pass the URLs of both a node and its faucet, or neither');
  const folder = mkdtempSync(join(tmpdir(), 'rules-'));
  const options = { port: 0, faucetPort: 0, folder: pathToFileURL(`${folder}/`), env: {}, lagMs: 0 };
  const model = await startDevSui(options);
  return {
    urls: { url: model.node.url, faucet: model.faucetUrl },
    async close() {
      await model.close();
      rmSync(folder, { recursive: true });
    },
  };
}
