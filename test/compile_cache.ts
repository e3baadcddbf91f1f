/**
 * Environment variable for Node processes that do not inherit the environment. It names the folder with
 * modules that other processes have compiled.
 */
export const COMPILE_CACHE = { NODE_COMPILE_CACHE: process.env['NODE_COMPILE_CACHE'] ?? '' };
