/** Reads a config and its enclaves from a Sui node. Loaded only when it is asked for: it brings the client of Sui. */
import { SuiGrpcClient } from '@mysten/sui/grpc';
import type { Image } from 'sui-enclave/attestation';
import { acceptedImages, readConfig } from 'sui-enclave/sui';

export function nodeAt(url: URL): SuiGrpcClient {
  return new SuiGrpcClient({
    // Only names of packages depend on it, and this page uses none.
    network: 'custom',
    baseUrl: url.href.replace(/\/$/, ''),
    fetchInit: { credentials: 'omit', redirect: 'error', referrerPolicy: 'no-referrer' },
  });
}

/** The images that contracts accept now. @throws SuiError; the signal's reason */
export async function readImages(
  node: URL,
  configId: string,
  signal: AbortSignal,
): Promise<readonly Image[]> {
  const config = await readConfig(nodeAt(node), configId, { signal });
  return acceptedImages(config, Date.now());
}
