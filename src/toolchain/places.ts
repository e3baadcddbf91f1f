/** Locations of the toolchain's files: in a clone of this repository, or in the installed package. */
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { CLONE, IS_CLONE } from 'sui-enclave-cli/places';

/** The folder of the packages: `src` of a clone, or the installed package. */
const PACKAGE = fileURLToPath(new URL('..', import.meta.url));

/** Folder of the images' sources: a clone, or the part of a clone in the installed package. */
export const FRAMEWORK = IS_CLONE ? resolve(CLONE) : join(PACKAGE, 'framework');

/** Folder of the framework's Move packages. */
const MOVE = join(IS_CLONE ? CLONE : PACKAGE, 'move');

/** The Move package of the framework, which the contracts of applications depend on. */
export const ENCLAVE_PACKAGE = join(MOVE, 'enclave');

/** The Move package of feeds, which contracts may depend on too. */
export const FEED_PACKAGE = join(MOVE, 'feed');

/** The static files of the console. A clone has to build them; the installed package contains them. */
export const CONSOLE = IS_CLONE ? join(CLONE, 'out/console') : join(PACKAGE, 'console');

/** The static files of the wallet's page, which only a clone has. */
export const WALLET = join(CLONE, 'out/wallet');

/** The stub of Sui's framework. */
export const FRAMEWORK_STUB = join(PACKAGE, 'devnet/move_framework');
