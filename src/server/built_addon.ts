import { fileURLToPath } from 'node:url';

/**
 * Path at which `make addon` builds the NSM addon. Only entries of a checkout name it: an image has a path of
 * its own.
 */
export const BUILT_ADDON = fileURLToPath(new URL('../../build/nsm.node', import.meta.url));
