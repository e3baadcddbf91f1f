/** Refuses the keyless form outside Node, since Sigstore's packages are for Node. */
import { ReleaseError } from './errors.ts';
import type { OpenBundle } from './identity.ts';

export const openBundle: OpenBundle = () => {
  throw new ReleaseError(
    'RELEASE_UNSUPPORTED',
    'a keyless release can be verified in Node only: in a page, verify a release that is signed by a key',
  );
};
