/**
 * Environment of a Node process that inherits none: the folder with the modules that other processes
 * compiled.
 */
export const COMPILE_CACHE = { NODE_COMPILE_CACHE: process.env['NODE_COMPILE_CACHE'] ?? '' };
