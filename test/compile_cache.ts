/** For the environment of a Node process that inherits none: where others have left the modules that they compiled. */
export const COMPILE_CACHE = { NODE_COMPILE_CACHE: process.env['NODE_COMPILE_CACHE'] ?? '' };
