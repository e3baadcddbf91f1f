/**
 * Signs a statement in a run of a workflow, without a key of the author: Fulcio certifies a key of this
 * process for the run, and Rekor logs the signature. Uses Sigstore's own packages.
 */
import { bundleToJSON } from '@sigstore/bundle';
import { CIContextProvider, DSSEBundleBuilder, FulcioSigner, RekorWitness } from '@sigstore/sign';
import type { SignKeyless } from 'sui-enclave-cli/toolchain';

/** Audience of the token that identifies the run to Fulcio. */
const AUDIENCE = 'sigstore';
/** Each request is repeated after a failure of the network or a status of 5xx. */
const REQUESTS = { timeout: 30_000, retry: 3 };

export const signKeyless: SignKeyless = async (payload, type, { fulcio, rekor }) => {
  const builder = new DSSEBundleBuilder({
    signer: new FulcioSigner({
      identityProvider: new CIContextProvider(AUDIENCE),
      fulcioBaseURL: fulcio,
      ...REQUESTS,
    }),
    witnesses: [new RekorWitness({ rekorBaseURL: rekor, entryType: 'dsse', ...REQUESTS })],
  });
  return bundleToJSON(await builder.create({ data: Buffer.from(payload), type }));
};
