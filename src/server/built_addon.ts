import { fileURLToPath } from 'node:url';

/**
 * Path at which `make addon` builds the NSM addon. Only the entries of a checkout use it, since an image has
 * its own path.
 */
export const BUILT_ADDON = fileURLToPath(new URL('../../build/nsm.node', import.meta.url));
